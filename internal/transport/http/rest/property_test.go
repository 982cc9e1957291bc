package rest

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// drawJSON makes any JSON, often with the names of a dog.
func drawJSON(t *rapid.T, depth int) any {
	kinds := 7
	if depth == 0 {
		kinds = 5
	}
	switch rapid.IntRange(0, kinds-1).Draw(t, "kind") {
	case 0:
		return nil
	case 1:
		return rapid.Bool().Draw(t, "bool")
	case 2:
		return float64(rapid.IntRange(-5, 40).Draw(t, "int"))
	case 3:
		return rapid.SampledFrom([]string{"", "small", "rex", "abcdefghijkl", "ü"}).Draw(t, "text")
	case 4:
		return rapid.Float64Range(-100, 100).Draw(t, "float")
	case 5:
		list := make([]any, rapid.IntRange(0, 3).Draw(t, "n"))
		for i := range list {
			list[i] = drawJSON(t, depth-1)
		}
		return list
	default:
		object := map[string]any{}
		for range rapid.IntRange(0, 4).Draw(t, "n") {
			object[rapid.SampledFrom([]string{"name", "age", "size", "tags", "home", "street", "other"}).Draw(t, "key")] = drawJSON(t, depth-1)
		}
		return object
	}
}

// What the validator refuses is always explained, and what is explained is refused.
func TestExplainAgreesWithTheValidator(t *testing.T) {
	t.Parallel()
	shapes := newShapes(&Options{})
	c, err := newChecker(shapes.input(reflect.TypeFor[dogBody]()))
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		data, err := json.MarshalIndent(drawJSON(t, 3), "", " ")
		if err != nil {
			t.Fatal(err)
		}
		tree, f := parse(data)
		if f != nil {
			t.Fatal(f)
		}
		refused := c.resolved.Validate(tree.value())
		if said := explain(data, c.schema, tree, ""); (refused != nil) != (len(said) > 0) {
			t.Fatalf("%s: the validator says %v, we say %v", data, refused, said)
		}
	})
}

func FuzzBody(f *testing.F) {
	for _, seed := range []string{`{"name":"a"}`, `{"name":"a","name":"b"}`, `[[[[`, "{\"name\":\"\xff\"}", `{"age":1e999}`, ` `, `{"a":{"b":[1,{}]}}x`} {
		f.Add([]byte(seed))
	}
	shapes := newShapes(&Options{})
	c, err := newChecker(shapes.input(reflect.TypeFor[dogBody]()))
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var got dogBody
		err := c.decode(data, reflect.ValueOf(&got).Elem())
		p, ok := err.(*Problem)
		switch {
		case err == nil && (got.Name == "" || got.Age > 30):
			t.Fatalf("%q was let through as %+v", data, got)
		case err != nil && (!ok || p.Status != http.StatusBadRequest || len(p.Fields) == 0):
			t.Fatalf("%q: %v", data, err)
		}
	})
}

// Whatever the path and query, there is an answer, and an error is a problem.
func TestAnyTarget(t *testing.T) {
	t.Parallel()
	k := kennel(t, io.Discard)
	rapid.Check(t, func(t *rapid.T) {
		segments := rapid.SliceOfN(rapid.SampledFrom([]string{"kennels", "k", "dogs", "..", ".", "", "%2F", "%zz", "a%00", "panic"}), 0, 5).Draw(t, "path")
		target := "/" + strings.Join(segments, "/") + rapid.SampledFrom([]string{"", "?", "?limit=1", "?%zz", "?a;b"}).Draw(t, "query")
		r, err := http.NewRequest(rapid.SampledFrom([]string{"GET", "POST", "PUT", "OPTIONS", "CONNECT"}).Draw(t, "method"), "http://x"+target, http.NoBody)
		if err != nil {
			return
		}
		w := serve(k, r)
		if w.Code >= 400 && w.Header().Get("Content-Type") != problemMedia || w.Code >= 300 && w.Code < 400 {
			t.Fatalf("%s %s: %d %s", r.Method, target, w.Code, w.Header())
		}
	})
}

func serve(k http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	k.ServeHTTP(w, r)
	return w
}
