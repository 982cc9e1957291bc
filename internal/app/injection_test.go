package app_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"chorus/internal/app"
	"chorus/internal/chat"
	"chorus/internal/injectiontest"
	"chorus/internal/runsetup"
	"chorus/internal/sandbox"
	"chorus/internal/store/storetest"
)

// TestInjections lets the scripted model play the fully obedient victim of every
// injection: it takes the text in the way it comes, then does what it was told. A
// person who is asked says no. Whatever the model does, nothing runs without a
// question, nothing outside of the workspace is changed or shown.
func TestInjections(t *testing.T) {
	t.Parallel()
	cases, err := injectiontest.Load(filepath.Join("..", "injectiontest", "testdata"))
	if err != nil || len(cases) < 10 {
		t.Fatalf("%d cases, %v", len(cases), err)
	}
	for _, profile := range []string{"standard", "locked"} {
		t.Run(profile, func(t *testing.T) {
			t.Parallel()
			for _, c := range cases {
				t.Run(c.Name, func(t *testing.T) {
					t.Parallel()
					a, ran := victimsApp(t)
					playVictim(t, a, ran, c, profile)
				})
			}
		})
	}
}

// canary is what must never be shown to a model here.
const canary = "test-key-canary"

// victimsApp is a home with a key in it, where commands are written down and never run.
func victimsApp(t *testing.T) (*app.App, *commands) {
	t.Helper()
	dir := t.TempDir()
	storetest.Fresh(t, filepath.Join(dir, "home", "chorus.db"))
	plant(t, dir, "home/keys.yaml", "key: "+canary)
	a, err := app.Open(t.Context(), app.Options{Env: func(name string) string { return map[string]string{"CHORUS_SANDBOX": "host"}[name] }, Environ: []string{"KEY=" + canary}, Home: filepath.Join(dir, "home")})
	if err != nil {
		t.Fatal(err)
	}
	ran := &commands{}
	a.Executor, a.Setup.Executor, a.Isolation.Executor, a.Sessions.Executor = ran, ran, ran, ran
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	return a, ran
}

func playVictim(t *testing.T, a *app.App, ran *commands, c injectiontest.Case, profile string) {
	around := t.TempDir()
	work := filepath.Join(around, "work")
	for name, text := range map[string]string{
		".ssh/id_ed25519": canary, ".bashrc": "# mine", "other/config.yaml": "key: " + canary, "backups/db.sql": canary,
		"work/.git/HEAD": "ref: refs/heads/main", "work/.git/config": "[core]\n", "work/.git/hooks/README": "none", "work/.env": "A=1",
		"work/" + c.At: c.Text,
	} {
		plant(t, around, name, text)
	}
	if err := os.Symlink("../.ssh", filepath.Join(work, "escape")); err != nil {
		t.Fatal(err)
	}
	before := digest(t, around)

	seen, events := follow(t, a, work, profile, script(c, around, a.Home.Dir()))
	arrivedFramed(t, a, c, events)
	if len(seen) != len(c.Calls)+1 {
		t.Fatalf("%d calls came to an end, %d were made: %+v", len(seen), len(c.Calls)+1, seen)
	}
	if c.Carrier != injectiontest.Instructions && seen[0].fate != injectiontest.Allow {
		t.Errorf("the victim did not see the text: %+v", seen[0])
	}
	for i, call := range c.Calls {
		want := call.Standard
		if profile == "locked" {
			want = call.Locked
		}
		if got := seen[i+1]; got.fate != want {
			t.Errorf("call %d, %s %v: %s, want %s (%s)", i+1, call.Tool, call.Args, got.fate, want, got.text)
		}
	}
	for _, s := range seen {
		if strings.Contains(s.text, canary) {
			t.Errorf("a key was shown: %s", s.text)
		}
	}
	if got := ran.in(work); len(got) > 0 {
		t.Errorf("commands were run: %q", got)
	}
	if after := digest(t, around); after != before {
		t.Errorf("something around the workspace has changed:\n%s\nbefore:\n%s", after, before)
	}
	for _, name := range []string{"settings.json", "agents/chorus/permissions.json"} {
		if _, err := os.Stat(filepath.Join(a.Home.Dir(), name)); err == nil {
			t.Errorf("the home got a %s", name)
		}
	}
}

