package chat

import (
	"errors"
	"fmt"
	"net/http"
	"time"
)

// Code is the stable name of an error, the same on Socket.IO and HTTP. Clients
// decide by it; messages are for people and may change.
type Code string

// The codes a client can meet. The table below gives each its HTTP status,
// whether a retry helps, and the message that is safe to show.
const (
	CodeUnauthenticated Code = "unauthenticated"
	CodeTokenExpired    Code = "token_expired"
	CodeForbidden       Code = "forbidden"
	CodeNotFound        Code = "not_found"
	CodeInvalidArgument Code = "invalid_argument"
	CodeTextEmpty       Code = "text_empty"
	CodeTextTooLong     Code = "text_too_long"
	CodeInvalidText     Code = "invalid_text"
	CodeUnknownEvent    Code = "unknown_event"
	CodeConflict        Code = "conflict"
	CodeRateLimited     Code = "rate_limited"
	CodeOverloaded      Code = "overloaded"
	CodeUnavailable     Code = "unavailable"
	CodeTimeout         Code = "timeout"
	CodeInternal        Code = "internal"
)

// codeInfo is one row of the error table.
type codeInfo struct {
	status    int
	retryable bool
	message   string
}

var codes = map[Code]codeInfo{
	CodeUnauthenticated: {http.StatusUnauthorized, false, "a valid token is required"},
	CodeTokenExpired:    {http.StatusUnauthorized, false, "the token has expired"},
	CodeForbidden:       {http.StatusForbidden, false, "this is not allowed"},
	CodeNotFound:        {http.StatusNotFound, false, "there is no such thing"},
	CodeInvalidArgument: {http.StatusBadRequest, false, "the request has a wrong shape"},
	CodeTextEmpty:       {http.StatusUnprocessableEntity, false, "the text is empty"},
	CodeTextTooLong:     {http.StatusUnprocessableEntity, false, "the text is longer than 2000 characters"},
	CodeInvalidText:     {http.StatusUnprocessableEntity, false, "the text contains U+0000"},
	CodeUnknownEvent:    {http.StatusNotFound, false, "there is no such event"},
	CodeConflict:        {http.StatusConflict, false, "this id was used for something else"},
	CodeRateLimited:     {http.StatusTooManyRequests, true, "too many requests"},
	CodeOverloaded:      {http.StatusServiceUnavailable, true, "the server is overloaded"},
	CodeUnavailable:     {http.StatusServiceUnavailable, true, "the service is unavailable for the moment"},
	CodeTimeout:         {http.StatusGatewayTimeout, true, "the request took too long; its outcome is unknown, repeat it"},
	CodeInternal:        {http.StatusInternalServerError, true, "an internal error"},
}

// HTTPStatus is the status that goes with the code; 500 for a code that is not
// in the table.
func (c Code) HTTPStatus() int { return c.info().status }

// Retryable says whether the same request may succeed later.
func (c Code) Retryable() bool { return c.info().retryable }

// Message is the text that is safe to show with the code.
func (c Code) Message() string { return c.info().message }

func (c Code) info() codeInfo {
	if info, ok := codes[c]; ok {
		return info
	}
	return codes[CodeInternal]
}

// Codes lists every code of the table, in no order; tests and documentation
// checks walk it.
func Codes() []Code {
	all := make([]Code, 0, len(codes))
	for c := range codes {
		all = append(all, c)
	}
	return all
}

// Error is the only error that a client sees. Message is safe to show; the
// wrapped cause is for logs and never leaves the server.
type Error struct {
	Code       Code
	Message    string
	Field      string        // the payload field that is wrong, with CodeInvalidArgument
	RetryAfter time.Duration // how long to wait, with CodeRateLimited and CodeOverloaded; 0: unknown
	cause      error
}

// Error returns the code, the message and the cause, for logs.
func (e *Error) Error() string {
	s := string(e.Code) + ": " + e.Message
	if e.Field != "" {
		s += " (" + e.Field + ")"
	}
	if e.cause != nil {
		s += ": " + e.cause.Error()
	}
	return s
}

// Unwrap gives the cause to errors.Is and errors.As.
func (e *Error) Unwrap() error { return e.cause }

// Errorf makes an Error of the code with a safe message of its own. An empty
// format takes the table's message.
func Errorf(code Code, format string, args ...any) *Error {
	message := code.Message()
	if format != "" {
		message = fmt.Sprintf(format, args...)
	}
	return &Error{Code: code, Message: message}
}

// InvalidArgument names the field that is wrong and what it should be.
func InvalidArgument(field, format string, args ...any) *Error {
	e := Errorf(CodeInvalidArgument, format, args...)
	e.Field = field
	return e
}

// Wrap gives a cause a code and the table's safe message. A cause that already
// is (or wraps) an Error is returned as it is, so that the code nearest to the
// fault wins. Wrap(code, nil) is nil.
func Wrap(code Code, cause error) error {
	if cause == nil {
		return nil
	}
	var known *Error
	if errors.As(cause, &known) {
		return cause
	}
	return &Error{Code: code, Message: code.Message(), cause: cause}
}

// AsError is what a transport answers with: the Error inside err, or
// CodeInternal around anything else. nil stays nil.
func AsError(err error) *Error {
	if err == nil {
		return nil
	}
	var known *Error
	if errors.As(err, &known) {
		return known
	}
	return &Error{Code: CodeInternal, Message: CodeInternal.Message(), cause: err}
}

// CodeOf is AsError(err).Code, and "" for nil.
func CodeOf(err error) Code {
	if err == nil {
		return ""
	}
	return AsError(err).Code
}
