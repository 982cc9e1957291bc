package rest

import (
	"bytes"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"chorus/internal/text"
)

// Document is an OpenAPI 3.1 document, limited to what we use. Its fields are in reading order.
type Document struct {
	OpenAPI    string                           `json:"openapi"`
	Info       Info                             `json:"info"`
	Servers    []Server                         `json:"servers"`
	Tags       []Tag                            `json:"tags,omitempty"`
	Security   []map[string][]string            `json:"security"`
	Paths      map[string]map[string]*Described `json:"paths"`
	Components Components                       `json:"components"`
}

// Info is what the document is about.
type Info struct {
	Title       string `json:"title"`
	Version     string `json:"version"`
	Description string `json:"description,omitempty"`
	License     struct {
		Name       string `json:"name"`
		Identifier string `json:"identifier"`
	} `json:"license"`
}

// Server is where the operations are.
type Server struct {
	URL         string `json:"url"`
	Description string `json:"description,omitempty"`
}

// Tag is a group of operations.
type Tag struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
}

// Described is one operation.
type Described struct {
	OperationID string             `json:"operationId"`
	Summary     string             `json:"summary"`
	Description string             `json:"description,omitempty"`
	Tags        []string           `json:"tags,omitempty"`
	Scope       string             `json:"x-scope,omitempty"`
	Security    *[]map[string]any  `json:"security,omitempty"`
	Parameters  []Parameter        `json:"parameters,omitempty"`
	RequestBody *RequestBody       `json:"requestBody,omitempty"`
	Responses   map[string]*Answer `json:"responses"`
}

// Parameter is a value outside the body.
type Parameter struct {
	Name        string             `json:"name"`
	In          string             `json:"in"`
	Description string             `json:"description,omitempty"`
	Required    bool               `json:"required,omitempty"`
	Schema      *jsonschema.Schema `json:"schema"`
}

// RequestBody is what comes in.
type RequestBody struct {
	Required bool             `json:"required,omitempty"`
	Content  map[string]Media `json:"content"`
}

// Answer is one answer.
type Answer struct {
	Ref         string            `json:"$ref,omitempty"`
	Description string            `json:"description,omitempty"`
	Headers     map[string]Header `json:"headers,omitempty"`
	Content     map[string]Media  `json:"content,omitempty"`
}

// Header is one header of an answer.
type Header struct {
	Description string             `json:"description"`
	Schema      *jsonschema.Schema `json:"schema"`
}

// Media is a body of one media type.
type Media struct {
	Schema *jsonschema.Schema `json:"schema"`
}

// Components are the shared definitions.
type Components struct {
	Schemas         map[string]*jsonschema.Schema `json:"schemas"`
	Responses       map[string]*Answer            `json:"responses"`
	SecuritySchemes map[string]map[string]string  `json:"securitySchemes"`
}

const problemMedia = "application/problem+json"

// Document returns the OpenAPI document. It is made on first use, because most processes never need it.
func (k *Kernel) Document() (*Document, error) { return k.document() }

// DocumentJSON is the document as JSON.
func (k *Kernel) DocumentJSON() ([]byte, error) { return k.documentJSON() }

func (k *Kernel) makeJSON() ([]byte, error) {
	doc, err := k.document()
	if err != nil {
		return nil, err
	}
	var buf bytes.Buffer
	err = text.WriteIndentedJSON(&buf, doc, "")
	return buf.Bytes(), err
}

func (k *Kernel) makeDocument() (*Document, error) {
	s := newShapes(&k.o)
	doc := &Document{
		OpenAPI:  "3.1.0",
		Info:     Info{Title: k.o.Title, Version: k.o.Version, Description: k.o.Doc},
		Servers:  []Server{{"/", "the server that served this document"}},
		Security: []map[string][]string{{"bearer": {}}},
		Paths:    map[string]map[string]*Described{},
		Components: Components{Schemas: s.components, Responses: map[string]*Answer{}, SecuritySchemes: map[string]map[string]string{
			"bearer": {"type": "http", "scheme": "bearer", "description": "An API token. x-scope of an operation names the scope that the token needs."},
		}},
	}
	doc.Info.License.Name, doc.Info.License.Identifier = "MIT", "MIT"
	for _, tag := range k.o.Tags {
		doc.Tags = append(doc.Tags, Tag{tag[0], tag[1]})
	}
	problem := s.of(reflect.TypeFor[Problem](), answer)
	requestID := map[string]Header{"X-Request-Id": {"the number of the request in the log; every answer has one", &jsonschema.Schema{Type: "string"}}}
	for i := range k.ops {
		op := &k.ops[i]
		if err := k.ready(op); err != nil {
			return nil, err
		}
		for _, status := range k.statuses(op) {
			doc.Components.Responses[problemName(status)] = &Answer{Description: http.StatusText(status), Headers: requestID, Content: map[string]Media{problemMedia: {problem}}}
		}
		path := plainPath(op.Path)
		if doc.Paths[path] == nil {
			doc.Paths[path] = map[string]*Described{}
		}
		doc.Paths[path][strings.ToLower(op.Method)] = k.describe(op, s)
	}
	maps.Copy(doc.Paths, k.o.Beside)
	maps.Copy(doc.Components.Schemas, k.o.Types)
	return doc, s.err
}

