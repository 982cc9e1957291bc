package participants

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"

	"chorus/internal/chat"
	"chorus/internal/model"
)

// read gives the blocks of an answer that comes in pieces, and what was shown of it.
func read(r *reading, stopped bool, pieces ...string) (blocks chat.Blocks, shown string, a *answer) {
	var text strings.Builder
	a = r.answer(func(c model.Chunk) {
		if t, ok := c.(model.TextDelta); ok {
			text.WriteString(t.Text)
		}
	})
	for _, piece := range pieces {
		a.feed(piece)
	}
	return a.finish(stopped), text.String(), a
}

func describe(blocks chat.Blocks) string {
	var out []string
	for _, b := range blocks {
		switch b := b.(type) {
		case chat.Text:
			out = append(out, fmt.Sprintf("%q", b.Text))
		case chat.Thinking:
			out = append(out, fmt.Sprintf("think %q", b.Text))
		case chat.ToolUse:
			out = append(out, fmt.Sprintf("%s %s(%s)", b.ID, b.Name, b.Args))
		default:
			out = append(out, fmt.Sprintf("%T", b))
		}
	}
	return strings.Join(out, " | ")
}

func scriptReading() *reading {
	return &reading{own: []string{"Claude", "larping"}, others: []string{"Alice:", "Bob:", "a.*(b:"}, stops: []string{"ZZ"}, script: true, trim: true, id: "call_",
		tools: map[string]model.ToolSpec{"foo": {Name: "foo"}, "get_time": timeTool}}
}

