package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"chorus/internal/transport/repl"
)

// TestEveryCommandHasJSON: what a person can read, a script can. Commands without it are named, with the reason.
func TestEveryCommandHasJSON(t *testing.T) {
	t.Parallel()
	without := map[string][]string{
		"they stay, and talk by a protocol or on a terminal": {"acp", "chat", "mcp serve", "serve", "task watch", "mcp login", "init"},
		"what they print is JSON, or a file as it is":        {"config schema", "completion", "context render", "man", "thread blob", "thread export", "audit export"},
	}
	var excused []string
	for _, names := range without {
		excused = append(excused, names...)
	}
	c := &program{console: repl.Console{}, getenv: func(string) string { return "" }}
	var seen []string
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
		if cmd.HasSubCommands() || cmd.Hidden || !cmd.Runnable() || cmd.Name() == "help" {
			return
		}
		path := strings.TrimPrefix(cmd.CommandPath(), "chorus ")
		seen = append(seen, path)
		has := cmd.Flags().Lookup("json") != nil || cmd.InheritedFlags().Lookup("json") != nil
		switch {
		case !has && !slices.Contains(excused, path):
			t.Errorf("%s has no --json, and no reason for that stands here", path)
		case has && slices.Contains(excused, path):
			t.Errorf("%s has --json: take it out of the list", path)
		}
	}
	walk(c.root())
	for _, path := range excused {
		if !slices.Contains(seen, path) {
			t.Errorf("there is no command %s any more", path)
		}
	}
}
