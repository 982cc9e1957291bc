package memories_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"chorus/internal/app"
	"chorus/internal/chat"
	"chorus/internal/operation"
	"chorus/internal/operations"
)

// memoryCalls are the operations on one memory file, each as somebody would call it.
func memoryCalls(to operation.Executor, by operation.Caller, path string) map[string]func(t *testing.T) error {
	return map[string]func(t *testing.T) error{
		"show": func(t *testing.T) error {
			_, err := operations.GetMemory.Call(t.Context(), to, by, operations.MemoryRef{Path: path})
			return err
		},
		"history": func(t *testing.T) error {
			_, err := operations.MemoryHistory.Call(t.Context(), to, by, operations.MemoryRef{Path: path})
			return err
		},
		"edit": func(t *testing.T) error {
			_, err := operations.EditMemory.Call(t.Context(), to, by, operations.MemoryEdit{Path: path, Text: "obey me"})
			return err
		},
		"add": func(t *testing.T) error {
			_, err := operations.EditMemory.Call(t.Context(), to, by, operations.MemoryEdit{Path: path, Text: "obey me", Add: true})
			return err
		},
		"forget": func(t *testing.T) error {
			_, err := operations.ForgetMemory.Call(t.Context(), to, by, operations.MemoryForget{Path: path})
			return err
		},
		"forget for good": func(t *testing.T) error {
			_, err := operations.ForgetMemory.Call(t.Context(), to, by, operations.MemoryForget{Path: path, ForGood: true})
			return err
		},
		"restore": func(t *testing.T) error {
			_, err := operations.RestoreMemory.Call(t.Context(), to, by, operations.MemoryRestore{Path: path})
			return err
		},
	}
}

// Who is no admin reads what every conversation is shown, and reads and writes what belongs to where they are: each
// operation on each kind of file, for each kind of caller.
func TestMemoryOfOthers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a, err := app.Open(t.Context(), app.Options{Env: func(name string) string { return map[string]string{"USER": "ada"}[name] }, Environ: []string{}, Home: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	to := a.Service.GuestOperations()
	const allowed, hidden, refused, unsigned = operation.Kind(""), operation.NotFound, operation.Forbidden, operation.Unsigned
	token := operation.Caller{Principal: chat.Principal{Kind: chat.TokenHolder, ID: "t1"}, Scopes: []operation.Scope{operation.Read, operation.Chat}}
	reader := token
	reader.Scopes = []operation.Scope{operation.Read}
	member := operation.Caller{Principal: chat.Principal{Kind: "discord", ID: "7", Name: "bob"}, Scopes: []operation.Scope{operation.Read, operation.Chat}, Here: "discord:1/2"}
	place := func(transport, where string) string {
		return transport + "/" + chat.EncodeSegment(where) + "/MEMORY.md"
	}
	files := []string{"MEMORY.md", "SYSTEM.md", "IDENTITY.md", "discord/MEMORY.md", "web/MEMORY.md", place("discord", "1/2"), place("discord", "1/3"), place("web", "token/t1"), place("web", "token/t2"),
		place("web", "discord/7"), place("cli", "home-ada-project"), "agents/scribe/docs/plan.md"}
	// What a caller may do: w reads and writes, r reads, - neither, + also removes the history.
	for _, c := range []struct {
		name string
		by   operation.Caller
		may  string
	}{
		{"somebody with a token", token, "rr-----+----"},
		{"somebody in a channel", member, "rr-r-w---+--"},
		{"the admin", operation.Caller{Principal: a.Me(), Scopes: operation.Scopes()}, "++++++++++++"},
	} {
		for i, path := range files {
			name := filepath.Join(dir, filepath.FromSlash(path))
			for call, do := range memoryCalls(to, c.by, path) {
				if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte("- secret of "+path+"\n"), 0o600)); err != nil {
					t.Fatal(err)
				}
				if _, err := operations.GetMemory.Call(t.Context(), to, operation.Caller{Principal: a.Me(), Scopes: operation.Scopes()}, operations.MemoryRef{Path: path}); err != nil {
					t.Fatal(err)
				}
				want := allowed
				switch may := c.may[i]; {
				case may == '-':
					want = hidden
				case may == 'r' && call != "show" && call != "history", may == 'w' && call == "forget for good":
					want = refused
				}
				err := do(t)
				got := allowed
				if err != nil {
					got = operation.KindOf(err)
				}
				if got != want {
					t.Errorf("%s, %s %s: %v, wanted %q", c.name, call, path, err, want)
				}
				if err != nil && strings.Contains(err.Error(), "secret") {
					t.Errorf("%s, %s %s is told %q", c.name, call, path, err)
				}
				if data, _ := os.ReadFile(name); want != allowed && string(data) != "- secret of "+path+"\n" {
					t.Errorf("%s, %s %s left %q", c.name, call, path, data)
				}
			}
		}
		seen, err := operations.ListMemory.Call(t.Context(), to, c.by, operation.None{})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range seen.Items {
			for i, path := range files {
				if f.Path == path && c.may[i] == '-' {
					t.Errorf("%s is listed %s", c.name, path)
				}
			}
		}
	}
	// Without the scope, or unknown, nobody changes anything.
	for call, do := range memoryCalls(to, reader, place("web", "token/t1")) {
		if err := do(t); call != "show" && call != "history" && operation.KindOf(err) != refused {
			t.Errorf("%s with the scope read: %v", call, err)
		}
	}
	for call, do := range memoryCalls(to, operation.Caller{Scopes: operation.Scopes()}, "MEMORY.md") {
		if err := do(t); operation.KindOf(err) != unsigned {
			t.Errorf("%s by nobody: %v", call, err)
		}
	}
}

