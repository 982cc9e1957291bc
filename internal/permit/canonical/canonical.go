// Package canonical rewrites a shell command as a text that can be
// read in only one way, or says why it cannot.
//
// A judge that parses a command and a shell that runs it are two readers. If they disagree, a forbidden
// command runs. Therefore the text that is judged, shown, approved and run is the one that this package
// writes: it quotes each literal anew, puts each parameter in braces, drops comments and line continuations,
// and copies nothing of the original. It accepts a small grammar; anything outside it is opaque, and a person
// is asked.
//
// It promises that Text(Text(c)) is Text(c), that the text does what the command does in bash,
// and that every name in it means the program, builtin or function of that name: nothing that
// changes PATH, aliases, hashed commands or functions gets through.
package canonical

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// Opaque says why a command has no canonical text.
type Opaque struct {
	Reason string // one clause: "it assigns PATH, which changes what names mean"
	Plain  string // how to write the command plainly; "" if there is no way
}

// Error implements error.
func (o *Opaque) Error() string {
	if o.Plain == "" {
		return o.Reason
	}
	return o.Reason + "; " + o.Plain
}

// Longer or more deeply nested commands are rejected; no person would read them either.
const (
	maxLength = 64 << 10
	maxNested = 4 // shells within shells
	maxDepth  = 60
)

// Text returns the canonical text of a command for bash, without a trailing newline. The error is an *Opaque.
func Text(command string) (string, error) {
	out, _, err := Read(command)
	return out, err
}

// Read is like Text and also returns the statements, so that callers need not parse the text again.
func Read(command string) (string, []*syntax.Stmt, error) {
	once, file, err := write(command, dialect{bash: true}, 0)
	if err != nil {
		return "", nil, err
	}
	if once == strings.TrimRight(command, "\n") {
		return once, file.Stmts, nil // the command was already canonical
	}
	// Reading back what was written, including the texts of inner shells, must
	// yield the same. This is a last check on our own grammar.
	again, file, err := write(once, dialect{bash: true}, 0)
	if err != nil || again != once {
		return "", nil, &Opaque{Reason: "its text is ambiguous"}
	}
	return once, file.Stmts, nil
}

// dialect describes the shell that will read a text.
type dialect struct {
	bash  bool     // otherwise any POSIX shell
	names []string // functions of the enclosing shells, which are programs here
}

// write writes a command once and also returns the parsed command.
func write(command string, d dialect, nested int) (string, *syntax.File, error) {
	if err := readable(command); err != nil {
		return "", nil, err
	}
	file, err := parse(command, d)
	if err != nil {
		return "", nil, &Opaque{Reason: "it is not a valid shell command: " + syntaxMessage(err)}
	}
	if strings.Contains(command, "\\\n") {
		if err := continued(file, command); err != nil {
			return "", nil, err
		}
	}
	w := &writer{dialect: d, nested: nested, shared: &shared{file: file}, scope: make(scope, 0, 8)}
	w.out.Grow(len(command) + len(command)/4)
	w.script(file.Stmts)
	if w.opaque != nil {
		return "", nil, w.opaque
	}
	return strings.TrimRight(w.out.String(), "\n"), file, nil
}

// readable rejects texts whose bytes alone are ambiguous.
func readable(command string) error {
	switch {
	case strings.TrimSpace(command) == "":
		return &Opaque{Reason: "it is empty"}
	case len(command) > maxLength:
		return &Opaque{Reason: fmt.Sprintf("it is longer than %d characters", maxLength), Plain: "write it into a file and run that"}
	case !utf8.ValidString(command):
		return &Opaque{Reason: "it is not valid UTF-8"}
	case Depth(command) > maxDepth:
		return &Opaque{Reason: "it is nested too deeply"}
	}
	for _, r := range command {
		if r < ' ' && r != '\n' && r != '\t' || r == 0x7f || r == utf8.RuneError {
			return &Opaque{Reason: fmt.Sprintf("it contains the control character %U", r), Plain: `write it as $'\…' in quotes, or leave it out`}
		}
	}
	return nil
}

// continued rejects lines that end in a backslash inside comments, double quotes and
// expanded here-documents: the parser and bash join them differently.
func continued(file *syntax.File, command string) error {
	var found error
	syntax.Walk(file, func(n syntax.Node) bool {
		from, to := 0, 0
		switch n := n.(type) {
		case *syntax.Comment:
			from = int(n.Hash.Offset())
			line, _, _ := strings.Cut(command[min(from, len(command)):], "\n")
			to = from + len(line) + 1
		case *syntax.DblQuoted:
			from, to = int(n.Pos().Offset()), int(n.End().Offset())
		case *syntax.CmdSubst:
			if n.Backquotes {
				from, to = int(n.Pos().Offset()), int(n.End().Offset())
			}
		case *syntax.Redirect:
			if lit, ok := n.Word.Parts[0].(*syntax.Lit); n.Hdoc != nil && ok && len(n.Word.Parts) == 1 && !strings.Contains(lit.Value, `\`) {
				from, to = int(n.Hdoc.Pos().Offset()), int(n.Hdoc.End().Offset())
			}
		}
		to = min(to, len(command))
		if from < to && strings.Contains(command[from:to], "\\\n") {
			found = &Opaque{Reason: `a line inside a comment, quotes or a here-document ends in \`, Plain: `leave out the \`}
		}
		return found == nil
	})
	return found
}

// Depth returns an upper bound on the nesting of brackets, so that callers can limit the parser's recursion.
func Depth(s string) int {
	open, most := 0, 0
	for i := range len(s) {
		switch s[i] {
		case '(', '{', '`':
			open++
			most = max(most, open)
		case ')', '}':
			open = max(open-1, 0)
		case '\n':
			open = min(open, most/2) // quotes may contain unpaired brackets, which must not accumulate over lines
		}
	}
	return most
}

// Parsers are reused: creating one costs as much as parsing a short command.
var (
	bashParsers  = sync.Pool{New: func() any { return syntax.NewParser(syntax.Variant(syntax.LangBash), syntax.KeepComments(true)) }}
	posixParsers = sync.Pool{New: func() any { return syntax.NewParser(syntax.Variant(syntax.LangPOSIX), syntax.KeepComments(true)) }}
)

func parse(command string, d dialect) (file *syntax.File, err error) {
	// The text is untrusted. If the parser panics, treat the text as opaque and go on.
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the parser failed: %v", r)
		}
	}()
	pool := &posixParsers
	if d.bash {
		pool = &bashParsers
	}
	p := pool.Get().(*syntax.Parser)
	file, err = p.Parse(strings.NewReader(command), "")
	pool.Put(p) // not after a panic, which leaves its state unknown
	return file, err
}

func syntaxMessage(err error) string {
	if at, ok := errors.AsType[syntax.ParseError](err); ok {
		return at.Text
	}
	return err.Error()
}
