package app

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"chorus/internal/chat"
	"chorus/internal/journal"
	"chorus/internal/operations"
	"chorus/internal/polltest"
	"chorus/internal/store"
)

// secretWords contain what JSON has to escape.
const secretWords = `my <secret> & "quoted" words`

// What is forgotten on one machine is removed from the files of the others: saved contexts and mirrors; also on one that was off meanwhile.
func TestForgottenOnAllMachines(t *testing.T) { onBoth(t, forgottenOnAllMachines) }

func forgottenOnAllMachines(t *testing.T, database string) {
	a, b := openNodes(t, database)
	ctx := t.Context()
	const thread = chat.ThreadID("discord:1:2@helper")
	said := chat.Event{Thread: thread, Who: "discord:42", Body: chat.Received{Blocks: chat.TextBlocks(secretWords), Prompt: true}, Platform: "discord", PlatformID: "7"}
	if _, err := b.DB.Commit(ctx, journal.Commit{Thread: thread, Create: &journal.Thread{Dir: b.Home.Dir()}, Events: []chat.Event{said}}); err != nil {
		t.Fatal(err)
	}
	if err := b.Mirrors.CatchUp(ctx, thread); err != nil {
		t.Fatal(err)
	}
	if !tells(t, b.Home.ThreadDir(thread), "secret") {
		t.Fatal("the machine that has the conversation has no mirror of it")
	}
	saved := store.SavedContext{ID: "one", Agent: "helper", Transport: "discord", Place: "1/2", File: filepath.Join(b.Home.Dir(), "sessions", "one.json")}
	if _, err := b.DB.KeepContext(ctx, saved); err != nil {
		t.Fatal(err)
	}
	text := `{"text": "a call: my \u003csecret\u003e \u0026 \"quoted\" words"}`
	write(t, saved.File, text)
	if err := b.Settings.KeepContext(ctx, saved.ID, []byte(text)); err != nil {
		t.Fatal(err)
	}
	outside := filepath.Join(t.TempDir(), "other.json")
	write(t, outside, "not of the home")
	forgotten, err := a.Service.Handler().ForgetPerson(ctx, a.Service.LocalCaller(), operations.ForgetRequest{Person: "discord:42"})
	if err != nil || forgotten.Contexts != 1 {
		t.Fatalf("%+v (%v)", forgotten, err)
	}
	if err := a.Settings.RemoveSaved(outside); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(outside); err != nil {
		t.Errorf("a file outside of the home was removed: %v", err)
	}
	write(t, saved.File, text) // which the other machine could not reach
	b.StartBackground()
	polltest.Until(t, "the other machine has removed its file", func() bool {
		_, err := os.Stat(saved.File)
		return errors.Is(err, fs.ErrNotExist)
	})
	polltest.Until(t, "its mirror does not tell what was forgotten", func() bool { return !tells(t, b.Home.ThreadDir(thread), "secret") })
	if _, err := os.Stat(b.Home.ThreadDir(thread)); err != nil {
		t.Errorf("its mirror is gone as a whole: %v", err)
	}
	polltest.Until(t, "it has noted that", func() bool {
		data, err := os.ReadFile(b.Home.ForgottenUpTo())
		return err == nil && len(data) > 0
	})
}

// tells reports whether a file below a folder has some words.
func tells(t *testing.T, dir, words string) (found bool) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		found = found || strings.Contains(string(data), words)
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // files are rewritten meanwhile
		t.Fatal(err)
	}
	return found || err != nil
}
