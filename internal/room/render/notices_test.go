package render_test

import (
	"testing"
	"time"

	"chorus/internal/chat"
	"chorus/internal/room/render"
)

// What a process tells people is shown once; what else is only heard is not.
func TestNoticesOfProcesses(t *testing.T) {
	t.Parallel()
	v := render.New(render.Options{})
	v.Apply(chat.Event{Seq: 1, Body: chat.Received{From: chat.Participant{Kind: chat.Person}, Blocks: chat.TextBlocks("heard")}})
	v.Apply(chat.Event{Seq: 2, Body: chat.Received{From: chat.Participant{Kind: chat.System}, Principal: chat.Principal{Kind: chat.ProcessHook, ID: "p"}, Blocks: chat.TextBlocks("it failed")}})
	v.Apply(chat.Event{Seq: 3, Body: chat.Received{From: chat.Participant{Kind: chat.System}, Principal: chat.Principal{Kind: chat.ProcessHook, ID: "p"}, Intake: chat.Inject, Blocks: chat.TextBlocks("for the model")}})
	if w := v.Wanted(time.Now()); len(w.Messages) != 1 || w.Messages[0].Key != "notice-2" || w.Messages[0].Text != "it failed" || !w.Messages[0].Final || !v.Idle() {
		t.Errorf("%+v", w.Messages)
	}
	v.Forget()
	if w := v.Wanted(time.Now()); len(w.Messages) != 0 {
		t.Errorf("%+v", w.Messages)
	}
}
