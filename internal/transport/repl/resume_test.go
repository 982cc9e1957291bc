package repl

import (
	"errors"
	"strings"
	"testing"

	"chorus/internal/chat"
)

// TestChooseByTitle: a session is found by a part of its title, as in the list that is offered.
func TestChooseByTitle(t *testing.T) {
	t.Parallel()
	list := []Listed{{ID: "01aa", Title: "Fix the  test"}, {ID: "01ab", Title: "explain the test"}, {ID: "02aa", Title: "a picture"}}
	for typed, want := range map[string]string{"02": "02aa", "fix the": "01aa", "PICTURE": "02aa", "01a": "", "the test": "", "nothing": ""} {
		got, err := Choose(list, typed)
		if got.ID != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v", typed, got.ID, err)
		}
	}
}

// TestWhatIsTypedAfterResumeIsForTheOtherSession: nothing that follows /resume is said in the conversation that is being left.
func TestWhatIsTypedAfterResumeIsForTheOtherSession(t *testing.T) {
	t.Parallel()
	s := newStage(t, ChatOptions{})
	s.f.onCommand = func(string) (string, error) {
		s.typing("hello there<enter>")
		return "", &Resume{ID: "other"}
	}
	s.typing("/resume oth<esc><enter>")
	s.wants("calls", s.f.logged(), "/resume oth")
	if s.w.resume == nil || s.w.resume.ID != "other" || s.w.input.value() != "hello there" {
		t.Errorf("resumes %v, and the input is %q", s.w.resume, s.w.input.value())
	}
	s.typing("<enter>") // while the window closes
	if strings.Contains(s.f.logged(), "send") {
		t.Errorf("said in the old session: %s", s.f.logged())
	}
	s = newStage(t, ChatOptions{Draft: "hello there"})
	s.typing("<enter>")
	s.wants("calls", s.f.logged(), `send "hello there"`)

	s = newStage(t, ChatOptions{})
	s.f.onCommand = func(string) (string, error) {
		s.typing("hello<enter>")
		return "", errors.New("there is no such session")
	}
	s.typing("/resume oth<esc><enter>")
	s.wants("printed", s.printed(), "there is no such session")
	s.wants("window", s.live(), "❯ hello")
	s.typing("<enter>")
	s.wants("calls", s.f.logged(), `send "hello"`)
}

// TestPastRunsAreNotActive: while the past is read, a run in it neither waits nor forbids to continue elsewhere.
func TestPastRunsAreNotActive(t *testing.T) {
	t.Parallel()
	f := newFake()
	f.put(chat.Received{Blocks: chat.TextBlocks("fix it"), Prompt: true})
	f.put(starts(f.seq)...)
	s := stageOf(t, f, ChatOptions{Head: f.seq + 2})
	s.show()
	if strings.Contains(s.live(), "waiting:") {
		t.Errorf("a past prompt waits:\n%s", s.live())
	}
	f.onCommand = func(string) (string, error) { return "", &Resume{ID: "other"} }
	s.typing("/resume other<esc><enter>")
	if s.w.resume == nil {
		t.Errorf("does not resume:\n%s", s.live())
	}
}
