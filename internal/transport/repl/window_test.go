package repl

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"

	"chorus/internal/chat"
	"chorus/internal/markdown"
	"chorus/internal/notice"
)

// stage is a window without a terminal: commands run at once, what is printed
// above is kept, time stands still unless it is moved.
type stage struct {
	t     *testing.T
	f     *fake
	w     *window
	above []string
	next  int // items already shown
	quit  bool
	rang  int // times the bell was rung
	clock time.Time
}

func newStage(t *testing.T, o ChatOptions) *stage {
	t.Helper()
	return stageOf(t, newFake(), o)
}

func stageOf(t *testing.T, f *fake, o ChatOptions) *stage {
	t.Helper()
	s := &stage{t: t, f: f, clock: time.Unix(1_700_000_000, 0)}
	o.Console.Size = func() (int, int) { return 60, 24 }
	s.w = newWindow(context.Background(), f, o)
	s.w.now = func() time.Time { return s.clock }
	s.w.presenter.now = s.w.now
	s.w.print = func(lines []string) tea.Cmd {
		s.above = append(s.above, lines...)
		return func() tea.Msg { return printedMsg{} }
	}
	s.w.after = func(_ time.Duration, msg tea.Msg) tea.Cmd {
		if _, spins := msg.(tickMsg); spins {
			return nil // moved by hand
		}
		return func() tea.Msg { return msg }
	}
	s.run(s.w.Init())
	s.msg(tea.WindowSizeMsg{Width: 60, Height: 24})
	s.msg(printedMsg{})
	return s
}

// msg gives the window a message and does what it orders.
func (s *stage) msg(m tea.Msg) {
	_, cmd := s.w.Update(m)
	s.run(cmd)
}

func (s *stage) run(cmd tea.Cmd) {
	if cmd == nil {
		return
	}
	m := cmd()
	v := reflect.ValueOf(m)
	switch {
	case m == nil:
	case reflect.TypeOf(m) == reflect.TypeOf(tea.Quit()):
		s.quit = true
	case m == any(tea.RawMsg{Msg: "\a"}):
		s.rang++
	case v.Kind() == reflect.Slice && v.Type().Elem() == reflect.TypeFor[tea.Cmd](): // a batch or a sequence
		for i := range v.Len() {
			s.run(v.Index(i).Interface().(tea.Cmd))
		}
	default:
		s.msg(m)
	}
}

// show passes on what is new in the journal.
func (s *stage) show() {
	s.f.mu.Lock()
	items := append([]Item(nil), s.f.items[s.next:]...)
	s.next += len(items)
	s.f.mu.Unlock()
	for _, it := range items {
		s.msg(itemMsg{it})
	}
}

func (s *stage) put(things ...any) {
	s.f.put(things...)
	s.show()
}

// typing presses keys: text, or one of the names in angle brackets.
func (s *stage) typing(keys string) {
	for _, part := range regexp.MustCompile(`<[^>]+>|[^<]`).FindAllString(keys, -1) {
		s.msg(keyOf(part))
	}
	s.show()
}

func keyOf(name string) tea.KeyPressMsg {
	switch name {
	case "<enter>":
		return tea.KeyPressMsg{Code: tea.KeyEnter}
	case "<alt+enter>":
		return tea.KeyPressMsg{Code: tea.KeyEnter, Mod: tea.ModAlt}
	case "<esc>":
		return tea.KeyPressMsg{Code: tea.KeyEscape}
	case "<tab>":
		return tea.KeyPressMsg{Code: tea.KeyTab}
	case "<shift+tab>":
		return tea.KeyPressMsg{Code: tea.KeyTab, Mod: tea.ModShift}
	case "<up>":
		return tea.KeyPressMsg{Code: tea.KeyUp}
	case "<down>":
		return tea.KeyPressMsg{Code: tea.KeyDown}
	case "<ctrl+r>", "<ctrl+g>", "<ctrl+o>", "<ctrl+x>", "<ctrl+e>", "<ctrl+v>":
		return tea.KeyPressMsg{Code: rune(name[len("<ctrl+")]), Mod: tea.ModCtrl}
	case "<ctrl+c>":
		return tea.KeyPressMsg{Code: 'c', Mod: tea.ModCtrl}
	case "<ctrl+d>":
		return tea.KeyPressMsg{Code: 'd', Mod: tea.ModCtrl}
	}
	r := []rune(name)[0]
	return tea.KeyPressMsg{Code: r, Text: name}
}

