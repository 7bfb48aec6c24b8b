package httpapi

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/labstack/echo/v4"

	"xabar/chat"
)

//go:embed openapi.yaml
var description []byte

// Description is openapi.yaml.
func Description() []byte { return bytes.Clone(description) }

// defaultBodyLimit bounds a body whose operation says nothing else. A text of 2,000
// code points is 24 kB at most, however it is escaped.
const defaultBodyLimit = 64 << 10

// largeBodies bounds the bytes of bodies beyond defaultBodyLimit that are in memory
// at a time: parsed, they take a multiple of it.
const largeBodies = 16 << 20

// access says what an operation asks of its caller.
type access uint8

const (
	accessPublic access = iota
	accessLogin         // nobody yet: limited by address
	accessToken
	accessServerKey
)

// operation is what the description says of one.
type operation struct {
	id        string
	route     routers.Route
	access    access
	bodyLimit int64 // 0: no body
}

// document is the parsed description, and its operations by id.
type document struct {
	spec       *openapi3.T
	operations map[string]*operation
}

// loadDocument parses the embedded description once. It is part of the program: what
// is wrong with it fails every test.
var loadDocument = sync.OnceValue(func() document {
	spec, err := openapi3.NewLoader().LoadFromData(description)
	if err == nil {
		err = spec.Validate(context.Background())
	}
	if err != nil {
		panic(fmt.Sprintf("httpapi: openapi.yaml: %v", err))
	}
	doc := document{spec: spec, operations: map[string]*operation{}}
	for path, item := range spec.Paths.Map() {
		for method, op := range item.Operations() {
			o := &operation{id: op.OperationID, access: accessOf(spec, op)}
			o.route = routers.Route{Spec: spec, Path: path, PathItem: item, Method: method, Operation: op}
			o.bodyLimit = bodyLimit(op)
			doc.operations[o.id] = o
		}
	}
	return doc
})

// bodyLimit is how many bytes the operation takes; 0 without a body.
func bodyLimit(op *openapi3.Operation) int64 {
	if op.RequestBody == nil {
		return 0
	}
	if limit, ok := op.Extensions["x-body-limit"].(float64); ok {
		return int64(limit)
	}
	return defaultBodyLimit
}

func accessOf(spec *openapi3.T, op *openapi3.Operation) access {
	security := spec.Security
	if op.Security != nil {
		security = *op.Security
	}
	asks := func(scheme string) bool {
		return slices.ContainsFunc(security, func(r openapi3.SecurityRequirement) bool { return r[scheme] != nil })
	}
	switch {
	case asks("serverKey"):
		return accessServerKey
	case asks("token"):
		return accessToken
	case op.RequestBody != nil:
		return accessLogin
	}
	return accessPublic
}

// budget is a number of bytes that is shared.
type budget struct {
	mu   sync.Mutex // guards left
	left int64
}

func (b *budget) take(n int64) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if n > b.left {
		return false
	}
	b.left -= n
	return true
}

func (b *budget) give(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left += n
}

// validate reads the body, within its bounds, and checks the request against the
// description.
func (s *server) validate(op *operation, next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		r := c.Request()
		if op.bodyLimit > 0 {
			reserved, err := s.reserve(op, r)
			if err != nil {
				return err
			}
			defer s.bodies.give(reserved)
			body, err := readBody(c, op.bodyLimit)
			if err != nil {
				return err
			}
			if err := defuse(body); err != nil {
				return err
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
		}
		names, values := c.ParamNames(), c.ParamValues()
		params := make(map[string]string, len(names))
		for i, name := range names {
			params[name] = values[i]
		}
		err := openapi3filter.ValidateRequest(r.Context(), &openapi3filter.RequestValidationInput{
			Request: r, Route: &op.route, PathParams: params, Options: &validationOptions,
		})
		if err != nil {
			return shapeError(err)
		}
		return next(c)
	}
}

