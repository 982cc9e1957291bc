package app

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"chorus/internal/chat"
	"chorus/internal/database"
	"chorus/internal/journal"
	"chorus/internal/operations"
	"chorus/internal/polltest"
	"chorus/internal/store"
)

// secretWords contain what JSON has to escape.
const secretWords = `my <secret> & "quoted" words, 1`

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
	keepContext(t, b, saved)
	text := `{"text": "a call: my \u003csecret\u003e \u0026 \"quoted\" words, 1"}`
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

// keepContext writes the row of a saved context.
func keepContext(t *testing.T, a *App, saved store.SavedContext) {
	t.Helper()
	if err := a.DB.BeginContext(t.Context(), saved.ID, saved.File); err != nil {
		t.Fatal(err)
	}
	if _, err := a.DB.KeepContext(t.Context(), saved); err != nil {
		t.Fatal(err)
	}
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

// says writes what somebody says into a conversation on the web, and saves what the agent sees of it.
func says(t *testing.T, a *App, thread chat.ThreadID, who chat.Principal, words ...string) (saved operations.SavedContext) {
	t.Helper()
	create := &journal.Thread{Dir: a.Home.Dir(), Owner: admin(a).Principal}
	for i, text := range words {
		said := chat.Event{Thread: thread, Who: who.String(), Platform: "local", PlatformID: thread.Thread() + "/" + strconv.Itoa(i),
			Body: chat.Received{From: chat.Participant{ID: who.ID, Name: who.ID, Kind: chat.Person}, Principal: who, Blocks: chat.TextBlocks(text)}}
		if _, err := a.DB.Commit(t.Context(), journal.Commit{Thread: thread, Create: create, Events: []chat.Event{said}}); err != nil {
			t.Fatal(err)
		}
		create = nil
	}
	saved, err := operations.SaveContext.Call(t.Context(), a.Service.Operations(), admin(a), operations.NewContext{ID: string(thread), Description: "ok, that was it"})
	if err != nil {
		t.Fatal(err)
	}
	return saved
}

// Whoever is forgotten takes the saved contexts along that hold what they said, and not those in which others used the same words.
func TestForgetTakesOnlyWhatHoldsTheirWords(t *testing.T) {
	t.Parallel()
	a := openNode(t, filepath.Join(t.TempDir(), "shared.db"), t.TempDir())
	ada, bob := chat.Principal{Kind: chat.TokenHolder, ID: "01ada"}, chat.Principal{Kind: chat.TokenHolder, ID: "01bob"}
	const threads = "web:main:"
	stays := says(t, a, threads+"one@chorus", bob, "ok", "ok, take the book", "thanks a lot")
	said := says(t, a, threads+"two@chorus", ada, "ok")
	edited := says(t, a, threads+"three@chorus", ada, "my address is 12 Mill Lane, Bath")
	if _, err := a.DB.Commit(t.Context(), journal.Commit{Thread: threads + "three@chorus", Events: []chat.Event{{Thread: threads + "three@chorus", Who: ada.ID, Platform: "local", PlatformID: "edit",
		Body: chat.Edited{Seq: 1, Blocks: chat.TextBlocks("my address is\n<secret> & a half")}}}}); err != nil {
		t.Fatal(err)
	}
	quoted := says(t, a, threads+"four@chorus", bob, "she wrote:\n> my address is 12 Mill Lane, Bath\nand I answered")
	later := says(t, a, threads+"five@chorus", bob, `it now reads "my address is <secret> & a half"`)
	unrelated := says(t, a, threads+"six@chorus", bob, "my address is another one")
	left := func() (ids []string) {
		t.Helper()
		list, err := a.DB.SavedContexts(t.Context(), store.ContextFilter{})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range list {
			ids = append(ids, c.ID)
		}
		slices.Sort(ids)
		return ids
	}
	want := []string{stays.ID, unrelated.ID}
	slices.Sort(want)
	forget := func(dry bool, contexts int) {
		t.Helper()
		got, err := a.Service.Handler().ForgetPerson(t.Context(), a.Service.LocalCaller(), operations.ForgetRequest{Person: ada.String(), DryRun: dry})
		if err != nil || got.Contexts != contexts {
			t.Errorf("%+v (%v), want %d contexts", got, err, contexts)
		}
	}
	forget(true, 4)
	if got := left(); len(got) != 6 {
		t.Errorf("trying it removed some: %q are left", got)
	}
	forget(false, 4)
	if got := left(); !slices.Equal(got, want) {
		t.Errorf("left are %q, want %q; said %s, edited %s, quoted %s, later %s", got, want, said.ID, edited.ID, quoted.ID, later.ID)
	}
	forget(false, 0)
	for ev, err := range a.DB.AllEvents(t.Context(), threads+"three@chorus", 0) {
		if err != nil {
			t.Fatal(err)
		}
		if body, err := chat.EncodeBody(ev.Body); err != nil || strings.Contains(string(body), "address") {
			t.Errorf("%s, %v", body, err)
		}
	}
}

// What was said in a message that was forgotten before, when it was deleted, is found by the message.
func TestForgetAfterADeletion(t *testing.T) {
	t.Parallel()
	a := openNode(t, filepath.Join(t.TempDir(), "shared.db"), t.TempDir())
	const thread = chat.ThreadID("web:main:one@chorus")
	ada := chat.Principal{Kind: chat.TokenHolder, ID: "01ada"}
	says(t, a, thread, ada, "heliotrope")
	if _, err := a.DB.Commit(t.Context(), journal.Commit{Thread: thread, Events: []chat.Event{{Thread: thread, Body: chat.Deleted{Seq: 1, Forget: true}}}}); err != nil {
		t.Fatal(err)
	}
	got, err := a.Service.Handler().ForgetPerson(t.Context(), a.Service.LocalCaller(), operations.ForgetRequest{Person: ada.String()})
	if err != nil || got.Contexts != 1 || got.Messages != 0 || tells(t, a.Home.Dir(), "heliotrope") {
		t.Errorf("%+v (%v)", got, err)
	}
}

// If forgetting is cut off in the middle of the journal, no quotation is left that nobody would find the next time.
func TestForgettingThatIsCutOff(t *testing.T) {
	t.Parallel()
	a := openNode(t, filepath.Join(t.TempDir(), "shared.db"), t.TempDir())
	ada, bob := chat.Principal{Kind: chat.TokenHolder, ID: "01ada"}, chat.Principal{Kind: chat.TokenHolder, ID: "01bob"}
	says(t, a, "web:main:one@chorus", ada, "my address is 12 Mill Lane, Bath")
	says(t, a, "web:main:two@chorus", bob, "she lives there: my address is 12 Mill Lane, Bath")
	cut := errors.New("killed")
	a.Service.Mirror = func(context.Context, chat.ThreadID) error { return cut }
	if _, err := a.Service.Handler().ForgetPerson(t.Context(), a.Service.LocalCaller(), operations.ForgetRequest{Person: ada.String()}); !errors.Is(err, cut) {
		t.Fatal(err)
	}
	if list, err := a.DB.SavedContexts(t.Context(), store.ContextFilter{}); err != nil || len(list) != 0 {
		t.Errorf("left are %+v, %v", list, err)
	}
}

// What a killed process left of a context is removed by whoever does that for all machines, also from the machine that it is on.
func TestLeftContextsOfAllMachines(t *testing.T) { onBoth(t, leftContextsOfAllMachines) }

func leftContextsOfAllMachines(t *testing.T, at string) {
	a, b := openNodes(t, at)
	ctx := t.Context()
	file := func(id string) string { return filepath.Join(b.Home.Dir(), "sessions", id+".json") }
	for _, id := range []string{"left", "begun"} {
		if err := b.DB.BeginContext(ctx, id, file(id)); err != nil {
			t.Fatal(err)
		}
		write(t, file(id), "heliotrope")
		if err := b.Settings.KeepContext(ctx, id, []byte("heliotrope")); err != nil {
			t.Fatal(err)
		}
	}
	long := database.Micros(a.DB.Now().Add(-2 * time.Hour))
	if err := a.DB.Write(ctx, func(tx database.Tx) error { return tx.Exec(`UPDATE memos SET at = ? WHERE key = 'left'`, long) }); err != nil {
		t.Fatal(err)
	}
	a.tidy(ctx)
	for id, there := range map[string]bool{"left": false, "begun": true} {
		if text, err := a.Settings.Documents.Kept(ctx, "contexts/"+id+".json"); err != nil || (text != nil) != there {
			t.Errorf("the text of %s: %q, %v", id, text, err)
		}
	}
	write(t, file("left"), "heliotrope") // which the other machine could not reach
	b.StartBackground()
	polltest.Until(t, "the machine that has the file has it no more", func() bool {
		_, err := os.Stat(file("left"))
		return errors.Is(err, fs.ErrNotExist)
	})
	if _, err := os.Stat(file("begun")); err != nil {
		t.Errorf("what is being saved: %v", err)
	}
}
