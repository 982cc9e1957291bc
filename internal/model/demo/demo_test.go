package demo

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"chorus/internal/chat"
	"chorus/internal/model"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// talkWith is a conversation under test.
type talkWith struct {
	t        *testing.T
	p        *Provider
	name     string
	messages []*model.Message
}

func newTalk(t *testing.T, name string) *talkWith {
	t.Helper()
	return &talkWith{t: t, p: New(), name: name}
}

func (c *talkWith) add(role model.Role, blocks ...chat.Block) {
	c.t.Helper()
	m, err := model.NewMessage(role, chat.Participant{Name: "ada"}, blocks)
	if err != nil {
		c.t.Fatal(err)
	}
	c.messages = append(c.messages, m)
}

func (c *talkWith) user(text string) { c.add(model.User, chat.Text{Text: text}) }

var testTools = []model.ToolSpec{
	{Name: "bash", Schema: json.RawMessage(`{"type":"object","properties":{"command":{"type":"string"}}}`)},
	{Name: "git_status"}, {Name: "git_diff"},
	{Name: "list_files", Schema: json.RawMessage(`{"type":"object","properties":{"pattern":{}}}`)},
	{Name: "read", Schema: json.RawMessage(`{"type":"object","properties":{"file_path":{}}}`)},
	{Name: "search_files", Schema: json.RawMessage(`{"type":"object","properties":{"pattern":{}}}`)},
	{Name: "write", Schema: json.RawMessage(`{"type":"object","properties":{"path":{},"content":{}}}`)},
}

func (c *talkWith) prepare() model.Prepared {
	c.t.Helper()
	prep, err := c.p.Prepare(model.Request{Model: c.name, Head: &model.Head{System: "be kind", Tools: testTools}, Messages: c.messages})
	if err != nil {
		c.t.Fatal(err)
	}
	return prep
}

// ask runs one call, appends the answer and gives text deltas joined.
func (c *talkWith) ask(ctx context.Context) (text string, done model.Done, err error) {
	c.t.Helper()
	for chunk, e := range c.p.Stream(ctx, c.prepare()) {
		if e != nil {
			return text, done, e
		}
		switch chunk := chunk.(type) {
		case model.TextDelta:
			text += chunk.Text
		case model.Done:
			done = chunk
		}
	}
	if done.Stop == "" {
		c.t.Fatal("stream ended without Done")
	}
	if done.Blocks.Text() != text {
		c.t.Errorf("deltas %q, answer %q", text, done.Blocks.Text())
	}
	if len(done.Blocks) > 0 {
		c.add(model.Assistant, done.Blocks...)
	}
	return text, done, nil
}

func (c *talkWith) mustAsk() (string, model.Done) {
	c.t.Helper()
	text, done, err := c.ask(context.Background())
	if err != nil {
		c.t.Fatal(err)
	}
	return text, done
}

func (c *talkWith) results(text string) {
	c.t.Helper()
	last := c.messages[len(c.messages)-1]
	var blocks chat.Blocks
	for _, call := range last.Blocks.Calls() {
		blocks = append(blocks, chat.ToolResult{Call: call.ID, Name: call.Name, Blocks: chat.TextBlocks(text)})
	}
	c.add(model.User, blocks...)
}

func TestEcho(t *testing.T) {
	t.Parallel()
	c := newTalk(t, "echo")
	c.user("Grüße, 世界 {{last}} 👩‍👩‍👧‍👦 and a rather long line that needs more than one piece")
	text, done := c.mustAsk()
	if text != c.messages[0].Blocks.Text() || done.Stop != chat.StopEnd {
		t.Errorf("echoed %q, stop %s", text, done.Stop)
	}
	if done.Usage.Input == 0 || done.Usage.Output != model.Tokens(len(text)) {
		t.Errorf("usage %+v", done.Usage)
	}
}

