package render_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"chorus/internal/chat"
	"chorus/internal/room/render"
	"chorus/internal/room/split"
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

// A notice that is longer than a message was refused by the platform. It is cut as answers are, and is a file where that would be many messages.
func TestLongNotices(t *testing.T) {
	t.Parallel()
	of := func(lines int) render.Wanted {
		v := render.New(render.Options{})
		text := "it failed\n```\n" + strings.Repeat("a line of what it printed\n", lines) + "```"
		v.Apply(chat.Event{Seq: 7, Body: chat.Received{From: chat.Participant{Kind: chat.System}, Principal: chat.Principal{Kind: chat.ProcessHook, ID: "p"}, Blocks: chat.TextBlocks(text)}})
		return v.Wanted(time.Now())
	}
	several := of(200)
	for i, m := range several.Messages {
		key := "notice-7"
		if i > 0 {
			key += fmt.Sprintf("/%d", i)
		}
		if m.Key != key || !m.Final || split.Length(m.Text) > split.DefaultHard || strings.Count(m.Text, "```") != 2 || m.File != nil {
			t.Errorf("%d: %+v", i, m)
		}
	}
	if n := len(several.Messages); n != 3 && n != 4 {
		t.Errorf("%d messages", n)
	}
	whole := of(2000).Messages
	if len(whole) != 1 || whole[0].Key != "notice-7" || whole[0].File == nil || whole[0].File.Name != "notice.md" || !strings.Contains(whole[0].Text, "*The whole notice is attached (") || split.Length(whole[0].Text) > split.DefaultHard {
		t.Errorf("%+v", whole)
	}
}
