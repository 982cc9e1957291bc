package compat_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

// TestGoSDK talks through the official client.
func TestGoSDK(t *testing.T) {
	t.Parallel()
	h := newFixture(t)
	client := openai.NewClient(option.WithBaseURL(h.url+"/v1"), option.WithAPIKey(h.token), option.WithMaxRetries(0))
	models, err := client.Models.List(t.Context())
	if err != nil || len(models.Data) != 3 { // with the two that are built in
		t.Fatalf("%+v, %v", models, err)
	}
	if one, err := client.Models.Get(t.Context(), "agent/helper"); err != nil || one.ID != "agent/helper" {
		t.Errorf("%+v, %v", one, err)
	}
	ask := openai.ChatCompletionNewParams{Model: "agent/helper", Messages: []openai.ChatCompletionMessageParamUnion{
		openai.SystemMessage("be brief"), openai.UserMessage("hello"), openai.AssistantMessage("hi"), openai.UserMessage("!say from the SDK\n!usage in=2 out=3"),
	}}
	got, err := client.Chat.Completions.New(t.Context(), ask)
	if err != nil || got.Choices[0].Message.Content != "from the SDK" || got.Usage.TotalTokens != 5 {
		t.Fatalf("%+v, %v", got, err)
	}
	ask.StreamOptions.IncludeUsage = openai.Bool(true)
	stream := client.Chat.Completions.NewStreaming(t.Context(), ask)
	defer stream.Close()
	var whole openai.ChatCompletionAccumulator
	for stream.Next() {
		if !whole.AddChunk(stream.Current()) {
			t.Fatalf("a chunk does not fit: %+v", stream.Current())
		}
	}
	if stream.Err() != nil || whole.Choices[0].Message.Content != "from the SDK" || whole.Usage.CompletionTokens != 3 {
		t.Errorf("%+v, %v", whole, stream.Err())
	}
	ask.Model = "agent/nobody"
	_, err = client.Chat.Completions.New(t.Context(), ask)
	var wrong *openai.Error
	if !errors.As(err, &wrong) || wrong.StatusCode != 404 || wrong.Code != "model_not_found" {
		t.Errorf("%v", err)
	}
}

// TestNodeSDK talks through the official npm client.
func TestNodeSDK(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"node", "npm"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("SKIPPED: the npm client was NOT tried, there is no %s here", tool)
		}
	}
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	install := exec.CommandContext(ctx, "npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", dir, "openai@6")
	install.Dir = dir
	if out, err := install.CombinedOutput(); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("npm install openai: %v\n%s", err, out)
		}
		t.Skipf("SKIPPED: the npm client was NOT tried, it could not be installed: %v\n%s", err, out)
	}
	script, err := os.ReadFile("testdata/client.mjs")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "client.mjs")
	if err := os.WriteFile(path, script, 0o600); err != nil {
		t.Fatal(err)
	}
	h := newFixture(t)
	run := exec.CommandContext(ctx, "node", path)
	run.Env = append(os.Environ(), "BASE="+h.url+"/v1", "KEY="+h.token)
	out, err := run.CombinedOutput()
	if err != nil || !strings.HasSuffix(strings.TrimSpace(string(out)), "all well") {
		t.Fatalf("%v\n%s", err, out)
	}
}