func TestUnknownModel(t *testing.T) {
	t.Parallel()
	_, err := New().Prepare(model.Request{Model: "gpt"})
	if model.KindOf(err) != model.BadRequest || !strings.Contains(err.Error(), "demo/guide") {
		t.Errorf("error %v", err)
	}
}

func TestGuideSaysWhatItIs(t *testing.T) {
	t.Parallel()
	for _, hello := range []string{"hi", "who are you?", "help", "run"} {
		c := newTalk(t, "guide")
		c.user(hello)
		text, done := c.mustAsk()
		if !strings.Contains(text, "not a language model") || !strings.Contains(text, "ANTHROPIC_API_KEY") || len(done.Blocks.Calls()) > 0 {
			t.Errorf("%q answered with %q", hello, text)
		}
	}
}

func TestGuideDoesWhatIsAsked(t *testing.T) {
	t.Parallel()
	cases := []struct{ wish, tool, args string }{
		{"list the files", "list_files", `{}`},
		{"Which files are here?", "list_files", `{}`},
		{"read README.md", "read", `{"file_path":"README.md"}`},
		{"show me the file src/a.go.", "read", `{"file_path":"src/a.go"}`},
		{"search for TODO", "search_files", `{"pattern":"TODO"}`},
		{"run go version", "bash", `{"command":"go version"}`},
		{"run: ls -la | head", "bash", `{"command":"ls -la | head"}`},
		{"run `date`", "bash", `{"command":"date"}`},
		{"what changed?", "git_status", `{}`},
		{"show me the diff", "git_diff", `{}`},
		{"write hello to notes.txt", "write", `{"content":"hello\n","path":"notes.txt"}`},
		{`please write "good morning" into the file a/b.md`, "write", `{"content":"good morning\n","path":"a/b.md"}`},
	}
	for _, c := range cases {
		talk := newTalk(t, "guide")
		talk.user(c.wish)
		_, done := talk.mustAsk()
		calls := done.Blocks.Calls()
		if len(calls) != 1 || calls[0].Name != c.tool || string(calls[0].Args) != c.args || done.Stop != chat.StopTools {
			t.Errorf("%q: %+v, stop %s", c.wish, calls, done.Stop)
			continue
		}
		talk.results("the outcome\n")
		text, done := talk.mustAsk()
		if !strings.Contains(text, "the outcome") || len(done.Blocks.Calls()) > 0 {
			t.Errorf("%q: after the result %q, %d calls", c.wish, text, len(done.Blocks.Calls()))
		}
		talk.user(c.wish)
		if _, done = talk.mustAsk(); len(done.Blocks.Calls()) != 1 || done.Blocks.Calls()[0].ID == calls[0].ID {
			t.Errorf("%q: asked again: %+v", c.wish, done.Blocks.Calls())
		}
	}
}

// Everything that the guide says it understands, it understands.
func TestGuideKeepsItsWord(t *testing.T) {
	t.Parallel()
	var said []string
	for line := range strings.Lines(phrases) {
		if wish, ok := strings.CutPrefix(strings.TrimSpace(line), "Try one"); !ok {
			wish, _, _ = strings.Cut(wish, " (")
			said = append(said, wish)
		}
	}
	if len(said) < 12 {
		t.Fatalf("only %q", said)
	}
	for _, wish := range said {
		talk := newTalk(t, "guide")
		talk.user(wish)
		text, done := talk.mustAsk()
		if greets := strings.Contains(text, greeting); greets != (wish == "help") || strings.Contains(text, "did not understand") {
			t.Errorf("%q is answered with %q", wish, text)
		}
		if look := strings.Contains(text, "`/why`") && strings.Contains(text, "chorus cost"); look != (strings.HasPrefix(wish, "wh") && len(done.Blocks.Calls()) == 0) {
			t.Errorf("%q: %q", wish, text)
		}
	}
}