func TestAnswer(t *testing.T) {
	t.Parallel()
	const bar = "`"
	for _, c := range []struct{ name, in, want string }{
		{"plain", " Hello,\nworld.\n", `"Hello,\nworld.\n"`},
		{"B59 somebody else", "Alice: hi", ``},
		{"B59 behind white space", "\n\nAlice: hi\nmore", ``},
		{"B60 in the middle of a line", "said Alice: ok", `"said Alice: ok"`},
		{"B60 own name later", "a\nClaude: b", `"a\nClaude: b"`},
		{"cut", "yes\n\nAlice: no\nClaude: oh", `"yes"`},
		{"cut at a name that is no regular expression", "yes\na.*(b: no", `"yes"`},
		{"no cut at a longer name", "yes\nAlicea: no", `"yes\nAlicea: no"`},
		{"own label", " Claude: hi", `"hi"`},
		{"own label by its other name", "larping:\nhi", `"hi"`},
		{"a stop sequence", "one ZZ two", `"one"`},
		{"a call", "Let me see.\n\nClaude>[get_time]: {\"timezone\": \"Asia/Tokyo\"}\n", `"Let me see." | call_1 get_time({"timezone": "Asia/Tokyo"})`},
		{"a call at once", "\nClaude>[foo]: {}", `call_1 foo({})`},
		{"two calls", "\n\nClaude>[foo]: {\"a\":1}\n\nClaude>[bar]:\n{\n \"b\": [2]\n}", `call_1 foo({"a":1}) | call_2 bar({` + "\n" + ` "b": [2]` + "\n" + `})`},
		{"odd values", `Claude>[foo]: {"h":"</foo> } \" { <b>\nAlice: hi"}`, `call_1 foo({"h":"</foo> } \" { <b>\nAlice: hi"})`},
		{"line breaks in strings", "Claude>[foo]: {\"h\":\"a\nb\tc\"}", `call_1 foo({"h":"a\nb\tc"})`},
		{"no arguments", "Claude>[foo]:\n\nClaude>[foo]:", `call_1 foo({}) | call_2 foo({})`},
		{"bad JSON is the loop's", "Claude>[foo]: {'a': 1}\nmore", `call_1 foo({'a': 1})`},
		{"cut off", `Claude>[foo]: {"a": "b`, `call_1 foo({"a": "b)`},
		{"an invented result", "Claude>[foo]: {}\n\nClaude<[foo]: 7\n\nClaude: it is 7", `call_1 foo({})`},
		{"an invented result without a call", "well\nClaude<[foo]: 7", `"well"`},
		{"words behind a call", "Claude>[foo]: {}\nIt is 7.", `call_1 foo({})`},
		{"about calls", "Claude>[foo]: is how I call", `"Claude>[foo]: is how I call"`},
		{"about calls in a fence", "so:\n```\nClaude>[foo]: {}\n```\n", `"so:\n` + "```" + `\nClaude>[foo]: {}\n` + "```" + `\n"`},
		{"B62 legacy", `x <foo>{"a":1}</foo> y`, `"x" | call_1 foo({"a":1}) | "y"`},
		// The write call with "<" in its content was posted as words.
		{"arguments in tags", "<get_time>\n<timezone>a<b & </time> c</timezone>\n</get_time> y", `call_1 get_time({"timezone":"a<b & </time> c"}) | "y"`},
		{"arguments in tags, cut off", "<get_time><timezone>a<b", `"<get_time><timezone>a<b"`},
		{"tags that are no arguments", "<get_time><b>x</b></get_time>", `"<get_time><b>x</b></get_time>"`},
		{"B62 legacy without arguments", `<foo></foo>`, `call_1 foo({})`},
		{"B62 unknown tag", `<bar>{}</bar>`, `"<bar>{}</bar>"`},
		{"B62 in backticks", bar + `<foo>{}</foo>` + bar, "\"`<foo>{}</foo>`\""},
		{"B62 in a fence", "```xml\n<foo>{}</foo>\n```", "\"```xml\\n<foo>{}</foo>\\n```\""},
		{"B62 bad JSON", `<foo>{a}</foo>`, `"<foo>{a}</foo>"`},
		{"B62 unclosed", `<foo>{}`, `"<foo>{}"`},
		{"behind backticks", "`a` <foo>{}</foo>", "\"`a`\" | call_1 foo({})"},
		{"B63 inline", "before <function_calls>\n<invoke name=\"foo\">\n<parameter name=\"q\">5</parameter>\n<parameter name=\"s\">hello</parameter>\n</invoke>\n</function_calls> after",
			`"before" | call_1 foo({"q":5,"s":"hello"}) | "after"`},
		{"a namespace, and odd values", `<x:function_calls><x:invoke name="foo"><x:parameter name="q">a < b </invoke> "c"</x:parameter></x:invoke></x:function_calls>`,
			`call_1 foo({"q":"a < b </invoke> \"c\""})`},
		{"a string stays one", `<function_calls><invoke name="get_time"><parameter name="timezone">5</parameter></invoke></function_calls>`, `call_1 get_time({"timezone":"5"})`},
		{"B65 answered already", `<function_calls><invoke name="foo"></invoke></function_calls>` + "\n<function_results>x</function_results>",
			`"<function_calls><invoke name=\"foo\"></invoke></function_calls>\n<function_results>x</function_results>"`},
		{"nothing to call", `<function_calls></function_calls>`, `"<function_calls></function_calls>"`},
		{"thinking of its own", "<thinking> hm </thinking>\n\nyes", `think "hm" | "yes"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, shown, _ := read(scriptReading(), false, c.in)
			if describe(got) != c.want {
				t.Errorf("%q is\n%s want\n%s", c.in, describe(got), c.want)
			}
			if got := got.Text(); got != shown {
				t.Errorf("%q was shown, %q came of it", shown, got)
			}
			if again, _, _ := read(scriptReading(), false, strings.Split(c.in, "")...); describe(again) != c.want {
				t.Errorf("byte by byte %q is\n%s want\n%s", c.in, describe(again), c.want)
			}
		})
	}
}

func TestAnswerBegins(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		r        reading
		in, want string
	}{
		// In chat mode it was posted to the channel.
		{"thinking in turns", reading{trim: true}, "<thinking>x</thinking> yes", `think "x" | "yes"`},
		{"not at the beginning", reading{trim: true}, "so <thinking>x</thinking>", `"so <thinking>x</thinking>"`},
		{"after thinking", reading{thinking: true, trim: true, script: true}, "hm </thinkin </thinking>\n\nyes", `think "hm </thinkin" | "yes"`},
		{"nothing but thinking", reading{thinking: true, script: true}, "hm\nAlice: x", `think "hm\nAlice: x"`},
		{"going on", reading{midline: true, script: true}, " thinking of\nyou", `" thinking of\nyou"`},
		{"going on, then another", reading{midline: true, others: []string{"Alice:"}}, "Alice: is here\n\nAlice: yes", `"Alice: is here"`},
		{"a chat keeps its white space", reading{own: []string{"C"}, others: []string{"A:"}}, "\n  x\n", `"\n  x\n"`},
		{"a chat's label", reading{own: []string{"C"}}, "C: x", `"x"`},
		{"a chat has no calls in its text", reading{own: []string{"C"}}, "\nC>[foo]: {}", `"\nC>[foo]: {}"`},
		{"a script without tools", reading{own: []string{"C"}, script: true}, "C>[foo]: {}", `"C>[foo]: {}"`},
	} {
		if got, _, _ := read(&c.r, false, c.in); describe(got) != c.want {
			t.Errorf("%s: %s want %s", c.name, describe(got), c.want)
		}
	}
	if got, _, _ := read(&reading{}, true, "yes\n\n"); describe(got) != `"yes"` {
		t.Errorf("stopped by a sequence: %s", describe(got))
	}
}

// TestStream goes through Prepare and Stream, as the loop does.
func TestStream(t *testing.T) {
	t.Parallel()
	ask := func(s Style, r model.Request, chunks ...model.Chunk) (shown string, done model.Done, err error) {
		s.Bot = "Claude"
		m := s.Wrap(&recorder{answer: chunks}, entry)
		p, err := m.Prepare(r)
		if err != nil {
			return "", done, err
		}
		for c, err := range m.Stream(t.Context(), p) {
			if err != nil {
				return shown, done, err
			}
			switch c := c.(type) {
			case model.TextDelta:
				shown += c.Text
			case model.ArgsDelta:
				shown += "[" + c.Text + "]"
			case model.Done:
				done = c
			}
		}
		return shown, done, nil
	}
	head := &model.Head{Tools: []model.ToolSpec{timeTool}}
	r := model.Request{Head: head, Messages: talk(t, "Alice: time?")}
	call := " Let me see.\n\nClaude>[get_time]: {\"timezone\":\"UTC\"}\n"

	shown, done, err := ask(Style{Mode: Prefill}, r, model.TextDelta{Text: call[:20]}, model.TextDelta{Text: call[20:]},
		model.Done{Blocks: chat.TextBlocks(call), Stop: chat.StopSeq, Usage: chat.Usage{Output: 7}, ID: "m1"})
	if err != nil || shown != `Let me see.[{"timezone":"UTC"}]` || done.Stop != chat.StopTools || done.Usage.Output != 7 || done.ID != "m1" {
		t.Errorf("%q %+v %v", shown, done, err)
	}
	calls := done.Blocks.Calls()
	if len(calls) != 1 || !strings.HasPrefix(calls[0].ID, "call_") || len(calls[0].ID) < 20 {
		t.Fatalf("calls %v", calls)
	}
	_, again, _ := ask(Style{Mode: Prefill}, r, model.Done{Blocks: chat.TextBlocks(call)})
	if got := again.Blocks.Calls(); len(got) != 1 || got[0].ID != calls[0].ID {
		t.Errorf("the same request and answer gave %v, before %v", got, calls)
	}
	r.Messages = append(r.Messages, said(t, "Bob", "and?"))
	if _, other, _ := ask(Style{Mode: Prefill}, r, model.Done{Blocks: chat.TextBlocks(call)}); other.Blocks.Calls()[0].ID == calls[0].ID {
		t.Error("two requests gave the same id")
	}

	_, done, _ = ask(Style{Mode: Prefill}, r, model.Done{Blocks: chat.TextBlocks("Claude>[get_time]: {\"a"), Stop: chat.StopLength})
	if done.Stop != chat.StopLength || string(done.Blocks.Calls()[0].Args) != `{"a` {
		t.Errorf("cut off: %+v", done)
	}
	shown, done, _ = ask(Style{Mode: Chat}, r, model.TextDelta{Text: "Alice: hi"}, model.Done{Blocks: chat.TextBlocks("Alice: hi"), Stop: chat.StopEnd})
	if shown != "" || len(done.Blocks) != 0 || done.Stop != chat.StopSeq {
		t.Errorf("as somebody else: %q %+v", shown, done)
	}
	use := chat.ToolUse{ID: "c", Name: "get_time", Args: json.RawMessage("{}")}
	_, done, _ = ask(Style{Mode: Chat}, r, model.TextDelta{Text: "one"}, model.ArgsDelta{Call: "c"}, model.TextDelta{Text: "two\nBob: x"},
		model.Done{Blocks: chat.Blocks{chat.Thinking{Signature: "s"}, chat.Text{Text: "Claude: one"}, use, chat.Text{Text: "two\nBob: x"}}, Stop: chat.StopTools})
	if got := describe(done.Blocks); got != `think "" | "one" | c get_time({}) | "two"` || done.Stop != chat.StopTools {
		t.Errorf("blocks of a chat: %s, %s", got, done.Stop)
	}
	// In a chat a note has no name that could be taken.
	noted := model.Request{Messages: []*model.Message{msg(t, model.User, chat.Participant{Kind: chat.System}, chat.Text{Text: "<note about=\"os\">"})}}
	for mode, want := range map[Mode]string{Chat: `"System: Linux"`, Prefill: ``} {
		if _, done, _ = ask(Style{Mode: mode}, noted, model.Done{Blocks: chat.TextBlocks("System: Linux")}); describe(done.Blocks) != want {
			t.Errorf("%s after a note: %s", mode, describe(done.Blocks))
		}
	}
	// A summary may speak of everybody.
	summary := model.Request{Messages: append(talk(t, "Alice: a"), msg(t, model.User, chat.Participant{Kind: chat.System}, chat.Text{Text: "<compaction>"}))}
	_, done, _ = ask(Style{Mode: Prefill}, summary, model.Done{Blocks: chat.TextBlocks(" So:\nAlice: asked")})
	if got := describe(done.Blocks); got != `"So:\nAlice: asked"` {
		t.Errorf("summary: %s", got)
	}
}

// failing is a model whose answer breaks off.
type failing struct{ recorder }

func (f *failing) Stream(context.Context, model.Prepared) iter.Seq2[model.Chunk, error] {
	return func(yield func(model.Chunk, error) bool) {
		if yield(model.TextDelta{Text: "half"}, nil) {
			yield(nil, &model.Error{Kind: model.Network})
		}
	}
}

func TestStreamEnds(t *testing.T) {
	t.Parallel()
	m := Style{Mode: Chat}.Wrap(&failing{}, entry)
	p, err := m.Prepare(model.Request{Messages: talk(t, "A: b")})
	if err != nil {
		t.Fatal(err)
	}
	var text string
	for c, err := range m.Stream(t.Context(), p) {
		if err != nil {
			var e *model.Error
			if !errors.As(err, &e) || text != "half" {
				t.Errorf("%v after %q", err, text)
			}
			continue
		}
		text += c.(model.TextDelta).Text
	}
	for range m.Stream(t.Context(), p) {
		break // must not be called again
	}
	// Somebody else's Prepared goes through untouched.
	for _, err := range m.Stream(t.Context(), model.Prepared{}) {
		if err != nil && model.KindOf(err) != model.Network {
			t.Error(err)
		}
	}
}

func FuzzAnswer(f *testing.F) {
	for _, seed := range []string{
		"Hello", "Alice: hi", "a\nAlice: b", "Claude: x\n\nClaude>[foo]: {\"a\":\"}\"}\n\nClaude>[foo]: {", "<foo>{\"a\":1}</foo>x", "`<foo>{}</foo>`", "```\n<foo>\n```\n<foo></foo>",
		"<x:function_calls><x:invoke name=\"foo\"><x:parameter name=\"a\">1</x:parameter></x:invoke></x:function_calls>\n<x:function_results>", "<thinking>a</thinking> b", "oneZZtwo", "\n\n \t\r\n", "Claude<[foo]: x",
	} {
		f.Add(seed, uint64(12345), uint8(0))
	}
	f.Fuzz(func(t *testing.T, in string, cuts uint64, how uint8) {
		r := scriptReading()
		r.script = how&1 == 0
		r.midline = how&2 != 0
		r.trim = !r.midline
		r.thinking = how&4 != 0
		whole, shown, a := read(r, how&8 != 0, in)
		var pieces []string
		rest := in
		for i := 0; rest != ""; i++ {
			n := min(len(rest), 1+int(cuts>>(uint(i%16)*4)&15))
			pieces, rest = append(pieces, rest[:n]), rest[n:]
		}
		if again, _, _ := read(r, how&8 != 0, pieces...); describe(again) != describe(whole) {
			t.Errorf("%q in pieces %q is\n%s\nand at once\n%s", in, pieces, describe(again), describe(whole))
		}
		if !a.discarded && whole.Text() != shown {
			t.Errorf("%q: shown %q, came of it %q", in, shown, whole.Text())
		}
		if how&^3 == 0 && !strings.ContainsAny(in, "<:") && !strings.Contains(in, "ZZ") && !strings.Contains(in, ">[") {
			want := in
			if r.trim {
				want = strings.TrimLeft(in, space)
			}
			if got := whole.Text(); got != want {
				t.Errorf("nothing to parse in %q, but %q came of it", in, got)
			}
		}
	})
}
