package repl

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	tea "charm.land/bubbletea/v2"

	"chorus/internal/chat"
)

// taking is a session that takes files.
type taking struct{ *fake }

func (s taking) Attach(_ context.Context, name string, file io.Reader) error {
	data, err := io.ReadAll(file)
	s.log("attach %s %s", name, data)
	return errors.Join(err, s.failSend)
}

// TestChatTakesPictures: a picture that is dropped on the terminal, or named, goes with the next message.
func TestChatTakesPictures(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	picture := filepath.Join(dir, "my shot.PNG")
	if err := os.WriteFile(picture, []byte("png"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, paste := range []string{picture, "'" + picture + "'", strings.ReplaceAll(picture, " ", `\ `) + " ", "file://" + picture} {
		s := newStage(t, ChatOptions{})
		s.w.s = taking{s.f}
		s.msg(tea.PasteMsg{Content: paste})
		if s.f.logged() != "attach my shot.PNG png" || !s.w.input.empty() {
			t.Errorf("%q: calls %q, input %q", paste, s.f.logged(), s.w.input.value())
		}
		s.wants("printed", s.printed(), "attached my shot.PNG to the next message")
	}
	s := newStage(t, ChatOptions{})
	s.w.s = taking{s.f}
	for _, paste := range []string{filepath.Join(dir, "none.png"), "look at " + picture, "/etc/hostname", dir} {
		s.w.input.set("")
		s.msg(tea.PasteMsg{Content: paste})
		if s.f.logged() != "" || s.w.input.value() != paste {
			t.Errorf("%q: calls %q, input %q", paste, s.f.logged(), s.w.input.value())
		}
	}
	s.w.input.set("")
	s.w.attaching = 1
	s.typing("look<enter>")
	s.wants("window", s.live(), "still being attached", "❯ look")
	s.w.attaching = 0
	s.w.input.set("")
	s.typing("/attach " + picture + "<enter>")
	s.wants("calls", s.f.logged(), "attach my shot.PNG png")
	s.typing("/attach " + dir + "<enter>")
	s.wants("printed", s.printed(), "could not attach it", "is not a file")
	s.typing("/attach /no/such.png<enter>")
	s.wants("printed", s.printed(), "there is no file /no/such.png")
}

// TestChatTakesThePictureInTheClipboard: Ctrl-V and /attach alone.
func TestChatTakesThePictureInTheClipboard(t *testing.T) {
	t.Parallel()
	for _, typed := range []string{"look at this<ctrl+v>", "/attach<esc><enter>"} {
		s := newStage(t, ChatOptions{Clipboard: func(context.Context) ([]byte, error) { return []byte("pixels"), nil }})
		s.w.s = taking{s.f}
		s.typing(typed)
		s.wants("calls", s.f.logged(), "attach clipboard.png pixels")
		s.wants("printed", s.printed(), "attached the clipboard's picture to the next message")
	}
	s := newStage(t, ChatOptions{Clipboard: func(context.Context) ([]byte, error) { return nil, errors.New("there is no picture in the clipboard") }})
	s.w.s = taking{s.f}
	s.typing("see<ctrl+v>")
	s.wants("printed", s.printed(), "could not attach it: there is no picture in the clipboard")
	s.wants("window", s.live(), "❯ see")
}

// TestPlainChatOnATerminal: words line by line, without frames and escapes, and what must be asked is asked.
func TestPlainChatOnATerminal(t *testing.T) {
	t.Parallel()
	f := newFake()
	f.onSend = func(f *fake, _ string, seq int64) Receipt {
		f.put(starts(seq)...)
		f.put(asking(1, 1), says(1, 1, "I **clean** up.", bash.Call))
		f.asks(bash)
		return Receipt{}
	}
	f.onAnswer = func(f *fake, _ string, _ bool, _ string) {
		f.put(ran("c1", "bash", 10), asking(2, 1), says(2, 1, "Done."), ends(chat.EndDone))
	}
	tp := &tape{}
	con := tp.console(strings.NewReader("clean\nperhaps\ny\n/exit\n")).InPlain()
	con.InTTY, con.OutTTY, con.ErrTTY = true, true, true
	exit, err := Chat(within(t), f, ChatOptions{Console: con})
	if exit != 0 || err != nil {
		t.Errorf("exit %d, %v", exit, err)
	}
	if want := "send \"clean\"\nanswer a1 true \"\" false"; f.logged() != want {
		t.Errorf("calls %q", f.logged())
	}
	got := tp.String()
	for _, want := range []string{"> ", "Allow bash to run this?", "1 [y]es, 2 [n]o", "Done."} {
		if !strings.Contains(got, want) {
			t.Errorf("lacks %q:\n%s", want, got)
		}
	}
	if strings.ContainsAny(got, "␛␍┌│└─⠋") {
		t.Errorf("something is drawn:\n%s", got)
	}
}

// TestPlainMenuSaysHowManyMore: a long list is read out up to a number, and the rest is counted.
func TestPlainMenuSaysHowManyMore(t *testing.T) {
	t.Parallel()
	tp := &tape{}
	con := tp.console(strings.NewReader("/\n\n/exit\n")).InPlain()
	con.InTTY, con.OutTTY, con.ErrTTY = true, true, true
	if exit, err := Chat(within(t), newFake(), ChatOptions{Console: con}); exit != 0 || err != nil {
		t.Errorf("exit %d, %v", exit, err)
	}
	if got := tp.String(); !regexp.MustCompile(`and \d+ more\n`).MatchString(got) || !strings.Contains(got, "1. /help") {
		t.Errorf("%s", got)
	}
}
