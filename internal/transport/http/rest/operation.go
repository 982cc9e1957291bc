package rest

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"reflect"
	"strconv"
)

// Route is everything about an endpoint but its code.
type Route struct {
	Method  string
	Path    string // a pattern of http.ServeMux, without the method
	ID      string // its name in the document
	Tag     string // the group it is shown in
	Scope   string // "": open to everybody
	Summary string
	Doc     string
	Status  int   // of success; 0: 200, or 204 where nothing goes out
	Errors  []int // statuses in addition to those of every route
	// Creates means that a repeated request would take effect twice: an Idempotency-Key is honoured.
	Creates bool
	// Secret means that the answer must not be stored: a repeated request only learns that it was answered.
	Secret  bool
	MaxBody int64 // bytes; 0: a megabyte
}

// maxBody fits a long pasted text and is small enough to hold in memory.
const maxBody = 1 << 20

// None is the output of an operation without an answer.
type None struct{}

// Replayed is the header of an answer that an earlier request with the same key had.
const Replayed = "Idempotency-Replayed"

// Locator is an answer with the location of what was created.
type Locator interface{ Location() string }

// Operation is a route with its code.
type Operation struct {
	Route
	in    reflect.Type
	out   reflect.Type // nil: raw
	media string       // of a raw answer
	shape reflect.Type // the type of a raw answer in the document; nil: bytes
	bind  *binding
	flat  *flat // nil: the input's field tags say where they come from
	serve func(k *Kernel, op *Operation, w http.ResponseWriter, r *http.Request) error
}

// Op declares a route that takes In and answers Out as JSON. In is a struct whose fields are tagged path, query or
// header with their names, and one may be called Body: JSON, a pointer if optional, or a File. More tags: doc, enum,
// min, max, minLen, maxLen, pattern, required.
func Op[In, Out any](r Route, do func(context.Context, In) (Out, error)) Operation {
	op := Operation{Route: r, in: reflect.TypeFor[In](), out: reflect.TypeFor[Out]()}
	op.serve = func(k *Kernel, op *Operation, w http.ResponseWriter, r *http.Request) error {
		var in In
		body, err := op.bind.read(op, w, r, reflect.ValueOf(&in).Elem(), nil)
		if err != nil {
			return err
		}
		ran := false
		status, answer, err := k.once(op, r, body, func() ([]byte, error) {
			ran = true
			out, err := do(r.Context(), in)
			if err != nil || op.out == reflect.TypeFor[None]() {
				return nil, err
			}
			fill(reflect.ValueOf(&out).Elem())
			return encode(out)
		})
		if err != nil {
			return err
		}
		if !ran {
			w.Header().Set(Replayed, "true")
		}
		var out Out
		if _, ok := any(out).(Locator); ok && json.Unmarshal(answer, &out) == nil {
			w.Header().Set("Location", any(out).(Locator).Location())
		}
		writeJSON(w, r, status, answer)
		return nil
	}
	return op
}

// Raw declares a route that writes its answer itself, as one of the media types. It must not start writing before it
// knows that it will not fail.
func Raw[In any](r Route, media string, do func(http.ResponseWriter, *http.Request, In) error) Operation {
	op := Operation{Route: r, in: reflect.TypeFor[In](), media: media}
	op.serve = func(_ *Kernel, op *Operation, w http.ResponseWriter, r *http.Request) error {
		var in In
		if _, err := op.bind.read(op, w, r, reflect.ValueOf(&in).Elem(), nil); err != nil {
			return err
		}
		return do(w, r, in)
	}
	return op
}

func (op *Operation) prepare(s *shapes) (err error) {
	if op.Status == 0 {
		op.Status = http.StatusOK
		if op.out == reflect.TypeFor[None]() {
			op.Status = http.StatusNoContent
		}
	}
	op.MaxBody = cmp.Or(op.MaxBody, maxBody)
	if op.flat == nil {
		op.bind, err = newBinding(op.in, s)
	}
	return err
}

func writeJSON(w http.ResponseWriter, r *http.Request, status int, body []byte) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	if status != http.StatusNoContent {
		h.Set("Content-Type", "application/json")
		h.Set("Content-Length", strconv.Itoa(len(body)))
	}
	w.WriteHeader(status)
	if r.Method != http.MethodHead && status != http.StatusNoContent {
		_, _ = w.Write(body) // the client may be gone
	}
}

// fill turns nil lists into empty ones, so that clients never get null for a list.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return
		}
		if v.IsNil() && v.CanSet() {
			v.Set(reflect.MakeSlice(v.Type(), 0, 0))
		}
		for i := range v.Len() {
			fill(v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(v.Field(i))
			}
		}
	case reflect.Pointer:
		if !v.IsNil() {
			fill(v.Elem())
		}
	}
}
