package httpapi

import (
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"

	"xabar/chat"
)

// How long a request's body may take to arrive, and its answer to leave. The
// server's own timeouts can't say this: polling shares its connections.
const (
	bodyTimeout  = 10 * time.Second
	writeTimeout = 30 * time.Second
)

func newEcho(log *slog.Logger, tracer chat.Tracer) *echo.Echo {
	e := echo.New()
	e.HideBanner, e.HidePort = true, true
	e.HTTPErrorHandler = handleErrors(log)
	e.Use(transport, named(log, tracer))
	e.Use(middleware.RecoverWithConfig(middleware.RecoverConfig{
		LogErrorFunc: func(c echo.Context, err error, stack []byte) error {
			log.ErrorContext(c.Request().Context(), "panic in a handler", "path", c.Path(), "error", err, "stack", string(stack))
			return err
		},
	}))
	return e
}

// transport bounds a request in time, and sets the headers that every answer has.
func transport(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		h := c.Response().Header()
		h.Set(echo.HeaderXContentTypeOptions, "nosniff")
		h.Set(echo.HeaderCacheControl, "no-store")
		control := http.NewResponseController(c.Response().Writer)
		now := time.Now()
		err := errors.Join(control.SetReadDeadline(now.Add(bodyTimeout)), control.SetWriteDeadline(now.Add(writeTimeout)))
		if err != nil && !errors.Is(err, http.ErrNotSupported) {
			return err // the connection is gone
		}
		if err := next(c); err != nil {
			c.Error(err)
		}
		// The next request of this connection may be a long poll: the answer goes out
		// now, while the deadline stands, and then the deadline is lifted.
		if c.Response().Committed {
			err = errors.Join(control.Flush(), control.SetWriteDeadline(time.Time{}))
			if err != nil && !errors.Is(err, http.ErrNotSupported) {
				return nil // whoever does not read its answer misses it
			}
		}
		return nil
	}
}
