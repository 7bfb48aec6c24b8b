package httpapi

import (
	"errors"
	"log/slog"
	"math"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"xabar/chat"
	"xabar/gateway/httpapi/api"
)

// statusError is an error whose status is not the one of its code in chat's table.
type statusError struct {
	status int
	known  *chat.Error
}

func (e statusError) Error() string { return e.known.Error() }
func (e statusError) Unwrap() error { return e.known }

func tooLarge(limit int64) error {
	return statusError{http.StatusRequestEntityTooLarge,
		chat.Errorf(chat.CodeInvalidArgument, "the body is larger than %d bytes", limit)}
}

// handleErrors writes what a handler failed with. The cause stays in the log.
func handleErrors(log *slog.Logger) echo.HTTPErrorHandler {
	return func(err error, c echo.Context) {
		known, status := asError(err)
		if status >= http.StatusInternalServerError {
			log.ErrorContext(c.Request().Context(), "an http request failed", "method", method(c), "path", c.Path(), "error", err)
		}
		if c.Response().Committed {
			return
		}
		h := c.Response().Header()
		switch {
		case status == http.StatusUnauthorized:
			h.Set(echo.HeaderWWWAuthenticate, "Bearer")
		case known.RetryAfter > 0:
			h.Set(echo.HeaderRetryAfter, strconv.Itoa(int(math.Ceil(known.RetryAfter.Seconds()))))
		}
		if err := c.JSON(status, errorBody(known)); err != nil {
			log.DebugContext(c.Request().Context(), "write an error to a client", "error", err)
		}
	}
}

func errorBody(e *chat.Error) (body api.Error) {
	body.Error.Code = api.ErrorCode(e.Code)
	body.Error.Message = snakeWords(e.Message)
	body.Error.Retryable = e.Code.Retryable()
	if e.Field != "" {
		field := snakeWords(e.Field)
		body.Error.Field = &field
	}
	if ms := e.RetryAfter.Milliseconds(); ms > 0 {
		body.Error.RetryAfterMs = &ms
	}
	return body
}

// camelWord is a field name as the chat package, which speaks Socket.IO's names,
// has it in errors.
var camelWord = regexp.MustCompile(`\b[a-z]+(?:[A-Z][a-z]+)+\b`)

// snakeWords spells them as this door does.
func snakeWords(s string) string {
	return camelWord.ReplaceAllStringFunc(s, func(word string) string {
		var b strings.Builder
		for _, r := range word {
			if r >= 'A' && r <= 'Z' {
				b.WriteByte('_')
				r += 'a' - 'A'
			}
			b.WriteRune(r)
		}
		return b.String()
	})
}

// asError is the chat error and the status for whatever a handler or the router
// failed with.
func asError(err error) (*chat.Error, int) {
	var special statusError
	if errors.As(err, &special) {
		return special.known, special.status
	}
	var known *chat.Error
	var fromEcho *echo.HTTPError
	if !errors.As(err, &known) && errors.As(err, &fromEcho) && fromEcho.Code < http.StatusInternalServerError {
		code := chat.CodeInvalidArgument
		if fromEcho.Code == http.StatusNotFound || fromEcho.Code == http.StatusMethodNotAllowed {
			code = chat.CodeNotFound
		}
		return chat.Errorf(code, ""), fromEcho.Code
	}
	known = chat.AsError(err)
	if known.Code == chat.CodeOverloaded && known.RetryAfter == 0 {
		known.RetryAfter = time.Second
	}
	return known, known.Code.HTTPStatus()
}
