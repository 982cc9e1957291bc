package bedrock

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"chorus/internal/chat"
	"chorus/internal/model"
	"chorus/internal/model/modeltest"
)

var update = flag.Bool("update", false, "write the golden files anew")

// everything is a conversation with all that a message may hold.
func everything(t *testing.T, name string) model.Request {
	t.Helper()
	temperature, top := 0.5, 0.9
	picture := chat.Image{Blob: "h1", MediaType: "image/png", Name: "a.png", Size: 4}
	return model.Request{
		Model: name,
		Head: &model.Head{System: "You are \"kind\" & <calm>.", Tools: []model.ToolSpec{
			{Name: "bash", Description: "runs a command", Schema: json.RawMessage(`{"type":"object","properties":{"command":{"type":"string"}}}`)},
			{Name: "status"},
		}},
		Messages: []*model.Message{
			modeltest.Message(t, model.User, chat.Text{Text: "ada: look"}, picture, chat.Image{Blob: "h2", MediaType: "image/svg+xml", Name: "b.svg"}),
			modeltest.Message(t, model.User, chat.Text{Text: "bob: me too"}, chat.File{Name: "r.pdf", MediaType: "application/pdf", Size: 12, Path: "@attachments/r.pdf"}),
			modeltest.Message(t, model.Assistant, chat.Thinking{Text: "hm", Signature: "sig"}, chat.Thinking{Redacted: "ZW5j"}, chat.Text{Text: "Let me see."},
				chat.ToolUse{ID: "c-1", Name: "bash", Args: json.RawMessage(`{"command":"ls"}`)}, chat.ToolUse{ID: "call:2/ä", Name: "status"}),
			modeltest.Message(t, model.User, chat.Text{Text: "ada: hurry"}, chat.ToolResult{Call: "c-1", Blocks: chat.Blocks{chat.Text{Text: "a.png"}, picture}}),
			modeltest.Message(t, model.User, chat.ToolResult{Call: "call:2/ä", Blocks: chat.TextBlocks("no such thing"), Failed: true}),
			modeltest.Message(t, model.Assistant, chat.Text{Text: "There it is."}, chat.Thinking{Text: "cut", Signature: "sig"}),
			modeltest.Message(t, model.User, chat.Text{Text: "bob: thanks"}),
		},
		Marks:    []int{1, 4, 6},
		Settings: chat.Settings{MaxTokens: 4000, Temperature: &temperature, TopP: &top, Stop: []string{"\nada:", " ", "\nbob:"}, ThinkingBudget: 2000},
		Blob:     func(string) ([]byte, error) { return []byte("fake"), nil },
	}
}

func TestGoldenRequests(t *testing.T) {
	t.Parallel()
	with := func(name string, change func(*model.Request)) model.Request {
		r := everything(t, name)
		change(&r)
		return r
	}
	for file, r := range map[string]model.Request{
		"claude":         everything(t, claude),
		"claude_prefill": with(claude, func(r *model.Request) { r.Prefill = "eve: " }),
		"claude_opus":    everything(t, "global.anthropic.claude-opus-4-7"),
		"nova":           everything(t, nova),
		"nova_prefill":   with(nova, func(r *model.Request) { r.Prefill = "eve: " }),
		"nova_uncached":  with(nova, func(r *model.Request) { r.Settings.NoCache = true }),
		"nova_toolless":  with(nova, func(r *model.Request) { r.Head = &model.Head{System: "s"} }),
		"nova2_thinking": everything(t, "us.amazon.nova-2-lite-v1:0"),
		"gpt_oss":        everything(t, "openai.gpt-oss-120b-1:0"),
		"llama":          everything(t, llama),
		"thinker":        everything(t, thinker),
	} {
		prep, err := New(Options{}).Prepare(r)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		path := filepath.Join("testdata", file+".golden.json")
		if *update {
			var pretty bytes.Buffer
			if err := json.Indent(&pretty, prep.Body, "", "  "); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, append(pretty.Bytes(), '\n'), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		golden, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		// The file is the body with line breaks: without them it is the same bytes.
		var want bytes.Buffer
		if err := json.Compact(&want, golden); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(prep.Body, want.Bytes()) {
			t.Errorf("%s: the body is now\n%s\nand was\n%s\nIf it should be, run: go test ./internal/model/bedrock -run Golden -update", file, prep.Body, want.Bytes())
		}
	}
}
