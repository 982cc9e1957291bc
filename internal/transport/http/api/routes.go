package api

import (
	"cmp"
	"context"
	"io"
	"iter"
	"mime"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"chorus/internal/feed"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/text"
	"chorus/internal/transport/http/rest"
)

// Every route of /api/ is derived from a definition of the catalogue. The only special one is the event stream of a session: see watch.

// routes returns the HTTP routes of a set of operations, in its order.
func (a *API) routes(set *operation.Set) (all []rest.Operation) {
	for _, d := range set.All() {
		for _, h := range d.HTTP {
			all = append(all, a.route(d, h))
		}
	}
	return all
}

func (a *API) route(d *operation.Definition, h operation.HTTP) rest.Operation {
	method, path, _ := strings.Cut(h.Route, " ")
	flat := rest.Flat{
		Route: rest.Route{Method: method, Path: path, ID: h.ID, Tag: tagOf(d, h), Scope: string(d.Scope),
			Summary: cmp.Or(h.Help, d.Help), Doc: cmp.Or(h.Doc, d.Doc), Status: h.Status, MaxBody: h.MaxBody,
			Creates: d.Effect == operation.Creates, Secret: d.Secret, Errors: failures(d, path)},
		In: d.In, Out: d.Out, Body: h.Body, NeedsBody: h.NeedsBody,
		Fields: func() []rest.Value { return values(d) },
	}
	switch {
	case d == operations.Watch.Definition:
		flat.Out, flat.Media, flat.Item, flat.Do = nil, "text/event-stream", d.Out, a.watch
	case d.Shape == operation.Streamed:
		flat.Out, flat.Media, flat.Item, flat.Do = nil, operations.JSONLinesMedia, d.Out, a.lines(d)
	case d.Shape == operation.Downloaded:
		flat.Out, flat.Media, flat.Do = nil, cmp.Or(h.Media, "*/*"), a.download(d)
	case d.Out == reflect.TypeFor[operation.None]():
		flat.Out, flat.Do = reflect.TypeFor[rest.None](), a.execute(d)
	default:
		flat.Do = a.execute(d)
	}
	return flat.Operation()
}

// failures returns the statuses of an operation's errors, with 404 if its path names something.
func failures(d *operation.Definition, path string) (list []int) {
	for _, kind := range d.Errors {
		list = append(list, statuses[kind].status)
	}
	if strings.Contains(path, "{") {
		list = append(list, http.StatusNotFound)
	}
	return list
}

func values(d *operation.Definition) (list []rest.Value) {
	for _, f := range d.Fields() {
		name, _, ok := f.In(operation.OverHTTP)
		if !ok {
			continue
		}
		v := rest.Value{Index: f.Index, Name: name, Required: f.Required, File: f.File}
		if f.Resume {
			v.Header, v.Doc = "Last-Event-ID", "the last id received; it overrides "+name
		}
		list = append(list, v)
	}
	return list
}

// execute runs an operation with one output.
func (a *API) execute(d *operation.Definition) func(http.ResponseWriter, *http.Request, reflect.Value, rest.File) (any, error) {
	return func(_ http.ResponseWriter, r *http.Request, in reflect.Value, file rest.File) (any, error) {
		d.SetKey(in, rest.Key(r.Context()))
		if d.Shape == operation.Uploaded {
			setFile(d, in, file)
		}
		cursor, paged := cursorOf(d, in)
		if paged {
			text, err := rest.ReadCursor(cursor.String())
			if err != nil {
				return nil, err
			}
			cursor.SetString(text)
		}
		out, err := a.executor.Execute(r.Context(), by(r.Context()), d, in.Interface())
		if err == nil && paged {
			out = withCursor(out)
		}
		return out, err
	}
}

func setFile(d *operation.Definition, in reflect.Value, file rest.File) {
	for _, f := range d.Fields() {
		if f.File {
			in.FieldByIndex(f.Index).Set(reflect.ValueOf(operation.Upload(file.Name, file.Reader)))
		}
	}
}

