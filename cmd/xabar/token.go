package main

import (
	"fmt"
	"time"

	"xabar/chat"
	"xabar/gateway/auth"
)

type tokenCmd struct {
	Sub  string        `arg:"" help:"Whom the token is for: a user's UUID, or any other name or number of yours."`
	Name string        `env:"-" help:"The user's name."`
	TTL  time.Duration `name:"ttl" env:"-" default:"24h" placeholder:"TIME" help:"How long the token is good for."`

	DataDir   string `default:"xabar-data" placeholder:"DIR" help:"Data folder of a gateway in demo mode, whose key signs without --jwt-secret."`
	JWTSecret string `name:"jwt-secret" placeholder:"SECRET" help:"The gateway's secret."`

	JWTIssuer   string `name:"jwt-issuer" placeholder:"NAME" help:"The token's iss, where the gateway asks for one."`
	JWTAudience string `name:"jwt-audience" placeholder:"NAME" help:"The token's aud, where the gateway asks for one."`
}

// Run prints the token and nothing else, so that a script can take it.
func (c *tokenCmd) Run(std streams) error {
	secret, err := signingSecret(c.JWTSecret, c.DataDir)
	if err != nil {
		return fmt.Errorf("a secret to sign with: %w", err)
	}
	token, _, err := auth.NewMinter(secret, nil).For(c.JWTIssuer, c.JWTAudience).Mint(chat.UserRef(c.Sub), c.Name, c.TTL)
	if err != nil {
		return usageError{err}
	}
	_, err = fmt.Fprintln(std.out, token)
	return err
}
