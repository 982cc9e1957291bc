package participants

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"chorus/internal/chat"
	"chorus/internal/model"
)

// history draws a conversation: people, the bot under two names, calls with their
// results, pictures, notes, and messages that say nothing.
func history(t *rapid.T) []*model.Message {
	words := rapid.SampledFrom([]string{"hi", "a\nb", "x\nAlice: y", "no\n\nClaude: z", "é ", "", " \n", "see <@Bob>", "Claude>[foo]: {}", "q\nBob<[foo]: 1", "tail \n"})
	name := rapid.SampledFrom([]string{"Alice", "Bob", "Claude", "new\nline", ""})
	var out []*model.Message
	add := func(role model.Role, from chat.Participant, blocks ...chat.Block) {
		m, err := model.NewMessage(role, from, blocks)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, m)
	}
	bot := chat.Participant{Name: "Claude", Kind: chat.Agent}
	for i := range rapid.IntRange(0, 14).Draw(t, "messages") {
		text := chat.Text{Text: words.Draw(t, "text")}
		person := chat.Participant{Name: name.Draw(t, "name"), Kind: chat.Person}
		switch rapid.IntRange(0, 9).Draw(t, "kind") {
		case 0, 1, 2, 3:
			add(model.User, person, text)
		case 4, 5:
			add(model.Assistant, bot, text)
		case 6:
			id := fmt.Sprint("c", i)
			add(model.Assistant, bot, text, chat.ToolUse{ID: id, Name: "foo", Args: json.RawMessage(`{"a":1}`)})
			result := chat.ToolResult{Call: id, Blocks: chat.Blocks{text}}
			if rapid.Bool().Draw(t, "picture of a tool") {
				result.Blocks = append(result.Blocks, picture("t"))
			}
			add(model.User, chat.Participant{Kind: chat.System}, result)
		case 7:
			add(model.User, person, text, picture("p"))
		case 8:
			add(model.User, chat.Participant{Kind: chat.System}, chat.Text{Text: "<note about=\"x\">"})
		case 9:
			add(model.User, chat.Participant{Name: "larping", Kind: chat.Bot}, text)
		}
	}
	return out
}

func style(t *rapid.T) Style {
	return Style{
		Mode: rapid.SampledFrom([]Mode{Prefill, Chat}).Draw(t, "mode"), Bot: "Claude", Aliases: []string{"larping"},
		Delimiter: rapid.SampledFrom([]string{"", "</s>"}).Draw(t, "delimiter"), TurnEnd: rapid.SampledFrom([]string{"", "<eot>"}).Draw(t, "turn end"),
		ContextPrefix: rapid.SampledFrom([]string{"", "PFX"}).Draw(t, "prefix"), Stable: rapid.Bool().Draw(t, "stable"),
		OwnAsUser: rapid.Bool().Draw(t, "own as user"), Persona: rapid.Bool().Draw(t, "persona"), PersonaPrefill: rapid.Bool().Draw(t, "persona prefill"),
		PrefillThinking: rapid.Bool().Draw(t, "thinking"),
	}
}

// flat is everything that a request says, one after the other; ends are where each
// turn's ends.
func flat(r model.Request) (text string, ends []int) {
	var out strings.Builder
	var blocks func(chat.Blocks)
	blocks = func(list chat.Blocks) {
		for _, b := range list {
			switch b := b.(type) {
			case chat.Text:
				out.WriteString(b.Text)
			case chat.Image:
				out.WriteString("<image " + b.Blob + ">")
			case chat.ToolUse:
				fmt.Fprintf(&out, "<use %s %s>", b.Name, b.Args)
			case chat.ToolResult:
				out.WriteString("<result>")
				blocks(b.Blocks)
			}
		}
	}
	for _, m := range r.Messages {
		blocks(m.Blocks)
		ends = append(ends, out.Len())
	}
	return out.String() + r.Prefill, ends
}

