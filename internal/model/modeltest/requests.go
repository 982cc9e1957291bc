package modeltest

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"chorus/internal/chat"
	"chorus/internal/model"
	"chorus/internal/model/catalog"
	"chorus/internal/sim/llmsim"
)

// requests checks what is sent; the simulator rejects what the real server would.
func requests(t *testing.T, m Maker) {
	t.Run("head and settings", func(t *testing.T) {
		t.Parallel()
		b := setup(t, m)
		r := b.request()
		temperature := 0.5
		r.Settings = chat.Settings{MaxTokens: 77, Temperature: &temperature, Stop: []string{"\nada:", " ", ""}}
		r.Head = &model.Head{System: "You are <kind> & \"calm\".", Tools: []model.ToolSpec{
			{Name: "bash", Description: "runs a command", Schema: json.RawMessage(`{"type":"object","properties":{"command":{"type":"string"}}}`)},
			{Name: "status"},
		}}
		tools, system := "bash,status", r.Head.System
		if r.Head = m.head(r.Head); m.Text {
			tools, system = "", ""
		}
		b.must(r)
		got := b.last()
		if got.System != system || strings.Join(got.Tools, ",") != tools || got.MaxTokens != 77 || !got.Stream {
			t.Errorf("sent %+v", got)
		}
		if m.NoStops != (len(got.Stop) == 0) || !m.NoStops && got.Stop[0] != "\nada:" {
			t.Errorf("stop sequences %q", got.Stop)
		}
		if m.Text && !strings.HasPrefix(got.Messages[0].Text, r.Head.System) {
			t.Errorf("the text does not begin with the system prompt: %q", got.Messages[0].Text)
		}
	})
	t.Run("bad schema", func(t *testing.T) {
		t.Parallel()
		b := setup(t, m)
		r := b.request()
		r.Head = &model.Head{Tools: []model.ToolSpec{{Name: "odd", Schema: json.RawMessage(`[`)}}}
		if _, err := b.p.Prepare(r); model.KindOf(err) != model.BadRequest || !strings.Contains(err.Error(), "odd") {
			t.Errorf("error %v", err)
		}
	})
	if m.Text {
		t.Run("one text", func(t *testing.T) { t.Parallel(); oneText(t, m) })
		t.Run("only text", func(t *testing.T) { t.Parallel(); onlyText(t, m) })
	} else {
		t.Run("odd histories", func(t *testing.T) { t.Parallel(); oddHistories(t, m) })
		t.Run("arguments", func(t *testing.T) { t.Parallel(); oddArguments(t, m) })
		t.Run("pictures", func(t *testing.T) { t.Parallel(); testImages(t, m) })
		t.Run("prefill", func(t *testing.T) { t.Parallel(); prefill(t, m) })
		t.Run("thinking budget", func(t *testing.T) { t.Parallel(); budgets(t, m) })
	}
	t.Run("every model of the catalog", func(t *testing.T) {
		t.Parallel()
		b := setup(t, m)
		temperature, top := 0.3, 0.9
		for _, e := range catalog.All() {
			if e.Provider != m.Name {
				continue
			}
			for _, tools := range []bool{false, true} {
				r := b.request()
				r.Model = e.Model
				r.Settings = chat.Settings{MaxTokens: 10_000_000, Temperature: &temperature, TopP: &top, Stop: []string{"x"}, ThinkingBudget: 2048}
				if m.Text {
					r.Settings.ThinkingBudget = 0
				}
				if tools {
					r.Head = m.head(&model.Head{System: "s", Tools: []model.ToolSpec{{Name: "bash"}}})
				}
				if out := b.ask(t.Context(), r); out.err != nil {
					t.Errorf("%s with tools %v: %v", e.Model, tools, out.err)
				}
				r.Settings = chat.Settings{}
				if out := b.ask(t.Context(), r); out.err != nil {
					t.Errorf("%s plain with tools %v: %v", e.Model, tools, out.err)
				}
			}
		}
	})
	t.Run("nothing to say", func(t *testing.T) {
		t.Parallel()
		b := setup(t, m)
		for _, r := range []model.Request{{Model: m.Model}, b.request(Message(t, model.User, chat.Text{}))} {
			if _, err := b.p.Prepare(r); model.KindOf(err) != model.BadRequest {
				t.Errorf("error %v", err)
			}
		}
	})
}

func budgets(t *testing.T, m Maker) {
	b := setup(t, m)
	for _, budget := range []int{1, 2000, 10_000, 1_000_000} {
		for _, limit := range []int{0, 100, 5000} {
			r := b.request()
			r.Settings = chat.Settings{ThinkingBudget: budget, MaxTokens: limit}
			b.must(r)
		}
	}
}