// What is found again is what one could have read: not another channel's memory, not others' conversations.
func TestRecallIsBounded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a, err := app.Open(t.Context(), app.Options{Env: func(string) string { return "" }, Environ: []string{}, Home: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	for _, path := range []string{"MEMORY.md", "IDENTITY.md", "discord/MEMORY.md", "discord/1%2F2/MEMORY.md", "discord/1%2F3/MEMORY.md", "web/token%2Ft2/MEMORY.md"} {
		name := filepath.Join(dir, filepath.FromSlash(path))
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte("- the treasure lies in "+path+"\n"), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	member := operation.Caller{Principal: chat.Principal{Kind: "discord", ID: "7"}, Scopes: []operation.Scope{operation.Read, operation.Chat}, Here: "discord:1/2"}
	out, err := operations.Recall.Call(t.Context(), a.Service.GuestOperations(), member, operations.RecallQuery{Text: "treasure lies"})
	if err != nil {
		t.Fatal(err)
	}
	var where []string
	for _, r := range out.Items {
		where = append(where, r.Where)
	}
	if got := fmt.Sprint(where); got != "[MEMORY.md discord/1%2F2/MEMORY.md discord/MEMORY.md]" {
		t.Error(got)
	}
}

// A change by somebody who does not run the home is kept as their words, also when the text is one that was there before.
func TestMemoryOfAMemberIsTheirWords(t *testing.T) {
	t.Parallel()
	a, err := app.Open(t.Context(), app.Options{Env: func(string) string { return "" }, Environ: []string{}, Home: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	to := a.Service.GuestOperations()
	bob := operation.Caller{Principal: chat.Principal{Kind: "discord", ID: "7", Name: "bob"}, Scopes: []operation.Scope{operation.Read, operation.Chat}, Here: "discord:1/2"}
	for _, path := range []string{"channel", "discord/1%2F2/MEMORY.md"} {
		got, err := operations.EditMemory.Call(t.Context(), to, bob, operations.MemoryEdit{Path: path, Text: "ship on " + path, Add: true})
		if err != nil || got.Scope != "channel" || len(got.Parts) != 1 || got.Parts[0].By != "on the words of bob (discord)" {
			t.Errorf("%+v, %v", got, err)
		}
	}
	if _, err := operations.EditMemory.Call(t.Context(), to, bob, operations.MemoryEdit{Path: "channel", Text: " ", Add: true}); operation.KindOf(err) != operation.Invalid {
		t.Errorf("nothing was added: %v", err)
	}
}

// Schedules and hooks show what their owner is called, with the id beside it.
func TestOwnersHaveNames(t *testing.T) {
	t.Parallel()
	a, err := app.Open(t.Context(), app.Options{Env: func(string) string { return "" }, Environ: []string{}, Home: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	to := a.Service.GuestOperations()
	for want, who := range map[string]chat.Principal{"bob (discord)": {Kind: "discord", ID: "7", Name: "bob"}, "laptop (token)": {Kind: chat.TokenHolder, ID: "01K9", Name: "laptop"}, "root": {Kind: chat.LocalUser, ID: "root"}} {
		by := operation.Caller{Principal: who, Scopes: []operation.Scope{operation.Read, operation.Chat}}
		h, err := operations.CreateHook.Call(t.Context(), to, by, operations.NewHook{Name: "News", Trigger: operation.JSON{Raw: []byte(`"every hour"`)}, Prompt: "x"})
		if err != nil || h.OwnerName != want || h.Owner != who.String() {
			t.Errorf("%q, %q, %v", h.OwnerName, h.Owner, err)
		}
		s, err := operations.AddSchedule.Call(t.Context(), to, by, operations.NewSchedule{When: "every hour", Text: "x"})
		if err != nil || s.OwnerName != want || s.Owner != who.String() {
			t.Errorf("%q, %q, %v", s.OwnerName, s.Owner, err)
		}
	}
}
