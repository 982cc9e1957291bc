package mcp

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Action is what a person said to a question.
type Action string

// The actions.
const (
	Accept  Action = "accept"
	Decline Action = "decline" // no
	Cancel  Action = "cancel"  // nobody answered
)

// Question is what a server wants to know of a person. Its words are the server's.
type Question struct {
	Server  string
	Message string
	Fields  []Field
	Page    string // an address that the person is to open; nobody else does. "": there is none
	Wrong   string // why the answer before did not fit; "": there was none
	// Given is what that answer said to each field.
	Given map[string]any
}

// Reply is a person's answer: the text holds the values of the fields, see Question.How.
type Reply struct {
	Action Action
	Text   string
}

// Field is one value that is asked for.
type Field struct {
	Name     string
	Title    string
	About    string // its title and description
	Kind     string // string, number, integer, boolean, list
	Choices  []Choice
	Required bool
	Default  any // nil: there is none
}

// Choice is one of the values that a field may have.
type Choice struct{ Value, Title string }

const (
	maxFields  = 30  // what a person can be asked to fill in
	maxChoices = 100 // of one field
)

// schemaField is a property as servers write it.
type schemaField struct {
	Type        string
	Title       string
	Description string
	Enum        []string
	EnumNames   []string
	OneOf       []struct{ Const, Title string }
	Items       *struct {
		Enum  []string
		AnyOf []struct{ Const, Title string }
	}
	Default any
}

// fieldsOf reads the schema of a question; what is no schema has no fields.
func fieldsOf(schema any) (out []Field) {
	data, err := json.Marshal(schema)
	if err != nil {
		return nil
	}
	var object struct {
		Properties map[string]schemaField
		Required   []string
	}
	if json.Unmarshal(data, &object) != nil {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(object.Properties)) {
		p := object.Properties[name]
		f := Field{Name: name, Title: printable(p.Title, 100), Kind: cmp.Or(p.Type, "string"), Required: slices.Contains(object.Required, name), Default: p.Default,
			About: strings.Trim(multiline(p.Title, 200)+": "+multiline(p.Description, 500), ": ")}
		add := func(value, title string) {
			if len(f.Choices) < maxChoices {
				f.Choices = append(f.Choices, Choice{value, multiline(title, 200)})
			}
		}
		for i, value := range p.Enum {
			title := ""
			if i < len(p.EnumNames) {
				title = p.EnumNames[i]
			}
			add(value, title)
		}
		for _, one := range p.OneOf {
			add(one.Const, one.Title)
		}
		if p.Type == "array" {
			f.Kind = "list"
			if p.Items != nil {
				for _, value := range p.Items.Enum {
					add(value, "")
				}
				for _, one := range p.Items.AnyOf {
					add(one.Const, one.Title)
				}
			}
		}
		out = append(out, f)
	}
	// What must be answered comes first.
	slices.SortStableFunc(out, func(a, b Field) int {
		switch {
		case a.Required == b.Required:
			return 0
		case a.Required:
			return -1
		}
		return 1
	})
	return out[:min(len(out), maxFields)]
}

// longPage is how long the address of a page may be: a person has to look at it.
const longPage = 2000

// pageOf checks an address that a person is to open: it must be what it looks like. "": it is not.
func pageOf(address string) string {
	u, err := url.Parse(address)
	plain := strings.IndexFunc(address, func(r rune) bool { return r <= ' ' || r >= 0x7f }) < 0
	if err != nil || !plain || len(address) > longPage || u.User != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return ""
	}
	return address
}

// How says how the question is answered, for people.
func (q Question) How() string {
	if q.Page != "" {
		u, _ := url.Parse(q.Page) // pageOf has read it
		return fmt.Sprintf("The page: %s\nIt belongs to %s. Nobody opens it for you: do so yourself if you trust the server, and say yes when it is done; no declines.", q.Page, u.Host)
	}
	var lines []string
	for _, f := range q.Fields {
		line := f.Name + " (" + f.kind() + ")"
		if f.About != "" {
			line += ": " + f.About
		}
		lines = append(lines, line)
	}
	switch {
	case len(q.Fields) == 0:
		lines = append(lines, "Answer yes or no.")
	case len(q.Fields) == 1:
		lines = append(lines, "Answer with the value.")
	default:
		lines = append(lines, "Answer with a line for each, as "+q.Fields[0].Name+": VALUE; what is left out stays as it is.")
	}
	return strings.Join(lines, "\n")
}

