package httpapi

import (
	_ "embed"
	"log/slog"
	"net/http"

	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"
)

// maxBody bounds a request's body. A text of 2,000 characters is 24 kB at most,
// however it is escaped.
const maxBody = "256K"

//go:embed index.html
var index []byte

// Public is what the public routes are made of.
type Public struct {
	// Origins that browsers may call from besides the server's own:
	// "https://example.org", "https://*.example.org", or "*".
	Origins []string
	// Demo turns on POST /demo/login; nil leaves the route out.
	Demo   *Demo
	Logger *slog.Logger
}

// NewPublic makes the handler of the public address but for Socket.IO.
func NewPublic(p Public) http.Handler {
	e := newEcho(p.Logger)
	e.Use(middleware.BodyLimit(maxBody))
	if len(p.Origins) > 0 {
		e.Use(middleware.CORSWithConfig(middleware.CORSConfig{
			AllowOrigins: p.Origins,
			AllowHeaders: []string{echo.HeaderContentType, echo.HeaderAuthorization},
		}))
	}
	e.GET("/", func(c echo.Context) error {
		h := c.Response().Header()
		h.Set(echo.HeaderContentSecurityPolicy, "default-src 'none'; style-src 'unsafe-inline'")
		h.Set(echo.HeaderXContentTypeOptions, "nosniff")
		return c.HTMLBlob(http.StatusOK, index)
	})
	if p.Demo != nil {
		e.POST("/demo/login", p.Demo.login)
	}
	return e
}

func newEcho(log *slog.Logger) *echo.Echo {
	e := echo.New()
	e.HideBanner, e.HidePort = true, true
	e.HTTPErrorHandler = handleErrors(log)
	e.Use(middleware.RecoverWithConfig(middleware.RecoverConfig{
		LogErrorFunc: func(c echo.Context, err error, stack []byte) error {
			log.Error("panic in a handler", "path", c.Path(), "error", err, "stack", string(stack))
			return err
		},
	}))
	return e
}
