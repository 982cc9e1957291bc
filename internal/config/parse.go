package config

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strings"

	"chorus/internal/yamltext"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"
)

const (
	largestFile  = 256 << 10 // far larger than any real file
	largestNodes = 100_000   // what aliases may expand to
)

// parse parses one YAML (or JSON) text. nil without a new error in the report means that it is
// empty. Whatever the input, it neither panics nor uses unbounded time or memory.
func parse(r *report, file string, layer Layer, data []byte) (out *node) {
	at := Place{Layer: layer, File: file, Line: 1, Column: 1}
	defer func() { // the parser is third-party code, and the text may be anybody's
		if p := recover(); p != nil {
			out = nil
			r.fail(at, "", "this is not YAML that can be read (%v)", p)
		}
	}()
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if len(data) > largestFile {
		r.fail(at, "", "larger than %d bytes: that is no configuration", largestFile)
		return nil
	}
	if line := yamltext.NestsDeeper(data, deepest); line > 0 {
		at.Line = line
		r.fail(at, "", "nested deeper than %d levels", deepest)
		return nil
	}
	tokens := lexer.Tokenize(string(data))
	if len(tokens) > yamltext.MaxTokens {
		r.fail(at, "", "more than %d words and marks: that is no configuration", yamltext.MaxTokens)
		return nil
	}
	parsed, err := parser.Parse(tokens, 0)
	if err != nil {
		r.fail(locate(err, at), "", "%s", message(err))
		return nil
	}
	w := &walker{report: r, at: at, anchors: map[string]ast.Node{}}
	for _, doc := range parsed.Docs {
		if doc.Body == nil {
			continue
		}
		if out != nil {
			r.fail(w.place(doc.Body), "", "a second document begins here; a file holds one")
			return nil
		}
		out = w.node(doc.Body, 0)
	}
	switch {
	case out == nil || out.form == isNull:
		return nil
	case out.form != isObject:
		r.fail(out.at, "", "want keys with values (key: value), not %s", out.said())
		return nil
	}
	return out
}

// locate returns the place that a parser error refers to.
func locate(err error, at Place) Place {
	if y, ok := errors.AsType[yaml.Error](err); ok {
		if t := y.GetToken(); t != nil && t.Position != nil {
			at.Line, at.Column = max(t.Position.Line, 1), max(t.Position.Column, 1)
		}
	}
	return at
}

func message(err error) string {
	if y, ok := errors.AsType[yaml.Error](err); ok && y.GetMessage() != "" {
		return y.GetMessage()
	}
	first, _, _ := strings.Cut(err.Error(), "\n")
	return first
}

// walker converts the parser's tree to ours.
type walker struct {
	report  *report
	at      Place
	anchors map[string]ast.Node
	made    int
}

func (w *walker) place(n ast.Node) Place {
	at := w.at
	if n == nil {
		return at
	}
	if m, ok := n.(*ast.MappingNode); ok && len(m.Values) > 0 { // its own token is the first colon
		n = m.Values[0].Key
	}
	if t := n.GetToken(); t != nil && t.Position != nil {
		at.Line, at.Column = max(t.Position.Line, 1), max(t.Position.Column, 1)
	}
	return at
}

// node converts a node. If it cannot, it reports that and returns null.
func (w *walker) node(n ast.Node, depth int) *node {
	out := &node{form: isNull, at: w.place(n)}
	if w.made++; w.made > largestNodes || depth > deepest {
		if w.made <= largestNodes+1 { // once is enough
			w.report.fail(out.at, "", "too large or too deep once its aliases are followed")
			w.made = largestNodes + 1
		}
		return out
	}
	switch n := n.(type) {
	case nil, *ast.NullNode, *ast.CommentGroupNode:
	case *ast.StringNode:
		out.form, out.text = isText, n.Value
	case *ast.LiteralNode:
		out.form, out.text = isText, n.Value.Value
	case *ast.BoolNode:
		out.form, out.truth = isBool, n.Value
	case *ast.IntegerNode:
		out.form, out.text = isNumber, n.Token.Value
		switch v := n.Value.(type) {
		case int64:
			out.number = float64(v)
		case uint64:
			out.number = float64(v)
		}
	case *ast.FloatNode:
		out.form, out.text, out.number = isNumber, n.Token.Value, n.Value
	case *ast.InfinityNode, *ast.NanNode:
		out.form, out.text, out.number = isNumber, n.GetToken().Value, math.NaN()
	case *ast.SequenceNode:
		out.form = isList
		for _, v := range n.Values {
			out.items = append(out.items, w.node(v, depth+1))
		}
	case *ast.MappingNode:
		w.object(out, n.Values, depth)
	case *ast.MappingValueNode:
		out.at = w.place(n.Key)
		w.object(out, []*ast.MappingValueNode{n}, depth)
	case *ast.TagNode:
		return w.tagged(n, depth)
	case *ast.AnchorNode:
		if n.Name != nil && n.Name.GetToken() != nil {
			w.anchors[n.Name.GetToken().Value] = n.Value
		}
		return w.node(n.Value, depth+1)
	case *ast.AliasNode:
		if n.Value == nil || n.Value.GetToken() == nil {
			return out
		}
		name := n.Value.GetToken().Value
		target, ok := w.anchors[name]
		if !ok {
			w.report.fail(out.at, "", "there is no anchor &%s before this", name)
			return out
		}
		return w.node(target, depth+1)
	default:
		w.report.fail(out.at, "", "%s cannot be used here", strings.ToLower(fmt.Sprint(n.Type())))
	}
	return out
}

// tagged handles a tag. Only !!str changes anything; the others state what is already clear.
func (w *walker) tagged(n *ast.TagNode, depth int) *node {
	out := w.node(n.Value, depth+1)
	if n.Start != nil && n.Start.Value == string(token.StringTag) && out.form != isList && out.form != isObject {
		if n.Value != nil && n.Value.GetToken() != nil {
			out.text = n.Value.GetToken().Value
		}
		out.form = isText
	}
	return out
}

func (w *walker) object(out *node, values []*ast.MappingValueNode, depth int) {
	out.form = isObject
	var merged []field // from <<, weaker than the fields here
	for _, v := range values {
		if v == nil || v.Key == nil {
			continue
		}
		value := w.node(v.Value, depth+1)
		if v.Key.IsMergeKey() {
			for _, from := range append([]*node{value}, value.items...) {
				merged = append(merged, from.fields...)
			}
			continue
		}
		out.fields = append(out.fields, field{w.name(v.Key), w.place(v.Key), value})
	}
	have := map[string]bool{}
	for _, f := range out.fields {
		have[f.name] = true
	}
	for _, f := range merged {
		if !have[f.name] {
			have[f.name] = true
			out.fields = append(out.fields, f)
		}
	}
}

// name returns a key as text, whatever type YAML gives it: 123: and true: are names here.
func (w *walker) name(key ast.MapKeyNode) string {
	switch k := key.(type) {
	case *ast.StringNode:
		return k.Value
	case *ast.MappingKeyNode:
		if inner, ok := k.Value.(*ast.StringNode); ok {
			return inner.Value
		}
	case *ast.AnchorNode, *ast.TagNode, *ast.AliasNode:
		return w.node(key, deepest-1).text
	}
	if t := key.GetToken(); t != nil {
		return t.Value
	}
	return ""
}
