package agent_test

import (
	"context"
	"iter"
	"slices"
	"strings"
	"testing"

	"chorus/internal/agent"
	"chorus/internal/agent/attempt"
	"chorus/internal/chat"
	"chorus/internal/ledger"
	"chorus/internal/model"
	"chorus/internal/model/catalog"
)

// moody yields what it is told and then fails.
type moody struct {
	text string
	kind model.ErrorKind
}

func (m moody) Prepare(r model.Request) (model.Prepared, error) {
	return model.Prepared{Model: r.Model}, nil
}

func (m moody) Stream(context.Context, model.Prepared) iter.Seq2[model.Chunk, error] {
	return func(yield func(model.Chunk, error) bool) {
		if m.text != "" && !yield(model.TextDelta{Text: m.text}, nil) {
			return
		}
		yield(nil, &model.Error{Kind: m.kind})
	}
}

// A run turns to the next model of its chain when the error says that it may help,
// and never when somebody has begun to read an answer.
func TestFallback(t *testing.T) {
	t.Parallel()
	good := &scripted{answers: []chat.Blocks{chat.TextBlocks("here I am")}}
	for name, c := range map[string]struct {
		models map[string]model.Model
		want   string // models asked, in order
		end    chat.Reason
	}{
		"down":                  {map[string]model.Model{"x/m": moody{kind: model.Overloaded}, "y/b": &scripted{answers: slices.Clone(good.answers)}}, "x/m y/b", chat.EndDone},
		"no key":                {map[string]model.Model{"x/m": moody{kind: model.Auth}, "y/b": &scripted{answers: slices.Clone(good.answers)}}, "x/m y/b", chat.EndDone},
		"twice":                 {map[string]model.Model{"x/m": moody{kind: model.Auth}, "y/b": moody{kind: model.Auth}, "z/c": &scripted{answers: slices.Clone(good.answers)}}, "x/m y/b z/c", chat.EndDone},
		"all of them":           {map[string]model.Model{"x/m": moody{kind: model.Auth}, "y/b": moody{kind: model.Auth}, "z/c": moody{kind: model.Auth}}, "x/m y/b z/c", chat.EndFailed},
		"not there at all":      {map[string]model.Model{"y/b": &scripted{answers: slices.Clone(good.answers)}}, "x/m y/b", chat.EndDone},
		"its fault is ours":     {map[string]model.Model{"x/m": moody{kind: model.BadRequest}, "y/b": &scripted{answers: slices.Clone(good.answers)}}, "x/m", chat.EndFailed},
		"somebody is reading":   {map[string]model.Model{"x/m": moody{text: "I am", kind: model.Auth}, "y/b": &scripted{answers: slices.Clone(good.answers)}}, "x/m", chat.EndFailed},
		"nobody is reading yet": {map[string]model.Model{"x/m": moody{kind: model.Network}, "y/b": &scripted{answers: slices.Clone(good.answers)}}, "x/m y/b", chat.EndDone},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := &host{}
			h.guest(prompt())
			ag := newAgent(t, &act{})
			ag.Retry.Backoff.Retries = -1
			ag.Retry.FallsBack = func(kind model.ErrorKind) bool { return kind != model.BadRequest }
			ag.Model = func(name string) (model.Handle, error) {
				m, ok := c.models[name]
				if !ok {
					return model.Handle{}, &model.Error{Kind: model.Auth, Message: "no such key"}
				}
				return model.Handle{Model: m, Name: name}, nil
			}
			withSettings(ag, chat.Settings{Fallback: []string{"y/b", "z/c"}})
			state, err := ag.Run(context.Background(), fold(t, h), h)
			if err != nil || state != agent.Finished {
				t.Fatal(state, err)
			}
			var asked []string
			for _, ev := range h.journal {
				if a, ok := ev.Body.(chat.Asked); ok {
					asked = append(asked, a.Model)
				}
			}
			end := h.journal[len(h.journal)-1].Body.(chat.RunEnded)
			if strings.Join(asked, " ") != c.want || end.Reason != c.end {
				t.Errorf("asked %v, ended %s (%s)\n%s", asked, end.Reason, end.Text, h.kinds())
			}
		})
	}
}

// counted answers with calls and says what the cache held.
type counted struct {
	scripted
	usage []chat.Usage
}

func (c *counted) Stream(ctx context.Context, p model.Prepared) iter.Seq2[model.Chunk, error] {
	return func(yield func(model.Chunk, error) bool) {
		for chunk, err := range c.scripted.Stream(ctx, p) {
			done := chunk.(model.Done)
			done.Usage, c.usage = c.usage[0], c.usage[1:]
			yield(done, err)
		}
	}
}

// Every request says what the cache should hold; an answer for which it held much
// less is reported, with what changed if we changed something.
func TestCacheMisses(t *testing.T) {
	t.Parallel()
	h := &host{}
	h.guest(prompt())
	m := &counted{scripted{answers: []chat.Blocks{call(1), call(2), call(3), chat.TextBlocks("done")}}, []chat.Usage{
		{CacheWrite: 5000, Output: 10}, {CacheRead: 5000, CacheWrite: 100, Output: 10}, {CacheWrite: 5200, Output: 10}, {CacheRead: 5200, CacheWrite: 100, Output: 10}}}
	ag := newAgent(t, &act{})
	ag.Model = func(string) (model.Handle, error) {
		return model.Handle{Model: m, Name: "m", Entry: catalog.Entry{Price: ledger.Price{CacheRead: 1}}}, nil
	}
	var missed []attempt.CacheMiss
	ag.CacheMissed = func(c attempt.CacheMiss) { missed = append(missed, c) }
	if state, err := ag.Run(context.Background(), fold(t, h), h); err != nil || state != agent.Finished {
		t.Fatal(state, err)
	}
	var expected []int
	for _, ev := range h.journal {
		if a, ok := ev.Body.(chat.Asked); ok {
			expected = append(expected, a.Cached)
		}
	}
	if !slices.Equal(expected, []int{0, 5000, 5100, 5200}) {
		t.Errorf("expected %v", expected)
	}
	if len(missed) != 1 || missed[0].Step != 3 || missed[0].Expected != 5100 || missed[0].Read != 0 || missed[0].Fragment != -1 {
		t.Errorf("missed %+v", missed)
	}
}

// A room that is too long is rolled before the request, and not again at the next.
func TestRolls(t *testing.T) {
	t.Parallel()
	h := &host{}
	for range 40 {
		h.guest(chat.Received{From: chat.Participant{Name: "Ada"}, Blocks: chat.TextBlocks("a word")})
	}
	h.guest(prompt())
	ag := newAgent(t, &act{}, call(1), call(2), chat.TextBlocks("done"))
	withSettings(ag, chat.Settings{Window: chat.Window{Messages: 10, Threshold: 8}})
	log := fold(t, h)
	if state, err := ag.Run(context.Background(), log, h); err != nil || state != agent.Finished {
		t.Fatal(state, err)
	}
	if n := strings.Count(h.kinds(), "rolled"); n != 1 {
		t.Errorf("rolled %d times: %s", n, h.kinds())
	}
	// Ten were kept, then two calls, their results and the answer.
	if log.Messages() != 10+5 {
		t.Errorf("%d messages", log.Messages())
	}
}
