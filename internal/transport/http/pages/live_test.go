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

	"chorus/internal/command"
	"chorus/internal/feed"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// oneTalk is a service with one session, of which these items are told.
type oneTalk struct {
	command.Service
	items []feed.Item
	told  chan struct{} // closed when the end of the run is about to be
}

func (o *oneTalk) GetSession(context.Context, command.Caller, string) (command.Session, error) {
	status := "running"
	select {
	case <-o.told:
		status = "idle"
	default:
	}
	return command.Session{ID: "s1", Agent: "chorus", Status: status}, nil
}

func (o *oneTalk) Watch(ctx context.Context, _ command.Caller, _ string, after int64) iter.Seq2[feed.Item, error] {
	return func(yield func(feed.Item, error) bool) {
		for _, item := range o.items {
			if _, over := item.(feed.Completed); over {
				close(o.told) // whoever hears of the end and looks finds it ended
			}
			if item.Header().Seq > after || item.Header().Seq == 0 {
				if !yield(item, nil) {
					return
				}
			}
		}
		<-ctx.Done()
	}
}

// A stream draws at its own pace, says at its end how things stand, and ends with the server.
func TestStream(t *testing.T) {
	t.Parallel()
	head := func(seq int64) feed.Head { return feed.Head{Seq: seq, Run: "r", At: noon} }
	service := &oneTalk{told: make(chan struct{}), items: []feed.Item{
		feed.UserMessage{Head: head(1), Text: "hello"}, feed.RunStarted{Head: head(2)},
		feed.TextDelta{Head: feed.Head{Run: "r", At: noon}, Step: 1, Attempt: 1, Text: "an <answer"},
		feed.AssistantMessage{Head: head(3), Step: 1, Attempt: 1, Text: "an <answer>"}, feed.Completed{Head: head(4), StopReason: "done"},
		feed.TextDelta{Head: feed.Head{Run: "r", At: noon}, Step: 1, Attempt: 1, Offset: 10, Text: ">"}, // overtaken
	}}
	stopping := make(chan struct{})
	p, err := New(Options{Service: service, Stopping: stopping, Now: func() time.Time { return noon }})
	if err != nil {
		t.Fatal(err)
	}
	by := command.Caller{Scopes: []command.Scope{command.Chat}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.ServeHTTP(w, r.WithContext(command.WithCaller(r.Context(), by)))
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
	page := &dom{}
	page.read(t, got.String()+string(rest))
	if _, _, writing := page.find("live"); writing || page.seen != 4 || strings.Count(page.html, "an &lt;answer&gt;") != 1 {
		t.Errorf("seen %d: %s", page.seen, page.html)
	}
}