func TestGuideWithoutTheTool(t *testing.T) {
	t.Parallel()
	p := New()
	m, _ := model.NewMessage(model.User, chat.Participant{}, chat.TextBlocks("list the files"))
	prep, err := p.Prepare(model.Request{Model: "guide", Messages: []*model.Message{m}})
	if err != nil {
		t.Fatal(err)
	}
	for chunk, err := range p.Stream(context.Background(), prep) {
		if err != nil {
			t.Fatal(err)
		}
		if done, ok := chunk.(model.Done); ok && (len(done.Blocks.Calls()) > 0 || !strings.Contains(done.Blocks.Text(), "not enabled")) {
			t.Errorf("answer %+v", done.Blocks)
		}
	}
}

func TestScriptPlaysStepByStep(t *testing.T) {
	t.Parallel()
	c := newTalk(t, "script")
	c.user("think let me see\nsay one moment\ncall bash {\"command\":\"ls\"}\ncall read not json\nend\nsay it said {{last}}\nusage in=7 out=8 read=9 write=10\nstop length")
	text, done := c.mustAsk()
	calls := done.Blocks.Calls()
	if text != "one moment" || done.Stop != chat.StopTools || len(calls) != 2 {
		t.Fatalf("first step: %q %+v", text, done)
	}
	if th, ok := done.Blocks[0].(chat.Thinking); !ok || th.Text != "let me see" {
		t.Errorf("first block %+v", done.Blocks[0])
	}
	if string(calls[0].Args) != `{"command":"ls"}` || string(calls[1].Args) != "not json" || calls[0].ID == calls[1].ID {
		t.Errorf("calls %+v", calls)
	}
	c.results("a.txt")
	text, done = c.mustAsk()
	if text != "it said a.txt\na.txt" || done.Stop != chat.StopLength {
		t.Errorf("second step: %q, stop %s", text, done.Stop)
	}
	if done.Usage != (chat.Usage{Input: 7, Output: 8, CacheRead: 9, CacheWrite: 10}) {
		t.Errorf("usage %+v", done.Usage)
	}
	c.user("and now?")
	if text, _ = c.mustAsk(); text != "and now?" {
		t.Errorf("after the script: %q", text)
	}
}

func TestScriptGoesOnAfterASteer(t *testing.T) {
	t.Parallel()
	c := newTalk(t, "guide")
	c.user("please do this\n!call bash {}\n!---\n!say second\nthanks")
	c.mustAsk()
	c.results("x")
	c.user("hurry up")
	if text, _ := c.mustAsk(); text != "second" {
		t.Errorf("after a steer: %q", text)
	}
}

func TestWhereScriptsStand(t *testing.T) {
	t.Parallel()
	cases := []struct{ model, prompt, want string }{
		{"script", "say a\\nb", "a\nb"},
		{"script", "ada: say hello", "hello"},
		{"script", "just talking\nsay no", "just talking\nsay no"},
		{"script", "Look:\n```demo\n# remark\nsay fenced\n```\nsay no", "fenced"},
		{"script", "ada: !say marked\nsay prose", "marked"},
		{"script", "say x\nfly away", `script line 2: no directive "fly"`},
		{"script", "slow 1 hour", "script line 1"},
		{"script", "fail loudly", "script line 1: no kind of failure"},
		{"guide", "!say marked", "marked"},
		{"echo", "!say marked", "!say marked"},
	}
	for _, c := range cases {
		talk := newTalk(t, c.model)
		talk.user(c.prompt)
		if text, _ := talk.mustAsk(); !strings.HasPrefix(text, c.want) {
			t.Errorf("%s %q: %q, want %q", c.model, c.prompt, text, c.want)
		}
	}
}

func TestAnOldMistakeIsNotRepeated(t *testing.T) {
	t.Parallel()
	c := newTalk(t, "script")
	c.user("say x\nfly away")
	c.mustAsk()
	c.user("hello")
	if text, _ := c.mustAsk(); text != "hello" {
		t.Errorf("answered %q", text)
	}
}