func (s *stage) live() string { return s.w.View().Content }

func (s *stage) printed() string { return strings.Join(s.above, "\n") }

func (s *stage) wants(where, got string, wants ...string) {
	s.t.Helper()
	for _, want := range wants {
		if !strings.Contains(got, want) {
			s.t.Errorf("%s lacks %q:\n%s", where, want, got)
		}
	}
}

// TestChatKeepsTheOrder: what was typed first arrives first, however the library runs the calls.
func TestChatKeepsTheOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, ChatOptions{})
		calls := []tea.Cmd{s.w.command("clear", ""), s.w.send("one"), s.w.steer("two", chat.Inject), s.w.plan()}
		for _, call := range slices.Backward(calls) {
			go call()
			synctest.Wait()
		}
		if got, want := s.f.logged(), "command \"/clear\"\nsend \"one\"\nsteer \"two\" inject\ncommand \"/mode plan\""; got != want {
			t.Errorf("calls:\n%s", got)
		}
	})
}

func TestChatConversation(t *testing.T) {
	t.Parallel()
	s := newStage(t, ChatOptions{})
	s.typing("   <enter>hello<enter>")
	s.wants("calls", s.f.logged(), `send "hello"`)
	s.wants("window", s.live(), "waiting: hello", "helper · demo/guide · standard")
	s.put(starts(1)...)
	s.put(asking(1, 1), delta(1, 1, 0, "It is **fi"))
	s.wants("window", s.live(), "It is **fi", "writing")
	s.clock = s.clock.Add(3 * time.Second)
	s.put(says(1, 1, "It is **fine**.\nSecond.", use("c1", "bash", `{go test}`)), chat.ToolBegan{Call: "c1", Name: "bash"},
		chat.Progress{Run: "r1", Call: "c1", Text: "ok pkg\n"})
	s.clock = s.clock.Add(12 * time.Second)
	s.wants("window", s.live(), "→ bash go test", "12s", "ok pkg", "1.0k tokens")
	s.put(ran("c1", "bash", 1200), asking(2, 1), says(2, 1, "Done."), ends(chat.EndDone))
	s.wants("printed", s.printed(), "❯ hello\n\nIt is **fine**.\nSecond.\n\n✓ bash go test 1.2s\n\nDone.\n  2 steps · 2.0k tokens · $0.01")
	if live := s.live(); strings.Contains(live, "bash") || strings.Contains(live, "Done") {
		t.Errorf("the window still shows what is over:\n%s", live)
	}
	s.wants("window", s.live(), "$0.01")
}

func TestChatSteering(t *testing.T) {
	t.Parallel()
	s := newStage(t, ChatOptions{})
	s.put(starts()...)
	s.put(asking(1, 1))
	s.typing("look here<enter>")
	s.wants("window", s.live(), "sent to the running agent", "waiting: look here")
	s.typing("!stop that<enter>/steer Now THIS<enter>")
	s.wants("calls", s.f.logged(), `steer "look here" inject`, `steer "stop that" interrupt`, `steer "Now THIS" interrupt`)
	s.put(chat.Took{Run: "r1", Step: 2, Seqs: []int64{4, 5, 6}})
	s.wants("printed", s.printed(), "❯ (to the running agent) look here", "❯ (to the running agent) stop that")
	s.put(ends(chat.EndDone))
	s.typing("!important<enter>")
	s.wants("calls", s.f.logged(), `send "!important"`)
}