var validationOptions = openapi3filter.Options{
	AuthenticationFunc:  openapi3filter.NoopAuthenticationFunc, // access.go has done it
	SkipSettingDefaults: true,
}

// reserve takes what a large body may need from the budget.
func (s *server) reserve(op *operation, r *http.Request) (int64, error) {
	kind, _, err := mime.ParseMediaType(r.Header.Get(echo.HeaderContentType))
	if err != nil || kind != echo.MIMEApplicationJSON {
		// A form of a foreign page could post without asking first, but not as JSON.
		return 0, statusError{http.StatusUnsupportedMediaType,
			chat.Errorf(chat.CodeInvalidArgument, "the content type must be application/json")}
	}
	size := r.ContentLength
	if size > op.bodyLimit {
		return 0, tooLarge(op.bodyLimit)
	}
	if size < 0 {
		size = op.bodyLimit
	}
	if size <= defaultBodyLimit {
		return 0, nil
	}
	if !s.bodies.take(size) {
		return 0, chat.Errorf(chat.CodeOverloaded, "")
	}
	return size, nil
}

func readBody(c echo.Context, limit int64) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(c.Response().Writer, c.Request().Body, limit))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, tooLarge(limit)
	case errors.Is(err, os.ErrDeadlineExceeded):
		c.Response().Header().Set(echo.HeaderConnection, "close")
		return nil, statusError{http.StatusRequestTimeout,
			chat.Errorf(chat.CodeTimeout, "the body did not arrive within %v", bodyTimeout)}
	case err != nil:
		return nil, chat.Errorf(chat.CodeInvalidArgument, "the body could not be read")
	}
	return body, nil
}

// shapeError says which field is wrong. What the request held is not repeated.
func shapeError(err error) error {
	var request *openapi3filter.RequestError
	if !errors.As(err, &request) {
		return chat.Errorf(chat.CodeInvalidArgument, "")
	}
	field := ""
	if request.Parameter != nil {
		field = request.Parameter.Name
	}
	var schema *openapi3.SchemaError
	if errors.As(err, &schema) {
		if path := schema.JSONPointer(); len(path) > 0 && request.Parameter == nil {
			field = path[0]
		}
		if field != "" {
			return chat.InvalidArgument(field, "%s: %s", field, reason(schema))
		}
		return chat.Errorf(chat.CodeInvalidArgument, "%s", reason(schema))
	}
	if field != "" {
		return chat.InvalidArgument(field, "%s has a wrong shape", field)
	}
	return chat.Errorf(chat.CodeInvalidArgument, "the body must be a JSON object as described")
}

// reason says in words what the description asks for.
func reason(e *openapi3.SchemaError) string {
	switch schema := e.Schema; e.SchemaField {
	case "required":
		return "it is required"
	case "type", "oneOf", "nullable":
		return "it has the wrong type"
	case "enum":
		return "it is none of the values that are allowed"
	case "minimum":
		return fmt.Sprintf("it is below %v", *schema.Min)
	case "minLength", "minItems":
		return "it is empty"
	case "maxLength":
		return fmt.Sprintf("it has more than %d characters", *schema.MaxLength)
	case "maxItems":
		return fmt.Sprintf("there are more than %d", *schema.MaxItems)
	case "maxProperties":
		return fmt.Sprintf("there are more than %d", *schema.MaxProps)
	}
	return "it has a wrong shape"
}

// decode reads the body, which has passed validation, into T.
func decode[T any](c echo.Context) (T, error) {
	var into T
	body, err := io.ReadAll(c.Request().Body)
	if err != nil {
		return into, err
	}
	err = json.Unmarshal(body, &into)
	var known *chat.Error
	var wrong *json.UnmarshalTypeError
	switch {
	case err == nil || errors.As(err, &known):
		return into, err
	case errors.As(err, &wrong):
		field, _, _ := strings.Cut(wrong.Field, ".")
		return into, chat.InvalidArgument(field, "%s has the wrong type", field)
	}
	return into, chat.Errorf(chat.CodeInvalidArgument, "the body is not JSON")
}