func oddHistories(t *testing.T, m Maker) {
	b := setup(t, m)
	b.must(b.request(
		Message(t, model.User, chat.Text{Text: "hello"}, chat.Text{Text: ""}, chat.Text{Text: " \n"}),
		Message(t, model.Assistant, chat.Text{Text: ""}), // an empty answer is never sent
		Message(t, model.User, chat.File{Name: "r.pdf", MediaType: "application/pdf", Size: 12, Path: "@attachments/r.pdf"}),
		Message(t, model.User, chat.Text{Text: "two in a row"}),
		Message(t, model.Assistant, chat.Thinking{Text: "unsigned, from another provider"}, chat.Text{Text: ""},
			chat.ToolUse{ID: "c-1", Name: "bash", Args: json.RawMessage(`{}`)}, chat.ToolUse{ID: "c-2", Name: "read", Args: json.RawMessage(`{}`)}),
		Message(t, model.User, chat.ToolResult{Call: "c-1", Blocks: chat.TextBlocks("")}),
		Message(t, model.User, chat.ToolResult{Call: "c-2", Name: "read", Blocks: chat.TextBlocks("no such file"), Failed: true}),
		Message(t, model.Assistant, chat.Text{Text: "done"}),
		Message(t, model.User, chat.Text{Text: "thanks"}),
	))
	got := b.last()
	all, results := "", 0
	for _, msg := range got.Messages {
		all += msg.Text + "\n"
		results += len(msg.Results)
	}
	if !strings.Contains(all, "@attachments/r.pdf") || !strings.Contains(all, "two in a row") || results != 2 {
		t.Errorf("sent %+v", got.Messages)
	}
	// An answer that was cut while it thought, and calls made without
	// thinking that a thinking model continues.
	r := b.request(
		Message(t, model.User, chat.Text{Text: "hello"}),
		Message(t, model.Assistant, chat.Thinking{Text: "hm", Signature: "s"}),
		Message(t, model.User, chat.Text{Text: "go on"}),
		Message(t, model.Assistant, chat.Text{Text: "well"}, chat.Thinking{Text: "hm", Signature: "s"}),
		Message(t, model.User, chat.Text{Text: "go on"}),
		Message(t, model.Assistant, chat.ToolUse{ID: "c-1", Name: "a"}),
		Message(t, model.User, chat.ToolResult{Call: "c-1", Blocks: chat.TextBlocks("1")}),
	)
	r.Settings.ThinkingBudget = 2000
	b.must(r)
	// Text that came with results is neither lost nor placed between them.
	b.must(b.request(
		Message(t, model.User, chat.Text{Text: "hello"}),
		Message(t, model.Assistant, chat.ToolUse{ID: "c-1", Name: "a"}, chat.ToolUse{ID: "c-2", Name: "b"}),
		Message(t, model.User, chat.Text{Text: "hurry"}, chat.ToolResult{Call: "c-1", Blocks: chat.TextBlocks("1")}),
		Message(t, model.User, chat.ToolResult{Call: "c-2", Blocks: chat.TextBlocks("2")}),
	))
	if got := b.last(); got.LastUser() != "hurry" {
		t.Errorf("sent %+v", got.Messages)
	}
}

func oddArguments(t *testing.T, m Maker) {
	b := setup(t, m)
	for args, want := range map[string]string{
		``: `{}`, `{"a":1}`: `{"a":1}`, `{"cut":`: `{"_raw":"{\"cut\":"}`, `"{\"cut\":"`: `{"_raw":"{\"cut\":"}`, `[1]`: `{"_raw":[1]}`, `null`: `{"_raw":null}`,
	} {
		b.must(b.request(
			Message(t, model.User, chat.Text{Text: "hello"}),
			Message(t, model.Assistant, chat.ToolUse{ID: "c-1", Name: "bash", Args: json.RawMessage(args)}),
			Message(t, model.User, chat.ToolResult{Call: "c-1", Blocks: chat.TextBlocks("ok")}),
		))
		for _, msg := range b.last().Messages {
			if len(msg.Calls) > 0 && string(msg.Calls[0].Args) != want {
				t.Errorf("%q was sent as %s, want %s", args, msg.Calls[0].Args, want)
			}
		}
	}
}

