package httpapi

import (
	"context"
	"crypto/rand"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"xabar/chat"
)

type requestIDKey struct{}

// RequestID is the id of the HTTP request that ctx stands in, for its lines in the log; ""
// without one.
func RequestID(ctx context.Context) string {
	id, _ := ctx.Value(requestIDKey{}).(string)
	return id
}

// acceptRequestID keeps the caller's id if it can do no harm in a log, else makes one.
func acceptRequestID(id string) string {
	const allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"
	if id != "" && len(id) <= 64 && strings.Trim(id, allowed) == "" {
		return id
	}
	return rand.Text()
}

// named gives a request its id and, if it is recorded, its span, and logs it at the end. A
// line has the route and not the path: what a caller writes into that may be anything.
func named(log *slog.Logger, tracer chat.Tracer) echo.MiddlewareFunc {
	return func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c echo.Context) error {
			id := acceptRequestID(c.Request().Header.Get(echo.HeaderXRequestID))
			c.Response().Header().Set(echo.HeaderXRequestID, id)
			ctx := context.WithValue(c.Request().Context(), requestIDKey{}, id)
			span := begin(tracer, c, id)
			ctx = chat.WithSpan(ctx, span)
			c.SetRequest(c.Request().WithContext(ctx))
			start := time.Now()
			if err := next(c); err != nil {
				c.Error(err)
			}
			status := c.Response().Status
			end(span, c, status)
			if log.Enabled(ctx, slog.LevelDebug) {
				log.DebugContext(ctx, "http request", "method", method(c), "path", c.Path(), "status", status,
					"took", time.Since(start).Round(time.Microsecond).String())
			}
			return nil
		}
	}
}

// begin begins a request's span, which goes on with the caller's if that has sent a
// traceparent; nil: it is not recorded.
func begin(tracer chat.Tracer, c echo.Context, id string) chat.Span {
	if tracer == nil {
		return nil
	}
	span := tracer.StartFrom(c.Request().Header.Get("Traceparent"), chat.ServerSpan, method(c)+" "+c.Path())
	if span != nil {
		span.Word("http.request.method", method(c))
		span.Word("http.route", c.Path())
		span.Word("xabar.request.id", id)
	}
	return span
}

func end(span chat.Span, c echo.Context, status int) {
	if span == nil {
		return
	}
	span.Int("http.response.status_code", int64(status))
	if who, ok := c.Get(actorKey).(chat.Actor); ok {
		span.ID("xabar.user.id", who.User.ID)
	}
	var err error
	if status >= http.StatusInternalServerError {
		err = chat.Errorf(chat.CodeInternal, "")
	}
	span.End(err)
}

var methods = []string{
	http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions,
}

// method is one of HTTP's: callers may send any word.
func method(c echo.Context) string {
	if m := c.Request().Method; slices.Contains(methods, m) {
		return m
	}
	return "_OTHER"
}