func TestChatStopsAndLeaves(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, keys, calls string
		running           bool
		quit              bool
		exit              int
	}{
		{"esc aborts", "<esc>", "abort false", true, false, 0},
		{"esc when idle does nothing", "<esc>", "", false, false, 0},
		{"ctrl-c aborts", "<ctrl+c>", "abort false", true, false, 0},
		{"ctrl-c twice leaves the run", "<ctrl+c><ctrl+c>", "abort false", true, true, ExitInterrupted},
		{"ctrl-c when idle warns", "<ctrl+c>", "", false, false, 0},
		{"ctrl-c twice when idle leaves", "<ctrl+c><ctrl+c>", "", false, true, 0},
		{"ctrl-c empties the input first", "abc<ctrl+c><ctrl+c>", "", false, false, 0},
		{"ctrl-d leaves", "<ctrl+d>", "", false, true, 0},
		{"ctrl-d with input does not", "a<ctrl+d>", "", false, false, 0},
		{"ctrl-d in a run does not", "<ctrl+d>", "", true, false, 0},
		{"/exit leaves", "/exit<enter>", "", false, true, 0},
		{"/Q leaves a run", "/Q<enter>", "", true, true, 0},
		{"/stop", "/stop<enter>", "abort false", true, false, 0},
		{"/stop all", "/stop all<enter>", "abort true", true, false, 0},
		{"/stop when idle", "/stop<enter>", "", false, false, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, ChatOptions{})
			if tt.running {
				s.put(starts()...)
			}
			s.typing(tt.keys)
			if s.f.logged() != tt.calls || s.w.leaving != tt.quit || s.w.exit != tt.exit {
				t.Errorf("calls %q, leaving %v, exit %d", s.f.logged(), s.w.leaving, s.w.exit)
			}
		})
	}
}

func TestChatQuitsWhenAllIsPrinted(t *testing.T) {
	t.Parallel()
	s := newStage(t, ChatOptions{})
	s.typing("/help<enter>/exit<enter>")
	s.wants("printed", s.printed(), "/approve-all", "Esc or Ctrl-C")
	if !s.quit || len(s.w.above) > 0 {
		t.Errorf("quit %v with %d lines unprinted", s.quit, len(s.w.above))
	}
}

func TestChatQuestions(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, keys, call, word string }{
		{"yes", "y", `answer a1 true "" false`, "└ yes"},
		{"always", "A2", "propose a1\nkeep a1 [\"tool:bash:go test(?: .*)?\"]\nanswer a1 true \"\" false", "└ yes, always: go test with any arguments"},
		{"always, narrowest", "a1", "propose a1\nkeep a1 [\"tool:bash:go test \\\\./\\\\.\\\\.\\\\.\"]\nanswer a1 true \"\" false", "still asks   go test other"},
		{"for the session", "as", "propose a1\nanswer a1 true \"\" true", "└ yes, always in this session"},
		{"always, then only once", "a7xy", "propose a1\nanswer a1 true \"\" false", "└ yes"},
		{"always and back", "a<esc>n", "propose a1\nanswer a1 false \"\" false", "└ no"},
		{"no", "n", `answer a1 false "" false`, "└ no"},
		{"no with a reason", "xruse git<enter>", `answer a1 false "use git" false`, "└ no: use git"},
		{"reason and back", "rabc<esc>y", `answer a1 true "" false`, "└ yes"},
		{"typing beside it", "<tab>y<enter><tab>n", "steer \"y\" inject\nanswer a1 false \"\" false", "└ no"},
		{"stopped", "<esc>", "abort false", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, ChatOptions{})
			offers(s.f)
			s.put(starts()...)
			s.put(says(1, 1, "", edit.Call))
			s.f.asks(edit)
			s.show()
			s.wants("printed", s.printed(), "Allow edit to run this?", "-three", "+1", "tool:edit:.*")
			s.wants("window", s.live(), "y yes · n no · a always")
			s.typing(tt.keys)
			if s.f.logged() != tt.call {
				t.Errorf("calls %q, want %q", s.f.logged(), tt.call)
			}
			s.wants("printed", s.printed(), tt.word)
		})
	}
}

// TestChatChoicesComeAfterWhatTheyChooseFrom: the keys of a question and of an offer count once all of it is printed.
func TestChatChoicesComeAfterWhatTheyChooseFrom(t *testing.T) {
	t.Parallel()
	s := newStage(t, ChatOptions{})
	offers(s.f)
	s.put(starts()...)
	s.put(says(1, 1, "", edit.Call))
	s.f.asks(edit)
	quick := s.w.print
	s.w.print = func(lines []string) tea.Cmd { s.above = append(s.above, lines...); return nil } // a slow terminal
	s.show()
	if live := s.live(); strings.Contains(live, "y yes") {
		t.Errorf("too early:\n%s", live)
	}
	s.w.print = quick
	s.msg(printedMsg{})
	s.wants("window", s.live(), "y yes")
	s.w.print = func(lines []string) tea.Cmd { s.above = append(s.above, lines...); return nil }
	s.typing("a")
	if live := s.live(); strings.Contains(live, "keep always") || !strings.Contains(live, "y yes") {
		t.Errorf("too early:\n%s", live)
	}
	s.msg(printedMsg{})
	s.wants("window", s.live(), "keep always · s this session")
}

