package main

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"time"

	"xabar/gateway/auth"
	"xabar/gateway/dialect"
	"xabar/internal/doctor"
)

const sectionConfig = "configuration"

// examineConfig says what serve would refuse and what check-config warns of, and fetches the
// key set, which check-config does not.
func (c *doctorCmd) examineConfig(ctx context.Context, r *doctor.Report) {
	s := r.Section(sectionConfig)
	wrong := parts(c.resolve())
	for _, err := range wrong {
		s.Problem("settings", "xabar check-config shows all settings and where they come from", "%v", err)
	}
	if len(wrong) == 0 {
		s.OK("settings", "%d given, the others by default", len(c.set))
	}
	for _, warning := range c.warnings() {
		s.Warn("settings", "", "%s", warning)
	}
	c.examineKeys(ctx, s)
	c.examineDoor(s)
	if _, err := dialect.Load(c.DialectDir); err != nil {
		s.Problem("dialects", "correct the file, or leave it out of --dialect-dir", "%v", err)
	}
}

// parts are the errors of a Join.
func parts(err error) []error {
	if err == nil {
		return nil
	}
	if joined, ok := err.(interface{ Unwrap() []error }); ok { //nolint:errorlint // of resolve itself
		return joined.Unwrap()
	}
	return []error{err}
}

func (c *doctorCmd) examineKeys(ctx context.Context, s doctor.Section) {
	check := checkConfigCmd{c.Config}
	var kinds []string
	switch err := check.checkKeys(ctx); {
	case err != nil:
		s.Problem("keys", "give a PEM public key, or the name of a file that has one", "%v", err)
	default:
		if c.JWTSecret != "" {
			kinds = append(kinds, "a secret (HS256)")
		}
		if c.JWTPublicKey != "" {
			kinds = append(kinds, "public keys")
		}
		if c.JWKSURL != "" {
			kinds = append(kinds, "a key set")
		}
		if c.Demo && c.JWTSecret == "" {
			kinds = append(kinds, "the demo key")
		}
		if len(kinds) > 0 {
			s.OK("keys", "tokens are checked with %s", strings.Join(kinds, " and "))
		}
	}
	if c.JWKSURL == "" {
		return
	}
	ctx, cancel := context.WithCancel(ctx) // ends the refreshing
	defer cancel()
	start := time.Now()
	err := auth.NewKeys().AddJWKS(ctx, c.JWKSURL, slog.New(slog.DiscardHandler))
	doctor.KeySet(s, c.JWKSURL, time.Since(start), err)
}

func (c *doctorCmd) anyOrigin() bool { return slices.Contains(c.AllowedOrigins, "*") }

// examineDoor looks at who may come from where.
func (c *doctorCmd) examineDoor(s doctor.Section) {
	switch {
	case c.anyOrigin():
		s.Warn("origins", "name your pages in --allowed-origins", "pages of everybody may connect, with the tokens that they have")
	case len(c.AllowedOrigins) > 0:
		s.OK("origins", "pages of the gateway's own address, and of %s", strings.Join(c.AllowedOrigins, ", "))
	default:
		s.OK("origins", "pages of the gateway's own address alone")
	}
	proxies, err := c.trustedProxies()
	if err != nil {
		return // among the settings
	}
	for _, network := range proxies {
		if network.Bits() == 0 {
			s.Problem("proxies", "name the proxies alone in --trusted-proxies", "everybody counts as a proxy: any client can claim any address")
			return
		}
	}
	if len(proxies) == 0 {
		s.OK("proxies", "none is trusted: X-Forwarded-For is not read")
		return
	}
	s.OK("proxies", "X-Forwarded-For is believed of %s", strings.Join(c.TrustedProxies, ", "))
}
