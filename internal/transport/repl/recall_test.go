package repl

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"chorus/internal/chat"
)

// TestChatRecallsWhatWasDone: whoever takes a conversation up again sees what its agent did, not its words alone; of very much the end.
func TestChatRecallsWhatWasDone(t *testing.T) {
	t.Parallel()
	f := newFake()
	f.put(chat.Received{Blocks: chat.TextBlocks("fix it"), Prompt: true})
	f.put(starts(f.seq)...)
	for i := range 20 {
		id := fmt.Sprintf("c%d", i)
		f.put(says(i+1, 1, "", command(t, id, "make test")), chat.ToolRan{Call: id, Name: "bash", Outcome: chat.Ran, TookMS: int64(1000 * (i + 1)), Blocks: chat.TextBlocks("ok")})
	}
	f.put(says(21, 1, "It is fixed."), ends(chat.EndDone))
	f.put(chat.Received{Blocks: chat.TextBlocks("and the other one"), Prompt: true}, chat.RunStarted{Run: "r2"}, chat.Took{Run: "r2", Seqs: []int64{f.seq + 1}})
	f.put(chat.RunEnded{Run: "r2", Reason: chat.EndAborted})
	s := stageOf(t, f, ChatOptions{Head: f.seq})
	s.show()
	s.wants("printed", s.printed(), "❯ fix it", "…\n✓ ", "20.0s\n\nIt is fixed.", "❯ and the other one", "✗ stopped")
	if n := strings.Count(s.printed(), "✓ "); n != pastLines {
		t.Errorf("%d calls:\n%s", n, s.printed())
	}
}

// TestChatTellsWhoeverLooksAway: the title says what is going on, and the bell rings for an approval, but not for whoever is typing.
func TestChatTellsWhoeverLooksAway(t *testing.T) {
	t.Parallel()
	s := newStage(t, ChatOptions{})
	title := func(want string) {
		t.Helper()
		if got := s.w.View().WindowTitle; got != want {
			t.Errorf("the title is %q, not %q", got, want)
		}
	}
	title("chorus · repo")
	s.typing("go<enter>")
	s.put(starts()...)
	title("works · chorus · repo")
	s.put(says(1, 1, "", edit.Call))
	s.f.asks(edit)
	s.show()
	title("waiting for you · chorus · repo")
	if s.rang != 0 {
		t.Errorf("it rang %d times for somebody who types", s.rang)
	}
	s.put(chat.RunEnded{Run: "r1", Reason: chat.EndAborted})
	s.clock = s.clock.Add(time.Minute)
	s.put(chat.RunStarted{Run: "r2"}, says(1, 1, "", edit.Call))
	s.f.asks(edit)
	s.show()
	if s.rang != 1 {
		t.Errorf("it rang %d times for somebody who is away", s.rang)
	}
}

// TestChatPlansWithAKey: Shift-Tab switches planning on and off, and what was typed stays.
func TestChatPlansWithAKey(t *testing.T) {
	t.Parallel()
	s := newStage(t, ChatOptions{})
	s.f.onCommand = func(line string) (string, error) {
		s.f.info.Mode = strings.TrimPrefix(strings.TrimPrefix(line, "/mode "), "off")
		return "", nil
	}
	s.typing("half a thought<shift+tab>")
	s.wants("window", s.live(), "from the next prompt on: plan", "❯ half a thought", "mode plan")
	s.typing("<shift+tab>")
	if s.wants("window", s.live(), "from the next prompt on: no mode"); s.f.info.Mode != "" {
		t.Errorf("the mode is %q", s.f.info.Mode)
	}
}
