package main

import (
	"io"
	"log/slog"
	"os"

	"github.com/mattn/go-isatty"
)

// logger makes the process's log: JSON for machines, text for a person who
// watches.
func (l Logging) logger(w io.Writer) *slog.Logger {
	options := &slog.HandlerOptions{Level: l.LogLevel}
	if l.LogFormat == "text" || l.LogFormat == "auto" && isTerminal(w) {
		return slog.New(slog.NewTextHandler(w, options))
	}
	return slog.New(slog.NewJSONHandler(w, options))
}

func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	return ok && isatty.IsTerminal(file.Fd())
}
