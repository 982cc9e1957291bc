package shell

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

func (w *walker) stmts(list []*syntax.Stmt) {
	for _, s := range list {
		w.settled(func() { w.stmt(s) })
	}
}

// inSubshell walks something that runs in its own shell, or maybe not at all.
func (w *walker) inSubshell(f func()) {
	c, s, p, in, visited := w.cwd, w.certain, w.piped, w.stdin, w.visited
	w.certain = false
	f()
	w.cwd, w.certain, w.piped, w.stdin, w.visited = c, s, p, in, visited
}

// conditionally walks something that may or may not run, in this shell.
// Afterwards the script may still be where it was.
func (w *walker) conditionally(f func()) {
	s := w.certain
	w.certain = false
	w.settled(f)
	w.certain = s
}

// repeatedly walks the body of a loop. If the body changes the directory, each round begins somewhere else.
func (w *walker) repeatedly(loop syntax.Node, f func()) {
	if w.changesDirectory(loop) {
		w.moveTo(cwd{unknown: true})
	}
	w.conditionally(f)
}

func (w *walker) stmt(s *syntax.Stmt) {
	if s == nil {
		return
	}
	if s.Background || s.Coprocess || s.Disown {
		w.inSubshell(func() { w.command(s) })
		return
	}
	if s.Negated {
		w.settled(func() { w.command(s) }) // it succeeds if the command failed
		return
	}
	w.command(s)
}

func (w *walker) command(s *syntax.Stmt) {
	before := w.cwd // redirections are opened before the command runs
	switch c := s.Cmd.(type) {
	case *syntax.CallExpr:
		w.call(c, s.Redirs)
	case *syntax.BinaryCmd:
		w.binary(c)
	case *syntax.Block:
		w.stmts(c.Stmts)
	case *syntax.Subshell:
		w.inSubshell(func() { w.stmts(c.Stmts) })
	case *syntax.IfClause:
		w.conditionally(func() { w.ifClause(c) })
	case *syntax.WhileClause:
		w.repeatedly(c, func() { w.stmts(c.Cond); w.stmts(c.Do) })
	case *syntax.ForClause:
		w.loop(c)
		w.repeatedly(c, func() { w.stmts(c.Do) })
	case *syntax.CaseClause:
		w.substitutions(c.Word)
		for _, item := range c.Items {
			for _, p := range item.Patterns {
				w.substitutions(p)
			}
			w.conditionally(func() { w.stmts(item.Stmts) })
		}
	case *syntax.FuncDecl:
		w.function(c)
	case *syntax.DeclClause:
		w.declare(c)
	case *syntax.TimeClause:
		w.stmt(c.Stmt)
	case *syntax.CoprocClause:
		w.inSubshell(func() { w.coproc(c) })
	case *syntax.TestClause, *syntax.ArithmCmd, *syntax.LetClause:
		w.evaluated(c)
	case nil:
	default:
		w.unknown(w.source(s), "unknown kind of command")
	}
	if len(s.Redirs) > 0 {
		after := w.cwd
		w.cwd = before
		w.redirects(s.Redirs)
		w.cwd = after
	}
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
		s := w.certain
		w.certain = false
		w.stmt(c.Y)
		w.certain = s
	case syntax.OrStmt:
		w.settled(func() { w.stmt(c.X) }) // the other side runs if it failed
		w.conditionally(func() { w.stmt(c.Y) })
	default: // a pipe: both sides run in subshells
		w.inSubshell(func() { w.stmt(c.X) })
		w.inSubshell(func() {
			w.piped, w.stdin = true, c.X
			w.stmt(c.Y)
		})
	}
}

// printed returns what comes through the pipe if a simple echo or printf writes it, or nil.
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
			args = args[1:] // the format only arranges the arguments
		}
	default:
		return nil
	}
	var out []string
	for i := range args {
		v := args[i].possibleValues()
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
	sure := w.certain
	before := len(w.parts)
	saved := w.cwd
	w.certain = false
	w.cwd = cwd{unknown: true} // it may be called from anywhere
	visited := w.visited
	w.stmt(c.Body)
	w.cwd, w.certain, w.visited = saved, sure, visited
	if name == "" {
		return
	}
	if isForkBomb(name, c.Body) {
		w.emit(&Part{Argv: []string{name}, Text: name + "() " + w.source(c.Body), Kind: KindPlain, extra: &extra{catastrophe: "a fork bomb"}, offset: -1, words: []word{knownWord(name)}})
	}
	// With an empty body, the name could hide a call of the program of that name.
	if sure && len(w.parts) > before {
		if w.funcs == nil {
			w.funcs = map[string]bool{}
		}
		w.funcs[name] = true
		if w.changesDirectory(c.Body) {
			if w.moves == nil {
				w.moves = map[string]bool{}
			}
			w.moves[name] = true
		}
	}
}