func TestFail(t *testing.T) {
	t.Parallel()
	c := newTalk(t, "script")
	c.user("say partly\nfail rate_limit retry-after 3s once\nsay and on")
	text, _, err := c.ask(context.Background())
	var e *model.Error
	if !errors.As(err, &e) || e.Kind != model.RateLimited || e.RetryAfter != 3*time.Second || text != "partly" {
		t.Fatalf("%q, %v", text, err)
	}
	if text, _ := c.mustAsk(); text != "partly\nand on" {
		t.Errorf("second attempt: %q", text)
	}

	c = newTalk(t, "script")
	c.user("fail overloaded times 2\nsay ok")
	for range 2 {
		if _, _, err := c.ask(context.Background()); model.KindOf(err) != model.Overloaded {
			t.Errorf("error %v", err)
		}
	}
	if text, _ := c.mustAsk(); text != "ok" {
		t.Errorf("third attempt: %q", text)
	}

	c = newTalk(t, "script")
	c.user("say half\ncut")
	if text, _, err := c.ask(context.Background()); model.KindOf(err) != model.Network || text != "half" {
		t.Errorf("cut: %q, %v", text, err)
	}
}

func TestWaitEndsWhenCancelled(t *testing.T) {
	t.Parallel()
	for _, script := range []string{"say a\nwait", "slow 1h\nsay a"} {
		synctest.Test(t, func(t *testing.T) {
			c := newTalk(t, "script")
			c.user(script)
			ctx, cancel := context.WithCancelCause(context.Background())
			why := errors.New("enough")
			time.AfterFunc(time.Minute, func() { cancel(why) })
			_, _, err := c.ask(ctx)
			if model.KindOf(err) != model.Network || !errors.Is(err, why) {
				t.Errorf("%q: error %v", script, err)
			}
		})
	}
}

func TestSlowAndChunk(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := newTalk(t, "script")
		c.user("slow 10ms\nchunk 2\nsay äöüßx")
		start := time.Now()
		var got []string
		for chunk, err := range c.p.Stream(context.Background(), c.prepare()) {
			if err != nil {
				t.Fatal(err)
			}
			if d, ok := chunk.(model.TextDelta); ok {
				got = append(got, d.Text)
			}
		}
		if strings.Join(got, "|") != "äö|üß|x" || time.Since(start) != 30*time.Millisecond {
			t.Errorf("%q in %s", got, time.Since(start))
		}
	})
}

func TestBreakingOffEndsTheCall(t *testing.T) {
	t.Parallel()
	c := newTalk(t, "script")
	c.user("chunk 1\nsay abc\nwait")
	n := 0
	for _, err := range c.p.Stream(context.Background(), c.prepare()) {
		if err != nil {
			t.Fatal(err)
		}
		if n++; n == 2 {
			break
		}
	}
}

func TestPrepareIsPure(t *testing.T) {
	t.Parallel()
	c := newTalk(t, "script")
	c.user("say <b>&amp;</b>")
	a, b := c.prepare(), c.prepare()
	if string(a.Body) != string(b.Body) || !json.Valid(a.Body) || a.Estimate != model.Tokens(len(a.Body)) {
		t.Errorf("bodies %s and %s", a.Body, b.Body)
	}
}

