package sheet

import (
	"reflect"
	"strings"
	"text/template/parse"
)

// filling is one execution. Variables are a stack: what a block declares ends with it.
type filling struct {
	set   *Set
	out   *strings.Builder
	vars  []variable
	depth int
}

type variable struct {
	name  string
	value reflect.Value
}

// maxDepth bounds templates that call each other.
const maxDepth = 200

// leaving is how a loop's body ends.
type leaving int

const (
	onward leaving = iota
	next
	out
)

func (f *filling) template(tree *parse.Tree, dot reflect.Value) {
	if f.depth++; f.depth > maxDepth {
		fail(nil, "templates call each other without an end")
	}
	before := f.vars
	f.vars = []variable{{"$", dot}}
	f.list(tree.Root, dot)
	f.vars = before
	f.depth--
}

func (f *filling) list(l *parse.ListNode, dot reflect.Value) leaving {
	if l == nil {
		return onward
	}
	mark := len(f.vars)
	defer func() { f.vars = f.vars[:mark] }()
	for _, n := range l.Nodes {
		if how := f.node(n, dot); how != onward {
			return how
		}
	}
	return onward
}

func (f *filling) node(n parse.Node, dot reflect.Value) leaving {
	switch n := n.(type) {
	case *parse.TextNode:
		f.out.Write(n.Text)
	case *parse.ActionNode:
		v := f.pipe(n.Pipe, dot)
		if len(n.Pipe.Decl) == 0 {
			f.out.WriteString(shown(v))
		}
	case *parse.IfNode:
		return f.branch(&n.BranchNode, dot, false)
	case *parse.WithNode:
		return f.branch(&n.BranchNode, dot, true)
	case *parse.RangeNode:
		f.each(n, dot)
	case *parse.TemplateNode:
		tree := f.set.trees[n.Name]
		if tree == nil {
			fail(n, "there is no such template")
		}
		var data reflect.Value
		if n.Pipe != nil {
			data = f.pipe(n.Pipe, dot)
		}
		f.template(tree, data)
	case *parse.BreakNode:
		return out
	case *parse.ContinueNode:
		return next
	case *parse.CommentNode:
	default:
		fail(n, "this cannot be done in a page")
	}
	return onward
}

// branch does if and with.
func (f *filling) branch(b *parse.BranchNode, dot reflect.Value, with bool) leaving {
	mark := len(f.vars)
	defer func() { f.vars = f.vars[:mark] }()
	v := f.pipe(b.Pipe, dot)
	if !truth(v) {
		return f.list(b.ElseList, dot)
	}
	if with {
		dot = v
	}
	return f.list(b.List, dot)
}

func (f *filling) each(n *parse.RangeNode, dot reflect.Value) {
	mark := len(f.vars)
	defer func() { f.vars = f.vars[:mark] }()
	all := plain(f.pipe(n.Pipe, dot))
	body := len(f.vars)
	one := func(key, item reflect.Value) bool {
		f.vars = f.vars[:body]
		switch decl := n.Pipe.Decl; len(decl) {
		case 1:
			f.vars[body-1].value = item
		case 2:
			f.vars[body-2].value, f.vars[body-1].value = key, item
		}
		return f.list(n.List, item) != out
	}
	count := 0
	if all.IsValid() {
		switch all.Kind() {
		case reflect.Slice, reflect.Array:
			for count = 0; count < all.Len(); count++ {
				if !one(reflect.ValueOf(count), all.Index(count)) {
					return
				}
			}
		case reflect.Map:
			for _, key := range sorted(all.MapKeys()) {
				count++
				if !one(key, all.MapIndex(key)) {
					return
				}
			}
		default:
			fail(n.Pipe, "there is nothing to go through in a %s", all.Type())
		}
	}
	if count == 0 {
		f.list(n.ElseList, dot)
	}
}

// pipe evaluates a pipeline; its variables live until the block ends.
func (f *filling) pipe(p *parse.PipeNode, dot reflect.Value) reflect.Value {
	var v reflect.Value
	for i, c := range p.Cmds {
		var last []reflect.Value
		if i > 0 {
			last = []reflect.Value{v}
		}
		v = f.command(c, dot, last)
	}
	for _, d := range p.Decl {
		if p.IsAssign {
			*f.variable(d.Ident[0], d) = v
			continue
		}
		f.vars = append(f.vars, variable{d.Ident[0], v})
	}
	return v
}

func (f *filling) variable(name string, n parse.Node) *reflect.Value {
	for i := len(f.vars) - 1; i >= 0; i-- {
		if f.vars[i].name == name {
			return &f.vars[i].value
		}
	}
	fail(n, "there is no variable %s", name)
	return nil
}

// command evaluates one step of a pipeline; last is what the step before it gave.
func (f *filling) command(c *parse.CommandNode, dot reflect.Value, last []reflect.Value) reflect.Value {
	if name, ok := c.Args[0].(*parse.IdentifierNode); ok {
		return f.call(name, c.Args[1:], dot, last)
	}
	if len(c.Args) > 1 || len(last) > 0 {
		fail(c, "only functions take arguments")
	}
	return f.operand(c.Args[0], dot)
}

func (f *filling) operand(n parse.Node, dot reflect.Value) reflect.Value {
	switch n := n.(type) {
	case *parse.DotNode:
		return dot
	case *parse.FieldNode:
		return fields(n, dot, n.Ident)
	case *parse.VariableNode:
		return fields(n, *f.variable(n.Ident[0], n), n.Ident[1:])
	case *parse.ChainNode:
		return fields(n, f.operand(n.Node, dot), n.Field)
	case *parse.PipeNode:
		return f.pipe(n, dot)
	case *parse.IdentifierNode:
		return f.call(n, nil, dot, nil)
	case *parse.StringNode:
		return reflect.ValueOf(n.Text)
	case *parse.BoolNode:
		return reflect.ValueOf(n.True)
	case *parse.NumberNode:
		switch {
		case n.IsInt:
			return reflect.ValueOf(int(n.Int64))
		case n.IsFloat:
			return reflect.ValueOf(n.Float64)
		}
	case *parse.NilNode:
		return reflect.Value{}
	}
	fail(n, "this has no value")
	return reflect.Value{}
}
