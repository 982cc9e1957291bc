package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"time"

	"chorus/internal/operation"
)

// uploadTime limits an upload.
const uploadTime = 10 * time.Minute

// replayedHeader marks the answer to an earlier request with the same key.
const replayedHeader = "Idempotency-Replayed"

// newRequest builds the request of an operation from its definition, from which the server also builds its route.
func (c *Client) newRequest(ctx context.Context, d *operation.Definition, in any) (*http.Request, error) {
	if len(d.HTTP) == 0 {
		return nil, operation.Errorf(operation.Invalid, "%s does not work with a server; run it where the server runs, without --server", d.Name)
	}
	v := reflect.ValueOf(in)
	if name := unsendable(d, v); name != "" {
		return nil, operation.InvalidField(name, "%s cannot be sent to a server; leave it out", name)
	}
	method, path, _ := strings.Cut(d.HTTP[0].Route, " ")
	inBody := method != http.MethodGet && method != http.MethodDelete && d.Shape != operation.Uploaded
	query, fields := url.Values{}, map[string]any{}
	var body io.Reader
	media := "application/json"
	for _, f := range d.Fields() {
		name, _, ok := f.In(operation.OverHTTP)
		value := v.FieldByIndex(f.Index)
		switch {
		case !ok:
		case f.File:
			body, media = value.Interface().(operation.File), "application/octet-stream"
		case strings.Contains(path, "{"+name+"}"):
			path = strings.ReplaceAll(path, "{"+name+"}", url.PathEscape(fmt.Sprint(value)))
		case value.IsZero() && !f.Required:
		case inBody:
			fields[name] = value.Interface()
		default:
			query.Set(name, queryText(f, value))
		}
	}
	if inBody {
		data, err := json.Marshal(fields)
		if err != nil {
			return nil, fmt.Errorf("write the request: %w", err)
		}
		body = bytes.NewReader(data)
	}
	target := strings.TrimRight(c.base.String(), "/") + path
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	r, err := http.NewRequestWithContext(ctx, method, target, body)
	if err != nil {
		return nil, fmt.Errorf("make the request: %w", err)
	}
	if body != nil {
		r.Header.Set("Content-Type", media)
	}
	if c.o.Token != "" {
		r.Header.Set("Authorization", "Bearer "+c.o.Token)
	}
	if index := d.KeyIndex(); index != nil && v.FieldByIndex(index).String() != "" {
		r.Header.Set("Idempotency-Key", v.FieldByIndex(index).String())
	}
	return r, nil
}

// unsendable finds a field that has a value but cannot be sent.
func unsendable(d *operation.Definition, in reflect.Value) string {
	for _, f := range reflect.VisibleFields(d.In) {
		if f.Tag.Get("json") == "-" && f.Tag.Get("key") == "" && f.Type != reflect.TypeFor[operation.File]() && !in.FieldByIndex(f.Index).IsZero() {
			return strings.ToLower(f.Name)
		}
	}
	return ""
}

// queryText formats a value for the query. A limit above the maximum page size becomes the maximum.
func queryText(f operation.Field, value reflect.Value) string {
	value = reflect.Indirect(value)
	if t, ok := value.Interface().(time.Time); ok {
		return t.UTC().Format(time.RFC3339Nano)
	}
	if f.Name == "limit" && f.Max != nil && value.CanInt() {
		return fmt.Sprint(min(value.Int(), int64(*f.Max)))
	}
	return fmt.Sprint(value)
}

