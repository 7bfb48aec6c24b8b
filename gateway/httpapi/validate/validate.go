// Package validate holds a running server to its description, openapi.yaml.
//
// A Checker is an HTTP client that looks at every exchange: a request that was
// answered with success must be one that the description allows, and the answer
// must have a status, headers and fields that the description names, nothing more.
// It remembers which operations and statuses it has seen, so that a test can say
// which of the documented ones were never driven.
//
// The test of this package drives all of them, against the real binary and, for
// what a healthy binary doesn't do, against the same handlers on a store that fails:
//
//	make validate-api
package validate

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
)

// Checker checks exchanges. Safe for concurrent use.
type Checker struct {
	spec       *openapi3.T
	operations map[string]*routers.Route // by operationId
	client     *http.Client

	mu   sync.Mutex // guards seen
	seen map[string]map[string]int
}

// New makes a Checker of the description.
func New(description []byte, client *http.Client) (*Checker, error) {
	decoders()
	spec, err := openapi3.NewLoader().LoadFromData(description)
	if err != nil {
		return nil, err
	}
	c := &Checker{spec: spec, client: client, operations: map[string]*routers.Route{}, seen: map[string]map[string]int{}}
	for path, item := range spec.Paths.Map() {
		for method, op := range item.Operations() {
			c.operations[op.OperationID] = &routers.Route{Spec: spec, Path: path, PathItem: item, Method: method, Operation: op}
		}
	}
	for _, schema := range spec.Components.Schemas {
		forbidMore(schema)
	}
	return c, nil
}

// decoders teaches the validator the bodies that are not JSON. The registry is the
// library's own, for the whole process.
var decoders = sync.OnceFunc(func() {
	decode := func(check func([]byte) error) openapi3filter.BodyDecoder {
		return func(body io.Reader, _ http.Header, _ *openapi3.SchemaRef, _ openapi3filter.EncodingFn) (any, error) {
			b, err := io.ReadAll(body)
			if err == nil {
				err = check(b)
			}
			return string(b), err
		}
	}
	openapi3filter.RegisterBodyDecoder("text/html", decode(func(b []byte) error {
		if !bytes.HasPrefix(b, []byte("<!doctype html>")) {
			return errors.New("not a page")
		}
		return nil
	}))
	openapi3filter.RegisterBodyDecoder("application/x-ndjson", decode(func(b []byte) error {
		for line := range bytes.Lines(b) {
			if !json.Valid(line) || line[len(line)-1] != '\n' {
				return fmt.Errorf("not a line of JSON: %q", line)
			}
		}
		return nil
	}))
})

// forbidMore makes a field that is not documented an error.
func forbidMore(ref *openapi3.SchemaRef) {
	s := ref.Value
	if s.Type.Is("object") && s.AdditionalProperties.Schema == nil && s.AdditionalProperties.Has == nil {
		no := false
		s.AdditionalProperties.Has = &no
	}
	for _, property := range s.Properties {
		forbidMore(property)
	}
	if s.Items != nil {
		forbidMore(s.Items)
	}
}

