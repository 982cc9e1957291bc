package rest

import (
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"

	"chorus/internal/suggest"
)

// param is one value outside the body.
type param struct {
	in, name string // path, query or header
	index    []int
	required bool
	check    *checker
	doc      string
}

// binding maps a request to an In.
type binding struct {
	params  []param
	queries []string
	body    int  // the field's index; -1: none
	want    bool // a body is required
	file    bool // the body is a File
	check   *checker
	whole   *jsonschema.Schema // the body of a flat route
}

func newBinding(t reflect.Type, s *shapes) (*binding, error) {
	if t.Kind() != reflect.Struct {
		return nil, fmt.Errorf("%s is no struct", t)
	}
	b := &binding{body: -1}
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Name == "Body" && f.Type == fileType {
			b.body, b.want, b.file = i, true, true
			continue
		}
		if f.Name == "Body" {
			check, err := newChecker(s.input(f.Type))
			if err != nil {
				return nil, err
			}
			b.body, b.want, b.check = i, f.Type.Kind() != reflect.Pointer, check
			continue
		}
		for _, in := range []string{"path", "query", "header"} {
			name, ok := f.Tag.Lookup(in)
			if !ok {
				continue
			}
			schema, err := s.field(f)
			if err != nil {
				return nil, err
			}
			check, err := newChecker(schema)
			if err != nil {
				return nil, err
			}
			b.params = append(b.params, param{in: in, name: name, index: f.Index, check: check, doc: f.Tag.Get("doc"),
				required: in == "path" || f.Tag.Get("required") == "true"})
			if in == "query" {
				b.queries = append(b.queries, name)
			}
		}
	}
	return b, nil
}

// read fills an In from a request and returns the bytes of the body. A file goes to the input's field Body, or to file for a flat route.
func (b *binding) read(op *Operation, w http.ResponseWriter, r *http.Request, into reflect.Value, file *File) ([]byte, error) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, badFields(http.StatusBadRequest, FieldError{In: "query", Message: "it is not a valid query; write % as %25 and ; as %3B"})
	}
	wrong := b.strangers(query)
	for _, p := range b.params {
		if f := p.read(r, query, into.FieldByIndex(p.index)); f != nil {
			wrong = append(wrong, *f)
		}
	}
	if len(wrong) > 0 {
		return nil, badFields(http.StatusBadRequest, wrong...)
	}
	if b.body < 0 {
		return nil, nil
	}
	if b.file {
		opened, sum, err := openFile(op, w, r)
		if op.flat != nil {
			*file = opened
		} else {
			into.Field(b.body).Set(reflect.ValueOf(opened))
		}
		return sum, err
	}
	data, err := readBody(op, w, r)
	if err != nil {
		return nil, err
	}
	if len(data) == 0 && !b.want {
		return nil, nil
	}
	if op.flat == nil {
		into = into.Field(b.body)
	}
	return data, b.check.decode(data, into)
}

// strangers returns errors for unknown query parameters.
func (b *binding) strangers(query url.Values) (wrong []FieldError) {
	for name := range query {
		if slices.Contains(b.queries, name) {
			continue
		}
		said := "there is no such parameter"
		if hint := suggest.Hint(name, b.queries); hint != "" {
			said += hint
		} else if len(b.queries) > 0 {
			said += "; there are " + strings.Join(b.queries, ", ")
		}
		wrong = append(wrong, FieldError{In: "query", Field: clip(name, 60), Message: said})
	}
	slices.SortFunc(wrong, func(a, b FieldError) int { return strings.Compare(a.Field, b.Field) })
	return wrong
}

func (p param) read(r *http.Request, query url.Values, into reflect.Value) *FieldError {
	var values []string
	switch p.in {
	case "path":
		values = []string{r.PathValue(p.name)}
	case "query":
		values = query[p.name]
	default:
		values = r.Header.Values(p.name)
	}
	bad := func(format string, args ...any) *FieldError {
		return &FieldError{In: p.in, Field: p.name, Message: fmt.Sprintf(format, args...)}
	}
	switch {
	case len(values) == 0 && p.required:
		return bad("it is required")
	case len(values) == 0, p.in == "header" && values[0] == "" && len(values) == 1:
		return nil
	case len(values) > 1:
		return bad("it is given %d times; give it once", len(values))
	case !utf8.ValidString(values[0]) || strings.ContainsRune(values[0], 0):
		return bad("it is not valid UTF-8")
	}
	value, said := plainValue(p.check.schema, values[0], into)
	if said == "" {
		said = p.check.first(value)
	}
	if said != "" {
		return bad("%s", said)
	}
	return nil
}

// plainValue sets a field from text and returns the value as in JSON.
func plainValue(schema *jsonschema.Schema, text string, into reflect.Value) (any, string) {
	if into.Type() == timeType && text == "" {
		return time.Time{}.Format(time.RFC3339), ""
	}
	if into.Type() == timeType {
		t, err := time.Parse(time.RFC3339, text)
		if err != nil {
			return nil, fmt.Sprintf("it must be a time like 2026-01-31T15:04:05Z, not %q", clip(text, 40))
		}
		into.Set(reflect.ValueOf(t))
		return text, ""
	}
	switch into.Kind() {
	case reflect.String:
		into.SetString(text)
		return text, ""
	case reflect.Bool:
		yes, err := strconv.ParseBool(text)
		if err != nil {
			return nil, fmt.Sprintf("it must be true or false, not %q", clip(text, 40))
		}
		into.SetBool(yes)
		return yes, ""
	default: // the schema only lets whole numbers through
		n, err := strconv.ParseInt(text, 10, into.Type().Bits())
		if err != nil {
			if errors.Is(err, strconv.ErrRange) && schema.Maximum != nil {
				return nil, fmt.Sprintf("it must be at most %s", number(*schema.Maximum))
			}
			return nil, fmt.Sprintf("it must be a whole number, not %q", clip(text, 40))
		}
		into.SetInt(n)
		return float64(n), ""
	}
}

// readBody reads a whole JSON body.
func readBody(op *Operation, w http.ResponseWriter, r *http.Request) ([]byte, error) {
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, op.MaxBody))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return nil, TooLarge(op.MaxBody)
	case err != nil:
		return nil, NewProblem(http.StatusBadRequest, "invalid", "the body was cut off; send it again")
	case len(data) == 0:
		if op.bind.want {
			return nil, badFields(http.StatusBadRequest, FieldError{In: "body", Message: "it is missing; send a JSON object"})
		}
		return nil, nil
	}
	media, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || media != "application/json" && !strings.HasSuffix(media, "+json") {
		return nil, NewProblem(http.StatusUnsupportedMediaType, "unsupported", "the body must be JSON: send Content-Type: application/json")
	}
	if set := params["charset"]; set != "" && !strings.EqualFold(set, "utf-8") {
		return nil, NewProblem(http.StatusUnsupportedMediaType, "unsupported", "the body must be UTF-8, not %s", clip(set, 40))
	}
	return data, nil
}

// TooLarge returns the problem of a body over a limit.
func TooLarge(limit int64) *Problem {
	return NewProblem(http.StatusRequestEntityTooLarge, "too_large", "the body is too large; the limit is %s", size(limit))
}

func size(n int64) string {
	switch {
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%d MB", n>>20)
	case n >= 1<<10 && n%(1<<10) == 0:
		return fmt.Sprintf("%d KB", n>>10)
	default:
		return fmt.Sprintf("%d bytes", n)
	}
}
