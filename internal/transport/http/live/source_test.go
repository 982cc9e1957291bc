package live

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"chorus/internal/chat"
	"chorus/internal/feed"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const thread = chat.ThreadID("web:ada:01J0000000000000000000000A@helper")

// fakeSource publishes a script of objects step by step, in the order of the engine: the
// journal first, then the text so far, then new objects.
type fakeSource struct {
	mu      sync.Mutex
	script  []feed.Item
	changed chan struct{} // closed at each step
	watches int
}

func newFakeSource(script ...feed.Item) *fakeSource {
	return &fakeSource{script: slices.Clone(script), changed: make(chan struct{})}
}

func (s *fakeSource) publish(items ...feed.Item) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.script = append(s.script, items...)
	close(s.changed)
	s.changed = make(chan struct{})
}

func (s *fakeSource) watchCount() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.watches
}

func (s *fakeSource) now() ([]feed.Item, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.script, s.changed
}

func (s *fakeSource) watch(ctx context.Context, after int64) iter.Seq2[feed.Item, error] {
	return func(yield func(feed.Item, error) bool) {
		s.mu.Lock()
		s.watches++
		s.mu.Unlock()
		script, moved := s.now()
		for _, item := range script {
			if item.Header().Seq > after && !yield(item, nil) {
				return
			}
		}
		if late, ok := textSoFar(script); ok && !yield(late, nil) {
			return
		}
		for seen := len(script); ; seen = len(script) {
			select {
			case <-ctx.Done():
				return
			case <-moved:
			}
			script, moved = s.now()
			for _, item := range script[seen:] {
				if !yield(item, nil) {
					return
				}
			}
		}
	}
}

// textSoFar joins the deltas of the answer that is being written.
func textSoFar(script []feed.Item) (feed.Item, bool) {
	var late feed.TextDelta
	for _, item := range script {
		switch it := item.(type) {
		case feed.TextDelta:
			if it.Offset == 0 {
				late = feed.TextDelta{Head: it.Head, Step: it.Step, Attempt: it.Attempt}
			}
			late.Text += it.Text
		case feed.AssistantMessage, feed.Trace, feed.Completed:
			late = feed.TextDelta{}
		}
	}
	return late, late.Text != ""
}

// run is a complete run: an attempt that fails in the middle, a second one, two calls of which
// one needs approval, and an answer. Deltas stand where they would arrive.
func run() []feed.Item {
	ada := chat.Participant{ID: "ada", Name: "Ada", Kind: chat.Person}
	seq, at := int64(0), time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var out []feed.Item
	event := func(body chat.Body) {
		seq++
		out = append(out, feed.Translate(chat.Event{Thread: thread, Seq: seq, At: at, Run: "r1", Body: body}, feed.Options{})...)
	}
	say := func(attempt int, text string) {
		for i := 0; i < len(text); i += 4 {
			out = append(out, feed.Live(thread, chat.Delta{Run: "r1", Step: 1, Attempt: attempt, What: chat.DeltaText, Offset: i, Text: text[i:min(i+4, len(text))]}))
		}
	}
	event(chat.Received{From: ada, Prompt: true, Blocks: chat.Blocks{chat.Text{Text: "look\r\nhere"}}})
	event(chat.RunStarted{Run: "r1", Model: "demo/echo"})
	event(chat.Asked{Step: 1, Attempt: 1})
	say(1, "I will not be kept")
	event(chat.Said{Step: 1, Attempt: 1, Stop: chat.StopError, Error: &chat.Failure{Kind: "overloaded", Message: "try later"}})
	event(chat.Asked{Step: 1, Attempt: 2})
	say(2, "I will look. Now.")
	event(chat.Said{Step: 1, Attempt: 2, Stop: chat.StopTools, Blocks: chat.Blocks{chat.Text{Text: "I will look. Now."},
		chat.ToolUse{ID: "c1", Name: "read", Args: json.RawMessage(`{"path":"a.go"}`)}, chat.ToolUse{ID: "c2", Name: "bash"}}})
	event(chat.ApprovalAsked{ID: "p1", Call: "c2", Name: "bash"})
	event(chat.ToolRan{Call: "c1", Name: "read", Blocks: chat.Blocks{chat.Text{Text: "package a"}}})
	event(chat.ApprovalAnswered{ID: "p1", Call: "c2", OK: true, By: "local:ada"})
	event(chat.ToolRan{Call: "c2", Name: "bash", Blocks: chat.Blocks{chat.Text{Text: "done"}}})
	say(3, "All is well.")
	event(chat.Said{Step: 2, Attempt: 1, Stop: chat.StopEnd, Blocks: chat.Blocks{chat.Text{Text: "All is well."}}})
	event(chat.RunEnded{Run: "r1", Reason: chat.EndDone, Steps: 2})
	return out
}

