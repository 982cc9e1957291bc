package permit

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/syntax"
)

// Kind is what a part of a command is.
type Kind string

// The kinds of parts.
const (
	KindCommand Kind = "command" // a program with its arguments
	KindWrapper Kind = "wrapper" // only starts its children, which are judged instead
	KindPlain   Kind = "plain"   // changes nothing outside the script: an assignment, a test, a cd within
	KindGuess   Kind = "guess"   // what a part would be if variables hold what the script put into them
	KindWrite   Kind = "write"   // a redirection that writes a file
	KindRead    Kind = "read"    // a redirection that reads one
	KindUnknown Kind = "unknown" // could not be parsed
)

// Part is one thing a shell command does.
type Part struct {
	Argv     []string
	Text     string // the words joined by one space, quoted as the shell would need
	Action   string
	Kind     Kind
	Opaque   bool // what runs cannot be told from the text
	Why      string
	Children []Part // what it starts: substitutions in its words, wrapped commands

	words  []word
	cwd    cwd
	offset int   // where it stands in the command; -1 in text that was unwrapped
	rare   *rare // nil of most
}

// rare is what only some parts have; parts are many, and copied often.
type rare struct {
	gitWords []word   // the words after git's own options
	deny     []string // further names under which it may be denied
	tight    []string // further names that may make the verdict stricter
	may      []string // beginnings of names it would have if what is unknown were so
	file     aFile    // the word that names a file which decides what runs
	doom     string   // why it is catastrophic whatever its words are
}

// seldom is what only some parts have, to be read.
func (p *Part) seldom() rare {
	if p.rare == nil {
		return rare{}
	}
	return *p.rare
}

// more is what only some parts have, to be added to.
func (p *Part) more() *rare {
	if p.rare == nil {
		p.rare = new(rare)
	}
	return p.rare
}

func (p *Part) file() aFile {
	if p.rare == nil {
		return aFile{}
	}
	return p.rare.file
}

// Tree is a shell command taken apart.
type Tree struct {
	Command string
	Parts   []Part
	Err     error // why the rest could not be parsed; what was read stands in Parts
}

// All calls f for every part with its depth, parents first.
func (t Tree) All(f func(p *Part, depth int)) { all(t.Parts, 0, f) }

func all(parts []Part, depth int, f func(*Part, int)) {
	for i := range parts {
		f(&parts[i], depth)
		all(parts[i].Children, depth+1, f)
	}
}

const (
	// longestCommand and deepestNesting bound the time for one decision; what is
	// beyond them is opaque.
	longestCommand = 128 << 10
	deepestNesting = 100
	deepestUnwrap  = 8
	mostParts      = 4000
)

// Shell takes a command apart. It never fails: what it cannot read is an opaque
// part.
func Shell(command string) Tree { return shell(command, nil) }