func TestChatQuestionDoesNotTakeWhatIsTyped(t *testing.T) {
	t.Parallel()
	s := newStage(t, ChatOptions{})
	s.put(starts()...)
	s.put(says(1, 1, "", edit.Call))
	s.typing("no wa")
	s.f.asks(edit)
	s.show()
	s.typing("y")
	s.clock = s.clock.Add(time.Minute)
	s.msg(tickMsg{})
	s.typing("y!")
	if s.f.logged() != "" || s.w.input.value() != "no wayy!" {
		t.Errorf("calls %q, input %q", s.f.logged(), s.w.input.value())
	}
	s.wants("window", s.live(), "an approval is pending: Tab to answer it")
	s.typing("<tab>y")
	s.wants("calls", s.f.logged(), `answer a1 true`)
}

func TestChatQuestionTakesTheKeysWhenHandsAreOff(t *testing.T) {
	t.Parallel()
	s := newStage(t, ChatOptions{})
	s.put(starts()...)
	s.put(says(1, 1, "", edit.Call))
	s.typing("/stats<enter>")
	s.f.asks(edit)
	s.show()
	s.wants("window", s.live(), "an approval is pending")
	s.clock = s.clock.Add(time.Second)
	s.msg(tickMsg{})
	s.wants("window", s.live(), "y yes")
}

func TestChatQuestionAnsweredElsewhere(t *testing.T) {
	t.Parallel()
	s := newStage(t, ChatOptions{})
	s.put(starts()...)
	s.put(says(1, 1, "", edit.Call))
	s.f.asks(edit)
	s.show()
	s.put(chat.ApprovalAnswered{ID: "a1", Call: "c1", By: "token:phone", OK: true})
	s.wants("printed", s.printed(), "approved: edit", "(by phone (token))")
	if strings.Contains(s.live(), "y yes") {
		t.Errorf("still asked:\n%s", s.live())
	}
}

func TestChatAnswerThatFailsIsAskedAgain(t *testing.T) {
	t.Parallel()
	s := newStage(t, ChatOptions{})
	s.put(starts()...)
	s.put(says(1, 1, "", edit.Call))
	s.f.asks(edit)
	s.show()
	s.f.failNext = errors.New("no connection")
	s.typing("y")
	s.wants("printed", s.printed(), "could not answer: no connection")
	s.clock = s.clock.Add(time.Second)
	s.msg(tickMsg{})
	s.typing("y")
	s.wants("calls", s.f.logged(), "answer a1 true \"\" false\nanswer a1 true \"\" false")
}

func TestChatCommands(t *testing.T) {
	t.Parallel()
	s := newStage(t, ChatOptions{Commands: []Command{{"workflow", "[list]", "workflows"}}})
	s.f.onCommand = func(line string) (string, error) {
		if line == "/model nope" {
			return "", errors.New("no such model")
		}
		return "answer \x1b[31mto\x1b[0m " + line, nil
	}
	s.typing("/STATUS<enter>/model nope<enter>/workflow list<enter>/stauts<enter>/help<enter>/etc/passwd is odd<enter>")
	s.wants("printed", s.printed(), "/status\nanswer to /status", "/model nope: no such model", "answer to /workflow list",
		"did you mean /status?", "/workflow [list]", "Alt+Enter")
	s.wants("calls", s.f.logged(), `send "/etc/passwd is odd"`)
	if strings.Contains(s.printed(), "\x1b") {
		t.Error("an escape reached the terminal")
	}
}

func TestChatInput(t *testing.T) {
	t.Parallel()
	var told []string
	s := newStage(t, ChatOptions{History: []string{"earlier"}, Remember: func(in string) error { told = append(told, in); return nil }})
	s.typing(`one\<enter>two<alt+enter>three`)
	s.msg(tea.PasteMsg{Content: strings.Repeat("pasted\r\n", 5000)})
	if rows := strings.Count(s.live(), "\n") + 1; rows > 12 {
		t.Errorf("%d rows", rows)
	}
	s.wants("window", s.live(), "❯ one\n  two\n  three[pasted 5000 lines]")
	s.typing("<enter>")
	want := "one\ntwo\nthree" + strings.Repeat("pasted\n", 5000)
	if len(told) != 1 || told[0] != want || !strings.Contains(s.f.logged(), fmt.Sprintf("%q", strings.TrimSpace(want))) {
		t.Errorf("sent something else: %.200q", s.f.logged())
	}
	s.typing("<up><up>")
	if got := s.w.input.value(); got != want && got != "earlier" {
		t.Errorf("history gave %.40q", got)
	}
}

