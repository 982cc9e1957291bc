package pages

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"chorus/internal/chat"
	"chorus/internal/operation"
	"chorus/internal/operations"
)

// printing is a process that prints more whenever it is looked at.
type printing struct {
	operations.Processes
	mu      sync.Mutex
	printed string
	more    []string // what each look adds; after the last it is over
	fired   int
}

func (o *printing) status() string {
	if len(o.more) == 0 {
		return "exited"
	}
	return "running"
}

func (o *printing) GetProcess(context.Context, operation.Caller, operations.ProcessRef) (operations.Process, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	one := operations.Process{ID: "p1", Command: "make <all>", Status: o.status(), StartedAt: noon}
	if one.Status == "exited" {
		o.fired++
		if o.fired > 1 { // hooks act a moment later
			one.Fired = []operations.ProcessHookFired{{Do: "notify_channel", State: "done", At: noon}}
		}
	}
	return one, nil
}

func (o *printing) ProcessLogs(_ context.Context, _ operation.Caller, in operations.ProcessLogQuery) (operations.ProcessOutput, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	out := operations.ProcessOutput{ID: "p1", Status: o.status()}
	if len(o.more) > 0 && in.From > 0 {
		o.printed += o.more[0]
		o.more = o.more[1:]
	}
	if in.From == 0 {
		in.From = 1
	}
	out.From, out.Total, out.Text = in.From, int64(len(o.printed)), o.printed[min(in.From-1, int64(len(o.printed))):]
	if in.Whole && out.Status == "running" {
		out.Text = out.Text[:strings.LastIndexByte(out.Text, '\n')+1]
	}
	out.Next = out.From + int64(len(out.Text))
	return out, nil
}

// open serves the pages over these processes; the clock goes on with each look at it.
func (o *printing) open(t *testing.T, stopping chan struct{}) *httptest.Server {
	t.Helper()
	var mu sync.Mutex
	now := noon
	p, err := New(Options{Executor: operation.NewLocal(operation.LocalOptions{Handlers: []any{o}}), Stopping: stopping, Now: func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		now = now.Add(400 * time.Millisecond)
		return now
	}})
	if err != nil {
		t.Fatal(err)
	}
	by := operation.Caller{Principal: chat.Principal{Kind: chat.TokenHolder, ID: "t1"}, Scopes: []operation.Scope{operation.Chat}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.ServeHTTP(w, r.WithContext(operation.WithCaller(r.Context(), by)))
	}))
	t.Cleanup(server.Close)
	return server
}

func get(t *testing.T, server *httptest.Server, path, last string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if last != "" {
		request.Header.Set("Last-Event-ID", last)
	}
	answer, err := server.Client().Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// What is printed comes line by line and ends with the process; what its hooks did then comes too.
func TestProcessStream(t *testing.T) {
	t.Parallel()
	o := &printing{more: []string{"one\n", "", "tw", "o\n<three>\n\x1b[31mred", "\n"}}
	got := get(t, o.open(t, nil), "/processes/p1/live?from=1", "")
	var at int
	for _, want := range []string{"id: 5\nevent: output\ndata: {\"text\":\"one\\n\"}", `"text":"two\n\u003cthree\u003e\n"`, `"text":"red\n"`, "Process exited", "notify_channel", "event: end"} {
		next := strings.Index(got[at:], want)
		if next < 0 {
			t.Fatalf("%q does not follow in:\n%s", want, got)
		}
		at += next
	}
	if strings.Contains(got, "<all>") || strings.Contains(got, `\u001b`) {
		t.Errorf("not escaped: %s", got)
	}
	if strings.Count(got, "event: output") != 3 {
		t.Errorf("told twice, or in pieces: %s", got)
	}
}

// A page that reconnects goes on at its position, whatever its address says.
func TestProcessStreamGoesOn(t *testing.T) {
	t.Parallel()
	o := &printing{printed: "one\ntwo\n"}
	got := get(t, o.open(t, nil), "/processes/p1/live?from=1", "5")
	if !strings.Contains(got, "id: 9\nevent: output\ndata: {\"text\":\"two\\n\"}") || strings.Contains(got, `"one`) {
		t.Error(got)
	}
}

// A line that is not complete is shown when it has stood for a while: it may be a question.
func TestProcessStreamShowsQuestions(t *testing.T) {
	t.Parallel()
	o := &printing{more: []string{"sure? ", "", "", "", "", "", "", "", "", "", "", ""}}
	got := get(t, o.open(t, nil), "/processes/p1/live?from=1", "")
	if before, _, ok := strings.Cut(got, "sure? "); !ok || strings.Contains(before, "exited") {
		t.Error(got)
	}
}

func TestProcessPage(t *testing.T) {
	t.Parallel()
	o := &printing{printed: strings.Repeat("line\n", 500) + "last\n", more: []string{"", "", ""}}
	page := get(t, o.open(t, nil), "/processes/p1", "")
	if !strings.Contains(page, `data-next="2506"`) || !strings.Contains(page, "last\n</pre>") || strings.Count(page, "line\n") > tailLines || !strings.Contains(page, "process.js") {
		t.Error(page)
	}
	over := &printing{printed: "x"}
	if page = get(t, over.open(t, nil), "/processes/p1", ""); strings.Contains(page, "process.js") || !strings.Contains(page, ">x</pre>") {
		t.Error(page)
	}
}

func TestProcessStreamEndsWithTheServer(t *testing.T) {
	t.Parallel()
	stopping := make(chan struct{})
	close(stopping)
	o := &printing{more: make([]string, 1000)}
	if got := get(t, o.open(t, stopping), "/processes/p1/live?from=1", ""); !strings.Contains(got, "the server is stopping") {
		t.Error(got)
	}
}
