// Command xabar is the whole gateway in one binary: the server (serve), its
// database's schema (migrate), tokens for development (token), a load test (loadtest), a check of a
// configuration before it is used (check-config), and of a node that runs (health).
//
// App (app.go) wires the packages together; Config (config.go) is the one source of
// flags and environment variables.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"
)

// cli is the command line.
type cli struct {
	Serve         serveCmd         `cmd:"" help:"Run the gateway."`
	Migrate       migrateCmd       `cmd:"" help:"Look at or change the database's schema."`
	Backup        backupCmd        `cmd:"" help:"Copy the embedded database into a file while gateways use it."`
	Restored      restoredCmd      `cmd:"" help:"Say that an older state of the database was restored over it: clients are told to reset."`
	Prune         pruneCmd         `cmd:"" help:"Delete old messages for good."`
	Token         tokenCmd         `cmd:"" help:"Make a token for development."`
	CheckConfig   checkConfigCmd   `cmd:"" help:"Say what a configuration means and whether it works."`
	Health        healthCmd        `cmd:"" help:"Ask the gateway on this machine whether it can serve: for health checks of containers."`
	Doctor        doctorCmd        `cmd:"" help:"Examine what a gateway needs: configuration, database, Redis, clocks, limits, proxies."`
	Notifications notificationsCmd `cmd:"" help:"Look at notifications, and retry those that failed."`
	Loadtest      loadtestCmd      `cmd:"" help:"Load a gateway, or any Socket.IO chat server, measure it, and check what it does."`
	Version       versionCmd       `cmd:"" help:"Print the version."`
}

// streams are the process's, or a test's.
type streams struct{ out, err io.Writer }

func main() {
	ctx, stop := untilSignal(context.Background())
	code := run(ctx, os.Args[1:], streams{os.Stdout, os.Stderr})
	stop()
	os.Exit(code)
}

// untilSignal ends the context at the first SIGINT or SIGTERM. The second one ends the
// process at once: somebody who asks twice does not want to wait.
func untilSignal(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(parent)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	done := make(chan struct{})
	go func() {
		for range 2 {
			select {
			case <-signals:
			case <-done:
				return
			}
			if ctx.Err() != nil {
				os.Exit(130)
			}
			cancel()
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(done)
		cancel()
	}
}

// run is main without the process: it returns the exit code, 2 for a command line
// or configuration that is wrong, 1 for what fails later.
func run(ctx context.Context, args []string, std streams) int {
	var c cli
	exited := -1
	parser, err := kong.New(&c,
		kong.Name("xabar"),
		kong.Description("A Socket.IO chat gateway: every message stored, numbered and acknowledged."),
		kong.DefaultEnvars(envPrefix),
		kong.Writers(std.out, std.err),
		kong.Exit(func(code int) { exited = code }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.ValueFormatter(helpText),
	)
	if err != nil {
		fmt.Fprintln(std.err, "xabar:", err)
		return 2
	}
	k, err := parser.Parse(args)
	if exited >= 0 { // --help has been answered
		return exited
	}
	if err != nil {
		fmt.Fprintf(std.err, "xabar: %v\nxabar --help says what there is.\n", err)
		return 2
	}
	k.BindTo(ctx, (*context.Context)(nil))
	k.Bind(std)
	return exitCode(k.Run(), std.err)
}

// helpText is a flag's help with its default and variable.
func helpText(value *kong.Value) string {
	var more []string
	if value.HasDefault && value.Flag != nil {
		more = append(more, "default "+value.Default)
	}
	for _, env := range value.Tag.Envs {
		more = append(more, "$"+env)
	}
	if len(more) == 0 {
		return value.Help
	}
	return value.Help + " (" + strings.Join(more, ", ") + ")"
}

// usageError is a configuration that cannot work.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// toldError ends the program with code 1. What it means has been printed.
type toldError struct{ error }

func exitCode(err error, stderr io.Writer) int {
	var told toldError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &told):
		return 1
	}
	fmt.Fprintln(stderr, "xabar:", err)
	var usage usageError
	if errors.As(err, &usage) {
		return 2
	}
	return 1
}
