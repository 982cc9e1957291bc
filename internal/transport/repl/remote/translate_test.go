package remote

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"chorus/internal/chat"
	"chorus/internal/feed"
)

// TestThereAndBack: what the terminal looks at of an event survives the wire.
func TestThereAndBack(t *testing.T) {
	t.Parallel()
	thread, err := chat.NewThreadID("web", "place", "one", "helper")
	if err != nil {
		t.Fatal(err)
	}
	ada := chat.Participant{ID: "ada", Name: "Ada", Kind: chat.Person}
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, body := range []chat.Body{
		chat.Received{From: ada, Prompt: true, Blocks: chat.TextBlocks("hello")},
		chat.Steered{From: ada, Mode: chat.Inject, Blocks: chat.TextBlocks("turn")},
		chat.Refused{Seq: 3, Why: "too many wait"},
		chat.RunStarted{Run: "r", Model: "demo/echo", Settings: chat.Settings{Mode: "plan", Profile: "standard", MaxSteps: 7}},
		chat.Took{Run: "r", Step: 1, Seqs: []int64{1, 2}},
		chat.Said{Step: 2, Attempt: 1, Stop: chat.StopTools, Blocks: chat.Blocks{chat.Text{Text: "looking"},
			chat.ToolUse{ID: "a", Name: "read", Args: json.RawMessage(`{"path":"a.go"}`)}, chat.ToolUse{ID: "b", Name: "read", Args: json.RawMessage(`{}`)}}, Usage: chat.Usage{Input: 1, Output: 2, CacheRead: 3}},
		chat.Said{Step: 1, Attempt: 2, Stop: chat.StopEnd, Blocks: chat.TextBlocks("done"), Usage: chat.Usage{Input: 7}},
		chat.ToolBegan{Call: "a", Name: "bash"},
		chat.ToolRan{Call: "a", Name: "bash", Outcome: chat.Ran, Blocks: chat.TextBlocks("fine"), TookMS: 5, Changed: []string{"x"}},
		chat.ToolRan{Call: "a", Name: "bash", Outcome: chat.Ran, Failed: true, Blocks: chat.TextBlocks("broken")},
		chat.ToolRan{Call: "a", Name: "bash", Outcome: chat.Denied, Blocks: chat.TextBlocks("no")},
		chat.ApprovalAsked{ID: "q", Call: "a", Name: "bash", Actions: []string{"tool:bash:x"}, Rule: "r", Preview: "+x", Until: at},
		chat.ApprovalAnswered{ID: "q", Call: "a", By: "local:ada", OK: true, Note: "fine"},
		chat.ApprovalNoted{ID: "q", Call: "a", What: chat.FirstYes, By: "local:ada"},
		chat.AbortAsked{Run: "r", By: "local:ada"},
		chat.RunEnded{Run: "r", Reason: chat.EndDone, Steps: 2, Usage: chat.Usage{Input: 3, Output: 4}, Cost: 5},
	} {
		ev := chat.Event{Thread: thread, Seq: 2, At: at, Run: "r", Body: body}
		got, err := shown(feed.Translate(ev, feed.Options{}))
		if err != nil || got.Event == nil || got.Event.Seq != 2 || !reflect.DeepEqual(got.Event.Body, body) || len(got.Lines) == 0 {
			t.Errorf("%+v\nbecame %+v (%v)", body, got.Event, err)
		}
	}
	failed := chat.Said{Step: 1, Attempt: 1, Error: &chat.Failure{Kind: "network", Message: "cut", RetryMS: 9}}
	got, err := shown(feed.Translate(chat.Event{Thread: thread, Seq: 2, At: at, Body: failed}, feed.Options{}))
	if said, ok := got.Event.Body.(chat.Said); err != nil || !ok || said.Error == nil || *said.Error != *failed.Error {
		t.Errorf("a failed attempt became %+v, %v", got.Event, err)
	}
	end := chat.RunEnded{Run: "r", Reason: chat.EndFailed, Error: &chat.Failure{Kind: "auth", Message: "no key"}}
	got, err = shown(feed.Translate(chat.Event{Thread: thread, Seq: 2, At: at, Body: end}, feed.Options{}))
	if back, ok := got.Event.Body.(chat.RunEnded); err != nil || !ok || back.Reason != chat.EndFailed || back.Error.Message != "no key" {
		t.Errorf("a failed run became %+v, %v", got.Event, err)
	}
}

func TestLiveThereAndBack(t *testing.T) {
	t.Parallel()
	for _, piece := range []chat.Live{
		chat.Delta{Run: "r", Step: 1, Attempt: 2, What: chat.DeltaText, Offset: 3, Text: "x"},
		chat.Delta{Run: "r", Step: 1, Attempt: 2, What: chat.DeltaThinking, Offset: 3, Text: "x"},
		chat.Progress{Run: "r", Call: "a", Tool: "bash", Text: "line"},
	} {
		got, err := shown([]feed.Item{feed.Live("web:place:one@helper", piece)})
		if err != nil || got.Event != nil || !reflect.DeepEqual(got.Live, piece) {
			t.Errorf("%+v became %+v, %v", piece, got, err)
		}
	}
}
