package transcript_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"chorus/internal/chat"
	"chorus/internal/model"
	"chorus/internal/model/anthropic"
	"chorus/internal/model/bedrock"
	"chorus/internal/model/google"
	"chorus/internal/model/ollama"
	"chorus/internal/model/openai"
	"chorus/internal/sim/llmsim"
	"chorus/internal/transcript"
)

// provider is one that the simulator plays, with the rules of the real one.
type provider struct {
	model string
	model.Model
}

func providers(t *testing.T) map[string]provider {
	t.Helper()
	const key = "test-key"
	_, url := llmsim.Launch(t, llmsim.Options{Keys: []string{key}})
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	c := &http.Client{Transport: transport}
	return map[string]provider{
		"anthropic": {"claude-sonnet-4-5", anthropic.New(anthropic.Options{APIKey: key, BaseURL: url, HTTPClient: c})},
		"chat":      {"gpt-4o", openai.New(openai.Options{APIKey: key, BaseURL: url, HTTPClient: c, API: openai.Chat})},
		"responses": {"gpt-5.1-codex", openai.New(openai.Options{APIKey: key, BaseURL: url, HTTPClient: c, API: openai.Responses})},
		"google":    {"gemini-2.5-flash", google.New(google.Options{APIKey: key, BaseURL: url, HTTPClient: c})},
		"ollama":    {"llama3.2:3b", ollama.New(ollama.Options{Host: url, APIKey: key, HTTPClient: c})},
		"converse": {"us.amazon.nova-pro-v1:0", bedrock.New(bedrock.Options{APIKey: key, Region: "us-west-2", BaseURL: url, HTTPClient: c,
			Getenv: func(string) string { return "" }})},
	}
}

// past writes the history of a thread: everything that some provider could have sent, and
// what was made of it.
type past struct {
	t   *rapid.T
	log *transcript.Log
	old bool // written by a version that kept the ids as the model gave them
}

func (p *past) tell(body chat.Body) {
	ev := chat.Event{Thread: "cli:p:t", Seq: p.log.Seq() + 1, At: time.UnixMicro(p.log.Seq()).UTC(), Body: body}
	if err := p.log.Apply(ev); err != nil {
		p.t.Fatalf("apply %T: %v", body, err)
	}
}

func (p *past) one(label string, of ...string) string { return rapid.SampledFrom(of).Draw(p.t, label) }

func (p *past) text() string {
	return p.one("text", "", " ", "\n\t", "yes", "<think>no</think>", "a\x00b", "\xff\xfe", "Ж", "{\"type\":\"tool_use\"}")
}

func (p *past) block() chat.Block {
	switch rapid.IntRange(0, 5).Draw(p.t, "block") {
	case 0:
		return chat.Text{Text: p.text()}
	case 1:
		return chat.Thinking{Text: p.text(), Signature: p.one("signature", "", "c2ln", "openai:x", "openrouter:{}")}
	case 2:
		return chat.Thinking{Redacted: p.one("redacted", "", "c2VjcmV0", "openai:y")}
	default:
		return chat.ToolUse{
			ID:   p.one("id", "", "call_0", "call_0", "call_1", "functions.bash:0", strings.Repeat("x", 64), strings.Repeat("x", 100), "ä"),
			Name: p.one("name", "bash", "", "functions.bash", "a b", strings.Repeat("n", 200), "\xff"),
			Args: json.RawMessage(p.one("args", `{}`, ``, `{"a":1}`, `[1]`, `null`, `{"cut":`, `"text"`)),
		}
	}
}

func (p *past) result() chat.Blocks {
	switch rapid.IntRange(0, 3).Draw(p.t, "result") {
	case 0:
		return nil
	case 1:
		return chat.Blocks{chat.Image{Blob: p.one("blob", "kept", "lost"), MediaType: p.one("media", "image/png", "image/svg+xml"), Name: "a.png"}}
	default:
		return chat.TextBlocks(p.text())
	}
}

// answer is one request with what came of it.
func (p *past) answer(step int) {
	if _, err := p.log.Request(&model.Head{}, p.log.Seq()); err != nil {
		p.t.Fatal(err)
	}
	p.tell(chat.Asked{Step: step, Attempt: 1, Purpose: chat.ForTurn, Sees: p.log.Seq()})
	said := chat.Said{Step: step, Attempt: 1, Stop: chat.StopEnd, Blocks: chat.Blocks{}}
	for range rapid.IntRange(0, 4).Draw(p.t, "blocks") {
		said.Blocks = append(said.Blocks, p.block())
	}
	switch rapid.IntRange(0, 7).Draw(p.t, "how") {
	case 0:
		said.Partial, said.Stop = true, chat.StopAborted
	case 1:
		said.Error = &chat.Failure{Kind: "overloaded", Final: true}
	case 2:
		said.Stop = chat.StopLength
	case 3:
		return // the process died
	}
	if !p.old {
		said.Blocks = p.log.UniqueCalls(said.Blocks)
	}
	p.tell(said)
	for _, c := range p.log.Calls() {
		if rapid.IntRange(0, 4).Draw(p.t, "ran") > 0 {
			p.tell(chat.ToolRan{Call: c.Use.ID, Name: c.Use.Name, Blocks: p.result(), Outcome: chat.Ran, Failed: rapid.Bool().Draw(p.t, "failed")})
		}
	}
}

