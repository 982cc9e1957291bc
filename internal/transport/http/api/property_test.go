package api_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"
	"pgregory.net/rapid"

	"chorus/internal/operation"
	"chorus/internal/transport/http/api"
	"chorus/internal/transport/http/rest"
)

// document reads the document as a stranger would: from its JSON.
func document(t testing.TB, a *api.API) rest.Document {
	t.Helper()
	data, err := a.DocumentJSON()
	if err != nil {
		t.Fatal(err)
	}
	var doc rest.Document
	if err := json.Unmarshal(data, &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

func TestDocumentIsWhole(t *testing.T) {
	t.Parallel()
	doc := document(t, newAPI(t, &fake{}))
	ids := map[string]bool{}
	tags := map[string]bool{}
	for _, tag := range doc.Tags {
		tags[tag.Name] = true
	}
	for path, methods := range doc.Paths {
		for method, op := range methods {
			where := method + " " + path
			if ids[op.OperationID] || op.OperationID == "" || op.Summary == "" || !tags[op.Tags[0]] {
				t.Errorf("%s: no name of its own, no summary, or no group", where)
			}
			ids[op.OperationID] = true
			inPath := 0
			for _, p := range op.Parameters {
				if p.In == "path" {
					inPath++
					if !p.Required || !strings.Contains(path, "{"+p.Name+"}") {
						t.Errorf("%s: the parameter %s is not in the path", where, p.Name)
					}
				}
			}
			if inPath != strings.Count(path, "{") {
				t.Errorf("%s: %d parameters for the path", where, inPath)
			}
			for status, answer := range op.Responses {
				if name, ok := strings.CutPrefix(answer.Ref, "#/components/responses/"); ok && doc.Components.Responses[name] == nil {
					t.Errorf("%s: %s refers to nothing", where, status)
				}
			}
		}
	}
	for name, schema := range doc.Components.Schemas {
		walk(schema, func(s *jsonschema.Schema) {
			if ref, ok := strings.CutPrefix(s.Ref, "#/components/schemas/"); ok && doc.Components.Schemas[ref] == nil {
				t.Errorf("%s refers to %s, which is not there", name, ref)
			}
		})
	}
}

func walk(s *jsonschema.Schema, visit func(*jsonschema.Schema)) {
	if s == nil {
		return
	}
	visit(s)
	for _, p := range s.Properties {
		walk(p, visit)
	}
	for _, p := range s.OneOf {
		walk(p, visit)
	}
	walk(s.Items, visit)
}

// generator makes values that fit a schema, or nearly do.
type generator struct {
	*rapid.T
	doc rest.Document
}

func (g generator) resolve(s *jsonschema.Schema) *jsonschema.Schema {
	if name, ok := strings.CutPrefix(s.Ref, "#/components/schemas/"); ok {
		return g.doc.Components.Schemas[name]
	}
	return s
}

// valid draws a value that fits.
func (g generator) valid(s *jsonschema.Schema) any {
	s = g.resolve(s)
	if len(s.Enum) > 0 {
		return rapid.SampledFrom(s.Enum).Draw(g.T, "enum")
	}
	switch s.Type {
	case "string":
		return g.text(s)
	case "boolean":
		return rapid.Bool().Draw(g.T, "bool")
	case "integer", "number":
		least, most := -1e6, 1e6
		if s.Minimum != nil {
			least = *s.Minimum
		}
		if s.Maximum != nil {
			most = *s.Maximum
		}
		return int64(rapid.Int64Range(int64(least), int64(most)).Draw(g.T, "number"))
	case "array":
		least, most := 0, 3
		if s.MinItems != nil {
			least = *s.MinItems
		}
		list := make([]any, rapid.IntRange(least, max(least, most)).Draw(g.T, "length"))
		for i := range list {
			list[i] = g.valid(s.Items)
		}
		return list
	case "object":
		object := map[string]any{}
		for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
			if slices.Contains(s.Required, name) || rapid.Bool().Draw(g.T, name) {
				object[name] = g.valid(s.Properties[name])
			}
		}
		return object
	default:
		return nil
	}
}

func (g generator) text(s *jsonschema.Schema) string {
	if s.Pattern != "" {
		fits := func(text string) bool { return s.MaxLength == nil || utf8.RuneCountInString(text) <= *s.MaxLength }
		return rapid.StringMatching(s.Pattern).Filter(fits).Draw(g.T, "text")
	}
	if s.Format == "date-time" {
		return time.Unix(rapid.Int64Range(0, 4e9).Draw(g.T, "time"), 0).UTC().Format(time.RFC3339)
	}
	least, most := 0, 40
	if s.MinLength != nil {
		least = *s.MinLength
	}
	if s.MaxLength != nil {
		most = min(most, *s.MaxLength)
	}
	return rapid.StringN(least, max(least, most), -1).Draw(g.T, "text")
}

// wild draws a body that may be anything.
func (g generator) wild(s *jsonschema.Schema) string {
	fits, _ := json.Marshal(g.valid(s))
	switch rapid.IntRange(0, 6).Draw(g.T, "how") {
	case 0:
		return string(rapid.SliceOf(rapid.Byte()).Draw(g.T, "bytes"))
	case 1: // cut off
		return string(fits[:rapid.IntRange(0, len(fits)).Draw(g.T, "cut")])
	case 2: // of another type
		return rapid.SampledFrom([]string{"null", "[]", "5", `"text"`, "{}", "[[[{}]]]", "1e999"}).Draw(g.T, "other")
	case 3: // one byte is another
		if len(fits) > 0 {
			fits[rapid.IntRange(0, len(fits)-1).Draw(g.T, "at")] = rapid.Byte().Draw(g.T, "byte")
		}
		return string(fits)
	case 4: // a name that is not there, or a value of another type
		object, _ := g.valid(s).(map[string]any)
		if object == nil {
			object = map[string]any{}
		}
		names := append(slices.Sorted(maps.Keys(g.resolve(s).Properties)), "unknown")
		object[rapid.SampledFrom(names).Draw(g.T, "name")] = rapid.SampledFrom([]any{nil, 5, -1.5, "x", []any{}, map[string]any{}, strings.Repeat("y", 300)}).Draw(g.T, "value")
		out, _ := json.Marshal(object)
		return string(out)
	case 5:
		return ""
	default:
		return string(fits) + rapid.SampledFrom([]string{" ", "x", "{}", "\x00"}).Draw(g.T, "behind")
	}
}

// request is one that may be sent.
type request struct {
	method, target, body string
	header               []string
	fits                 bool // nothing in it contradicts the document
}

func (g generator) request(path, method string, op *rest.Described) request {
	r := request{method: strings.ToUpper(method), fits: rapid.Bool().Draw(g.T, "fits")}
	query := url.Values{}
	for _, p := range op.Parameters {
		value := fmt.Sprint(g.valid(p.Schema))
		if !r.fits && rapid.Bool().Draw(g.T, "break "+p.Name) {
			value = rapid.SampledFrom([]string{"", "-1", "x", "99999999999999999999", "\xff", "a\x00b", strings.Repeat("z", 2000), "..", "é"}).Draw(g.T, "value")
		}
		switch {
		case p.In == "path":
			if r.fits {
				value = "x" + strings.Trim(value, "./") // a path has no empty or dotted parts
				value = value[:min(len(value), 30)]
				value = strings.ToValidUTF8(strings.ReplaceAll(strings.ReplaceAll(value, "\x00", ""), "/", ""), "")
			}
			path = strings.ReplaceAll(path, "{"+p.Name+"}", url.PathEscape(value))
		case p.In == "query" && (p.Required || rapid.Bool().Draw(g.T, "give "+p.Name)):
			if p.Name == "cursor" && r.fits {
				value = rest.Cursor("x" + strings.ToValidUTF8(value, ""))
			}
			if r.fits {
				value = strings.ReplaceAll(value, "\x00", "")
				if value == "" && p.Schema.MinLength != nil {
					value = "x"
				}
			}
			query.Set(p.Name, value)
		case p.In == "header" && rapid.Bool().Draw(g.T, "give "+p.Name):
			if !r.fits || !strings.ContainsFunc(value, func(c rune) bool { return c < ' ' || c > '~' }) {
				r.header = append(r.header, p.Name, value)
			}
		}
	}
	if !r.fits && rapid.Bool().Draw(g.T, "stranger") {
		query.Set("unknown", "1")
	}
	r.target = path
	if len(query) > 0 {
		r.target += "?" + query.Encode()
	}
	if op.RequestBody != nil {
		g.body(&r, op.RequestBody)
	}
	return r
}

func (g generator) body(r *request, body *rest.RequestBody) {
	media, isJSON := body.Content["application/json"]
	switch {
	case !isJSON:
		r.body = "x" + rapid.String().Draw(g.T, "file")
		r.header = append(r.header, "Content-Type", rapid.SampledFrom([]string{"application/octet-stream", "text/plain"}).Draw(g.T, "media"))
		if !r.fits {
			r.header[len(r.header)-1] = rapid.SampledFrom([]string{"multipart/form-data", "multipart/form-data; boundary=b", "a/b/c", "application/x-www-form-urlencoded"}).Draw(g.T, "media")
		}
	case r.fits:
		data, _ := json.Marshal(g.valid(media.Schema))
		r.body = string(data)
	default:
		r.body = g.wild(media.Schema)
		if rapid.IntRange(0, 5).Draw(g.T, "media") == 0 {
			r.header = append(r.header, "Content-Type", rapid.SampledFrom([]string{"text/plain", "", "application/json; charset=utf-16", "application/xml"}).Draw(g.T, "media"))
		}
	}
}

// broken draws what the service answers: mostly nothing, or an error that the
// operation documents.
func (g generator) broken(op *rest.Described) error {
	if rapid.IntRange(0, 2).Draw(g.T, "broken") > 0 {
		return nil
	}
	var kinds []string
	for kind, s := range api.Statuses() {
		if op.Responses[strconv.Itoa(s)] != nil && kind != operation.Failed {
			kinds = append(kinds, string(kind))
		}
	}
	slices.Sort(kinds)
	return operation.Errorf(operation.Kind(rapid.SampledFrom(kinds).Draw(g.T, "kind")), "it does not want to")
}

// Whatever is sent: never a 500, only documented statuses, every error a problem, and
// what fits the document is never called wrong.
func TestEveryOperationKeepsItsWord(t *testing.T) {
	t.Parallel()
	f := &fake{}
	a := newAPI(t, f)
	doc := document(t, a)
	answers, answered := answerSchema(t, doc), 0
	for path, methods := range served(doc) {
		for method, op := range methods {
			rapid.Check(t, func(rt *rapid.T) {
				g := generator{rt, doc}
				f.fail(g.broken(op))
				r := g.request(path, method, op)
				body, err := keepsItsWord(a, op, r, f.failing == nil)
				if err == nil && body != nil {
					answered++
					err = answers.Validate(map[string]any{op.OperationID: body})
				}
				if err != nil {
					rt.Fatal(err)
				}
			})
		}
	}
	if answered < 500 {
		t.Errorf("only %d requests were served: the generator is too wild", answered)
	}
}

// served are the paths that the API itself serves.
func served(doc rest.Document) map[string]map[string]*rest.Described {
	out := maps.Clone(doc.Paths)
	maps.DeleteFunc(out, func(path string, _ map[string]*rest.Described) bool { return strings.HasPrefix(path, "/v1/") })
	return out
}

// answerSchema checks JSON answers, each under the name of its operation.
func answerSchema(t *testing.T, doc rest.Document) *jsonschema.Resolved {
	t.Helper()
	answers := map[string]any{}
	for _, methods := range doc.Paths {
		for _, op := range methods {
			for _, answer := range op.Responses {
				if media, ok := answer.Content["application/json"]; ok && media.Schema.Ref != "" {
					answers[op.OperationID] = media.Schema
				}
			}
		}
	}
	whole, err := json.Marshal(map[string]any{"$defs": doc.Components.Schemas, "properties": answers})
	if err != nil {
		t.Fatal(err)
	}
	var schema jsonschema.Schema
	if err := json.Unmarshal([]byte(strings.ReplaceAll(string(whole), "#/components/schemas/", "#/$defs/")), &schema); err != nil {
		t.Fatal(err)
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	return resolved
}

// keepsItsWord sends a request and says what is wrong with the answer. The body is
// what came as JSON.
func keepsItsWord(a http.Handler, op *rest.Described, r request, willing bool) (body any, err error) {
	w := ask(a, admin, r.method, r.target, r.body, r.header...)
	media, _, _ := mime.ParseMediaType(w.Header().Get("Content-Type"))
	var p rest.Problem
	if w.Code >= 400 {
		if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil || media != "application/problem+json" || p.Status != w.Code || p.Detail == "" || p.Message != p.Detail {
			return nil, fmt.Errorf("%+v: %d is no problem (%s): %s", r, w.Code, media, w.Body)
		}
	}
	elsewhere := w.Code == http.StatusNotFound && strings.HasPrefix(p.Detail, "there is no /") // a part of the path was empty or had dots
	switch {
	case w.Code == http.StatusInternalServerError:
		return nil, fmt.Errorf("%+v: %s", r, w.Body)
	case op.Responses[strconv.Itoa(w.Code)] == nil && !elsewhere:
		return nil, fmt.Errorf("%+v: %d is not documented: %s", r, w.Code, w.Body)
	case r.fits && willing && w.Code == http.StatusBadRequest && !strings.Contains(p.Detail, "expiresIn") && !strings.Contains(p.Detail, "invalid time"):
		return nil, fmt.Errorf("%+v fits the document and is called wrong: %s", r, p.Detail)
	case w.Code < 300 && media == "application/json":
		if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil {
			return nil, fmt.Errorf("%+v: %w: %s", r, err, w.Body)
		}
	}
	return body, nil
}
