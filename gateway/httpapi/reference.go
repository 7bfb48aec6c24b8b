package httpapi

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/labstack/echo/v4"
)

// The reference page is rendered from the description when the server starts. Its
// style and script are inside of it, and the policy allows just these.
var (
	//go:embed reference/page.html
	referencePage string
	//go:embed reference/style.css
	referenceStyle string
	//go:embed reference/page.js
	referenceScript string
)

var referencePolicy = fmt.Sprintf(
	"default-src 'none'; style-src '%s'; script-src '%s'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
	cspHash(referenceStyle), cspHash(referenceScript))

func cspHash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// GetDescription implements api.ServerInterface.
func (s *server) GetDescription(c echo.Context) error {
	return c.Blob(http.StatusOK, "application/yaml", description)
}

// GetReference implements api.ServerInterface.
func (s *server) GetReference(c echo.Context) error {
	c.Response().Header().Set(echo.HeaderContentSecurityPolicy, referencePolicy)
	return c.HTMLBlob(http.StatusOK, s.reference)
}

// section is the operations of a tag.
type section struct {
	Name, Description string
	Operations        []referenceOperation
}

type referenceOperation struct {
	Method, Path string
	*openapi3.Operation
	Access     string
	Parameters []*openapi3.Parameter
	Body       *openapi3.SchemaRef
	BodyLimit  int64 // kB
	Example    string
	Answers    []referenceAnswer
}

type referenceAnswer struct {
	Status, Description string
	Schema              *openapi3.SchemaRef
}

type namedSchema struct {
	Name   string
	Schema *openapi3.Schema
}

// renderReference makes the page. The description is part of the program, so a
// failure is one of the program.
func renderReference(spec *openapi3.T) []byte {
	functions := template.FuncMap{
		"text": formatText, "type": schemaType, "anchor": anchor,
		"required": func(s *openapi3.Schema, name string) bool { return slices.Contains(s.Required, name) },
	}
	page := template.Must(template.New("page").Funcs(functions).Parse(referencePage))
	var out bytes.Buffer
	err := page.Execute(&out, map[string]any{
		"Spec": spec, "Sections": sections(spec), "Schemas": schemas(spec),
		"Style":  template.CSS(referenceStyle), //nolint:gosec // our own file
		"Script": template.JS(referenceScript), //nolint:gosec // our own file
	})
	if err != nil {
		panic(fmt.Sprintf("httpapi: reference page: %v", err))
	}
	return out.Bytes()
}

var methodOrder = []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}

func sections(spec *openapi3.T) []section {
	byTag := map[string][]referenceOperation{}
	for _, path := range spec.Paths.InMatchingOrder() {
		item := spec.Paths.Value(path)
		for method, op := range item.Operations() {
			byTag[op.Tags[0]] = append(byTag[op.Tags[0]], describe(spec, path, method, item, op))
		}
	}
	list := make([]section, 0, len(spec.Tags))
	for _, tag := range spec.Tags {
		operations := byTag[tag.Name]
		slices.SortFunc(operations, func(a, b referenceOperation) int {
			return cmp.Or(cmp.Compare(a.Path, b.Path),
				cmp.Compare(slices.Index(methodOrder, a.Method), slices.Index(methodOrder, b.Method)))
		})
		list = append(list, section{tag.Name, tag.Description, operations})
	}
	return list
}

func describe(spec *openapi3.T, path, method string, item *openapi3.PathItem, op *openapi3.Operation) referenceOperation {
	r := referenceOperation{Method: method, Path: path, Operation: op}
	switch accessOf(spec, op) {
	case accessToken:
		r.Access = "user's token"
	case accessServerKey:
		r.Access = "server key"
	case accessPublic, accessLogin:
		r.Access = "anybody"
	}
	for _, parameter := range slices.Concat(item.Parameters, op.Parameters) {
		r.Parameters = append(r.Parameters, parameter.Value)
	}
	if op.RequestBody != nil {
		r.BodyLimit = bodyLimit(op) >> 10
		r.Body = op.RequestBody.Value.Content.Get("application/json").Schema
		if example := r.Body.Value.Example; example != nil {
			text, err := json.MarshalIndent(example, "", "  ")
			if err != nil {
				panic(fmt.Sprintf("httpapi: example of %s: %v", op.OperationID, err))
			}
			r.Example = string(text)
		}
	}
	for status, response := range op.Responses.Map() {
		answer := referenceAnswer{Status: status, Description: *response.Value.Description}
		for _, media := range response.Value.Content {
			answer.Schema = media.Schema
		}
		if status == "default" {
			answer.Status = "5xx"
		}
		r.Answers = append(r.Answers, answer)
	}
	slices.SortFunc(r.Answers, func(a, b referenceAnswer) int { return cmp.Compare(a.Status, b.Status) })
	return r
}

func schemas(spec *openapi3.T) []namedSchema {
	list := make([]namedSchema, 0, len(spec.Components.Schemas))
	for name, ref := range spec.Components.Schemas {
		list = append(list, namedSchema{name, ref.Value})
	}
	slices.SortFunc(list, func(a, b namedSchema) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

var (
	codeMark = regexp.MustCompile("`([^`]+)`")
	boldMark = regexp.MustCompile(`\*\*([^*]+)\*\*`)
)

// formatText renders the little of Markdown that the description uses: paragraphs,
// `code` and **strong**.
func formatText(s string) template.HTML {
	var b strings.Builder
	for paragraph := range strings.SplitSeq(strings.TrimSpace(s), "\n\n") {
		escaped := template.HTMLEscapeString(paragraph)
		escaped = codeMark.ReplaceAllString(escaped, "<code>$1</code>")
		escaped = boldMark.ReplaceAllString(escaped, "<strong>$1</strong>")
		b.WriteString("<p>" + escaped + "</p>")
	}
	return template.HTML(b.String()) //nolint:gosec // escaped above
}

// schemaType is a schema in a few words; the name of one that has a name.
func schemaType(ref *openapi3.SchemaRef) template.HTML {
	if ref == nil {
		return ""
	}
	if name, ok := strings.CutPrefix(ref.Ref, "#/components/schemas/"); ok {
		name = template.HTMLEscapeString(name)
		return template.HTML(`<a href="#schema-` + name + `">` + name + `</a>`) //nolint:gosec // escaped
	}
	s := ref.Value
	words := template.HTML("") //nolint:gosec // a constant
	switch {
	case len(s.AllOf) == 1:
		words = schemaType(s.AllOf[0])
	case len(s.OneOf) > 0:
		for i, one := range s.OneOf {
			if i > 0 {
				words += " or "
			}
			words += schemaType(one)
		}
	case s.Type.Is("array"):
		words = "list of " + schemaType(s.Items)
	case len(s.Enum) > 0:
		for i, value := range s.Enum {
			if i > 0 {
				words += " | "
			}
			words += template.HTML(template.HTMLEscapeString(fmt.Sprint(value))) //nolint:gosec // escaped
		}
	case s.Format == "date-time":
		words = "time"
	case s.Format == "uuid":
		words = "UUID"
	case s.Type != nil:
		words = template.HTML(template.HTMLEscapeString(strings.Join(s.Type.Slice(), " or "))) //nolint:gosec // escaped
	}
	if s.Nullable {
		words += " or null"
	}
	return words
}

func anchor(s string) string { return strings.ToLower(s) }