// unclosed is a request's text without what stands at its end only because the bot is
// to speak now.
func unclosed(s Style, r model.Request, told string) string {
	closing := "Claude:"
	if s.Mode == Prefill {
		if s.PrefillThinking {
			closing += " <thinking>"
		}
		bare, ok := strings.CutSuffix(told, closing)
		if separator := s.Delimiter; ok && separator != "" {
			bare = strings.TrimSuffix(bare, separator)
		} else if ok {
			bare = strings.TrimSuffix(bare, Separator)
		}
		return bare
	}
	if s.PersonaPrefill {
		return strings.TrimSuffix(told, closing)
	}
	return told
}

func TestPrefixHolds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s, all := style(t), history(t)
		rec := &recorder{}
		warm := s.Wrap(rec, entry)
		head := &model.Head{System: "s"}
		before := ""
		for n := range len(all) + 1 {
			if n > 0 && len(all[n-1].Blocks.Calls()) > 0 {
				continue // a call is never sent without its result
			}
			r := model.Request{Head: head, Messages: all[:n], Marks: rapid.SliceOfN(rapid.IntRange(0, 14), 0, 3).Draw(t, "marks")}
			if _, err := warm.Prepare(r); err != nil {
				t.Fatal(err)
			}
			told := rec.last
			check(t, s, told)
			text, _ := flat(told)
			if !strings.HasPrefix(text, before) {
				t.Fatalf("%d messages: the text\n%q does not begin with that before\n%q", n, text, before)
			}
			before = unclosed(s, r, text)
			// What is remembered changes nothing.
			if fresh := tell2(t, s, r); show(fresh) != show(told) {
				t.Fatalf("remembered\n%s made anew\n%s", show(told), show(fresh))
			}
		}
	})
}

// check holds a request to what providers insist on.
func check(t *rapid.T, s Style, r model.Request) {
	for i, m := range r.Messages {
		if i == 0 && m.Role != model.User {
			t.Fatalf("the first turn is the assistant's:\n%s", show(r))
		}
		if len(m.Blocks) == 0 {
			t.Fatalf("an empty turn:\n%s", show(r))
		}
		for _, b := range m.Blocks {
			if text, ok := b.(chat.Text); ok && strings.TrimSpace(text.Text) == "" && len(m.Blocks) == 1 {
				t.Fatalf("an empty text:\n%s", show(r))
			}
			if _, image := b.(chat.Image); image && m.Role != model.User {
				t.Fatalf("a picture in an assistant turn:\n%s", show(r))
			}
		}
	}
	if r.Prefill != strings.TrimRight(r.Prefill, space) {
		t.Fatalf("white space at the end:\n%s", show(r))
	}
	if s.Mode == Prefill && r.Prefill == "" {
		t.Fatalf("nothing to go on with:\n%s", show(r))
	}
}

func tell2(t *rapid.T, s Style, r model.Request) model.Request {
	rec := &recorder{}
	if _, err := s.Wrap(rec, entry).Prepare(r); err != nil {
		t.Fatal(err)
	}
	return rec.last
}

// TestMarksHold: a mark stands right behind its message's text, so a later mark is never
// before an earlier one.
func TestMarksHold(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s, all := style(t), history(t)
		s.ContextPrefix = ""
		last := 0
		for i := range all {
			told := tell2(t, s, model.Request{Messages: all, Marks: []int{i}})
			if len(told.Marks) == 0 {
				continue
			}
			text, ends := flat(told)
			at := ends[told.Marks[0]]
			if len(told.Marks) > 1 || at < last {
				t.Fatalf("mark %d of\n%s is at %d, the one before at %d", i, show(told), at, last)
			}
			last = at
			if len(all[i].Blocks.Calls()) > 0 || len(shown(all[i].Blocks)) > 0 {
				continue // the first is never the last message; a picture stands behind its mark
			}
			alone := tell2(t, s, model.Request{Messages: all[:i+1]})
			upTo, _ := flat(alone)
			if want := unclosed(s, alone, upTo); trimEnd(text[:at]) != trimEnd(want) && trimEnd(text[:at]) != trimEnd(want+s.TurnEnd) {
				t.Fatalf("mark %d of\n%s is behind\n%q, want\n%q", i, show(told), text[:at], want)
			}
		}
	})
}

