package pages

import (
	"context"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"chorus/internal/chat"
	"chorus/internal/feed"
	"chorus/internal/operation"
	"chorus/internal/operations"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// oneSession is a service with one session that has these items.
type oneSession struct {
	operations.Sessions
	operations.History
	items []feed.Item
	ended chan struct{} // closed just before the end of the run is delivered
}

func (o *oneSession) GetSession(context.Context, operation.Caller, operations.SessionRef) (operations.Session, error) {
	status := "running"
	select {
	case <-o.ended:
		status = "idle"
	default:
	}
	return operations.Session{ID: "s1", Agent: "chorus", Status: status}, nil
}

func (o *oneSession) Watch(ctx context.Context, _ operation.Caller, in operations.WatchRequest) iter.Seq2[feed.Item, error] {
	return func(yield func(feed.Item, error) bool) {
		for _, item := range o.items {
			if _, over := item.(feed.Completed); over {
				close(o.ended) // GetSession must agree with the item
			}
			if item.Header().Seq > in.After || item.Header().Seq == 0 {
				if !yield(item, nil) {
					return
				}
			}
		}
		<-ctx.Done()
	}
}

// A stream sends the draft at its own pace, the state at the end of a run, and ends with the server.
func TestStream(t *testing.T) {
	t.Parallel()
	head := func(seq int64) feed.Head { return feed.Head{Seq: seq, Run: "r", At: noon} }
	service := &oneSession{ended: make(chan struct{}), items: []feed.Item{
		feed.UserMessage{Head: head(1), Text: "hello"}, feed.RunStarted{Head: head(2)},
		feed.TextDelta{Head: feed.Head{Run: "r", At: noon}, Step: 1, Attempt: 1, Text: "an <answer"},
		feed.AssistantMessage{Head: head(3), Step: 1, Attempt: 1, Text: "an <answer>"}, feed.Completed{Head: head(4), StopReason: "done"},
		feed.TextDelta{Head: feed.Head{Run: "r", At: noon}, Step: 1, Attempt: 1, Offset: 10, Text: ">"}, // arrives late
	}}
	stopping := make(chan struct{})
	p, err := New(Options{Executor: operation.NewLocal(operation.LocalOptions{Handlers: []any{service}}), Stopping: stopping, Now: func() time.Time { return noon }})
	if err != nil {
		t.Fatal(err)
	}
	by := operation.Caller{Principal: chat.Principal{Kind: chat.TokenHolder, ID: "t1"}, Scopes: []operation.Scope{operation.Chat}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.ServeHTTP(w, r.WithContext(operation.WithCaller(r.Context(), by)))
	}))
	defer server.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/s/s1/live?after=0", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := server.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	var got strings.Builder
	toldOfTheEnd := func() bool {
		_, after, ended := strings.Cut(got.String(), "id: 4\n")
		return ended && strings.Contains(after, `"status":"idle"`)
	}
	for buffer := make([]byte, 4096); !toldOfTheEnd(); {
		n, err := answer.Body.Read(buffer)
		if got.Write(buffer[:n]); err != nil {
			t.Fatalf("%v after %s", err, got.String())
		}
	}
	close(stopping)
	rest, err := io.ReadAll(answer.Body)
	if err != nil || !strings.Contains(got.String()+string(rest), ": the server is stopping; come again") {
		t.Errorf("%v: the stream ended with %q", err, rest)
	}
	page := &fakeDOM{}
	page.read(t, got.String()+string(rest))
	if _, _, writing := page.find("live"); writing || page.seen != 4 || strings.Count(page.html, "an &lt;answer&gt;") != 1 {
		t.Errorf("seen %d: %s", page.seen, page.html)
	}
}