// shell is Shell without the guesses that are idle.
func shell(command string, idle func(*Part) bool) Tree {
	// Few characters can end a command or redirect it: enough room from the start.
	room := 2
	for i := 0; i < len(command) && room < 1024; i++ {
		switch command[i] {
		case '|', '&', ';', '\n', '>', '<':
			room++
		}
	}
	w := &walker{parts: make([]Part, 0, room), idle: idle}
	t := w.parse(command)
	if w.seen.both() {
		t.Parts = append(t.Parts, Part{
			Argv: []string{command}, Text: command, Action: Action("bash", command), Kind: KindPlain, Opaque: true, Why: "arithmetic may run code that stands in a value", offset: -1,
		})
		*w.count++
	}
	if *w.count > mostParts {
		// Here and not where it happened: what held that part was dropped too.
		t.Parts = append(t.Parts, Part{Kind: KindUnknown, Opaque: true, Why: "too many commands to read", Text: "…", Action: Action("bash", "…"), offset: -1})
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
	idle    func(*Part) bool    // says of a guess that nobody needs to hear of it; nil: all are kept
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
	if len(command) > longestCommand || nesting(command) > deepestNesting {
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
		p.Action = Action("bash", p.Text)
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

func (w *walker) stmts(list []*syntax.Stmt) {
	for _, s := range list {
		w.stmt(s)
	}
}

// apart walks something that runs in a shell of its own or perhaps not at all.
func (w *walker) apart(f func()) {
	c, s, p, in := w.cwd, w.sure, w.piped, w.stdin
	w.sure = false
	f()
	w.cwd, w.sure, w.piped, w.stdin = c, s, p, in
}

// perhaps walks something that may run or not, in this shell: it may have changed
// the directory.
func (w *walker) perhaps(f func()) {
	before, s := w.cwd, w.sure
	w.sure = false
	f()
	w.sure = s
	if w.cwd != before {
		w.cwd = cwd{unknown: true}
	}
}

func (w *walker) stmt(s *syntax.Stmt) {
	if s == nil {
		return
	}
	if s.Background || s.Coprocess || s.Disown {
		w.apart(func() { w.command(s) })
		return
	}
	w.command(s)
}

func (w *walker) command(s *syntax.Stmt) {
	switch c := s.Cmd.(type) {
	case *syntax.CallExpr:
		w.call(c, s.Redirs)
	case *syntax.BinaryCmd:
		w.binary(c)
	case *syntax.Block:
		w.stmts(c.Stmts)
	case *syntax.Subshell:
		w.apart(func() { w.stmts(c.Stmts) })
	case *syntax.IfClause:
		w.perhaps(func() { w.ifClause(c) })
	case *syntax.WhileClause:
		w.perhaps(func() { w.stmts(c.Cond); w.stmts(c.Do) })
	case *syntax.ForClause:
		w.loop(c)
		w.perhaps(func() { w.stmts(c.Do) })
	case *syntax.CaseClause:
		w.inside(c.Word)
		for _, item := range c.Items {
			for _, p := range item.Patterns {
				w.inside(p)
			}
			w.perhaps(func() { w.stmts(item.Stmts) })
		}
	case *syntax.FuncDecl:
		w.function(c)
	case *syntax.DeclClause:
		w.declare(c)
	case *syntax.TimeClause:
		w.stmt(c.Stmt)
	case *syntax.CoprocClause:
		w.apart(func() { w.coproc(c) })
	case *syntax.TestClause, *syntax.ArithmCmd, *syntax.LetClause:
		w.evaluated(c)
	case nil:
	default:
		w.unknown(w.source(s), "unknown kind of command")
	}
	w.redirects(s.Redirs)
}

func (w *walker) ifClause(c *syntax.IfClause) {
	for c != nil {
		w.stmts(c.Cond)
		w.stmts(c.Then)
		c = c.Else
	}
}

func (w *walker) binary(c *syntax.BinaryCmd) {
	switch c.Op {
	case syntax.AndStmt:
		w.stmt(c.X)
		s := w.sure
		w.sure = false
		w.stmt(c.Y)
		w.sure = s
	case syntax.OrStmt:
		w.stmt(c.X)
		w.perhaps(func() { w.stmt(c.Y) })
	default: // a pipe: both sides in shells of their own
		w.apart(func() { w.stmt(c.X) })
		w.apart(func() {
			w.piped, w.stdin = true, c.X
			w.stmt(c.Y)
		})
	}
}

// printed is what comes through the pipe, if a simple echo or printf writes it.
func (w *walker) printed() *string {
	s := w.stdin
	if s == nil {
		return nil
	}
	call, ok := s.Cmd.(*syntax.CallExpr)
	if !ok || len(call.Args) < 2 || len(s.Redirs) > 0 {
		return nil
	}
	var words []word
	for _, a := range call.Args {
		words = w.read(words, a)
	}
	args := words[1:]
	switch words[0].value {
	case "echo":
		for len(args) > 0 && strings.HasPrefix(args[0].value, "-") {
			args = args[1:]
		}
	case "printf":
		if len(args) > 1 {
			args = args[1:] // the format only arranges them
		}
	default:
		return nil
	}
	var out []string
	for i := range args {
		v := args[i].possible()
		if len(v) == 0 {
			return nil
		}
		out = append(out, ansiC(v[0]))
	}
	text := strings.Join(out, " ")
	return &text
}

func (w *walker) function(c *syntax.FuncDecl) {
	name := ""
	if c.Name != nil {
		name = c.Name.Value
	}
	sure := w.sure
	before := len(w.parts)
	saved := w.cwd
	w.sure = false
	w.cwd = cwd{unknown: true} // it may be called from anywhere
	w.stmt(c.Body)
	w.cwd, w.sure = saved, sure
	if name == "" {
		return
	}
	if isForkBomb(name, c.Body) {
		w.emit(&Part{Argv: []string{name}, Text: name + "() " + w.source(c.Body), Kind: KindPlain, rare: &rare{doom: "a fork bomb"}, offset: -1, words: []word{knownWord(name)}})
	}
	// A body without commands could hide that the name means a program.
	if sure && len(w.parts) > before {
		if w.funcs == nil {
			w.funcs = map[string]bool{}
		}
		w.funcs[name] = true
	}
}

// loop walks the head of a for, which assigns like any assignment does.
func (w *walker) loop(c *syntax.ForClause) {
	w.inside(c.Loop)
	switch l := c.Loop.(type) {
	case *syntax.WordIter:
		for _, item := range l.Items {
			for _, x := range w.read(nil, item) {
				w.dataWord(&x)
			}
		}
		if why := changesPrograms(l.Name.Value, "", false); why != "" {
			w.hidden(l, why)
		}
	case *syntax.CStyleLoop:
		w.reckons(l)
		w.arithmetic(l)
	}
}

// arithmetic finds assignments in what bash computes.
func (w *walker) arithmetic(n syntax.Node) {
	why := ""
	syntax.Walk(n, func(n syntax.Node) bool {
		if word, ok := n.(*syntax.Word); ok && why == "" {
			why = changesPrograms(word.Lit(), "", false)
		}
		return why == ""
	})
	if why != "" {
		w.hidden(n, why)
	}
}

// inside finds the commands that run while a node is expanded.
func (w *walker) inside(n syntax.Node) {
	if word, ok := n.(*syntax.Word); ok {
		if word == nil || isFlat(word.Parts) {
			return
		}
	}
	syntax.Walk(n, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.ParamExp:
			if n.Slice != nil || n.Index != nil {
				w.reckons(n)
			}
			if n.Exp != nil && n.Exp.Op == syntax.OtherParamOps && n.Exp.Word != nil && n.Exp.Word.Lit() == "P" {
				w.hidden(n, "a prompt expansion runs the code in its value")
			}
			if n.Exp != nil && n.Param != nil && (n.Exp.Op == syntax.AssignUnset || n.Exp.Op == syntax.AssignUnsetOrNull) {
				if why := changesPrograms(n.Param.Value, "", false); why != "" {
					w.hidden(n, why)
				}
			}
		case *syntax.ArithmExp:
			w.reckons(n)
		case *syntax.CmdSubst:
			w.apart(func() { w.piped = false; w.stmts(n.Stmts) })
			return false
		case *syntax.ProcSubst:
			w.apart(func() { w.piped = false; w.stmts(n.Stmts) })
			return false
		}
		return true
	})
}

// isFlat says that nothing can run while the parts are expanded: text, and variables as
// they are.
func isFlat(parts []syntax.WordPart) bool {
	for _, p := range parts {
		switch p := p.(type) {
		case *syntax.Lit, *syntax.SglQuoted:
		case *syntax.ParamExp:
			if !p.Short || p.Index != nil || p.NestedParam != nil {
				return false
			}
		case *syntax.DblQuoted:
			if !isFlat(p.Parts) {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// evaluated walks what bash computes itself. Arithmetic runs the commands that
// stand in the subscripts of quoted text.
func (w *walker) evaluated(n syntax.Node) {
	w.inside(n)
	w.reckons(n)
	if _, test := n.(*syntax.TestClause); !test {
		w.arithmetic(n)
	}
	hidden := false
	syntax.Walk(n, func(n syntax.Node) bool {
		if q, ok := n.(*syntax.SglQuoted); ok && runsWhenEvaluated(q.Value) {
			hidden = true
		}
		return !hidden
	})
	if hidden {
		w.hidden(n, "quoted code in arithmetic")
	}
}

// hidden emits an opaque part for a place where bash runs text that is data here.
func (w *walker) hidden(n syntax.Node, why string) {
	src := w.source(n)
	w.emit(&Part{Argv: []string{src}, Text: src, Kind: KindPlain, Opaque: true, Why: why, offset: int(n.Pos().Offset()), words: []word{{value: src, text: src}}})
}

func runsWhenEvaluated(s string) bool {
	return strings.Contains(s, "$(") || strings.Contains(s, "`")
}
