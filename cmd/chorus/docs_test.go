package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"mvdan.cc/sh/v3/shell"
)

// TestDocsNameRealCommands holds every `chorus …` line of the README, the guides and
// the help texts against the commands and flags there are.
func TestDocsNameRealCommands(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("../../docs/guides/*.md")
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, file := range append(files, "../../README.md") {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		inside, code := false, false
		for i, line := range strings.Split(string(data), "\n") {
			if strings.HasPrefix(line, "```") {
				inside = !inside
				code = strings.HasPrefix(line, "```go") // held by the compiler
				continue
			}
			if !inside || code {
				continue
			}
			line, _, _ = strings.Cut(line, "   #") // a remark
			_, command, found := strings.Cut(" "+line, " chorus ")
			if !found || strings.Contains(line, "…") {
				continue
			}
			command, _, _ = strings.Cut(command, " > ")
			words, err := shell.Fields(command, nil)
			if err != nil {
				t.Errorf("%s:%d: %v", file, i+1, err)
				continue
			}
			checked++
			cmd, rest, err := (&program{getenv: os.Getenv}).root().Find(words)
			if err != nil || cmd.Name() == "chorus" {
				t.Errorf("%s:%d: there is no command `chorus %s`", file, i+1, command)
				continue
			}
			if err := cmd.ParseFlags(rest); err != nil {
				t.Errorf("%s:%d: chorus %s: %v", file, i+1, command, err)
			}
		}
	}
	if checked < 8 {
		t.Fatalf("only %d commands were found in the docs", checked)
	}
}
