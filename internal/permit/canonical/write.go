package canonical

import (
	"fmt"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// writer writes the statements of one text. The first thing without a canonical form is
// stored in opaque; anything written after that does not matter.
type writer struct {
	dialect
	*shared
	nested int
	scope  scope
	out    strings.Builder
	bodies []string // of here-documents, written after the end of the line
	inBody int      // nesting depth in code that may not run: conditions, loops, subshells
}

// shared holds what all writers of one text share.
type shared struct {
	file      *syntax.File
	vars      map[string]variable // computed by analyse when first needed
	functions []string            // defined so far
	uses      *uses               // computed by used when first needed
	delimiter int
	opaque    *Opaque
}

func (w *writer) fail(reason string, plain ...string) string {
	if w.opaque == nil {
		w.opaque = &Opaque{Reason: reason, Plain: strings.Join(plain, "; ")}
	}
	return ""
}

// always returns everything that the whole text assigns to a variable.
func (s *shared) always(name string) variable {
	if s.vars == nil {
		s.vars = analyse(s.file)
	}
	return s.vars[name]
}

func (w *writer) onlyBash(what string) {
	if !w.bash {
		w.fail(what+" means different things to different shells", "use bash instead of sh")
	}
}

func (w *writer) put(s string) { w.out.WriteString(s) }

// endLine ends a line and writes the pending here-documents.
func (w *writer) endLine() {
	w.put("\n")
	for _, body := range w.bodies {
		w.put(body)
	}
	w.bodies = nil
}

// child writes statements that are nested in a word, with their own writer.
func (w *writer) child(stmts []*syntax.Stmt) string {
	c := &writer{dialect: w.dialect, shared: w.shared, nested: w.nested, scope: slices.Clip(w.scope), inBody: w.inBody + 1}
	c.statements(stmts)
	inner := strings.TrimSuffix(c.out.String(), "\n")
	if strings.Contains(inner, "\n") {
		return "\n" + inner + "\n"
	}
	if strings.HasPrefix(inner, "(") {
		return " " + inner // "$((" would start arithmetic
	}
	return inner
}

// script writes a whole text.
func (w *writer) script(stmts []*syntax.Stmt) {
	if len(stmts) == 0 {
		w.put(":\n") // nothing but a comment
	}
	for i, s := range stmts {
		w.statement(s)
		if s.Background {
			w.put(" &")
		}
		// Statements on one line stay on one line, so most commands are their
		// own canonical text and are parsed only once.
		if i+1 < len(stmts) && !s.Background && len(w.bodies) == 0 && s.End().Line() == stmts[i+1].Pos().Line() {
			w.put("; ")
		} else {
			w.endLine()
		}
		if w.opaque != nil {
			return
		}
	}
	for _, f := range w.functions {
		if w.used().arguments[f] {
			w.fail("the function "+f+" has a name that another command gets as an argument", "give it another name")
		}
	}
}

// uses holds the names that a text's commands have or get as words.
type uses struct {
	called    map[string]uint // offset of the first call of each
	arguments map[string]bool // literal arguments, except those of trap, which runs functions as the script does
}

// used computes them on first use: few texts define functions, and only those need them.
func (s *shared) used() *uses {
	if s.uses == nil {
		s.uses = &uses{called: map[string]uint{}, arguments: map[string]bool{}}
		syntax.Walk(s.file, s.uses.note)
	}
	return s.uses
}

func (n *uses) note(node syntax.Node) bool {
	c, ok := node.(*syntax.CallExpr)
	if !ok || len(c.Args) == 0 {
		return true
	}
	name, _ := literal(c.Args[0])
	if at, known := n.called[name]; !known || c.Pos().Offset() < at {
		n.called[name] = c.Pos().Offset()
	}
	if name == "trap" {
		return true
	}
	for _, a := range c.Args[1:] {
		if lit, ok := literal(a); ok {
			n.arguments[lit] = true
		}
	}
	return true
}

// body writes statements that may run any number of times, including never.
func (w *writer) body(stmts []*syntax.Stmt) {
	before := w.scope
	w.inBody++
	w.statements(stmts)
	w.inBody--
	w.scope = before
}

func (w *writer) statements(stmts []*syntax.Stmt) {
	for _, s := range stmts {
		w.statement(s)
		if s.Background {
			w.put(" &")
		}
		w.endLine()
		if w.opaque != nil {
			return
		}
	}
}

func (w *writer) statement(s *syntax.Stmt) {
	if s.Coprocess || s.Disown {
		w.fail("it starts a coprocess")
	}
	if s.Negated {
		w.put("! ")
	}
	switch c := s.Cmd.(type) {
	case nil:
		if len(s.Redirs) == 0 {
			w.fail("a part of it is empty")
		}
	case *syntax.CallExpr:
		w.call(c)
	case *syntax.BinaryCmd:
		w.binary(c)
	case *syntax.Subshell:
		w.put("(")
		w.endLine()
		w.body(c.Stmts)
		w.put(")")
	case *syntax.Block:
		w.put("{")
		w.endLine()
		w.statements(c.Stmts)
		w.put("}")
	case *syntax.IfClause:
		w.ifClause(c, "if")
	case *syntax.WhileClause:
		w.put(map[bool]string{true: "until", false: "while"}[c.Until])
		w.endLine()
		w.body(c.Cond)
		w.put("do")
		w.endLine()
		w.body(c.Do)
		w.put("done")
	case *syntax.ForClause:
		w.forClause(c)
	case *syntax.CaseClause:
		w.caseClause(c)
	case *syntax.FuncDecl:
		w.function(c)
	case *syntax.DeclClause:
		w.declaration(c)
	case *syntax.TestClause:
		w.onlyBash("[[ ]]")
		w.put("[[ " + w.test(c.X) + " ]]")
	case *syntax.ArithmCmd:
		w.onlyBash("(( ))")
		w.put("((" + w.arithmetic(c.X) + "))")
	case *syntax.TimeClause:
		w.timeClause(c)
	case *syntax.CoprocClause:
		w.fail("it starts a coprocess")
	case *syntax.LetClause:
		w.fail("let evaluates its words", "use $(( ))")
	default:
		w.fail("it uses syntax that is not judged")
	}
	w.redirects(s.Redirs)
}

func (w *writer) binary(c *syntax.BinaryCmd) {
	if c.Op == syntax.PipeAll {
		w.onlyBash("|&")
	}
	pipe := c.Op == syntax.Pipe || c.Op == syntax.PipeAll
	side := func(s *syntax.Stmt, maybe bool) {
		if !maybe {
			w.statement(s)
			return
		}
		before := w.scope
		w.inBody++
		w.statement(s)
		w.inBody--
		w.scope = before
	}
	side(c.X, pipe)
	w.put(" ")
	w.put(c.Op.String())
	if len(w.bodies) > 0 {
		w.endLine()
	} else {
		w.put(" ")
	}
	side(c.Y, true)
}

func (w *writer) ifClause(c *syntax.IfClause, keyword string) {
	w.put(keyword)
	w.endLine()
	if len(c.Cond) > 0 {
		w.body(c.Cond)
		w.put("then")
		w.endLine()
	}
	w.body(c.Then)
	switch {
	case c.Else == nil:
		w.put("fi")
	case len(c.Else.Cond) > 0:
		w.ifClause(c.Else, "elif")
	default:
		w.ifClause(c.Else, "else")
	}
}

func (w *writer) forClause(c *syntax.ForClause) {
	if c.Select {
		w.fail("select asks a person at a terminal")
	}
	before := w.scope
	switch l := c.Loop.(type) {
	case *syntax.WordIter:
		w.variable(l.Name.Value)
		if isLocale(l.Name.Value) {
			w.fail("it assigns "+l.Name.Value+", with which a shell may read letters otherwise", "use another name")
		}
		w.put("for ")
		w.put(l.Name.Value)
		if l.InPos.IsValid() {
			w.put(" in")
			for _, item := range l.Items {
				w.put(" ")
				w.putWord(item)
			}
		}
		w.scope.set(l.Name.Value, true)
	case *syntax.CStyleLoop:
		w.onlyBash("for ((")
		if b, ok := l.Init.(*syntax.BinaryArithm); ok && b.Op == syntax.Assgn {
			if x, ok := b.X.(*syntax.Word); ok {
				w.variable(x.Lit())
				w.scope.set(x.Lit(), true)
			}
		}
		w.put("for ((" + w.arithmetic(l.Init) + "; " + w.arithmetic(l.Cond) + "; " + w.arithmetic(l.Post) + "))")
	}
	w.endLine()
	w.put("do")
	w.endLine()
	w.body(c.Do)
	w.put("done")
	w.scope = before
}

func (w *writer) caseClause(c *syntax.CaseClause) {
	w.put("case " + w.word(c.Word) + " in")
	w.endLine()
	for _, item := range c.Items {
		patterns := make([]string, len(item.Patterns))
		for i, p := range item.Patterns {
			patterns[i] = w.word(p)
		}
		w.put("(" + strings.Join(patterns, " | ") + ")")
		w.endLine()
		w.body(item.Stmts)
		if item.Op != syntax.Break {
			w.onlyBash(item.Op.String() + " in case")
		}
		w.put(item.Op.String())
		w.endLine()
	}
	w.put("esac")
}

// function writes a function definition. A name must mean the function everywhere or nowhere. Therefore
// the definition must come before all calls, must not be skippable, and no other command may get the
// name as an argument, because it would start the program of that name.
func (w *writer) function(c *syntax.FuncDecl) {
	w.onlyBash("a function")
	block, ok := c.Body.Cmd.(*syntax.Block)
	if c.Name == nil || !isName(c.Name.Value) || !ok || len(c.Body.Redirs) > 0 || c.Body.Negated || c.Body.Background {
		w.fail("it defines a function in an unusual way")
		return
	}
	name := c.Name.Value
	is, _, _ := builtin(name)
	first, called := w.used().called[name]
	switch {
	case is || isReserved(name) || isShell(name) || strings.HasPrefix(name, "command_not_found"):
		w.fail("it defines a function with the name of something else: "+name, "give it another name")
	case w.inBody > 0 || slices.Contains(w.functions, name) || called && first < c.Pos().Offset():
		w.fail("the function "+name+" is not what the name means everywhere", "define it once, at the beginning")
	}
	w.functions = append(w.functions, name)
	w.put(name + " () {")
	w.endLine()
	w.body(block.Stmts)
	w.put("}")
}

func (w *writer) declaration(c *syntax.DeclClause) {
	kind := c.Variant.Value
	switch kind {
	case "export":
	case "local", "readonly", "declare":
		w.onlyBash(kind)
	default:
		w.fail(kind+" changes what names mean", "use declare")
	}
	w.put(kind)
	array := false
	for _, a := range c.Args {
		w.put(" ")
		if a.Name != nil {
			if array && a.Array == nil && !a.Naked {
				w.fail("it assigns a word to an array")
			}
			if !w.bash && a.Value != nil && !isQuoted(a.Value) {
				w.fail("sh splits what export assigns into words", "put it in double quotes")
			}
			w.assign(a)
			continue
		}
		option, ok := literal(a.Value)
		switch {
		case ok && (option == "-r" || option == "-x" || option == "-g"):
		case ok && (option == "-a" || option == "-A"):
			array = true
		default:
			w.fail(kind+" with options or computed names changes what names mean", "write "+kind+" NAME=value")
		}
		w.put(option)
	}
}

func (w *writer) timeClause(c *syntax.TimeClause) {
	w.onlyBash("time")
	w.put("time ")
	if c.PosixFormat {
		w.put("-p ")
	}
	if c.Stmt == nil {
		w.fail("it times nothing")
		return
	}
	w.statement(c.Stmt)
}

func (w *writer) redirects(list []*syntax.Redirect) {
	for _, r := range list {
		w.put(" ")
		if r.N != nil {
			if len(r.N.Value) != 1 || !isNumber(r.N.Value) {
				w.fail("it opens a descriptor by a variable", "use a number from 0 to 9")
			}
			w.put(r.N.Value)
		}
		op := r.Op.String()
		switch r.Op {
		case syntax.Hdoc, syntax.DashHdoc:
			w.hereDocument(r)
			continue
		case syntax.DplIn, syntax.DplOut:
			to, ok := literal(r.Word)
			if !ok || to != "-" && (!isNumber(strings.TrimSuffix(to, "-")) || len(to) > 2) {
				w.fail("it redirects to a computed descriptor", "use &> FILE, or a number")
			}
			w.put(op + to)
			continue
		case syntax.RdrIn, syntax.RdrOut, syntax.AppOut, syntax.RdrClob:
		case syntax.WordHdoc, syntax.RdrInOut, syntax.RdrAll, syntax.AppAll:
			w.onlyBash(op)
		default:
			w.fail("it redirects in an unusual way: " + op)
		}
		word := w.word(r.Word)
		if len(w.bodies) > 0 && strings.Contains(word, "\n") {
			w.fail("several lines follow a here-document on the same line")
		}
		w.put(op)
		w.put(" ")
		w.put(word)
	}
}

// variable checks a name that is assigned.
func (w *writer) variable(name string) {
	switch {
	case !isName(name):
		w.fail(fmt.Sprintf("it assigns to %q", name))
	case changesMeaning(name):
		w.fail("it assigns "+name+", which changes what later commands mean", "call the program by its path, or use env")
	}
}

func (w *writer) assign(a *syntax.Assign) {
	name := a.Name.Value
	w.variable(name)
	if isLocale(name) && !a.Naked && !(a.Array == nil && a.Index == nil && !a.Append && isPlainLocale(a.Value)) {
		w.fail("it assigns "+name+", with which a shell may read letters otherwise", "use C.UTF-8")
	}
	w.put(name)
	if a.Index != nil {
		w.onlyBash("an array")
		w.put("[" + w.index(a.Index) + "]")
	}
	if a.Naked {
		return
	}
	if a.Append {
		w.onlyBash("+=")
		w.put("+")
	}
	w.put("=")
	switch {
	case a.Array != nil:
		w.onlyBash("an array")
		w.put("(")
		for i, el := range a.Array.Elems {
			if i > 0 {
				w.put(" ")
			}
			if el.Index != nil {
				w.put("[" + w.index(el.Index) + "]=")
			}
			if el.Value != nil {
				w.putWord(el.Value)
			}
		}
		w.put(")")
	case a.Value != nil:
		w.putAssigned(a.Value)
	}
	w.scope.set(name, true)
}
