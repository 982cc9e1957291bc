// Package shell determines what a shell command would do without running it. It promises that
//
//   - every command in the text is a part of the result, including those in substitutions,
//     in quoted scripts and behind programs that start others;
//   - what the text does not show is marked as opaque, with the reason;
//   - no text makes it fail, and the time for one command is bounded.
//
// It decides nothing: package permit matches the rules.
package shell

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"

	"chorus/internal/permit/action"
	"chorus/internal/permit/canonical"
)

const (
	// maxCommandLen and maxNesting bound the time for one decision. Anything beyond them is opaque.
	maxCommandLen = 128 << 10
	maxNesting    = 100
	maxUnwrap     = 8
	maxParts      = 4000
)

// Parse takes a command apart. It never fails: what it cannot read is an opaque part. It omits guesses
// without children for which drop reports true. drop may be nil and must not keep the part it gets.
func Parse(command string, drop func(guess *Part) bool) Tree { return ParseRead(command, nil, drop) }

// ParseRead is Parse for a command that was already parsed. stmts must be the
// statements that the parser returned for exactly this text, or nil.
func ParseRead(command string, stmts []*syntax.Stmt, drop func(guess *Part) bool) Tree {
	// Few characters can end a command or redirect it, so this is enough room.
	room := 2
	for i := 0; i < len(command) && room < 1024; i++ {
		switch c := command[i]; c {
		case '|', '&', ';', '\n', '>', '<':
			if i == 0 || command[i-1] != c { // && counts once
				room++
			}
		}
	}
	w := &walker{parts: make([]Part, 0, room), drop: drop, given: stmts}
	t := w.parse(command)
	if w.arith.risky() {
		t.Parts = append(t.Parts, Part{
			Argv: []string{command}, Text: command, Action: action.Join("bash", command), Kind: KindPlain, Opaque: true, Why: "arithmetic may run code in the value of a variable", offset: -1,
		})
		*w.count++
	}
	if *w.count > maxParts {
		// Added at the end, because the part that exceeded the limit was dropped with all its children.
		t.Parts = append(t.Parts, Part{Kind: KindUnknown, Opaque: true, Why: "too many commands to read", Text: "…", Action: action.Join("bash", "…"), offset: -1})
	}
	return t
}

type walker struct {
	src       string
	moving    bool           // the text contains a word that may change the directory
	given     []*syntax.Stmt // of src, if it was already parsed
	unwrap    int            // how many scripts it is nested in
	count     *int
	arith     *arithmeticUse
	readings  *[]*reading // for reuse
	parts     []Part
	cwd       cwd
	vars      map[string][]string
	plainVars map[string]bool     // variables whose values never begin with a dash
	varsKnown bool                // vars is complete
	words     map[string]word     // cache of words by their source text
	guessed   map[string]struct{} // guesses made for this text; nested texts have their own
	drop      func(*Part) bool    // as given to Parse
	scratch   scratch
	buf       []byte          // buffer for building an action
	funcs     map[string]bool // functions that are certainly declared at this point
	moves     map[string]bool // functions that change the directory
	visited   []cwd           // directories that the current statement may have changed to
	certain   bool            // the current statement certainly runs, in this shell
	piped     bool            // stdin is a pipe
	supposed  bool            // what is being read may or may not be started
	loads     []string        // why what runs here may load code of the workspace
	stdin     *syntax.Stmt    // the command that writes into it
}

// parse parses a command and walks it.
func (w *walker) parse(command string) Tree {
	t := Tree{Command: command}
	w.src = command
	w.moving = strings.Contains(command, "cd") || strings.Contains(command, "pushd") || strings.Contains(command, "popd")
	if w.count == nil {
		w.count, w.arith, w.readings = new(int), new(arithmeticUse), new([]*reading)
	}
	if tooLarge(command) {
		w.unknown(command, "too long or too deeply nested to read")
		t.Parts = w.parts
		return t
	}
	stmts := w.given
	if stmts == nil {
		stmts, t.Err = statements(command)
	}
	rest := 0
	if len(stmts) > 0 {
		rest = int(stmts[len(stmts)-1].End().Offset())
	}
	if strings.Contains(command, "$") {
		w.collectVars(stmts)
	}
	w.varsKnown = true
	w.noteLoads(command, stmts)
	w.certain = true
	w.stmts(stmts)
	if t.Err != nil {
		// Bash runs what comes before the error, so that was walked too.
		w.unknown(command[min(rest, len(command)):], "cannot be parsed: "+t.Err.Error())
	}
	t.Parts = w.parts
	return t
}

// parsers are reused because creating one costs as much as parsing a short command.
var parsers = sync.Pool{New: func() any { return syntax.NewParser(syntax.Variant(syntax.LangBash)) }}

