package engine_test

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"sync"
	"testing"

	"chorus/internal/chat"
	"chorus/internal/model"
	"chorus/internal/tool"
)

// wordy is a model with a small window: it answers by a function and refuses what
// does not fit.
type wordy struct {
	mu     sync.Mutex
	limit  int // characters a request may have; 0: any
	answer func(model.Request) chat.Blocks
	asked  []model.Request
	reqs   map[string]model.Request
}

func size(req model.Request) int {
	n := 0
	for _, m := range req.Messages {
		f, _ := m.Fragment()
		n += len(f)
	}
	return n
}

func (w *wordy) Prepare(req model.Request) (model.Prepared, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := fmt.Sprint(len(w.asked))
	w.asked = append(w.asked, req)
	if w.reqs == nil {
		w.reqs = map[string]model.Request{}
	}
	w.reqs[key] = req
	return model.Prepared{Model: req.Model, Body: []byte(key)}, nil
}

func (w *wordy) Stream(_ context.Context, p model.Prepared) iter.Seq2[model.Chunk, error] {
	return func(yield func(model.Chunk, error) bool) {
		w.mu.Lock()
		req := w.reqs[string(p.Body)]
		limit := w.limit
		w.mu.Unlock()
		if limit > 0 && size(req) > limit {
			yield(nil, &model.Error{Kind: model.TooLong, Provider: "wordy", Model: "m", Message: "too long"})
			return
		}
		stop := chat.StopEnd
		blocks := w.answer(req)
		if len(blocks.Calls()) > 0 {
			stop = chat.StopTools
		}
		yield(model.Done{Blocks: blocks, Stop: stop}, nil)
	}
}

func lastWords(req model.Request) string {
	return req.Messages[len(req.Messages)-1].Blocks.Text()
}

func wordyRig(t *testing.T, w *wordy, s chat.Settings) *rig {
	t.Helper()
	big := echo(false).(*fakeTool)
	big.run = func(context.Context, []byte) (tool.Result, error) {
		res := tool.OK(strings.Repeat("output ", 300))
		res.Read, res.Changed = []string{"seen.go"}, []string{"changed.go"}
		return res, nil
	}
	r := newRig(t, big)
	r.provider, r.settings = w, &s
	r.restart()
	return r
}

// talker works for a few steps, then is done; it summarises when asked to.
func talker(steps int) func(model.Request) chat.Blocks {
	n := 0
	return func(req model.Request) chat.Blocks {
		if strings.Contains(lastWords(req), "<compaction>") {
			return chat.TextBlocks("## Goal\nthe summary")
		}
		if n++; n <= steps {
			return chat.Blocks{chat.ToolUse{ID: fmt.Sprintf("call-%d", n), Name: "act", Args: []byte(fmt.Sprintf(`{"text":"%d"}`, n))}}
		}
		n = 0
		return chat.TextBlocks("done")
	}
}

func TestCompactionOnTheLivePrefix(t *testing.T) {
	t.Parallel()
	w := &wordy{answer: talker(12)}
	r := wordyRig(t, w, chat.Settings{ContextWindow: 4000, Reserve: 1000, KeepRecent: 800, MaxSteps: 40})
	r.say("work")
	events := r.untilEnds(1)
	if end := bodies[chat.RunEnded](events)[0]; end.Reason != chat.EndDone {
		t.Fatalf("%+v\n%s", end, kinds(events))
	}
	compacted := bodies[chat.Compacted](events)
	if len(compacted) < 2 {
		t.Fatalf("%d compactions", len(compacted))
	}
	for _, c := range compacted {
		if c.How != "model" || !strings.Contains(c.Summary, "the summary") || fmt.Sprint(c.Read, c.Modified) != "[seen.go] [changed.go]" {
			t.Fatalf("%+v", c)
		}
	}
	// The summary was asked for on top of what had just been sent.
	for i, req := range w.asked {
		if i == 0 || !strings.Contains(lastWords(req), "<compaction>") {
			continue
		}
		before := w.asked[i-1].Messages
		for k := range before {
			if req.Messages[k] != before[k] {
				t.Fatalf("request %d does not begin with request %d", i, i-1)
			}
		}
	}
	last := w.asked[len(w.asked)-1]
	if text := last.Messages[0].Blocks.Text(); !strings.HasPrefix(text, "<compaction-summary>") || !strings.Contains(text, "<modified-files>\nchanged.go") {
		t.Fatalf("the window begins with %q", text)
	}
	// A second prompt finds the thread usable.
	r.say("more")
	if end := bodies[chat.RunEnded](r.untilEnds(2))[1]; end.Reason != chat.EndDone {
		t.Fatalf("%+v", end)
	}
}

func TestCompactionThatOverflowsItself(t *testing.T) {
	t.Parallel()
	// The provider's window is smaller than we believe: the turn overflows, and so
	// would the summary on top of it.
	w := &wordy{answer: talker(12), limit: 14000}
	r := wordyRig(t, w, chat.Settings{ContextWindow: 20000, Reserve: 1000, KeepRecent: 800, MaxSteps: 40})
	r.say("work")
	events := r.untilEnds(1)
	if end := bodies[chat.RunEnded](events)[0]; end.Reason != chat.EndDone {
		t.Fatalf("%+v\n%s", end, kinds(events))
	}
	hows := map[string]int{}
	for _, c := range bodies[chat.Compacted](events) {
		hows[c.How]++
	}
	if hows["excerpt"] == 0 {
		t.Fatalf("%v\n%s", hows, kinds(events))
	}
}

func TestCompactionWithoutAModel(t *testing.T) {
	t.Parallel()
	inner := talker(12)
	w := &wordy{limit: 14000}
	w.answer = func(req model.Request) chat.Blocks {
		if strings.Contains(lastWords(req), "<compaction>") {
			return chat.TextBlocks("  ") // no summary at all
		}
		return inner(req)
	}
	r := wordyRig(t, w, chat.Settings{ContextWindow: 20000, Reserve: 1000, KeepRecent: 800, MaxSteps: 40})
	r.say("work on this and that")
	events := r.untilEnds(1)
	if end := bodies[chat.RunEnded](events)[0]; end.Reason != chat.EndDone {
		t.Fatalf("%+v\n%s", end, kinds(events))
	}
	c := bodies[chat.Compacted](events)
	if len(c) == 0 || c[0].How != "mechanical" || !strings.Contains(c[0].Summary, "work on this and that") {
		t.Fatalf("%+v", c)
	}
}

func TestAPromptTooLongForAnything(t *testing.T) {
	t.Parallel()
	w := &wordy{answer: talker(0), limit: 500}
	r := wordyRig(t, w, chat.Settings{ContextWindow: 20000})
	r.say(strings.Repeat("long ", 500))
	events := r.untilEnds(1)
	end := bodies[chat.RunEnded](events)[0]
	if end.Reason != chat.EndFailed || !strings.Contains(end.Text, "larger context window") {
		t.Fatalf("%+v", end)
	}
	w.mu.Lock()
	w.limit = 2000
	w.mu.Unlock()
	r.say("something short")
	events = r.untilEnds(2)
	if end := bodies[chat.RunEnded](events)[1]; end.Reason != chat.EndDone {
		t.Fatalf("the thread stayed stuck: %+v\n%s", end, kinds(events))
	}
}
