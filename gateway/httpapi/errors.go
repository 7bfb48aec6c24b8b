package httpapi

import (
	"errors"
	"log/slog"
	"net/http"

	"github.com/labstack/echo/v4"

	"xabar/chat"
)

// errorBody is the wire form of an error.
type errorBody struct {
	Error errorFields `json:"error"`
}

type errorFields struct {
	Code         chat.Code `json:"code"`
	Message      string    `json:"message"`
	Retryable    bool      `json:"retryable"`
	RetryAfterMs int64     `json:"retry_after_ms,omitempty"`
	Field        string    `json:"field,omitempty"`
}

// handleErrors writes what a handler failed with. The cause stays in the log.
func handleErrors(log *slog.Logger) echo.HTTPErrorHandler {
	return func(err error, c echo.Context) {
		if c.Response().Committed {
			return
		}
		known, status := asError(err)
		if status >= http.StatusInternalServerError {
			log.Error("http request", "method", c.Request().Method, "path", c.Path(), "error", err)
		}
		body := errorBody{errorFields{
			Code: known.Code, Message: known.Message, Retryable: known.Code.Retryable(),
			RetryAfterMs: known.RetryAfter.Milliseconds(), Field: known.Field,
		}}
		if err := c.JSON(status, body); err != nil {
			log.Debug("write an error to a client", "error", err)
		}
	}
}

// asError is the chat error and the status for whatever a handler or the router
// failed with.
func asError(err error) (*chat.Error, int) {
	var http4xx *echo.HTTPError
	if errors.As(err, &http4xx) && http4xx.Code < http.StatusInternalServerError {
		code := chat.CodeInvalidArgument
		if http4xx.Code == http.StatusNotFound || http4xx.Code == http.StatusMethodNotAllowed {
			code = chat.CodeNotFound
		}
		return chat.Errorf(code, ""), http4xx.Code
	}
	known := chat.AsError(err)
	return known, known.Code.HTTPStatus()
}