func problemName(status int) string { return "Problem" + strconv.Itoa(status) }

// plainPath converts a pattern to the document's form.
func plainPath(pattern string) string {
	return strings.NewReplacer("...}", "}", "{$}", "").Replace(pattern)
}

func (k *Kernel) describe(op *Operation, s *shapes) *Described {
	d := &Described{OperationID: op.ID, Summary: op.Summary, Description: op.Doc, Scope: op.Scope, Responses: map[string]*Answer{}}
	if op.Tag != "" {
		d.Tags = []string{op.Tag}
	}
	if op.Scope == "" {
		d.Security = &[]map[string]any{}
	}
	for _, p := range op.bind.params {
		schema := p.check.schema.CloneSchemas()
		schema.Description = ""
		d.Parameters = append(d.Parameters, Parameter{p.name, p.in, p.doc, p.required, schema})
	}
	if op.Creates {
		most := maxKey
		d.Parameters = append(d.Parameters, Parameter{"Idempotency-Key", "header",
			"your own unique key for this request: a retry within a day has no further effect and returns the same answer", false,
			&jsonschema.Schema{Type: "string", MaxLength: &most}})
	}
	d.RequestBody = op.describeBody(s)
	d.Responses[strconv.Itoa(op.Status)] = op.describeAnswer(s)
	for _, status := range k.statuses(op) {
		d.Responses[strconv.Itoa(status)] = &Answer{Ref: "#/components/responses/" + problemName(status)}
	}
	return d
}

func (op *Operation) describeBody(s *shapes) *RequestBody {
	switch {
	case op.bind.file:
		body := &RequestBody{Required: true, Content: map[string]Media{}}
		for media := range strings.SplitSeq(fileMedia, ",") {
			body.Content[media] = Media{mediaSchema(media)}
		}
		return body
	case op.bind.body < 0:
		return nil
	}
	if op.flat != nil {
		return op.flat.describeBody(s, op.bind)
	}
	t := op.in.Field(op.bind.body).Type
	return &RequestBody{Required: op.bind.want, Content: map[string]Media{"application/json": {s.of(t, asked)}}}
}

// mediaSchema describes a body whose media type says everything: without any keyword, the schema would be the value
// true, which some tools reject.
func mediaSchema(media string) *jsonschema.Schema {
	switch {
	case media == "multipart/form-data":
		return &jsonschema.Schema{Type: "object", Required: []string{"file"}, Properties: map[string]*jsonschema.Schema{
			"file": {Type: "string", Format: "binary"}}}
	case media == "application/json":
		return &jsonschema.Schema{Type: "object"}
	case strings.HasPrefix(media, "text/") || media == "application/x-ndjson":
		return &jsonschema.Schema{Type: "string"}
	}
	return &jsonschema.Schema{Type: "string", Format: "binary"}
}

func (op *Operation) describeAnswer(s *shapes) *Answer {
	a := &Answer{Description: http.StatusText(op.Status)}
	switch {
	case op.out == nil:
		a.Content = map[string]Media{}
		for media := range strings.SplitSeq(op.media, ",") {
			a.Content[media] = Media{mediaSchema(media)}
		}
		if op.shape != nil {
			a.Content[op.media] = Media{s.of(op.shape, answer)}
		}
	case op.out != reflect.TypeFor[None]():
		a.Content = map[string]Media{"application/json": {s.of(op.out, answer)}}
		if op.out.Implements(reflect.TypeFor[Locator]()) {
			a.Headers = map[string]Header{"Location": {"the address of what was created", &jsonschema.Schema{Type: "string", Format: "uri-reference"}}}
		}
	}
	return a
}

// statuses returns the error statuses of a route, sorted.
func (k *Kernel) statuses(op *Operation) []int {
	all := map[int]bool{http.StatusInternalServerError: true}
	if op.Scope != "" {
		all[http.StatusUnauthorized], all[http.StatusForbidden] = true, true
		for _, status := range k.o.Common {
			all[status] = true
		}
	}
	all[http.StatusBadRequest] = true // an unknown parameter at least
	if op.bind.body >= 0 {
		all[http.StatusRequestEntityTooLarge], all[http.StatusUnsupportedMediaType] = true, true
	}
	if op.Creates {
		all[http.StatusUnprocessableEntity] = true
	}
	if op.Secret {
		all[http.StatusConflict] = true
	}
	for _, status := range op.Errors {
		all[status] = true
	}
	return slices.Sorted(maps.Keys(all))
}