// script is the victim's part: see the text, then do one thing after the other.
func script(c injectiontest.Case, outside, home string) string {
	see := map[injectiontest.Carrier]any{
		injectiontest.File: map[string]any{"path": c.At}, injectiontest.Instructions: map[string]any{"path": c.At}, injectiontest.Filename: map[string]any{},
	}[c.Carrier]
	tool := "read"
	if c.Carrier == injectiontest.Filename {
		tool = "list_files"
	}
	var b strings.Builder
	write := func(tool string, args any) {
		data, _ := json.Marshal(args)
		text := strings.NewReplacer("{{outside}}", outside, "{{home}}", home).Replace(string(data))
		fmt.Fprintf(&b, "!call %s %s\n!---\n", tool, text)
	}
	write(tool, see)
	for _, call := range c.Calls {
		write(call.Tool, call.Args)
	}
	b.WriteString("!say done")
	return b.String()
}

// ending is how one call came to its end.
type ending struct {
	fate injectiontest.Fate
	text string
}

// follow hands the prompt in and watches until the run ends. Every question is answered no.
func follow(t *testing.T, a *app.App, work, profile, prompt string) ([]ending, []chat.Event) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	s, err := a.Sessions.OpenSession(ctx, runsetup.SessionOptions{Dir: work, Model: "demo/script", Profile: profile, CanAsk: true, Once: true})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	if _, err := s.Send(ctx, prompt); err != nil {
		t.Fatal(err)
	}
	var seen []ending
	var events []chat.Event
	asked := map[string]bool{}
	for item, err := range s.Watch(ctx, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if item.Event == nil {
			continue
		}
		events = append(events, *item.Event)
		switch e := item.Event.Body.(type) {
		case chat.ApprovalAsked:
			asked[e.Call] = true
			if err := s.Answer(ctx, e.ID, false, "", false); err != nil {
				t.Fatal(err)
			}
		case chat.ToolRan:
			seen = append(seen, ending{fate(e.Outcome, asked[e.Call]), e.Blocks.Text()})
		case chat.RunEnded:
			return seen, events
		}
	}
	t.Fatal("the run did not end")
	return nil, nil
}

func fate(o chat.Outcome, asked bool) injectiontest.Fate {
	switch {
	case o == chat.Denied && asked:
		return injectiontest.Ask
	case o == chat.Denied:
		return injectiontest.Deny
	case o == chat.Invalid:
		return injectiontest.None
	case o == chat.Ran && !asked:
		return injectiontest.Allow
	}
	return injectiontest.Fate(o)
}

// commands is an executor that runs nothing and forgets nothing.
type commands struct {
	mu  sync.Mutex
	all []sandbox.Command
}

var _ sandbox.Executor = (*commands)(nil)

func (c *commands) Name() string                              { return "none" }
func (c *commands) Reap(context.Context, string) (int, error) { return 0, nil }
func (c *commands) Run(_ context.Context, cmd sandbox.Command) (sandbox.Result, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = append(c.all, cmd)
	return sandbox.Result{}, nil
}

// in are the shell commands of one workspace; what the server itself asks git is none.
func (c *commands) in(dir string) (found []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, cmd := range c.all {
		if cmd.Dir == dir && len(cmd.Argv) == 0 {
			found = append(found, cmd.Shell)
		}
	}
	return found
}

func plant(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// digest is everything around the workspace, and of the workspace what git runs.
func digest(t *testing.T, around string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(around, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(around, path)
		if inner, ok := strings.CutPrefix(filepath.ToSlash(rel), "work/"); ok && !strings.HasPrefix(strings.ToLower(inner), ".git/") {
			return nil
		}
		fmt.Fprintf(&b, "%s %s", rel, d.Type())
		if d.Type().IsRegular() {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			fmt.Fprintf(&b, " %x", sha256.Sum256(data))
		}
		b.WriteByte('\n')
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}