func (p *past) imported() chat.Imported {
	return chat.Imported{Source: "a file", Blob: p.one("lines", "lines", "lost"), Count: 4, Instead: rapid.Bool().Draw(p.t, "instead")}
}

// blobs has a picture and lines in which two answers share an id, and one answer has it twice.
func blobs(t testing.TB) func(string) ([]byte, error) {
	call := func(n string) chat.ToolUse {
		return chat.ToolUse{ID: "call_0", Name: "bash", Args: json.RawMessage(`{"n":"` + n + `"}`)}
	}
	result := func(n string) chat.ToolResult {
		return chat.ToolResult{Call: "call_0", Name: "bash", Blocks: chat.TextBlocks("result " + n)}
	}
	lines, err := json.Marshal([]chat.Line{
		{Role: "user", Blocks: chat.TextBlocks("go")},
		{Role: "assistant", Blocks: chat.Blocks{call("1"), call("2")}},
		{Role: "tool", Blocks: chat.Blocks{result("1"), result("2")}},
		{Role: "assistant", Blocks: chat.Blocks{call("3")}},
		{Role: "tool", Blocks: chat.Blocks{result("3")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return func(hash string) ([]byte, error) {
		switch hash {
		case "kept":
			return []byte("\x89PNG fake picture"), nil
		case "lines":
			return lines, nil
		default:
			return nil, fmt.Errorf("blob %s: %w", hash, chat.ErrLost)
		}
	}
}

// A repeated id of a call, two calls with one id in an answer, an odd name of a tool and a
// lost picture each made a provider refuse a thread for good: whatever it is that providers
// sent before, no provider refuses what is made of it.
func TestNoProviderRefusesAHistory(t *testing.T) {
	t.Parallel()
	blob, all := blobs(t), providers(t)
	rapid.Check(t, func(rt *rapid.T) {
		p := &past{t: rt, log: transcript.New(blob), old: rapid.Bool().Draw(rt, "old")}
		for step := range rapid.IntRange(1, 6).Draw(rt, "steps") {
			p.tell(chat.Received{Blocks: chat.Blocks{chat.Text{Text: "do it"}, chat.Image{Blob: p.one("blob", "kept", "lost"), MediaType: "image/png"}}})
			if rapid.IntRange(0, 5).Draw(rt, "import") == 0 {
				p.tell(p.imported())
			}
			p.answer(step + 1)
		}
		p.tell(chat.Received{Blocks: chat.TextBlocks("and now?")})
		req, err := p.log.Request(&model.Head{System: "s", Tools: []model.ToolSpec{{Name: "bash"}}}, p.log.Seq())
		if err != nil {
			rt.Fatal(err)
		}
		if err := transcript.CheckPairs(req.Messages); err != nil {
			rt.Fatal(err)
		}
		for name, to := range all {
			req.Model = to.model
			prepared, err := to.Prepare(req)
			if err != nil {
				rt.Fatalf("%s: %v", name, err)
			}
			for _, err := range to.Stream(t.Context(), prepared) {
				if err != nil {
					rt.Fatalf("%s: %v\n%s", name, err, prepared.Body)
				}
			}
		}
	})
}

// Lines that were imported keep each result with its call, also where calls share an id.
func TestImportedCallsThatShareAnID(t *testing.T) {
	t.Parallel()
	log := transcript.New(blobs(t))
	if err := log.Apply(chat.Event{Seq: 1, Body: chat.Imported{Source: "a file", Blob: "lines", Count: 5}}); err != nil {
		t.Fatal(err)
	}
	req, err := log.Request(&model.Head{}, 1)
	if err != nil {
		t.Fatal(err)
	}
	said := map[string]string{}
	for _, m := range req.Messages {
		for _, b := range m.Blocks {
			switch v := b.(type) {
			case chat.ToolUse:
				if said[v.ID] != "" {
					t.Errorf("two calls are named %s", v.ID)
				}
				said[v.ID] = string(v.Args)
			case chat.ToolResult:
				said[v.Call] += " " + v.Blocks.Text()
			}
		}
	}
	got := fmt.Sprint(said)
	for n := 1; n <= 3; n++ {
		if want := fmt.Sprintf(`{"n":"%d"} result %d`, n, n); !strings.Contains(got, want) {
			t.Errorf("no %s in %s", want, got)
		}
	}
}
