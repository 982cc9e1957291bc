package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"chorus/internal/markdown"
	"chorus/internal/operations"
	"chorus/internal/transport/repl"
)

// What a server says when it is told to stop fits a terminal of 80 columns.
func TestStoppingFits(t *testing.T) {
	t.Parallel()
	for line := range strings.Lines(stopping) {
		if len(line) > 80 { // with its end
			t.Errorf("%d columns: %s", len(line), line)
		}
	}
}

// The help of every command fits a terminal of 80 columns, and one of 120.
func TestHelpFitsTheTerminal(t *testing.T) {
	t.Parallel()
	for _, width := range []int{80, 120} {
		var out bytes.Buffer
		c := &program{console: repl.Console{Out: &out, Err: &out, OutTTY: true, ErrTTY: true, Size: func() (int, int) { return width, 24 }}, getenv: func(string) string { return "" }}
		root := c.root()
		root.SetOut(c.out())
		seen := 0
		var walk func(*cobra.Command)
		walk = func(cmd *cobra.Command) {
			out.Reset()
			cmd.InitDefaultHelpFlag()
			if err := cmd.Help(); err != nil {
				t.Errorf("`%s --help`: %v", cmd.CommandPath(), err)
			}
			seen += strings.Count(out.String(), "\n")
			for line := range strings.Lines(out.String()) {
				if line = strings.TrimRight(line, "\n"); markdown.Width(line) >= width {
					t.Errorf("`%s --help` at %d columns has a line of %d:\n%s", cmd.CommandPath(), width, markdown.Width(line), line)
				}
			}
			for _, sub := range cmd.Commands() {
				walk(sub)
			}
		}
		walk(root)
		if out.Reset(); root.Help() != nil || strings.Contains(out.String(), "Additional Commands") || strings.Contains(out.String(), "Commands about") {
			t.Errorf("a command is below no heading, or says nothing of itself:\n%s", out.String())
		}
		if seen < 1000 {
			t.Errorf("only %d lines of help were looked at", seen)
		}
	}
}

// Whoever does not know what to write where a command wants something finds an example, and it is that very command.
func TestCommandsThatNeedSomethingHaveAnExample(t *testing.T) {
	t.Parallel()
	root := (&program{console: repl.Console{}, getenv: func(string) string { return "" }}).root()
	seen := 0
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
		if cmd.HasSubCommands() || cmd.Hidden || cmd.Name() == "help" || !strings.Contains(cmd.Use, " ") {
			return
		}
		seen++
		for line := range strings.Lines(cmd.Example) {
			found, _, err := root.Find(strings.Fields(strings.TrimPrefix(strings.TrimSpace(line), "chorus ")))
			if err == nil && found == cmd {
				return
			}
		}
		t.Errorf("`%s` has no example of itself: %q", cmd.UseLine(), cmd.Example)
	}
	walk(root)
	if seen < 80 {
		t.Errorf("only %d commands were looked at", seen)
	}
}

// Every command of an operation that a server has can ask one.
func TestCommandsOfOperationsTakeAServer(t *testing.T) {
	t.Parallel()
	root := (&program{getenv: os.Getenv}).root()
	for _, d := range operations.All().All() {
		for _, line := range d.CLI {
			cmd, _, err := root.Find(strings.Fields(line.Words))
			if err != nil {
				t.Errorf("%s: %v", line.Words, err)
			} else if len(d.HTTP) > 0 && cmd.Flag("server") == nil {
				t.Errorf("chorus %s has no --server", line.Words)
			}
		}
	}
}