func (f Field) kind() string {
	words := map[string]string{"string": "text", "integer": "a whole number", "number": "a number", "boolean": "yes or no", "list": "several, with commas"}
	kind := cmp.Or(words[f.Kind], "text")
	if len(f.Choices) > 0 {
		var names []string
		for _, c := range f.Choices {
			name := printable(c.Value, 60)
			if c.Title != "" {
				name += " = " + printable(c.Title, 60)
			}
			names = append(names, name)
		}
		kind = "one of " + strings.Join(names, ", ")
		if f.Kind == "list" {
			kind = "some of " + strings.Join(names, ", ")
		}
	}
	switch {
	case f.Default != nil:
		data, _ := json.Marshal(f.Default) // it came as JSON
		kind += ", else " + printable(string(data), 100)
	case !f.Required:
		kind += ", may be left out"
	}
	return kind
}

// read makes the content of an answer from what a person wrote: a JSON object, a line for each field, or the value of the
// only one that is asked for.
func (q Question) read(text string) (map[string]any, error) {
	given, err := q.split(strings.TrimSpace(text))
	if err != nil {
		return nil, err
	}
	out := map[string]any{}
	for _, f := range q.Fields {
		value, ok := given[f.Name]
		switch {
		case ok:
			if out[f.Name], err = f.value(value); err != nil {
				return nil, err
			}
		case f.Default != nil:
			out[f.Name] = f.Default
		case f.Required && f.Kind == "boolean" && len(q.Fields) == 1:
			out[f.Name] = true // a yes is the answer
		case f.Required:
			return nil, fmt.Errorf("%s is missing", printable(f.Name, 60))
		}
	}
	return out, nil
}

// split takes an answer apart into what was said to each field.
func (q Question) split(text string) (map[string]any, error) {
	out := map[string]any{}
	if text == "" {
		return out, nil
	}
	if strings.HasPrefix(text, "{") {
		if err := json.Unmarshal([]byte(text), &out); err != nil {
			return nil, fmt.Errorf("this is not a JSON object: %w", err)
		}
		return out, nil
	}
	for line := range strings.SplitSeq(strings.ReplaceAll(text, "; ", "\n"), "\n") {
		at := strings.IndexAny(line, ":=")
		if at < 0 {
			continue
		}
		name := strings.TrimSpace(line[:at])
		if i := slices.IndexFunc(q.Fields, func(f Field) bool { return strings.EqualFold(f.Name, name) }); i >= 0 {
			out[q.Fields[i].Name] = strings.TrimSpace(line[at+1:])
		}
	}
	if len(out) > 0 || len(q.Fields) == 0 {
		return out, nil
	}
	if len(q.Fields) > 1 && q.Fields[1].Required {
		return nil, fmt.Errorf("say which value is whose, for example %s: %s", q.Fields[0].Name, printable(text, 40))
	}
	out[q.Fields[0].Name] = text
	return out, nil
}

// value is what was said as the field wants it.
func (f Field) value(said any) (any, error) {
	text, ok := said.(string)
	if !ok {
		if list, isList := said.([]any); isList && f.Kind == "list" {
			for _, one := range list {
				if _, err := f.choice(fmt.Sprint(one)); err != nil {
					return nil, err
				}
			}
			return said, nil
		}
		text = fmt.Sprint(said)
	}
	switch f.Kind {
	case "integer":
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%s must be a whole number, not %q", f.Name, printable(text, 40))
		}
		return n, nil
	case "number":
		n, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return nil, fmt.Errorf("%s must be a number, not %q", f.Name, printable(text, 40))
		}
		return n, nil
	case "boolean":
		switch strings.ToLower(text) {
		case "y", "yes", "true", "1", "on":
			return true, nil
		case "n", "no", "false", "0", "off":
			return false, nil
		}
		return nil, fmt.Errorf("%s must be yes or no, not %q", f.Name, printable(text, 40))
	case "list":
		out := []any{}
		for part := range strings.SplitSeq(text, ",") {
			value, err := f.choice(strings.TrimSpace(part))
			if err != nil {
				return nil, err
			}
			out = append(out, value)
		}
		return out, nil
	}
	return f.choice(text)
}

// choice is one of the values that are allowed, where they are named; people may say its title.
func (f Field) choice(text string) (string, error) {
	if len(f.Choices) == 0 {
		return text, nil
	}
	for _, c := range f.Choices {
		if strings.EqualFold(c.Value, text) || c.Title != "" && strings.EqualFold(c.Title, text) {
			return c.Value, nil
		}
	}
	return "", fmt.Errorf("%s cannot be %q: it is %s", f.Name, printable(text, 40), f.kind())
}
