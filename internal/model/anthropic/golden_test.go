package anthropic

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

var update = flag.Bool("update", false, "write the golden files")

func TestGolden(t *testing.T) {
	t.Parallel()
	modeltest.Golden(t, maker, *update)
}

// Signed reasoning goes back as it came, with the budget beside it; marks stand where
// they were asked for.
func TestGoldenSigned(t *testing.T) {
	t.Parallel()
	prep, err := New(Options{APIKey: "test-key"}).Prepare(model.Request{
		Model: "claude-sonnet-4-5", Head: &model.Head{System: "Be kind."}, Settings: chat.Settings{ThinkingBudget: 8_000}, Marks: []int{0, 3},
		Messages: []*model.Message{
			modeltest.Message(t, model.User, chat.Text{Text: "look"}),
			modeltest.Message(t, model.Assistant, chat.Thinking{Text: "hm", Signature: "c2lnbmVk"}, chat.Thinking{Redacted: "aGlkZGVu"},
				chat.ToolUse{ID: "c-1", Name: "status", Args: json.RawMessage(`{}`)}),
			modeltest.Message(t, model.User, chat.ToolResult{Call: "c-1", Name: "status", Blocks: chat.TextBlocks("fine")}),
			modeltest.Message(t, model.User, chat.Text{Text: "and?"}),
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	if err := json.Indent(&got, prep.Body, "", "  "); err != nil {
		t.Fatal(err)
	}
	got.WriteByte('\n')
	file := filepath.Join("testdata", "signed.golden.json")
	if *update {
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
}
