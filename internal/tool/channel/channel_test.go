package channel

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"chorus/internal/tool"
	"chorus/internal/tool/files"
	"chorus/internal/tool/tooltest"
)

// hall is a place where three things were said.
type hall struct {
	mu     sync.Mutex
	said   []Message
	asked  Query
	posted map[string]File
	err    error
}

var _ Channel = (*hall)(nil)

func (h *hall) Search(_ context.Context, q Query) ([]Message, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asked = q
	return h.said[:min(len(h.said), q.Limit)], h.err
}

func (h *hall) Post(_ context.Context, key string, f File) (string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.err == nil {
		h.posted[key] = f
	}
	return "https://example.com/1", h.err
}

func setOf(t *testing.T, h *hall) (*tool.Set, string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"a.txt": "words", "empty": ""} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	roots, err := files.NewRoots(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = roots.Close() })
	set, err := tool.NewSet(Tools(h, roots)...)
	if err != nil {
		t.Fatal(err)
	}
	return set, dir
}

func TestContract(t *testing.T) {
	t.Parallel()
	tooltest.Run(t, tooltest.Fixture{
		New: func(t *testing.T) (*tool.Set, []string) {
			set, dir := setOf(t, &hall{posted: map[string]File{}, said: []Message{{Author: "ada", Text: "hello"}}})
			return set, []string{dir}
		},
		Calls: map[string][]string{
			"search_channel": {`{"query":"hello"}`, `{"query":" "}`, `{"query":"x","from":"@ada","limit":3,"older":true}`},
			"upload":         {`{"path":"a.txt"}`, `{"path":"../a.txt"}`, `{"path":"none"}`},
		},
	})
}

func run(t *testing.T, set *tool.Set, name, args string) tool.Result {
	t.Helper()
	found, plain, err := set.Resolve(name, []byte(args))
	if err != nil {
		t.Fatal(err)
	}
	res, err := found.Run(tool.WithCall(t.Context(), tool.Call{ID: "c1", Key: "run/c1"}), plain)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func TestSearch(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC)
	h := &hall{said: []Message{{Author: "ada", At: at, Text: "the plan\nis this", Link: "https://example.com/7"}, {Author: "bob", At: at, Text: strings.Repeat("long ", 400)}}}
	set, _ := setOf(t, h)
	res := run(t, set, "search_channel", `{"query":"plan","from":"@ada","limit":1000}`)
	text := res.Blocks.Text()
	if !strings.HasPrefix(text, "2026-01-02 03:04 ada: the plan\nis this\n  https://example.com/7\n") || strings.Count(text, "long") > 130 {
		t.Errorf("the model reads %.300s", text)
	}
	if res.UntrustedFrom == "" {
		t.Error("words of others are not told as such")
	}
	if h.asked != (Query{Text: "plan", From: "ada", Limit: 50}) {
		t.Errorf("looked for %+v", h.asked)
	}
	h.said = nil
	if text := run(t, set, "search_channel", `{"query":"plan"}`).Blocks.Text(); !strings.Contains(text, "Set older") || h.asked.Limit != 20 {
		t.Errorf("the model reads %q after %+v", text, h.asked)
	}
	h.err = errors.New("closed")
	if res := run(t, set, "search_channel", `{"query":"plan"}`); !res.Failed {
		t.Error("an error is no failure")
	}
}

func TestUpload(t *testing.T) {
	t.Parallel()
	h := &hall{posted: map[string]File{}}
	set, dir := setOf(t, h)
	large, err := os.Create(filepath.Join(dir, "large"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(large.Truncate(MaxUpload+1), large.Close()); err != nil {
		t.Fatal(err)
	}
	for args, want := range map[string]string{
		`{"path":"a.txt","text":"here"}`: "Posted a.txt https://example.com/1",
		`{"path":"empty"}`:               "empty is empty",
		`{"path":"large"}`:               "larger than the 10 MB",
		`{"path":"."}`:                   "is a directory",
		`{"path":"/etc/passwd"}`:         "outside of the workspace",
	} {
		if text := run(t, set, "attach", args).Blocks.Text(); !strings.Contains(text, want) {
			t.Errorf("%s: %q", args, text)
		}
	}
	if f := h.posted["run/c1"]; len(h.posted) != 1 || f.Name != "a.txt" || string(f.Data) != "words" || f.Text != "here" {
		t.Errorf("posted %v", h.posted)
	}
	if err := os.Truncate(large.Name(), MaxUpload); err != nil {
		t.Fatal(err)
	}
	if text := run(t, set, "upload", `{"path":"large"}`).Blocks.Text(); !strings.HasPrefix(text, "Posted large") {
		t.Errorf("as much as may be carried: %q", text)
	}
	run(t, set, "upload", `{"path":"a.txt","comment":"seen"}`)
	if f := h.posted["run/c1"]; f.Text != "seen" {
		t.Errorf("posted with %q", f.Text)
	}
	found, plain, err := set.Resolve("upload_file", []byte(`{"path":"./a.txt"}`))
	if err != nil || found.Access(plain)[0].Action() != "tool:upload:a.txt" {
		t.Errorf("judged as %v, %v", found.Access(plain), err)
	}
}
