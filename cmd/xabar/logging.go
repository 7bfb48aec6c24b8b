package main

import (
	"context"
	"io"
	"log/slog"
	"os"

	"github.com/mattn/go-isatty"

	"xabar/chat"
	"xabar/gateway/httpapi"
)

// logger makes the process's log: JSON for machines, text for a person who
// watches.
func (l Logging) logger(w io.Writer) *slog.Logger {
	options := &slog.HandlerOptions{Level: l.LogLevel}
	if l.LogFormat == "text" || l.LogFormat == "auto" && isTerminal(w) {
		return slog.New(inContext{slog.NewTextHandler(w, options)})
	}
	return slog.New(inContext{slog.NewJSONHandler(w, options)})
}

func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	return ok && isatty.IsTerminal(file.Fd())
}

// inContext adds to a line what its context knows: the HTTP request that it belongs to, and
// the trace, if that is recorded.
type inContext struct{ slog.Handler }

// Handle implements slog.Handler.
func (h inContext) Handle(ctx context.Context, r slog.Record) error {
	if id := httpapi.RequestID(ctx); id != "" {
		r.AddAttrs(slog.String("request_id", id))
	}
	if trace := chat.TraceOf(chat.SpanOf(ctx)); trace != nil {
		r.AddAttrs(slog.String("trace_id", trace.ID()))
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h inContext) WithAttrs(attrs []slog.Attr) slog.Handler {
	return inContext{h.Handler.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (h inContext) WithGroup(name string) slog.Handler {
	return inContext{h.Handler.WithGroup(name)}
}
