package pages

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"chorus/internal/chat"
	"chorus/internal/feed"
	"chorus/internal/operation"
	"chorus/internal/operations"
)

const overloaded = `{"step":1,"attempt":1,"kind":"overloaded","message":"The <model> is overloaded.","retryMs":30000}`

// While a provider was out of order the page said nothing: rooms and the stream did.
func TestPageSaysThatItTriesAgain(t *testing.T) {
	t.Parallel()
	p, err := New(Options{Now: func() time.Time { return noon }})
	if err != nil {
		t.Fatal(err)
	}
	head := func(seq int64) feed.Head { return feed.Head{Seq: seq, Run: "r", At: noon} }
	failed := feed.Trace{Head: head(3), Kind: "error", Data: json.RawMessage(overloaded)}
	before := []feed.Item{feed.UserMessage{Head: head(1), Text: "hello"}, feed.RunStarted{Head: head(2)}, failed}
	page := func(items ...feed.Item) string {
		dom := &fakeDOM{}
		dom.read(t, streamed(t, p, view{Session: "s1", Agent: "chorus"}, append(before[:3:3], items...)))
		return dom.html
	}
	if got := page(); strings.Count(got, `id="retry"`) != 1 || !strings.Contains(got, "The &lt;model&gt; is overloaded. · trying again <span") || !strings.Contains(got, `data-at="2026`) || !strings.Contains(got, "in 30 seconds") {
		t.Errorf("while it waits: %s", got)
	}
	again := failed
	again.Head = head(5)
	if got := page(feed.Trace{Head: head(4), Kind: "asked", Data: json.RawMessage("{}")}, again); strings.Count(got, `id="retry"`) != 1 {
		t.Errorf("after a second failure: %s", got)
	}
	next := feed.Trace{Head: head(4), Kind: "error", Data: json.RawMessage(`{"message":"no","next":"other/model"}`)}
	if got := page(next); !strings.Contains(got, "continuing with other/model") {
		t.Errorf("with another model: %s", got)
	}
	for name, item := range map[string]feed.Item{
		"a piece of the answer": feed.TextDelta{Head: feed.Head{Run: "r", At: noon}, Step: 1, Attempt: 2, Text: "an"},
		"the answer":            feed.AssistantMessage{Head: head(4), Step: 1, Attempt: 2, Text: "an answer"},
		"a call":                feed.ToolCall{Head: head(4), CallID: "c", Tool: "read"},
		"the end":               feed.Completed{Head: head(4), StopReason: "aborted"},
		"a failure":             feed.Error{Head: head(4), Message: "gave up"},
	} {
		if got := page(item); strings.Contains(got, `id="retry"`) {
			t.Errorf("after %s: %s", name, got)
		}
	}
	final := feed.Trace{Head: head(3), Kind: "error", Data: json.RawMessage(`{"message":"no","final":true}`)}
	before[2] = final
	if got := page(); strings.Contains(got, `id="retry"`) {
		t.Errorf("without another try: %s", got)
	}
}

// lastEvents is a service with these last events.
type lastEvents struct {
	operations.History
	events []operations.RawEvent
}

func (l lastEvents) Events(context.Context, operation.Caller, operations.EventQuery) (operation.List[operations.RawEvent], error) {
	return operation.List[operations.RawEvent]{Items: l.events}, nil
}

// A page that is opened during an outage says so, too.
func TestOpenedPageSaysThatItTriesAgain(t *testing.T) {
	t.Parallel()
	body, err := chat.EncodeBody(chat.Said{Step: 1, Attempt: 1, Error: &chat.Failure{Kind: "overloaded", Message: "later", RetryMS: 30_000}})
	if err != nil {
		t.Fatal(err)
	}
	said := operations.RawEvent{Seq: 7, At: noon, Kind: string(chat.Said{}.Kind()), Body: body}
	asked := operations.RawEvent{Seq: 8, At: noon, Kind: string(chat.Asked{}.Kind()), Body: json.RawMessage(`{}`)}
	answered := operations.RawEvent{Seq: 9, At: noon, Kind: string(chat.Said{}.Kind()), Body: json.RawMessage(`{"blocks":null}`)}
	for _, c := range []struct {
		events []operations.RawEvent
		want   bool
	}{
		{[]operations.RawEvent{asked, said}, true}, {[]operations.RawEvent{said, asked}, true}, {[]operations.RawEvent{said, answered}, false}, {nil, false},
	} {
		p, err := New(Options{Executor: operation.NewLocal(operation.LocalOptions{Handlers: []any{lastEvents{events: c.events}}}), Now: func() time.Time { return noon }})
		if err != nil {
			t.Fatal(err)
		}
		by := operation.Caller{Principal: chat.Principal{Kind: chat.TokenHolder, ID: "t1"}, Scopes: []operation.Scope{operation.Read, operation.Chat}}
		got, err := p.retrying(t.Context(), by, operations.Session{ID: "s1", Seq: 9})
		if err != nil || strings.Contains(string(got), "trying again") != c.want {
			t.Errorf("%v: %q, %v", c.events, got, err)
		}
	}
}
