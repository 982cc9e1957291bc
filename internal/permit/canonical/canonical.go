// Package canonical turns a shell command into a text that can be read in one way only, or says why it cannot.
//
// A judge that parses a command and a shell that runs it are two readers, and where they disagree a forbidden
// command runs. So the text that is judged, shown, bound to a yes and run is the one that this package writes: each
// literal is quoted anew, each parameter is in braces, comments and line continuations are gone, and nothing of the
// original is copied. It is written from a small grammar; whatever is not in it is opaque, and a person is asked.
//
// It promises that Text(Text(c)) is Text(c), that the text does what the command does in bash, and that no name in
// it means anything but the program, builtin or function of that name: nothing that a command could do to PATH,
// aliases, hashed commands or functions comes through.
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
	Plain  string // how to say the same plainly; "" where there is no way
}

// Error implements error.
func (o *Opaque) Error() string {
	if o.Plain == "" {
		return o.Reason
	}
	return o.Reason + "; " + o.Plain
}

// Longer or deeper commands are not read: no person would read them either.
const (
	maxLength = 64 << 10
	maxNested = 4 // shells inside shells
	maxDepth  = 60
)

// Text is the canonical text of a command for bash, without a newline at its end. The error is an *Opaque.
func Text(command string) (string, error) {
	out, _, err := Read(command)
	return out, err
}

// Read is Text with its statements, so that a reader need not parse the text once more.
func Read(command string) (string, []*syntax.Stmt, error) {
	once, file, err := write(command, dialect{bash: true}, 0)
	if err != nil {
		return "", nil, err
	}
	if once == strings.TrimRight(command, "\n") {
		return once, file.Stmts, nil // it was written before, or is as plain as that
	}
	// What was written must be read back as the same, with the texts of shells inside: a last check on our own grammar.
	again, file, err := write(once, dialect{bash: true}, 0)
	if err != nil || again != once {
		return "", nil, &Opaque{Reason: "its text cannot be written down in one way"}
	}
	return once, file.Stmts, nil
}

// dialect is the shell that will read a text.
type dialect struct {
	bash  bool     // else any POSIX shell
	names []string // functions of the shells around it, which are programs here
}

// write writes a command once, and gives what it was read as.
func write(command string, d dialect, nested int) (string, *syntax.File, error) {
	if err := readable(command); err != nil {
		return "", nil, err
	}
	file, err := parse(command, d)
	if err != nil {
		return "", nil, &Opaque{Reason: "it is no valid shell command: " + syntaxMessage(err)}
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

// readable refuses texts whose bytes alone can be read in two ways.
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

// continued refuses lines that end in a backslash inside comments, double quotes and here-documents that are expanded:
// the parser and bash join them differently.
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

// Depth is an upper bound on how deeply brackets are nested, so that the parser's recursion is bounded.
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
			open = min(open, most/2) // quotes may hold unpaired brackets, which must not add up over lines
		}
	}
	return most
}

// Parsers are reused: making one costs as much as reading a short command.
var (
	bashParsers  = sync.Pool{New: func() any { return syntax.NewParser(syntax.Variant(syntax.LangBash), syntax.KeepComments(true)) }}
	posixParsers = sync.Pool{New: func() any { return syntax.NewParser(syntax.Variant(syntax.LangPOSIX), syntax.KeepComments(true)) }}
)

func parse(command string, d dialect) (file *syntax.File, err error) {
	// The text is untrusted: if the parser panics, the text is opaque and the program goes on.
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
	pool.Put(p) // not after a panic: its state is unknown then
	return file, err
}

func syntaxMessage(err error) string {
	if at, ok := errors.AsType[syntax.ParseError](err); ok {
		return at.Text
	}
	return err.Error()
}