func (c *Client) Execute(ctx context.Context, _ operation.Caller, d *operation.Definition, in any) (any, error) {
	if d.Shape == operation.Downloaded {
		return c.download(ctx, d, in)
	}
	limit := c.o.Timeout
	if d.Shape == operation.Uploaded {
		limit = uploadTime
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	r, err := c.newRequest(ctx, d, in)
	if err != nil {
		return nil, err
	}
	res, err := c.send(r)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	data, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	switch {
	case err != nil:
		return nil, c.unreached(ctx, err)
	case len(data) > maxAnswer:
		return nil, operation.Errorf(operation.TooLarge, "the server's answer is longer than %d MB; ask for less at once", maxAnswer>>20)
	case d.Out == reflect.TypeFor[operation.None]():
		return operation.None{}, nil
	}
	out, err := d.ParseOutput(data)
	if err != nil {
		return nil, operation.Errorf(operation.Failed, "%s sent an unexpected answer; is it a Chorus server? (%w)", c.base.Host, err)
	}
	if res.Header.Get(replayedHeader) != "" {
		out = asRepeated(out)
	}
	return out, nil
}

// asRepeated marks an output as a repeated answer, if it has a field for that.
func asRepeated(out any) any {
	v := reflect.New(reflect.TypeOf(out)).Elem()
	v.Set(reflect.ValueOf(out))
	if again := v.FieldByName("Again"); v.Kind() == reflect.Struct && again.IsValid() && again.Kind() == reflect.Bool {
		again.SetBool(true)
	}
	return v.Interface()
}

// download opens a file; its reading ends with ctx.
func (c *Client) download(ctx context.Context, d *operation.Definition, in any) (any, error) {
	r, err := c.newRequest(ctx, d, in)
	if err != nil {
		return nil, err
	}
	body, res, err := c.pieces(r)
	if err != nil {
		return nil, err
	}
	return operation.File{ReadCloser: body, MediaType: res.Header.Get("Content-Type"), Size: max(res.ContentLength, 0)}, nil
}

// Follow implements operation.Executor. A stream with numbers survives lost connections: see watch.
func (c *Client) Follow(ctx context.Context, _ operation.Caller, d *operation.Definition, in any) iter.Seq2[any, error] {
	if d.Position != nil {
		return c.watch(ctx, d, in)
	}
	return func(yield func(any, error) bool) {
		r, err := c.newRequest(ctx, d, in)
		if err != nil {
			yield(nil, err)
			return
		}
		body, _, err := c.pieces(r)
		if err != nil {
			yield(nil, err)
			return
		}
		defer body.Close()
		for lines := bufio.NewReader(body); ; {
			data, err := readLine(lines)
			if errors.Is(err, io.EOF) {
				return
			}
			var item any
			if err == nil {
				if item, err = d.ParseOutput(data); err != nil {
					err = operation.Errorf(operation.Failed, "%s sent an unexpected answer; is it a Chorus server? (%w)", c.base.Host, err)
				}
			}
			if !yield(item, err) || err != nil {
				return
			}
		}
	}
}

// pieces is an answer that is read as it arrives. No piece may take longer than Options.Silence; handling a piece may.
type pieces struct {
	client *Client
	ctx    context.Context // the caller's context
	body   io.ReadCloser
	cancel context.CancelFunc
	timer  *time.Timer
}

// pieces sends a request whose answer is read piece by piece. The caller must close it.
func (c *Client) pieces(r *http.Request) (*pieces, *http.Response, error) {
	ctx := r.Context()
	within, cancel := context.WithCancel(ctx)
	p := &pieces{client: c, ctx: ctx, cancel: cancel, timer: time.AfterFunc(c.o.Silence, cancel)}
	res, err := c.send(r.WithContext(within))
	stopped := p.timer.Stop()
	switch {
	case err == nil:
		p.body = res.Body
		return p, res, nil
	case !stopped && ctx.Err() == nil:
		err = p.silent()
	}
	cancel()
	return nil, nil, err
}

func (p *pieces) silent() error {
	return operation.Errorf(operation.Unavailable, "%s sent nothing for %s; try again when it is less busy", p.client.base.Host, p.client.o.Silence)
}

// Read implements io.Reader. Its errors are written for people.
func (p *pieces) Read(into []byte) (int, error) {
	p.timer.Reset(p.client.o.Silence)
	n, err := p.body.Read(into)
	stopped := p.timer.Stop()
	switch {
	case err == nil, errors.Is(err, io.EOF):
		return n, err
	case p.ctx.Err() != nil:
		return n, p.ctx.Err()
	case !stopped:
		return n, p.silent()
	}
	return n, &operation.Error{Kind: operation.Unavailable, Err: err,
		Message: fmt.Sprintf("%s broke off before the end, so the output is incomplete; try again (%v)", p.client.base.Host, err)}
}

func (p *pieces) Close() error {
	defer p.cancel()
	p.timer.Stop()
	return p.body.Close()
}
