package shell

import "mvdan.cc/sh/v3/syntax"

// coproc walks a coprocess. What the parser takes for its name is really the program,
// unless a compound command follows. A pipe may come between the two.
func (w *walker) coproc(c *syntax.CoprocClause) {
	if c.Name != nil {
		w.substitutions(c.Name)
		w.coprocName(c)
	}
	w.stmt(c.Stmt)
}

// coprocName treats the name of a coprocess as a program if bash would start it as one.
func (w *walker) coprocName(c *syntax.CoprocClause) {
	first := c.Stmt
	for first != nil {
		pipe, ok := first.Cmd.(*syntax.BinaryCmd)
		if !ok {
			break
		}
		first = pipe.X
	}
	if first == nil {
		first = new(syntax.Stmt)
	}
	switch cmd := first.Cmd.(type) {
	case nil:
		w.run(Part{Kind: KindCommand, offset: int(c.Name.Pos().Offset())}, w.read(nil, c.Name), first.Redirs)
	case *syntax.CallExpr:
		w.call(&syntax.CallExpr{Assigns: cmd.Assigns, Args: append([]*syntax.Word{c.Name}, cmd.Args...)}, first.Redirs)
	case *syntax.Block, *syntax.Subshell, *syntax.IfClause, *syntax.WhileClause, *syntax.ForClause, *syntax.CaseClause, *syntax.TestClause, *syntax.ArithmCmd:
		if len(first.Redirs) > 0 && first.Redirs[0].Pos().Offset() < cmd.Pos().Offset() {
			w.unknown(w.source(c), "a coprocess that may be a plain command")
		}
	default: // words that only the parser treats as syntax here
		w.unknown(w.source(c), "a coprocess that may be a plain command")
	}
}