// Operations are the documented operationIds, in order.
func (c *Checker) Operations() []string {
	ids := make([]string, 0, len(c.operations))
	for id := range c.operations {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// Operation is what the description says of an operation.
func (c *Checker) Operation(id string) *openapi3.Operation { return c.operations[id].Operation }

// Route is the operation's method and path.
func (c *Checker) Route(id string) (method, path string) {
	route := c.operations[id]
	return route.Method, route.Path
}

// Example is the description's example of the operation's body; nil if it has none.
func (c *Checker) Example(id string) any {
	if body := c.operations[id].Operation.RequestBody; body != nil {
		return body.Value.Content.Get("application/json").Schema.Value.Example
	}
	return nil
}

// Security is the name of the scheme that the operation asks for, "" for none.
func (c *Checker) Security(id string) string {
	security := c.spec.Security
	if own := c.operations[id].Operation.Security; own != nil {
		security = *own
	}
	for _, requirement := range security {
		for name := range requirement {
			return name
		}
	}
	return ""
}

// Request is a call of an operation.
type Request struct {
	Operation string
	Params    map[string]string // in the path
	Query     url.Values
	Header    http.Header
	Body      []byte // nil: none
}

// Answer is what came back.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// Call sends the request to the server at base and checks the exchange. The error is
// about the description; what the server answered is for the caller to judge.
func (c *Checker) Call(ctx context.Context, base string, r Request) (Answer, error) {
	route := c.operations[r.Operation]
	if route == nil {
		return Answer{}, fmt.Errorf("no operation %s", r.Operation)
	}
	request, err := c.request(ctx, base, route, r)
	if err != nil {
		return Answer{}, err
	}
	response, err := c.client.Do(request)
	if err != nil {
		return Answer{}, err
	}
	body, err := io.ReadAll(response.Body)
	if err = errors.Join(err, response.Body.Close()); err != nil {
		return Answer{}, err
	}
	answer := Answer{response.StatusCode, response.Header, body}
	return answer, c.check(ctx, route, r, request, answer)
}

func (c *Checker) request(ctx context.Context, base string, route *routers.Route, r Request) (*http.Request, error) {
	path := route.Path
	for name, value := range r.Params {
		path = strings.ReplaceAll(path, "{"+name+"}", url.PathEscape(value))
	}
	if strings.Contains(path, "{") {
		return nil, fmt.Errorf("%s: a parameter of %s is missing", r.Operation, path)
	}
	if len(r.Query) > 0 {
		path += "?" + r.Query.Encode()
	}
	request, err := http.NewRequestWithContext(ctx, route.Method, base+path, bytes.NewReader(r.Body))
	if err != nil {
		return nil, err
	}
	if r.Body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	for name, values := range r.Header {
		request.Header[name] = values
	}
	return request, nil
}

func (c *Checker) check(ctx context.Context, route *routers.Route, r Request, request *http.Request, answer Answer) error {
	status := documentedStatus(answer.Status)
	c.mu.Lock()
	if c.seen[r.Operation] == nil {
		c.seen[r.Operation] = map[string]int{}
	}
	c.seen[r.Operation][status]++
	c.mu.Unlock()
	where := fmt.Sprintf("%s answered %d %.300s", r.Operation, answer.Status, answer.Body)
	if route.Operation.Responses.Value(status) == nil {
		return fmt.Errorf("%s: status %s is not documented", where, status)
	}
	if answer.Header.Get("X-Request-Id") == "" {
		return fmt.Errorf("%s: without X-Request-Id", where)
	}
	if after, err := strconv.Atoi(answer.Header.Get("Retry-After")); answer.Status == http.StatusTooManyRequests && (err != nil || after < 1) {
		return fmt.Errorf("%s: Retry-After is %q", where, answer.Header.Get("Retry-After"))
	}
	request.Body = io.NopCloser(bytes.NewReader(r.Body))
	input := &openapi3filter.RequestValidationInput{
		Request: request, PathParams: r.Params, QueryParams: request.URL.Query(), Route: route,
		Options: &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc},
	}
	if answer.Status < 300 {
		if err := openapi3filter.ValidateRequest(ctx, input); err != nil {
			return fmt.Errorf("%s: to a request that the description does not allow: %w", where, err)
		}
	}
	err := openapi3filter.ValidateResponse(ctx, &openapi3filter.ResponseValidationInput{
		RequestValidationInput: input, Status: answer.Status, Header: answer.Header,
		Body: io.NopCloser(bytes.NewReader(answer.Body)),
	})
	if err != nil {
		return fmt.Errorf("%s: %w", where, err)
	}
	if len(answer.Body) > 0 && len(route.Operation.Responses.Value(status).Value.Content) == 0 {
		return fmt.Errorf("%s: a body that is not documented", where)
	}
	return nil
}

// documentedStatus is the name under which the description has a status.
func documentedStatus(status int) string {
	if status >= 500 || status == http.StatusRequestTimeout {
		return "default"
	}
	return strconv.Itoa(status)
}

// Coverage is a line for each operation with the statuses that were driven, and what
// is documented and was not.
func (c *Checker) Coverage() (lines, missing []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range c.Operations() {
		var driven []string
		for status := range c.operations[id].Operation.Responses.Map() {
			if c.seen[id][status] > 0 {
				driven = append(driven, status)
			} else {
				missing = append(missing, id+" "+status)
			}
		}
		slices.Sort(driven)
		route := c.operations[id]
		lines = append(lines, fmt.Sprintf("%-6s %-45s %-24s %s", route.Method, route.Path, id, strings.Join(driven, " ")))
	}
	slices.Sort(missing)
	return lines, missing
}
