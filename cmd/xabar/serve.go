package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/alecthomas/kong"
)

type serveCmd struct{ Config }

// Run serves until ctx ends.
func (s *serveCmd) Run(ctx context.Context, k *kong.Context, std streams) error {
	s.set = givenFlags(k)
	if err := s.resolve(); err != nil {
		return usageError{err}
	}
	log := s.logger(std.err)
	for _, warning := range s.warnings() {
		log.Warn(warning)
	}
	app, err := NewApp(ctx, s.Config, log)
	if err != nil {
		return err
	}
	if err := banner(std.out, s.Config, app.Addresses()); err != nil {
		log.Warn("print the banner", "error", err) // a closed terminal is no reason to stop
	}
	return app.Run(ctx)
}

// banner tells the person who started the gateway where it is and what to do next.
func banner(w io.Writer, cfg Config, at Addresses) error {
	var b strings.Builder
	mode := ""
	if cfg.Demo {
		mode = ", demo mode: anybody can log in as anybody"
	}
	fmt.Fprintf(&b, "\n  Xabar %s%s\n\n", version(), mode)
	row := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "  %-11s %s\n", name, fmt.Sprintf(format, args...))
	}
	row("Open", "%s", at.Public)
	row("Socket.IO", "io(%q, { auth: { token } })", at.Public)
	if cfg.Demo {
		row("Log in", `curl %s/demo/login --json '{"name": "ada"}'`, at.Public)
	}
	row("Health", "%s/readyz, /healthz, /metrics", at.Admin)
	row("Data", "%s", describeDatabase(cfg.url()))
	b.WriteString("\n  Ctrl-C stops it.\n\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// describeDatabase is a database URL without its password.
func describeDatabase(address string) string {
	if path, ok := strings.CutPrefix(address, "sqlite:"); ok {
		return filepath.Clean(path)
	}
	return redact(address)
}