func FuzzScript(f *testing.F) {
	for _, s := range []string{
		"say hi", "think x\nsay y\nend\ncall bash {\"command\":\"ls\"}", "!say a\n!fail overloaded once", "```demo\ncut\n```",
		"slow 5ms\nchunk 3\nsay äöü", "usage in=1 out=2", "stop length", "wait", "---\n---", "fail network retry-after 2s times 3",
		"ada: !call read", "say {{last}}", "chunk 99999999999999999999", "call", "fail", "!",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, prompt string) {
		for _, whole := range []bool{true, false} {
			s, err := findScript(prompt, whole)
			if err != nil && s != nil {
				t.Fatal("a script and an error")
			}
			if err == nil && s != nil && len(s) == 0 {
				t.Fatal("a script without a step")
			}
			for k := range s {
				ctx, cancel := context.WithCancel(context.Background())
				if slices.ContainsFunc(s[k], func(d directive) bool { return d.verb == vWait || d.verb == vSlow }) {
					cancel() // or it would take its time
				}
				ends := 0
				p := &player{ctx: ctx, model: "script", chunk: defaultChunk, failing: func(string, int) bool { return true },
					yield: func(c model.Chunk, err error) bool {
						if _, done := c.(model.Done); done || err != nil {
							ends++
						}
						return true
					}}
				p.run(s[k])
				cancel()
				if ends != 1 {
					t.Fatalf("step %d of %q ended %d times", k, prompt, ends)
				}
			}
		}
	})
}

// A later call can use what an earlier one gave; what is not there stays as it is written.
func TestScriptUsesResults(t *testing.T) {
	t.Parallel()
	c := newTalk(t, "script")
	c.user("call create {}\nend\ncall next {\"needs\":[\"{{result 1 items.0.id}}\",\"{{result 1 items.7.id}}\",\"{{result 9 id}}\"]}\nend\nsay {{result 1 items.0.id}} {{result 1 items}}")
	c.mustAsk()
	c.results(`{"items":[{"id":"calm-otter"}]}`)
	_, done := c.mustAsk()
	if calls := done.Blocks.Calls(); len(calls) != 1 || string(calls[0].Args) != `{"needs":["calm-otter","{{result 1 items.7.id}}","{{result 9 id}}"]}` {
		t.Errorf("calls %+v", calls)
	}
	c.results("not json")
	if text, _ := c.mustAsk(); text != "calm-otter {{result 1 items}}" {
		t.Errorf("said %q", text)
	}
}

// The tour of the sample project takes each step from the results that are there, and says so when they are not what it knows.
func TestGuideMendsTheSample(t *testing.T) {
	t.Parallel()
	bug := "     5\tshare=$((cents / people))\n"
	for _, c := range []struct {
		name    string
		results []string
		tools   string
		end     string
	}{
		{"to the end", []string{"FAIL 7 cents: together they pay 4\n1 passed, 1 failed", bug, "Replaced at line 5", "4 passed, 0 failed"}, "bash read edit bash", "**Fixed.**"},
		{"and what to look at", []string{"together they pay 4", bug, "Replaced at line 5", "4 passed, 0 failed"}, "bash read edit bash", "`/why` explains an answer"},
		{"nothing to do", []string{"4 passed, 0 failed"}, "bash", "there is nothing to fix"},
		{"no tests", []string{"sh: test.sh: No such file"}, "bash", "chorus sample"},
		{"a no", []string{"denied by local:ada"}, "bash", "You denied the command, so nothing ran"},
		{"a no at the end", []string{"together they pay 4", bug, "Replaced at line 5", "denied by local:ada: later"}, "bash read edit bash", "not tested, because you denied"},
		{"another program", []string{"together they pay 4", "#!/bin/sh\n"}, "bash read", "not the program I know"},
		{"still broken", []string{"together they pay 4", bug, "Replaced", "together they pay 4\n1 failed"}, "bash read edit bash", "tests still fail"},
	} {
		talk := newTalk(t, "guide")
		talk.user("please fix the failing test")
		var tools []string
		for _, result := range c.results {
			_, done := talk.mustAsk()
			calls := done.Blocks.Calls()
			if len(calls) != 1 {
				t.Fatalf("%s: %d calls", c.name, len(calls))
			}
			tools = append(tools, calls[0].Name)
			talk.results(result)
		}
		text, done := talk.mustAsk()
		if got := strings.Join(tools, " "); got != c.tools || !strings.Contains(text, c.end) || len(done.Blocks.Calls()) > 0 {
			t.Errorf("%s: %s, then %q", c.name, got, text)
		}
	}
}
