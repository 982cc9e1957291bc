package repl

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"chorus/internal/markdown"
)

// knowing is a session that knows how lines go on.
type knowing struct {
	*fake
	ways map[string][]Completion
}

func (k knowing) Complete(_ context.Context, typed string) ([]Completion, error) {
	if list, ok := k.ways[typed]; ok {
		return list, nil
	}
	return nil, errors.New("nobody knows")
}

func knowingStage(t *testing.T, o ChatOptions) *stage {
	s := newStage(t, o)
	s.w.s = knowing{s.f, map[string][]Completion{
		"@": {{Line: "@a.go ", Label: "a.go"}, {Line: "@gre\x1b[31men.go ", Label: "gre\x1b[31men.go"}}, "@gre": {{Line: "@src/green.go ", Label: "src/green.go"}, {Line: "@grey.go ", Label: "grey.go"}},
		"/de":     {{Line: "/deploy ", Label: "/deploy [where]", About: "Release\x1b]0;owned\x07 the service"}},
		"/model ": {{Line: "/model fast/small", Label: "fast/small", About: "$1 in, $5 out"}, {Line: "/model demo/guide", Label: "demo/guide", About: "now"}},
		"/mode p": {{Label: "what is expected"}},
	}}
	return s
}

func TestChatCompletes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, keys, input, calls string }{
		{"a command by tab", "/mod<tab>", "/model ", ""},
		{"the marked one", "/mod<down><tab>", "/mode ", ""},
		{"around", "/mod<down><down><tab>", "/model ", ""},
		{"a half name by enter", "/stat<enter>", "/status ", ""},
		{"and enter again runs it", "/stat<enter><enter>", "", `command "/status"`},
		{"a whole name runs", "/status<enter>", "", `command "/status"`},
		{"what is no command is said to be none", "/zzz<enter>", "", ""},
		{"a skill", "/de<tab>", "/deploy ", ""},
		{"a file inside a line", "look at @gre<tab>please", "look at @src/green.go please", ""},
		{"the second file by enter", "@gre<down><enter>", "@grey.go ", ""},
		{"enter alone sends the words", "hi @gre<enter>", "", `send "hi @gre"`},
		{"an address is none", "ada@gre<tab>", "ada@gre", ""},
		{"esc keeps what is typed", "/mod<esc><enter>", "", ""},
		{"esc and tab opens it again", "/mod<esc><tab><tab>", "/model ", ""},
		{"what is only expected is not taken", "/mode p<tab>", "/mode p", ""},
		{"a picker carries out", "/model<enter><enter>", "", `command "/model demo/guide"`},
		{"another one of the picker", "/model<enter><up><enter>", "", `command "/model fast/small"`},
		{"a picker that is left", "/model<enter><esc>", "", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := knowingStage(t, ChatOptions{})
			s.typing(tt.keys)
			if s.w.input.value() != tt.input || s.f.logged() != tt.calls {
				t.Errorf("input %q, calls %q", s.w.input.value(), s.f.logged())
			}
		})
	}
}

func TestChatShowsHowALineGoesOn(t *testing.T) {
	t.Parallel()
	s := knowingStage(t, ChatOptions{})
	s.typing("/")
	s.wants("window", s.live(), "› /help", "  /status", "more, by the arrows")
	s.typing("de")
	s.wants("window", s.live(), "› /deploy [where]  Release the service")
	s.typing("<ctrl+c>look at @")
	s.wants("window", s.live(), "› a.go")
	if live := s.live(); strings.Contains(live, "\x1b") || strings.Contains(live, "en.go") {
		t.Errorf("a name that steers the terminal is offered:\n%q", live)
	}
	for _, line := range strings.Split(s.live(), "\n") {
		if n := len([]rune(line)); n > 60 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}

// TestChatHistoryWithASlash: going through what was typed before is not caught by the menu of a command in it.
func TestChatHistoryWithASlash(t *testing.T) {
	t.Parallel()
	s := knowingStage(t, ChatOptions{History: []string{"first", "/mod", "last"}})
	s.typing("<up><up><up>")
	if got := s.w.input.value(); got != "first" {
		t.Errorf("input %q", got)
	}
}

func TestChatSearchesWhatWasTyped(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, keys, input string }{
		{"the newest", "<ctrl+r>fix<enter>", "fix the tests"},
		{"an older one", "<ctrl+r>fix<ctrl+r><enter>", "fix the build"},
		{"beyond the oldest", "<ctrl+r>fix<ctrl+r><ctrl+r><ctrl+r><enter>", "Fix it elsewhere"},
		{"what stands there is looked for", "build<ctrl+r><enter>", "fix the build"},
		{"nothing", "<ctrl+r>nowhere<enter>", ""},
		{"left again", "draft<ctrl+r>x<esc>", "draft"},
		{"of this session", "just now<ctrl+c><ctrl+r>now<enter>", "just now"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, ChatOptions{History: []string{"fix the build", "fix the tests"}, Everywhere: []string{"Fix it elsewhere", "fix the build", "fix the tests"}})
			s.typing(tt.keys)
			if got := s.w.input.value(); got != tt.input || s.f.logged() != "" {
				t.Errorf("input %q, calls %q", got, s.f.logged())
			}
		})
	}
	s := newStage(t, ChatOptions{Everywhere: []string{"old words"}})
	s.typing("<ctrl+r>wor")
	s.wants("window", s.live(), "search: wor", "  old words")
	s.typing("x")
	s.wants("window", s.live(), "no earlier input")
}