// frame is an event as a client reads it.
type frame struct {
	event, id, data, comment string
	retry                    int
}

// client reads one connection.
type client struct {
	body  io.ReadCloser
	lines *bufio.Reader
}

func connect(t testing.TB, url, lastID string) *client {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "GET", url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if lastID != "" {
		r.Header.Set("Last-Event-ID", lastID)
	}
	res, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode != 200 || !strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		t.Fatalf("answered %s, %s", res.Status, res.Header)
	}
	return &client{res.Body, bufio.NewReader(res.Body)}
}

func (c *client) close() { c.body.Close() }

// next reads a frame, comments too; io.EOF at the end of the stream.
func (c *client) next() (frame, error) {
	var f frame
	for {
		line, err := c.lines.ReadString('\n')
		if err != nil {
			return f, err
		}
		line = strings.TrimSuffix(line, "\n")
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "":
			return f, nil
		case name == "":
			f.comment = value
		case name == "event":
			f.event = value
		case name == "id":
			f.id = value
		case name == "data":
			f.data += value
		case name == "retry":
			f.retry, _ = strconv.Atoi(value)
		}
	}
}

// object reads the next frame that has data.
func (c *client) object(t testing.TB) frame {
	t.Helper()
	for {
		f, err := c.next()
		if err != nil {
			t.Fatal(err)
		}
		if f.data != "" {
			return f
		}
	}
}

// serveFake serves a fake source.
func (h *Hub) serveFake(source *fakeSource) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		after, _ := strconv.ParseInt(r.Header.Get("Last-Event-ID"), 10, 64)
		if err := h.Serve(w, r, after, source.watch); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
		}
	})
}

// reader does what a client should: it takes the objects of one number together, and keeps a
// preview of the answer that is being written.
type reader struct {
	lastID  string
	whole   []string // the objects of complete numbers
	part    []string // the first objects of the next number
	preview string
	attempt string // run, step and attempt of the preview
	ended   bool
}

func (r *reader) take(f frame) error {
	item, err := feed.Parse([]byte(f.data))
	if err != nil {
		return err
	}
	head := item.Header()
	switch it := item.(type) {
	case feed.TextDelta:
		if f.id != "" || head.Seq != 0 {
			return errors.New("a delta has a number")
		}
		if attempt := fmt.Sprint(it.Run, it.Step, it.Attempt); attempt != r.attempt || it.Offset == 0 {
			r.attempt, r.preview = attempt, ""
		}
		if it.Offset != len(r.preview) {
			return fmt.Errorf("the preview has %q and the next piece is at %d", r.preview, it.Offset)
		}
		r.preview += it.Text
		return nil
	case feed.AssistantMessage:
		if !strings.HasPrefix(it.Text, r.preview) {
			return fmt.Errorf("the preview %q became %q", r.preview, it.Text)
		}
		r.preview = ""
	case feed.Trace:
		if it.Kind == "error" {
			r.preview = ""
		}
	case feed.Completed:
		r.ended = true
	}
	if string(head.Type) != f.event {
		return fmt.Errorf("the event %s has the type %s", f.event, head.Type)
	}
	r.part = append(r.part, f.data)
	if (f.id != "") == head.More || f.id != "" && f.id != strconv.FormatInt(head.Seq, 10) {
		return fmt.Errorf("id %q on an object with the number %d and more: %v", f.id, head.Seq, head.More)
	}
	if f.id != "" {
		r.lastID = f.id
		r.whole, r.part = append(r.whole, r.part...), nil
	}
	return nil
}
