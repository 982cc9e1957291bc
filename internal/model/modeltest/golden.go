package modeltest

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"chorus/internal/chat"
	"chorus/internal/model"
)

// Golden compares whole requests with testdata/NAME.golden.json (below Maker.Golden, if a
// package has several), so that a change of what is sent shows up in review. update
// writes the files. The simulator accepts all of them too.
func Golden(t *testing.T, m Maker, update bool) {
	t.Helper()
	for name, r := range goldenRequests(t, m) {
		t.Run(name, func(t *testing.T) {
			b := setup(t, m)
			b.blob["h1"] = []byte("\x89PNG fake picture")
			full := b.request(r.Messages...)
			full.Head, full.Settings, full.Prefill, full.Marks = r.Head, r.Settings, r.Prefill, r.Marks
			if r.Model != "" {
				full.Model = r.Model
			}
			prep := b.prepare(full)
			if out := b.send(t.Context(), prep); out.err != nil {
				t.Fatalf("refused: %v", out.err)
			}
			if !bytes.Equal(b.last().Body, prep.Body) {
				t.Error("what was sent is not what was prepared")
			}
			var got bytes.Buffer
			if err := json.Indent(&got, prep.Body, "", "  "); err != nil {
				t.Fatal(err)
			}
			got.WriteByte('\n')
			file := filepath.Join("testdata", m.Golden, name+".golden.json")
			if update {
				if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got.Bytes(), want) {
				t.Errorf("%s differs; run the test with -update and look at the change:\n%s", file, got.Bytes())
			}
		})
	}
}

func goldenRequests(t *testing.T, m Maker) map[string]model.Request {
	t.Helper()
	temperature, top := 0.5, 0.9
	hello := Message(t, model.User, chat.Text{Text: "hello <there> & \"you\""})
	img := chat.Image{Blob: "h1", MediaType: "image/png", Name: "a.png", Size: 17}
	head := &model.Head{System: "Be kind.", Tools: []model.ToolSpec{
		{Name: "bash", Description: "runs a command", Schema: json.RawMessage(`{"type":"object","properties":{"command":{"type":"string"}},"required":["command"]}`)},
		{Name: "status"},
	}}
	all := map[string]model.Request{
		"text": {Messages: []*model.Message{
			hello, Message(t, model.Assistant, chat.Text{Text: "good day"}),
			Message(t, model.User, chat.Text{Text: "two"}, chat.File{Name: "r.pdf", Path: "@attachments/r.pdf", Size: 12}), Message(t, model.User, chat.Text{Text: "in a row"}),
		}},
		"tools": {Head: head, Messages: []*model.Message{hello}},
		"parallel": {Head: head, Messages: []*model.Message{
			hello,
			Message(t, model.Assistant, chat.Text{Text: "let me look"},
				chat.ToolUse{ID: "c-1", Name: "bash", Args: json.RawMessage(`{"command":"ls"}`)}, chat.ToolUse{ID: "c-2", Name: "status"}),
			Message(t, model.User, chat.ToolResult{Call: "c-1", Name: "bash", Blocks: chat.TextBlocks("a.go\nb.go")}),
			Message(t, model.User, chat.ToolResult{Call: "c-2", Blocks: chat.TextBlocks("no such thing"), Failed: true}),
			Message(t, model.User, chat.Text{Text: "and now?"}),
		}},
		"image": {Head: head, Messages: []*model.Message{
			Message(t, model.User, chat.Text{Text: "look"}, img, chat.Image{Blob: "h2", MediaType: "image/svg+xml", Name: "b.svg"}),
			Message(t, model.Assistant, chat.ToolUse{ID: "c-1", Name: "bash", Args: json.RawMessage(`{"command":"shot"}`)}, chat.ToolUse{ID: "c-2", Name: "status"}),
			Message(t, model.User, chat.ToolResult{Call: "c-1", Name: "bash", Blocks: chat.Blocks{chat.Text{Text: "taken"}, img}}),
			Message(t, model.User, chat.ToolResult{Call: "c-2", Name: "status", Blocks: chat.TextBlocks("fine")}),
		}},
		"thinking": {Settings: chat.Settings{ThinkingBudget: 8_000}, Messages: []*model.Message{
			hello,
			Message(t, model.Assistant, chat.Thinking{Text: "hm"}, chat.ToolUse{ID: "c-1", Name: "status"}),
			Message(t, model.User, chat.ToolResult{Call: "c-1", Name: "status", Blocks: chat.TextBlocks("fine")}),
		}},
		"settings": {Messages: []*model.Message{hello}, Settings: chat.Settings{
			MaxTokens: 1_000_000, Temperature: &temperature, TopP: &top, ContextWindow: 16_384,
			Stop: []string{"\nada:", "", "1", "2", "3", "4", "5"},
		}},
	}
	if m.Text {
		all = goldenTexts(all)
	}
	if m.Prefill {
		all["prefill"] = model.Request{Messages: []*model.Message{hello}, Prefill: "ada: "}
	}
	return all
}

// goldenTexts are the requests that a base model can be sent.
func goldenTexts(all map[string]model.Request) map[string]model.Request {
	text := all["text"]
	text.Head = &model.Head{System: "Be kind."}
	return map[string]model.Request{"text": text, "settings": all["settings"]}
}
