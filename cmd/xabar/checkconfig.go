package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"reflect"
	"strings"
	"text/tabwriter"

	"github.com/alecthomas/kong"

	"xabar/gateway/dialect"
)

type checkConfigCmd struct{ Config }

// Run prints every setting, where it comes from and what is wrong. It reads key files,
// makes nothing, and asks nobody over the network.
func (c *checkConfigCmd) Run(ctx context.Context, k *kong.Context, std streams) error {
	c.set = givenFlags(k)
	err := c.resolve()
	table := tabwriter.NewWriter(std.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "SETTING\tVALUE\tFROM")
	for _, flag := range k.Selected().Flags {
		from := "default"
		if c.set[flag.Name] {
			from = "set"
		}
		fmt.Fprintf(table, "--%s\t%s\t%s\n", flag.Name, c.show(flag), from)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if err == nil {
		err = c.checkKeys(ctx)
	}
	if _, wrong := dialect.Load(c.DialectDir); wrong != nil {
		err = errors.Join(err, fmt.Errorf("--dialect-dir:\n%w", wrong))
	}
	if err != nil {
		return usageError{err}
	}
	for _, warning := range c.warnings() {
		fmt.Fprintln(std.out, "\nWarning:", warning)
	}
	fmt.Fprintln(std.out, "\nThis configuration works.")
	return nil
}

// checkKeys looks at the keys that are given as such. The key set behind a URL is
// for serve to fetch, the demo key for serve to make.
func (c *checkConfigCmd) checkKeys(ctx context.Context) error {
	local := c.Config
	local.JWKSURL, local.Demo = "", false
	_, err := local.keys(ctx, slog.New(slog.DiscardHandler))
	return err
}

// show is the value as it is in force, without secrets.
func (c *Config) show(flag *kong.Flag) string {
	switch flag.Name {
	case "jwt-secret":
		return showSecret(c.JWTSecret)
	case "server-key":
		return showSecret(c.ServerKey)
	case "jwt-public-key":
		if strings.Contains(c.JWTPublicKey, "-----BEGIN") {
			return "(PEM)"
		}
		return c.JWTPublicKey
	case "database-url":
		return redact(c.url())
	case "jwks-url":
		return redact(c.JWKSURL)
	case "webhook-url":
		return redact(c.WebhookURL)
	case "otlp-endpoint":
		return redact(c.OTLPEndpoint)
	case "telegram-token":
		return showSecret(c.TelegramToken)
	case "telegram-api-url":
		return redact(c.TelegramAPIURL)
	case "webhook-secret":
		return showSecret(c.WebhookSecret)
	}
	value := flag.Target.Interface()
	if flag.Target.Kind() == reflect.Slice {
		return strings.Trim(fmt.Sprint(value), "[]")
	}
	return fmt.Sprint(value)
}

func showSecret(secret string) string {
	if secret == "" {
		return ""
	}
	return fmt.Sprintf("(%d bytes)", len(secret))
}

// redact hides the password of a URL. What is no URL is not shown: a password may
// stand anywhere in it.
func redact(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return "(not a URL)"
	}
	query := u.Query()
	if query.Has("password") {
		query.Set("password", "xxxxx")
		u.RawQuery = query.Encode()
	}
	return u.Redacted()
}
