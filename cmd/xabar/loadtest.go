package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"xabar/gateway/auth"
	"xabar/internal/loadtest"
)

type loadtestCmd struct {
	Scenario string   `arg:"" enum:"idle,direct,group,typing,reconnect,history,mixed" help:"What to do: idle, direct, group, typing, reconnect, history or mixed."`
	Targets  []string `arg:"" placeholder:"URL" help:"The nodes. Connections are spread over them."`

	Users     int           `env:"-" default:"100" help:"Connections."`
	Apart     bool          `env:"-" help:"The two of a direct conversation connect to different nodes."`
	GroupSize int           `env:"-" default:"100" help:"Members of each group."`
	Rate      float64       `env:"-" help:"Messages (typing events, pages) a second, whatever the server does. 0: as many as the window lets through."`
	Window    int           `env:"-" default:"1" help:"Messages in flight of each sender where there is no rate."`
	Duration  time.Duration `env:"-" default:"30s" help:"Of the measurement."`
	Warmup    time.Duration `env:"-" default:"2s" help:"Before it, not measured."`
	RampUp    time.Duration `env:"-" help:"Over which connections are opened."`
	Settle    time.Duration `env:"-" default:"10s" help:"How long to wait at the end for what is missing."`
	Size      int           `env:"-" default:"100" help:"Bytes of a text."`
	Polling   float64       `env:"-" help:"Share of the connections that use long-polling instead of WebSocket, 0 to 1."`
	NoAcks    bool          `env:"-" help:"Recipients acknowledge nothing."`
	ReadEvery int           `env:"-" help:"Recipients of direct messages read every so manieth. 0: none."`
	Jitter    time.Duration `env:"-" default:"1s" help:"Over which the reconnections of a storm are spread."`
	Restarts  bool          `env:"-" help:"Nodes may be restarted meanwhile: connections that end are opened again, and what got no answer is sent again."`

	Description string   `env:"-" type:"existingfile" placeholder:"FILE" help:"How to speak to another Socket.IO server (YAML)."`
	PIDs        []string `name:"pid" env:"-" placeholder:"NAME=PID" help:"Processes whose CPU and memory are measured, with their children."`
	JSON        string   `name:"json" env:"-" placeholder:"FILE" help:"Write the result there."`
	HTML        string   `name:"html" env:"-" placeholder:"FILE" help:"Write a report with plots there."`

	Tokens      string `env:"-" type:"existingfile" placeholder:"FILE" help:"A token on each line, and behind it how others name the user (default: its sub)."`
	UserPrefix  string `env:"-" default:"load-" help:"Users are this and a number, where tokens are made."`
	DataDir     string `default:"xabar-data" placeholder:"DIR" help:"Data folder of a gateway in demo mode, whose key signs without --jwt-secret."`
	JWTSecret   string `name:"jwt-secret" placeholder:"SECRET" help:"The gateway's secret, to make tokens with."`
	JWTIssuer   string `name:"jwt-issuer" placeholder:"NAME" help:"The tokens' iss."`
	JWTAudience string `name:"jwt-audience" placeholder:"NAME" help:"The tokens' aud."`
}

// Run loads, prints the table, and fails when the server did what it must not do.
func (c *loadtestCmd) Run(ctx context.Context, std streams) error {
	options, err := c.options(std)
	if err != nil {
		return usageError{err}
	}
	result, err := loadtest.Run(ctx, options)
	if err != nil {
		return err
	}
	_, err = io.WriteString(std.out, result.Table())
	if err := errors.Join(err, c.write(result)); err != nil {
		return err
	}
	if result.Failed() {
		return loadtest.ErrFaults
	}
	return nil
}

func (c *loadtestCmd) options(std streams) (o loadtest.Options, err error) {
	o = loadtest.Options{
		Targets: c.Targets, Scenario: c.Scenario, Users: c.Users, Apart: c.Apart, GroupSize: c.GroupSize, Rate: c.Rate,
		Window: c.Window, Duration: c.Duration, Warmup: c.Warmup, RampUp: c.RampUp, Settle: c.Settle, Size: c.Size,
		Polling: c.Polling, NoAcks: c.NoAcks, ReadEvery: c.ReadEvery, Jitter: c.Jitter, Restarts: c.Restarts,
		Progress: std.err, Live: isTerminal(std.err),
	}
	if c.Description != "" {
		if o.Description, err = loadtest.ReadDescription(c.Description); err != nil {
			return o, err
		}
	}
	for _, p := range c.PIDs {
		name, pid, _ := strings.Cut(p, "=")
		n, err := strconv.Atoi(pid)
		if err != nil {
			return o, fmt.Errorf("--pid %s: it should be NAME=PID", p)
		}
		o.Processes = append(o.Processes, loadtest.Process{Name: name, PID: n})
	}
	if c.Tokens != "" {
		o.Token, err = loadtest.TokensFrom(c.Tokens)
		return o, err
	}
	secret, err := c.secret()
	if err != nil {
		return o, err
	}
	o.Token = loadtest.Minted(auth.NewMinter(secret, nil).For(c.JWTIssuer, c.JWTAudience), c.UserPrefix)
	return o, nil
}

// secret makes no key where there is none: no server would know it.
func (c *loadtestCmd) secret() ([]byte, error) {
	if c.JWTSecret == "" {
		if _, err := os.Stat(filepath.Join(c.DataDir, "demo.key")); err != nil {
			return nil, fmt.Errorf("give --jwt-secret, --tokens, or the --data-dir of a gateway in demo mode: %w", err)
		}
	}
	return signingSecret(c.JWTSecret, c.DataDir)
}

func (c *loadtestCmd) write(result *loadtest.Result) error {
	if c.JSON != "" {
		text, err := json.MarshalIndent(result, "", "  ")
		if err != nil {
			return err
		}
		if err := os.WriteFile(c.JSON, append(text, '\n'), 0o644); err != nil {
			return err
		}
	}
	if c.HTML == "" {
		return nil
	}
	file, err := os.Create(c.HTML)
	if err != nil {
		return err
	}
	return errors.Join(result.WriteHTML(file), file.Close())
}
