package config

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// form says what a value is in its file.
type form string

const (
	isNull   form = "null"
	isBool   form = "true or false"
	isNumber form = "number"
	isText   form = "text"
	isList   form = "list"
	isObject form = "object"
)

// node is a value as it was written, with its place.
type node struct {
	form   form
	text   string // of a text; of a number as written
	number float64
	truth  bool
	items  []*node
	fields []field
	at     Place
}

// field is one entry of an object.
type field struct {
	name  string
	at    Place // of the name
	value *node
}

// said names the value in a sentence about what is wrong with it.
func (n *node) said() string {
	switch n.form {
	case isText:
		text := n.text
		if r := []rune(text); len(r) > 40 {
			text = string(r[:40]) + "…"
		}
		return fmt.Sprintf("the text %q", text)
	case isNumber:
		return n.text
	case isBool:
		return fmt.Sprint(n.truth)
	case isList, isObject:
		return "a " + string(n.form)
	default:
		return string(n.form)
	}
}

// whole returns the number as an int if it has no fraction.
func (n *node) whole() (int, bool) {
	if n.form != isNumber || n.number != math.Trunc(n.number) || math.Abs(n.number) > 1<<53 {
		return 0, false
	}
	return int(n.number), true
}

// plain returns the value as encoding/json would.
func (n *node) plain() any {
	switch n.form {
	case isText:
		return n.text
	case isNumber:
		if i, ok := n.whole(); ok {
			return i
		}
		return n.number
	case isBool:
		return n.truth
	case isList:
		out := make([]any, len(n.items))
		for i, item := range n.items {
			out[i] = item.plain()
		}
		return out
	case isObject:
		out := map[string]any{}
		for _, f := range n.fields {
			out[f.name] = f.value.plain()
		}
		return out
	default:
		return nil
	}
}

// deepest is deeper than any setting needs; anything nested deeper is not a configuration.
const deepest = 32

// given makes a node from a value that came from our own code or from
// JSON. A value without a counterpart becomes a text.
func given(v any, at Place, depth int) *node {
	if depth > deepest {
		return &node{form: isNull, at: at}
	}
	switch v := v.(type) {
	case nil:
		return &node{form: isNull, at: at}
	case bool:
		return &node{form: isBool, truth: v, at: at}
	case int:
		return &node{form: isNumber, number: float64(v), text: fmt.Sprint(v), at: at}
	case int64:
		return &node{form: isNumber, number: float64(v), text: fmt.Sprint(v), at: at}
	case float64:
		return &node{form: isNumber, number: v, text: plain(v), at: at}
	case []string:
		n := &node{form: isList, at: at}
		for _, item := range v {
			n.items = append(n.items, given(item, at, depth+1))
		}
		return n
	case []any:
		n := &node{form: isList, at: at}
		for _, item := range v {
			n.items = append(n.items, given(item, at, depth+1))
		}
		return n
	case map[string]any:
		n := &node{form: isObject, at: at}
		for name, value := range v {
			n.fields = append(n.fields, field{name, at, given(value, at, depth+1)})
		}
		slices.SortFunc(n.fields, func(a, b field) int { return cmp.Compare(a.name, b.name) })
		return n
	default:
		return &node{form: isText, text: fmt.Sprint(v), at: at}
	}
}