// statements returns the statements up to the first error, and that error.
func statements(command string) (stmts []*syntax.Stmt, err error) {
	// The command is untrusted text. If the parser panics, treat the text as opaque and go on.
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the parser failed: %v", r)
		}
	}()
	parser := parsers.Get().(*syntax.Parser)
	for stmt, e := range parser.StmtsSeq(strings.NewReader(command)) {
		if e != nil {
			err = e
			continue // the iterator may report an error twice and must run to its end
		}
		stmts = append(stmts, stmt)
	}
	parsers.Put(parser) // not after a panic, which leaves its state unknown
	return stmts, err
}

func tooLarge(command string) bool {
	return len(command) > maxCommandLen || canonical.Depth(command) > maxNesting
}

func (w *walker) unknown(text, why string) {
	text = strings.TrimSpace(text)
	w.emit(&Part{Argv: []string{text}, Text: text, Kind: KindUnknown, Opaque: true, Why: why, offset: -1, words: []word{{value: text, text: text}}})
}

func (w *walker) emit(p *Part) {
	if *w.count++; *w.count > maxParts {
		return // Parse reports it
	}
	w.notePartData(p)
	if p.Action == "" {
		p.Action = action.Join("bash", p.Text)
	}
	if w.unwrap > 0 {
		p.offset = -1
	}
	w.parts = append(w.parts, *p)
}

// collect returns the parts that f emits instead of adding them here.
func (w *walker) collect(f func()) []Part {
	saved := w.parts
	w.parts = nil
	f()
	got := w.parts
	w.parts = saved
	return got
}

// collectVars records what the script assigns to its variables.
func (w *walker) collectVars(stmts []*syntax.Stmt) {
	c := &varCollector{walker: w}
	for _, s := range stmts {
		syntax.Walk(s, c.visit)
	}
}

// varCollector implements collectVars for one script.
type varCollector struct {
	walker  *walker
	scratch []word // buffer for reading a value
}

func (c *varCollector) visit(n syntax.Node) bool {
	switch n := n.(type) {
	case *syntax.Word:
		return !isFlat(n.Parts) // most words assign nothing
	case *syntax.Assign:
		switch {
		case n.Name == nil || n.Naked:
		case n.Array != nil || n.Index != nil:
			c.unsure(n.Name.Value)
		default:
			if n.Append {
				c.unsure(n.Name.Value)
			}
			c.note(n.Name.Value, n.Value)
		}
	case *syntax.WordIter:
		for _, item := range n.Items {
			c.note(n.Name.Value, item)
		}
		if len(n.Items) == 0 {
			c.unsure(n.Name.Value)
		}
	case *syntax.CallExpr:
		// Some builtins set variables named by their arguments.
		if len(n.Args) > 0 {
			switch n.Args[0].Lit() {
			case "read", "mapfile", "readarray", "getopts", "printf", "let", "wait":
				for _, a := range n.Args[1:] {
					c.unsure(a.Lit())
				}
			}
		}
	case *syntax.ParamExp:
		if n.Param != nil && n.Exp != nil && (n.Exp.Op == syntax.AssignUnset || n.Exp.Op == syntax.AssignUnsetOrNull) {
			c.unsure(n.Param.Value)
		}
	case *syntax.BinaryArithm:
		if x, ok := n.X.(*syntax.Word); ok {
			c.unsure(x.Lit())
		}
	case *syntax.UnaryArithm:
		if x, ok := n.X.(*syntax.Word); ok {
			c.unsure(x.Lit())
		}
	}
	return true
}

// note records one value.
func (c *varCollector) note(name string, in *syntax.Word) {
	w := c.walker
	if in == nil {
		return
	}
	full := len(w.vars[name]) == maxValues
	if plain, known := w.plainVars[name]; full && known && !plain {
		return // no further assignment can change what is known about it
	}
	c.scratch = w.read(c.scratch[:0], in)
	words := c.scratch
	for i := range words {
		c.begins(name, words[i].head() != "" && words[i].head()[0] != '-' || words[i].known && words[i].value == "")
	}
	if full {
		return // further values are ignored
	}
	for i := range words {
		got := w.vars[name]
		for _, p := range words[i].possibleValues() {
			if len(got) < maxValues && !slices.Contains(got, p) {
				got = append(got, p)
			}
		}
		if w.vars == nil {
			w.vars = map[string][]string{}
		}
		w.vars[name] = got
	}
}

// begins records whether a value certainly begins with something other than a dash.
func (c *varCollector) begins(name string, plain bool) {
	if c.walker.plainVars == nil {
		c.walker.plainVars = map[string]bool{}
	}
	if before, ok := c.walker.plainVars[name]; ok {
		plain = plain && before
	}
	c.walker.plainVars[name] = plain
}

func (c *varCollector) unsure(name string) {
	if name != "" {
		c.begins(name, false)
	}
}