func TestChatTakenUpAgain(t *testing.T) {
	t.Parallel()
	f := newFake()
	for i := range 4 {
		f.put(chat.Received{Blocks: chat.TextBlocks(fmt.Sprintf("question %d", i)), Prompt: true})
		f.put(starts(f.seq)...)
		f.put(says(1, 1, fmt.Sprintf("answer %d\n\n%s", i, strings.Repeat("line\n\n", i*20))), ends(chat.EndDone))
	}
	f.put(chat.Received{Blocks: chat.TextBlocks("unanswered"), Prompt: true})
	f.put(starts(f.seq)...)
	f.put(says(1, 1, "", edit.Call))
	f.asks(edit)
	s := stageOf(t, f, ChatOptions{Head: f.seq})
	s.show()
	s.wants("printed", s.printed(), "… 5 earlier messages", "❯ question 3", "…\n\nline", "❯ unanswered", "Allow edit to run this?")
	if strings.Contains(s.printed(), "question 1") || strings.Contains(s.printed(), "answer 0") {
		t.Errorf("too much of the past:\n%s", s.printed())
	}
	if n := strings.Count(s.printed(), "to run this?"); n != 1 {
		t.Errorf("asked %d times", n)
	}
}

func TestChatTrouble(t *testing.T) {
	t.Parallel()
	s := newStage(t, ChatOptions{})
	s.f.failSend = errors.New("disk full")
	s.typing("hello<enter>")
	s.wants("printed", s.printed(), "could not send it: disk full")
	s.msg(lostMsg{errors.New("no route")})
	s.msg(lostMsg{errors.New("no route")})
	if n := strings.Count(strings.ReplaceAll(s.printed(), "\n  ", " "), "cannot be read: no route"); n != 1 {
		t.Errorf("said %d times:\n%s", n, s.printed())
	}
	s.f.failSend = nil
	s.put(chat.Refused{Seq: 9, Why: "five are waiting"})
	s.wants("printed", s.printed(), "not taken: five are waiting")
	s.typing("again<enter>")
	s.wants("calls", s.f.logged(), `send "again"`)
}

func TestChatLooksAtAnySize(t *testing.T) {
	t.Parallel()
	s := newStage(t, ChatOptions{})
	s.put(starts()...)
	s.put(asking(1, 1), delta(1, 1, 0, strings.Repeat("漢字 word ", 400)+"\x1b[2J\x1b]0;x\x07"))
	s.f.asks(edit)
	s.show()
	s.msg(tea.PasteMsg{Content: "a\nb\nc\nd"})
	for _, size := range [][2]int{{1, 1}, {2, 3}, {5, 5}, {10, 4}, {40, 8}, {200, 60}, {80, 24}} {
		s.msg(tea.WindowSizeMsg{Width: size[0], Height: size[1]})
		s.msg(tea.ClearScreen())
		lines := strings.Split(s.live(), "\n")
		if size[1] >= 6 && len(lines) > size[1]-1 {
			t.Errorf("%d lines on a terminal of %v", len(lines), size)
		}
		for _, line := range lines {
			if size[0] >= 20 && markdown.Width(line) > size[0] {
				t.Errorf("line of %d columns on a terminal of %v: %q", markdown.Width(line), size, line)
			}
			if strings.ContainsAny(line, "\x1b\x07\r") {
				t.Errorf("control characters: %q", line)
			}
		}
	}
}

// A remark is a line above the window, cleaned and wrapped as all that is said.
func TestChatShowsRemarks(t *testing.T) {
	t.Parallel()
	s := newStage(t, ChatOptions{})
	s.msg(notice.Notice{Text: "it was read again"})
	s.msg(notice.Notice{Text: "it is \x1b[2Jbroken:\n/home/config/shared.yaml:2:1: there is no key \"temprature\", did you mean temperature?", Bad: true})
	want := "• it was read again\n• it is broken:\n  /home/config/shared.yaml:2:1: there is no key\n  \"temprature\", did you mean temperature?"
	if got := strings.Join(s.above, "\n"); got != want {
		t.Errorf("above:\n%s", got)
	}
}