func TestChatKeepsWhatIsTyped(t *testing.T) {
	t.Parallel()
	var kept []string
	s := newStage(t, ChatOptions{Remember: func(text string) error {
		kept = append(kept, text)
		return errors.New("the disk is full")
	}})
	s.typing("hello<enter>")
	if strings.Join(kept, "|") != "hello" {
		t.Errorf("kept %q", kept)
	}
	s.wants("window", s.live(), "the disk is full")
}

// TestChatEditor: without an editor it is said what is missing; with one the input is what was written there.
func TestChatEditor(t *testing.T) {
	t.Parallel()
	s := newStage(t, ChatOptions{})
	s.typing("words<ctrl+g>")
	s.wants("window", s.live(), "set EDITOR")
	s.msg(writtenMsg{text: "better\nwords"})
	if got := s.w.input.value(); got != "better\nwords" {
		t.Errorf("input %q", got)
	}
	s.msg(writtenMsg{err: errors.New("exit status 1")})
	s.wants("window", s.live(), "your input is unchanged: exit status 1")
	s.w.editor = "no-such-editor --wait"
	cmd, path, err := editorCommand(s.w.editor, "words")
	if err != nil {
		t.Fatal(err)
	}
	defer os.Remove(path)
	s.msg(writtenMsg{err: cmd.Run()})
	s.wants("window", s.live(), `there is no program "no-such-editor"`)
	if got := s.w.input.value(); got != "better\nwords" {
		t.Errorf("input %q", got)
	}
}

// TestEditorCommand: the command is the person's, with its arguments, and the file is only theirs.
func TestEditorCommand(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	out := filepath.Join(dir, "seen")
	cmd, path, err := editorCommand(`cp -f "$1" `+out+` && printf 'more\n' >>`, "words")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.Remove(path) })
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	if data, _ := os.ReadFile(out); string(data) != "words" {
		t.Errorf("the editor saw %q", data)
	}
	if data, _ := os.ReadFile(path); string(data) != "wordsmore\n" {
		t.Errorf("it left %q", data)
	}
}

// The list of commands fits the window: what each is for stands in one column, also beside names that are too long for theirs.
func TestHelpFits(t *testing.T) {
	t.Parallel()
	all := []Command{{"status", "", "what is going on"}, {"memory", "[show|edit|…]", "what agents remember"}, {"mode", "[plan|review|implement|verify|off]", strings.Repeat("many words ", 12)}}
	lines := helpLines(all, false, 79)
	at := strings.Index(lines[0], "what is")
	for _, line := range lines {
		if markdown.Width(line) > 79 {
			t.Errorf("%d columns: %s", markdown.Width(line), line)
		}
		if strings.HasPrefix(line, "   ") && len(line)-len(strings.TrimLeft(line, " ")) != at {
			t.Errorf("not in its column: %q", line)
		}
	}
	if before, _, ok := strings.Cut(lines[1], "what agents"); !ok || markdown.Width(before) != at {
		t.Errorf("%q", lines[1])
	}
	if strings.TrimSpace(lines[2]) != "/mode [plan|review|implement|verify|off]" {
		t.Errorf("%q", lines[2])
	}
}

// TestChatTellsNamesApart: names that begin alike are not cut to the same, whatever stands beside them.
func TestChatTellsNamesApart(t *testing.T) {
	t.Parallel()
	s := newStage(t, ChatOptions{})
	about := strings.Repeat("$3 in, $15 out ", 4)
	s.w.s = knowing{s.f, map[string][]Completion{"/model ": {
		{Line: "/model anthropic/claude-sonnet-4", Label: "anthropic/claude-sonnet-4", About: about},
		{Line: "/model anthropic/claude-sonnet-4-5", Label: "anthropic/claude-sonnet-4-5", About: about},
		{Line: "/model anthropic/claude-sonnet-4-6", Label: "anthropic/claude-sonnet-4-6", About: about},
	}}}
	s.typing("/model ")
	s.wants("window", s.live(), "claude-sonnet-4  ", "claude-sonnet-4-5  $3 in", "claude-sonnet-4-6  $3 in")
	for _, line := range strings.Split(s.live(), "\n") {
		if n := len([]rune(line)); n > 60 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
}

// TestCommandsAreToldInOneVoice: the chat's own commands stand in one list with those that operations add, which begin with a capital letter.
func TestCommandsAreToldInOneVoice(t *testing.T) {
	t.Parallel()
	for _, c := range append(builtin(), themeCommand) {
		if first, _ := utf8.DecodeRuneInString(c.About); !unicode.IsUpper(first) || strings.HasSuffix(c.About, ".") {
			t.Errorf("/%s: %q", c.Name, c.About)
		}
	}
}