func TestMemoryIsBounded(t *testing.T) {
	t.Parallel()
	w := Style{Mode: Prefill, Bot: "Claude"}.Wrap(&recorder{}, entry).(*styledModel)
	messages := talk(t, "A: 1", "B: 2")
	for range mostGroups + 10 {
		if _, err := w.Prepare(model.Request{Head: &model.Head{}, Messages: slices.Clone(messages), Marks: []int{0}}); err != nil {
			t.Fatal(err)
		}
		messages[0] = said(t, "A", "1")
	}
	w.memory.mu.Lock() // the collector's goroutine forgets too
	defer w.memory.mu.Unlock()
	if n := len(w.memory.groups); n > mostGroups {
		t.Errorf("%d groups are remembered", n)
	}
	if n := len(w.memory.heads); n > mostHeads {
		t.Errorf("%d heads are remembered", n)
	}
}

// TestMemoryLetsGo: what was made of messages goes with them.
func TestMemoryLetsGo(t *testing.T) {
	t.Parallel()
	w := Style{Mode: Chat, Bot: "Claude"}.Wrap(&recorder{}, entry).(*styledModel)
	func() {
		if _, err := w.Prepare(model.Request{Messages: talk(t, "A: 1", "B: 2", "Claude: 3", "A: 4")}); err != nil {
			t.Fatal(err)
		}
	}()
	w.inner.(*recorder).last = model.Request{}
	remembered := func() int {
		w.memory.mu.Lock()
		defer w.memory.mu.Unlock()
		return len(w.memory.groups)
	}
	if remembered() == 0 {
		t.Fatal("nothing was remembered")
	}
	for deadline := time.Now().Add(10 * time.Second); remembered() > 0; runtime.GC() {
		if time.Now().After(deadline) {
			t.Fatalf("%d groups are still remembered", remembered())
		}
	}
}

// TestAtOnce: a styled model may be used from everywhere.
func TestAtOnce(t *testing.T) {
	t.Parallel()
	for _, mode := range []Mode{Prefill, Chat} {
		m := Style{Mode: mode, Bot: "Claude"}.Wrap(silent{}, entry)
		all := talk(t, "A: 1", "B: 2", "Claude: 3", "A: 4", "B: 5")
		head := &model.Head{Tools: []model.ToolSpec{timeTool}}
		var wait sync.WaitGroup
		for n := range 8 {
			wait.Go(func() {
				r := model.Request{Head: head, Messages: all[:1+n%5], Marks: []int{n % 3}}
				p, err := m.Prepare(r)
				if err != nil {
					t.Error(err)
				}
				for range m.Stream(t.Context(), p) {
					continue
				}
			})
		}
		wait.Wait()
	}
}

// silent is a model that remembers nothing.
type silent struct{}

func (silent) Prepare(r model.Request) (model.Prepared, error) {
	return model.Prepared{Model: r.Model}, nil
}

func (silent) Stream(context.Context, model.Prepared) iter.Seq2[model.Chunk, error] {
	return func(yield func(model.Chunk, error) bool) {
		_ = yield(model.TextDelta{Text: "hm\n\nClaude>[get_time]: {}"}, nil) && yield(model.Done{}, nil)
	}
}

func BenchmarkPrepare(b *testing.B) {
	for _, mode := range []Mode{Prefill, Chat} {
		b.Run(string(mode), func(b *testing.B) {
			var all []*model.Message
			for i := range 400 {
				name := []string{"Alice", "Bob", "Carol", "Claude", "Dora", "Eve", "Fred"}[i*i%7]
				all = append(all, said(b, name, strings.Repeat("some words that somebody said ", 8)))
			}
			m := Style{Mode: mode, Bot: "Claude"}.Wrap(&recorder{}, entry)
			r := model.Request{Head: &model.Head{System: "s", Tools: []model.ToolSpec{timeTool}}, Messages: all, Marks: []int{300, 380}}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := m.Prepare(r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