// loop walks the head of a for loop, which assigns a variable.
func (w *walker) loop(c *syntax.ForClause) {
	w.substitutions(c.Loop)
	switch l := c.Loop.(type) {
	case *syntax.WordIter:
		for _, item := range l.Items {
			for _, x := range w.read(nil, item) {
				w.noteData(&x)
			}
		}
		if why := changesPrograms(l.Name.Value, "", false); why != "" {
			w.opaqueNode(l, why)
		}
	case *syntax.CStyleLoop:
		w.noteArithmetic(l)
		w.arithmeticAssigns(l)
	}
}

// arithmeticAssigns records assignments in arithmetic.
func (w *walker) arithmeticAssigns(n syntax.Node) {
	why := ""
	syntax.Walk(n, func(n syntax.Node) bool {
		if word, ok := n.(*syntax.Word); ok && why == "" {
			why = changesPrograms(word.Lit(), "", false)
		}
		return why == ""
	})
	if why != "" {
		w.opaqueNode(n, why)
	}
}

// substitutions walks the commands that run while a node is expanded.
func (w *walker) substitutions(n syntax.Node) {
	if word, ok := n.(*syntax.Word); ok {
		if word == nil || isFlat(word.Parts) {
			return
		}
	}
	syntax.Walk(n, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.ParamExp:
			if n.Slice != nil || n.Index != nil {
				w.noteArithmetic(n)
			}
			if n.Exp != nil && n.Exp.Op == syntax.OtherParamOps && n.Exp.Word != nil && n.Exp.Word.Lit() == "P" {
				w.opaqueNode(n, "a prompt expansion runs the code in its value")
			}
			if n.Exp != nil && n.Param != nil && (n.Exp.Op == syntax.AssignUnset || n.Exp.Op == syntax.AssignUnsetOrNull) {
				if why := changesPrograms(n.Param.Value, "", false); why != "" {
					w.opaqueNode(n, why)
				}
			}
		case *syntax.ArithmExp:
			w.noteArithmetic(n)
		case *syntax.CmdSubst:
			w.inSubshell(func() { w.piped = false; w.stmts(n.Stmts) })
			return false
		case *syntax.ProcSubst:
			w.inSubshell(func() { w.piped = false; w.stmts(n.Stmts) })
			return false
		}
		return true
	})
}

// isFlat reports whether nothing can run while the parts are expanded:
// they are plain text, or variables without operators.
func isFlat(parts []syntax.WordPart) bool {
	for _, p := range parts {
		switch p := p.(type) {
		case *syntax.Lit, *syntax.SglQuoted:
		case *syntax.ParamExp:
			if !isBareParam(p) {
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

// isBareParam reports whether an expansion is $name or ${name}, without operators.
func isBareParam(p *syntax.ParamExp) bool {
	return p.Param != nil && p.Exp == nil && p.Index == nil && p.Slice == nil && p.Repl == nil && p.NestedParam == nil &&
		!p.Excl && !p.Length && !p.Width && !p.IsSet && p.Flags == nil && p.Names == 0 && len(p.Modifiers) == 0
}

// evaluated walks tests and arithmetic. Arithmetic runs commands in the subscripts of quoted text.
func (w *walker) evaluated(n syntax.Node) {
	w.substitutions(n)
	w.noteArithmetic(n)
	if _, test := n.(*syntax.TestClause); !test {
		w.arithmeticAssigns(n)
	}
	hidden := false
	syntax.Walk(n, func(n syntax.Node) bool {
		if q, ok := n.(*syntax.SglQuoted); ok && runsWhenEvaluated(q.Value) {
			hidden = true
		}
		return !hidden
	})
	if hidden {
		w.opaqueNode(n, "quoted code in arithmetic")
	}
}

// opaqueNode emits an opaque part where bash runs text that looks like data.
func (w *walker) opaqueNode(n syntax.Node, why string) {
	src := w.source(n)
	w.emit(&Part{Argv: []string{src}, Text: src, Kind: KindPlain, Opaque: true, Why: why, offset: int(n.Pos().Offset()), words: []word{{value: src, text: src}}})
}

func runsWhenEvaluated(s string) bool {
	return strings.Contains(s, "$(") || strings.Contains(s, "`")
}
