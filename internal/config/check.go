package config

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"chorus/internal/permit"
	"chorus/internal/suggest"
)

// check checks a value against its key. It returns nil if the value is wrong, and reports that.
func (s *shaper) check(k *Key, path string, n *node) *node {
	if k.Secret {
		return s.secret(k, path, n)
	}
	referred := n.form == isText && s.env != nil && strings.Contains(n.text, "${")
	if n = s.text(path, n); n == nil {
		return nil
	}
	if referred || s.layer == Environment || s.layer == Flag {
		n = convert(k, n)
	}
	if why := k.wrong(n); why != "" {
		s.report.fail(n.at, path, "%s %s", shownPath(path), why)
		return nil
	}
	if k.Kind != List {
		return n
	}
	out := &node{form: isList, at: n.at}
	for _, item := range n.items {
		if item = s.text(path, item); item == nil {
			return nil
		}
		out.items = append(out.items, item)
	}
	if !s.rules(path, out) {
		return nil
	}
	return out
}

// rules parses the patterns of a permission profile, so that a mistake is reported with its
// place when the file is read, and not when somebody wants to work.
func (s *shaper) rules(path string, n *node) bool {
	if !strings.HasPrefix(path, "profiles.") {
		return true
	}
	list := path[strings.LastIndexByte(path, '.')+1:]
	for i, item := range n.items {
		if err := permit.CheckRule(list, i, item.text); err != nil {
			s.report.fail(item.at, path, "%s: %s", shownPath(path), joinLines(err))
			return false
		}
	}
	return true
}

// wrong returns the second half of a sentence about a wrong value, or "".
func (k *Key) wrong(n *node) string {
	not := ", not " + n.said()
	switch k.Kind {
	case Text:
		if n.form == isNumber || n.form == isBool {
			return "must be a text" + not + "; put it in quotes"
		}
		if n.form != isText {
			return "must be a text" + not
		}
		if k.Period {
			if _, err := HowLong(n.text); err != nil {
				return err.Error()
			}
		}
		if len(k.Choices) > 0 && !slices.Contains(k.Choices, n.text) {
			return "must be " + k.rangeText() + not + suggest.Hint(n.text, k.Choices)
		}
	case Bool:
		if n.form != isBool {
			return "must be true or false" + not
		}
	case List:
		if n.form != isList {
			return "must be a list of texts, [a, b]" + not
		}
		for i, item := range n.items {
			if item.form != isText {
				return fmt.Sprintf("must be a list of texts; entry %d is %s", i+1, item.said())
			}
		}
	case Integer, Number:
		if n.form != isNumber || math.IsNaN(n.number) || math.IsInf(n.number, 0) {
			return "must be a " + string(k.Kind) + not
		}
		if _, ok := n.whole(); k.Kind == Integer && !ok {
			return "must be a whole number" + not
		}
		if k.Least != nil && n.number < *k.Least || k.Most != nil && n.number > *k.Most {
			return "must be " + k.rangeText() + not
		}
	}
	return ""
}

// secret keeps the reference unresolved, but reports at once if it leads
// nowhere, and warns about a secret in the file itself.
func (s *shaper) secret(k *Key, path string, n *node) *node {
	parts := []*node{n}
	if n.form == isList && k.Lines {
		parts = n.items
	}
	var texts []string
	for _, part := range parts {
		if part.form != isText || part.form == isText && strings.ContainsAny(part.text, "\x00") {
			s.report.fail(part.at, path, "%s must be a text, not a %s", shownPath(path), part.form)
			return nil
		}
		texts = append(texts, part.text)
		value, err := resolve(part, s.env)
		switch {
		case err != nil:
			s.report.fail(part.at, path, "%s: %s", shownPath(path), joinLines(err))
			return nil
		case s.layer != Environment && s.layer != Flag && !isReference(part.text) && hidden(k, path, value):
			s.report.warn(part.at, path, "%s is a secret in plain text; write ${VARIABLE} or file:PATH instead", shownPath(path))
		}
	}
	return &node{form: isText, text: strings.Join(texts, "\n"), at: n.at}
}

func isReference(text string) bool {
	return strings.HasPrefix(text, "file:") || strings.Contains(strings.ReplaceAll(text, "$${", ""), "${")
}

// resolve returns a secret's current value. If there are several, one per line, it resolves each.
func resolve(n *node, env func(string) string) (string, error) {
	if env == nil {
		return n.text, nil
	}
	var out []string
	for line := range strings.SplitSeq(n.text, "\n") {
		if path, ok := strings.CutPrefix(line, "file:"); ok {
			value, err := secretFile(path, filepath.Dir(n.at.File), env)
			if err != nil {
				return "", err
			}
			out = append(out, value)
			continue
		}
		if n.at.Layer != Environment && n.at.Layer != Flag {
			value, err := expand(line, env)
			if err != nil {
				return "", err
			}
			line = value
		}
		out = append(out, line)
	}
	return strings.Join(out, "\n"), nil
}

// convert converts a text to the kind that the key requires: values from the
// environment, a flag or ${…} have no type of their own.
func convert(k *Key, n *node) *node {
	if n.form != isText {
		return n
	}
	out := &node{form: n.form, text: n.text, at: n.at}
	word := strings.TrimSpace(n.text)
	switch k.Kind {
	case Integer, Number:
		if f, err := strconv.ParseFloat(word, 64); err == nil {
			out.form, out.number, out.text = isNumber, f, word
		}
	case Bool:
		switch strings.ToLower(word) {
		case "true", "1", "yes", "on":
			out.form, out.truth = isBool, true
		case "false", "0", "no", "off":
			out.form, out.truth = isBool, false
		}
	case List:
		return convertList(n, word)
	}
	return out
}

// convertList parses a, b or, if a text itself contains commas, ["a", "b"].
func convertList(n *node, word string) *node {
	if strings.HasPrefix(word, "[") {
		var r report
		wrapped := parse(&r, "", n.at.Layer, []byte("list: "+word))
		if wrapped != nil && len(r.found) == 0 && wrapped.fields[0].value.form == isList {
			list := wrapped.fields[0].value
			for _, item := range append([]*node{list}, list.items...) {
				item.at = n.at
			}
			return list
		}
	}
	out := &node{form: isList, at: n.at}
	for part := range strings.SplitSeq(word, ",") {
		if part = strings.TrimSpace(part); part != "" {
			out.items = append(out.items, &node{form: isText, text: part, at: n.at})
		}
	}
	return out
}
