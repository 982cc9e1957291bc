package main

import (
	"strings"
	"testing"

	"chorus/internal/doctor/checks"
	"chorus/internal/markdown"
	"chorus/internal/transport/repl"
)

// A warning breaks between words where the terminal is narrow, and is one line in a file. What is indented stays so, an address stays whole.
func TestWarningsBreakBetweenWords(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	c := &program{console: repl.Console{Err: &out, ErrTTY: true, Size: func() (int, int) { return 80, 24 }}}
	warning, list := checks.AsRoot(0), "these are wrong:\n    "+strings.Repeat("word ", 20)+"\nhttp://"+strings.Repeat("a", 90)
	c.warn(warning)
	c.warn(list)
	for line := range strings.Lines(out.String()) {
		if line = strings.TrimSuffix(line, "\n"); markdown.Width(line) > 79 && !strings.HasPrefix(line, "http://aaa") {
			t.Errorf("%d columns: %q", markdown.Width(line), line)
		}
	}
	if got := strings.Fields(out.String()); strings.Join(got, " ") != strings.Join(strings.Fields("chorus: "+warning+"\nchorus: "+list), " ") {
		t.Errorf("words were broken or lost: %q", got)
	}
	if got := strings.Count(out.String(), "\n    word "); got != 2 {
		t.Errorf("%d lines of the list are indented: %q", got, out.String())
	}
	out.Reset()
	c.console.ErrTTY = false
	if c.warn(warning); out.String() != "chorus: "+warning+"\n" {
		t.Errorf("a file has %q", out.String())
	}
}

// Whoever mistypes a command is told which one may be meant, at the first word and at the second.
func TestMistypedCommands(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"thraed list": "there is no command `chorus thraed`; did you mean \"thread\"? `chorus --help` lists them",
		"thread shwo": "there is no command `chorus thread shwo`; did you mean \"show\"? `chorus thread --help` lists them",
		"zzzzzzzz":    "there is no command `chorus zzzzzzzz`; `chorus --help` lists them",
	} {
		var out strings.Builder
		c := &program{console: repl.Console{Out: &out, Err: &out}, getenv: func(string) string { return "" }}
		if code := c.run(strings.Fields(line)); code != repl.ExitUsage || out.String() != "chorus: "+want+"\n" {
			t.Errorf("chorus %s: %d, %q", line, code, out.String())
		}
	}
}