func testImages(t *testing.T, m Maker) {
	b := setup(t, m)
	b.blob["h1"] = []byte("\x89PNG fake picture")
	img := chat.Image{Blob: "h1", MediaType: "image/png", Name: "a.png", Size: 17}
	odd := chat.Image{Blob: "h2", MediaType: "image/svg+xml", Name: "b.svg"}
	b.must(b.request(
		Message(t, model.User, chat.Text{Text: "look"}, img, odd),
		Message(t, model.Assistant, chat.ToolUse{ID: "c-1", Name: "read"}, chat.ToolUse{ID: "c-2", Name: "read"}),
		Message(t, model.User, chat.ToolResult{Call: "c-1", Name: "read", Blocks: chat.Blocks{chat.Text{Text: "a picture"}, img}}),
		Message(t, model.User, chat.ToolResult{Call: "c-2", Name: "read", Blocks: chat.Blocks{img}}),
		Message(t, model.Assistant, chat.Text{Text: "nice"}),
		Message(t, model.User, chat.Text{Text: "is it?"}),
	))
	images, text := 0, ""
	for _, msg := range b.last().Messages {
		images += msg.Images
		text += msg.Text
	}
	if images != 3 || !strings.Contains(text, "b.svg") {
		t.Errorf("%d pictures sent: %+v", images, b.last().Messages)
	}
	missing := b.request(Message(t, model.User, chat.Image{Blob: "gone", MediaType: "image/png"}))
	if _, err := b.p.Prepare(missing); model.KindOf(err) != model.BadRequest || !strings.Contains(err.Error(), "gone") {
		t.Errorf("a picture that cannot be read just now: %v", err)
	}
	testLostImages(t, b)
	missing.Blob = nil
	if _, err := b.p.Prepare(missing); model.KindOf(err) != model.BadRequest {
		t.Errorf("no way to load a picture: %v", err)
	}
}

// testLostImages checks that a picture whose bytes are lost does not
// make every later request of its thread fail.
func testLostImages(t *testing.T, b *bench) {
	lost := chat.Image{Blob: "lost", MediaType: "image/png", Name: "lost.png"}
	r := b.request(
		Message(t, model.User, chat.Text{Text: "look"}, lost),
		Message(t, model.Assistant, chat.ToolUse{ID: "c-1", Name: "read"}),
		Message(t, model.User, chat.ToolResult{Call: "c-1", Name: "read", Blocks: chat.Blocks{lost}}),
		Message(t, model.Assistant, chat.Text{Text: "nice"}),
		Message(t, model.User, lost),
	)
	r.Blob = func(string) ([]byte, error) { return nil, fmt.Errorf("blob: %w", chat.ErrLost) }
	b.must(r)
	said, images := "", 0
	for _, msg := range b.last().Messages {
		images += msg.Images
		said += msg.Text
		for _, result := range msg.Results {
			said += result.Text
		}
	}
	if images != 0 || strings.Count(said, "lost.png (image/png): its file is lost") != 3 {
		t.Errorf("%d pictures sent, and said: %s", images, said)
	}
}

func prefill(t *testing.T, m Maker) {
	b := setup(t, m)
	if m.NoPrefill != "" {
		r := b.request()
		r.Model, r.Prefill = m.NoPrefill, "ada:"
		_, err := b.p.Prepare(r)
		if model.KindOf(err) != model.BadRequest || !strings.Contains(err.Error(), m.NoPrefill) || !strings.Contains(err.Error(), "chat mode") {
			t.Errorf("error %v", err)
		}
	}
	if !m.Prefill {
		return
	}
	for prefill, want := range map[string]string{"ada:": "ada:", "ada: ": "ada:", "ada:\n\n": "ada:", " \n": ""} {
		r := b.request()
		r.Prefill = prefill
		r.Settings.ThinkingBudget = 2000 // not both; the prefill wins, and that is reported
		if dropped := strings.Join(b.prepare(r).Dropped, "; "); want != "" && !strings.HasPrefix(dropped, "thinkingBudget: ") {
			t.Errorf("prefill %q: dropped %q", prefill, dropped)
		}
		b.sim.Push(llmsim.Turn{Text: " \n\nwell met", Chunk: 1})
		out := b.must(r)
		last := b.last().Messages[len(b.last().Messages)-1]
		if want != "" && (last.Role != "assistant" || last.Text != want) || want == "" && last.Role != "user" {
			t.Errorf("prefill %q was sent as %s %q", prefill, last.Role, last.Text)
		}
		answer := " \n\nwell met"
		if prefill == "ada: " {
			answer = "\n\nwell met" // the space belongs to the prefill
		}
		if out.text != answer {
			t.Errorf("after %q: %q, want %q", prefill, out.text, answer)
		}
	}
}