// cursorOf returns the input's cursor; false: the output is not a page of a longer list.
func cursorOf(d *operation.Definition, in reflect.Value) (reflect.Value, bool) {
	f, ok := d.Field("cursor")
	if !ok {
		return reflect.Value{}, false
	}
	return in.FieldByIndex(f.Index), true
}

// withCursor makes the cursor of the next page opaque.
func withCursor(page any) any {
	v := reflect.New(reflect.TypeOf(page)).Elem()
	v.Set(reflect.ValueOf(page))
	if next := v.FieldByName("Next"); next.IsValid() {
		next.SetString(rest.Cursor(next.String()))
	}
	return v.Interface()
}

// imageTypes are safe: browsers only show them as pictures.
var imageTypes = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

// download sends a file. Its content is untrusted: no browser may treat it as a page.
func (a *API) download(d *operation.Definition) func(http.ResponseWriter, *http.Request, reflect.Value, rest.File) (any, error) {
	return func(w http.ResponseWriter, r *http.Request, in reflect.Value, _ rest.File) (any, error) {
		out, err := a.executor.Execute(r.Context(), by(r.Context()), d, in.Interface())
		if err != nil {
			return nil, err
		}
		file := out.(operation.File)
		defer file.Close()
		return nil, rest.Stream(w, func(h http.Header) { fileHeader(h, file) }, func(to io.Writer) error {
			if r.Method == http.MethodHead {
				return nil
			}
			_, err := io.Copy(to, file)
			return err
		})
	}
}

func fileHeader(h http.Header, file operation.File) {
	h.Set("Content-Type", file.MediaType)
	h.Set("Content-Security-Policy", "sandbox; default-src 'none'")
	h.Set("Cache-Control", "no-store")
	if file.Hash != "" {
		h.Set("Cache-Control", "private, max-age=31536000, immutable")
		h.Set("ETag", strconv.Quote(file.Hash))
	}
	switch {
	case file.Name != "":
		h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": file.Name}))
	case !slices.Contains(imageTypes, file.MediaType):
		h.Set("Content-Disposition", "attachment")
	}
	if file.Size > 0 {
		h.Set("Content-Length", strconv.FormatInt(file.Size, 10))
	}
}

// lines sends each item of a stream as JSON as soon as it is available. An error before the first item becomes a
// problem; a later one cuts the connection, so that nobody mistakes a part for the whole.
func (a *API) lines(d *operation.Definition) func(http.ResponseWriter, *http.Request, reflect.Value, rest.File) (any, error) {
	return func(w http.ResponseWriter, r *http.Request, in reflect.Value, _ rest.File) (any, error) {
		return nil, rest.Stream(w, func(h http.Header) {
			h.Set("Content-Type", operations.JSONLinesMedia)
			h.Set("Cache-Control", "no-store")
			h.Set("X-Accel-Buffering", "no") // keeps proxies from buffering
		}, func(to io.Writer) error {
			for item, err := range a.executor.Follow(r.Context(), by(r.Context()), d, in.Interface()) {
				if err != nil || r.Method == http.MethodHead {
					return err
				}
				if err := text.WriteJSON(to, item); err != nil {
					return err
				}
			}
			return nil
		})
	}
}

// watch streams a session through the hub, which handles slow readers, heartbeats and shutdown.
func (a *API) watch(w http.ResponseWriter, r *http.Request, v reflect.Value, _ rest.File) (any, error) {
	in, caller := v.Interface().(operations.WatchRequest), by(r.Context())
	session, err := operations.GetSession.Call(r.Context(), a.executor, caller, operations.SessionRef{ID: in.ID})
	if err != nil {
		return nil, err
	}
	// A reader with a higher number than the journal has read a different history; it continues at the end of this one.
	after := min(in.After, session.Seq)
	return nil, a.hub.Serve(w, r, after, func(ctx context.Context, after int64) iter.Seq2[feed.Item, error] {
		return operations.Watch.Follow(ctx, a.executor, caller, operations.WatchRequest{ID: in.ID, After: after})
	})
}
