package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// maxWords bounds what Words gives for a command that is a whole script.
const maxWords = 1024

// Words gives the words of a command that may name files, each once: its words without
// their quotes, those of commands and texts inside them, and the pieces around "=", ":",
// "," and "@". What is no file has to be sorted out by the caller.
func Words(command string) []string {
	var out []string
	seen := map[string]bool{}
	add := func(s string) {
		if s != "" && !seen[s] && len(out) < maxWords {
			seen[s] = true
			out = append(out, s)
		}
	}
	addPieces := func(s string) {
		for piece := range strings.FieldsFuncSeq(s, func(r rune) bool { return strings.ContainsRune(" \t\r\n;|&<>()`'\"=:,@", r) }) {
			add(piece)
		}
	}
	if tooLarge(command) {
		addPieces(command)
		return out
	}
	w := &walker{src: command}
	stmts, err := statements(command)
	for _, stmt := range stmts {
		syntax.Walk(stmt, func(n syntax.Node) bool {
			if in, ok := n.(*syntax.Word); ok {
				for _, x := range w.read(nil, in) {
					add(x.value)
					addPieces(x.value)
				}
			}
			return len(out) < maxWords
		})
	}
	if err != nil {
		addPieces(command)
	}
	return out
}
