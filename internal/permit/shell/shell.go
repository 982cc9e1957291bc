// Package shell tells what a shell command would do without running it. It promises that
//
//   - every command in the text is a part of the result, also those in substitutions,
//     in quoted scripts and behind programs that start others;
//   - what the text does not tell is marked as opaque, with the reason;
//   - no text makes it fail, and the time for one command is bounded.
//
// It decides nothing: the rules are matched in package permit.
package shell

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"

	"chorus/internal/permit/action"
)

const (
	// longestCommand and deepestNesting bound the time for one decision; what is
	// beyond them is opaque.
	longestCommand = 128 << 10
	deepestNesting = 100
	deepestUnwrap  = 8
	mostParts      = 4000
)

// Parse takes a command apart. It never fails: what it cannot read is an opaque part.
// A guess without children for which drop reports true is left out; drop may be nil, and
// must not keep the part it is given.
func Parse(command string, drop func(guess *Part) bool) Tree {
	// Few characters can end a command or redirect it, so this is enough room.
	room := 2
	for i := 0; i < len(command) && room < 1024; i++ {
		switch command[i] {
		case '|', '&', ';', '\n', '>', '<':
			room++
		}
	}
	w := &walker{parts: make([]Part, 0, room), drop: drop}
	t := w.parse(command)
	if w.seen.both() {
		t.Parts = append(t.Parts, Part{
			Argv: []string{command}, Text: command, Action: action.Join("bash", command), Kind: KindPlain, Opaque: true, Why: "arithmetic may run code that stands in a value", offset: -1,
		})
		*w.count++
	}
	if *w.count > mostParts {
		// Here and not where it happened: what held that part was dropped too.
		t.Parts = append(t.Parts, Part{Kind: KindUnknown, Opaque: true, Why: "too many commands to read", Text: "…", Action: action.Join("bash", "…"), offset: -1})
	}
	return t
}

// cwd is where relative paths lead at some point of a script.
type cwd struct {
	dir     string // relative to where the command starts, or absolute
	unknown bool
}

func (c cwd) join(p string) string {
	if c.dir == "" || path.IsAbs(p) || strings.HasPrefix(p, "~") || strings.HasPrefix(p, homeMark) {
		return p
	}
	if strings.HasSuffix(p, "/") {
		return path.Join(c.dir, p) + "/"
	}
	return path.Join(c.dir, p)
}

type walker struct {
	src     string
	unwrap  int // how many texts deep
	count   *int
	seen    *reckoning
	parts   []Part
	cwd     cwd
	vars    map[string][]string
	settled bool                // vars has all that there will be
	words   map[string]word     // those that were read, by their text
	guessed map[string]struct{} // in this text; nested ones have their own
	drop    func(*Part) bool    // as given to Parse
	scrap   scrap
	line    []byte          // room to put an action together
	funcs   map[string]bool // functions that are certainly declared by now
	sure    bool            // this statement certainly runs, in this shell
	piped   bool            // stdin is a pipe
	stdin   *syntax.Stmt    // what writes into it
}

// parse reads a command and walks it.
func (w *walker) parse(command string) Tree {
	t := Tree{Command: command}
	w.src = command
	if w.count == nil {
		w.count, w.seen = new(int), new(reckoning)
	}
	if tooLarge(command) {
		w.unknown(command, "too long or too deeply nested to read")
		t.Parts = w.parts
		return t
	}
	stmts, err := statements(command)
	t.Err = err
	rest := 0
	if len(stmts) > 0 {
		rest = int(stmts[len(stmts)-1].End().Offset())
	}
	if strings.Contains(command, "$") {
		w.collectVars(stmts)
	}
	w.settled = true
	w.sure = true
	w.stmts(stmts)
	if t.Err != nil {
		// bash runs what stands before the error, so that was walked too.
		w.unknown(command[min(rest, len(command)):], "cannot be parsed: "+t.Err.Error())
	}
	t.Parts = w.parts
	return t
}

// parsers are kept because making one costs as much as reading a short command.
var parsers = sync.Pool{New: func() any { return syntax.NewParser(syntax.Variant(syntax.LangBash)) }}

// statements reads as many as can be read, and why no more.
func statements(command string) (stmts []*syntax.Stmt, err error) {
	// The command is a stranger's text: should the parser trip over it, that
	// text is opaque, and the program goes on.
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the parser failed: %v", r)
		}
	}()
	parser := parsers.Get().(*syntax.Parser)
	for stmt, e := range parser.StmtsSeq(strings.NewReader(command)) {
		if e != nil {
			err = e
			continue // it may report an error twice and must be let go on
		}
		stmts = append(stmts, stmt)
	}
	parsers.Put(parser) // not after a panic: it may be in any state then
	return stmts, err
}

func tooLarge(command string) bool {
	return len(command) > longestCommand || nesting(command) > deepestNesting
}

// nesting is an upper bound on how deep the brackets of a text go.
func nesting(s string) int {
	depth, most := 0, 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '(', '{', '`':
			depth++
			most = max(most, depth)
		case ')', '}':
			depth = max(depth-1, 0)
		case '\n':
			// Quotes and comments may hold stray brackets; a script of many lines
			// must not add them up.
			depth = min(depth, most/2)
		}
	}
	return most
}

func (w *walker) unknown(text, why string) {
	text = strings.TrimSpace(text)
	w.emit(&Part{Argv: []string{text}, Text: text, Kind: KindUnknown, Opaque: true, Why: why, offset: -1, words: []word{{value: text, text: text}}})
}

func (w *walker) emit(p *Part) {
	if *w.count++; *w.count > mostParts {
		return // Shell says so
	}
	w.dataParts(p)
	if p.Action == "" {
		p.Action = action.Join("bash", p.Text)
	}
	if w.unwrap > 0 {
		p.offset = -1
	}
	w.parts = append(w.parts, *p)
}

// collect gives the parts that f emits, instead of adding them here.
func (w *walker) collect(f func()) []Part {
	saved := w.parts
	w.parts = nil
	f()
	got := w.parts
	w.parts = saved
	return got
}

// collectVars notes what the script itself puts into its variables.
func (w *walker) collectVars(stmts []*syntax.Stmt) {
	note := func(name string, in *syntax.Word) {
		if in == nil || len(w.vars[name]) == mostValues {
			return // as many as are looked at
		}
		for _, v := range w.read(nil, in) {
			got := w.vars[name]
			for _, p := range v.possible() {
				if len(got) < mostValues && !slices.Contains(got, p) {
					got = append(got, p)
				}
			}
			if w.vars == nil {
				w.vars = map[string][]string{}
			}
			w.vars[name] = got
		}
	}
	for _, s := range stmts {
		syntax.Walk(s, func(n syntax.Node) bool {
			switch n := n.(type) {
			case *syntax.Assign:
				if n.Name != nil && n.Array == nil {
					note(n.Name.Value, n.Value)
				}
			case *syntax.WordIter:
				for _, item := range n.Items {
					note(n.Name.Value, item)
				}
			}
			return true
		})
	}
}
