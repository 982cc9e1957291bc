package client

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"time"

	"chorus/internal/await"
	"chorus/internal/operation"
)

// maxLine is larger than any event of ours: results are cut long before.
const maxLine = 32 << 20

// lastWait is the longest pause between two reconnects.
const lastWait = 10 * time.Second

// watch follows a stream whose items have numbers. It resumes a broken connection after the last complete number, until
// the server has been unreachable for longer than the client waits.
func (c *Client) watch(ctx context.Context, d *operation.Definition, in any) iter.Seq2[any, error] {
	return func(yield func(any, error) bool) {
		w := &watch{client: c, definition: d, in: reflect.New(d.In).Elem(), yield: yield}
		w.in.Set(reflect.ValueOf(in))
		for _, f := range d.Fields() {
			if f.Resume {
				w.resume = w.in.FieldByIndex(f.Index)
				w.after = w.resume.Int()
				w.resume.SetInt(0)
			}
		}
		wait, since := c.o.FirstWait, time.Now()
		for {
			err := w.once(ctx)
			switch {
			case w.over:
				return
			case ctx.Err() != nil:
				yield(nil, ctx.Err())
				return
			case !passing(err):
				yield(nil, err)
				return
			}
			if w.heard {
				w.heard, wait, since = false, c.o.FirstWait, time.Now()
			} else if time.Since(since) > c.o.GiveUpAfter {
				yield(nil, err)
				return
			} else if !w.away {
				w.away = true
				c.o.Away(true)
			}
			if !await.For(ctx, wait/2+rand.N(wait/2+1)) {
				yield(nil, ctx.Err())
				return
			}
			wait = min(2*wait, lastWait)
		}
	}
}

// passing reports whether a retry may succeed: after a cut, or if the server is starting or too busy.
func passing(err error) bool {
	switch operation.KindOf(err) {
	case operation.Unavailable, operation.Busy:
		return true
	case operation.Failed:
		var ours *operation.Error
		return !errors.As(err, &ours)
	default:
		return false
	}
}

// watch is one reader across all its connections.
type watch struct {
	client     *Client
	definition *operation.Definition
	in         reflect.Value
	resume     reflect.Value // the field of in with the number, which is sent in a header
	after      int64         // the last complete number that was delivered
	group      []any         // items of a number whose last item has not arrived yet
	yield      func(any, error) bool
	heard      bool // this connection has sent something
	over       bool // the reader has stopped
	away       bool // Away was called
}

// once reads one connection. It ends with an error or when the reader stops.
func (w *watch) once(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	w.group = nil // an incomplete number is sent again in full
	r, err := w.client.newRequest(ctx, w.definition, w.in.Interface())
	if err != nil {
		return err
	}
	r.Header.Set("Accept", "text/event-stream")
	r.Header.Set("Last-Event-ID", strconv.FormatInt(w.after, 10))
	silence := time.AfterFunc(w.client.o.Silence, cancel)
	defer silence.Stop()
	res, err := w.client.http.Do(r)
	if err != nil {
		return w.client.unreached(context.Background(), err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return w.client.problem(res)
	}
	if media := res.Header.Get("Content-Type"); !strings.HasPrefix(media, "text/event-stream") {
		return operation.Errorf(operation.Failed, "%s answered %.80q instead of a stream; is it a Chorus server?", w.client.base.Host, media)
	}
	w.heard = true
	if w.away {
		w.away = false
		w.client.o.Away(false)
	}
	return w.read(bufio.NewReaderSize(res.Body, 32<<10), func() { silence.Reset(w.client.o.Silence) })
}

// read reads frames until the connection ends.
func (w *watch) read(in *bufio.Reader, alive func()) error {
	var data []byte
	for {
		line, err := readLine(in)
		if errors.Is(err, io.EOF) {
			err = fmt.Errorf("the stream was cut: %w", io.ErrUnexpectedEOF)
		}
		if err != nil {
			return err
		}
		alive()
		name, value, _ := strings.Cut(string(line), ":")
		switch {
		case len(line) == 0:
			if err := w.frame(data); err != nil || w.over {
				return err
			}
			data = nil
		case name == "data":
			if len(data)+len(value) > maxLine {
				return operation.Errorf(operation.TooLarge, "an event is longer than %d MB", maxLine>>20)
			}
			if data != nil {
				data = append(data, '\n')
			}
			data = append(data, strings.TrimPrefix(value, " ")...)
		}
	}
}

// readLine reads a line without its line break. It returns io.EOF at the end and an error for an incomplete line.
func readLine(in *bufio.Reader) ([]byte, error) {
	var whole []byte
	for {
		part, err := in.ReadSlice('\n')
		if len(whole)+len(part) > maxLine {
			return nil, operation.Errorf(operation.TooLarge, "an event is longer than %d MB", maxLine>>20)
		}
		whole = append(whole, part...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF) && len(whole) > 0:
			return nil, fmt.Errorf("the stream was cut: %w", io.ErrUnexpectedEOF)
		case err != nil:
			return nil, err
		}
		return []byte(strings.TrimRight(string(whole), "\r\n")), nil
	}
}

// frame handles one object. Objects of one number are delivered together once the last arrives; after a cut, all of them are sent again.
func (w *watch) frame(data []byte) error {
	if data == nil {
		return nil
	}
	item, err := w.definition.ParseOutput(data)
	if err != nil {
		return operation.Errorf(operation.Failed, "the server sent an event that cannot be read: %w", err)
	}
	number, more := w.definition.Position(item)
	switch {
	case number == 0:
		w.over = !w.yield(item, nil)
		return nil
	case number <= w.after:
		return nil // already delivered
	}
	w.group = append(w.group, item)
	if more {
		return nil
	}
	group := w.group
	w.group, w.after = nil, number
	for _, one := range group {
		if !w.yield(one, nil) {
			w.over = true
			return nil
		}
	}
	return nil
}
