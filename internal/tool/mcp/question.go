package mcp

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"chorus/internal/approval"
	"chorus/internal/chat"
)

// Action is a person's answer to a question.
type Action string

// The actions.
const (
	Accept  Action = "accept"
	Decline Action = "decline" // no
	Cancel  Action = "cancel"  // nobody answered
)

// Question is what a server wants to know from a person. Its words are the server's.
type Question struct {
	Server  string
	Message string
	Fields  []Field
	Page    string // an address that only the person is to open; "" if there is none
	Wrong   string // why the previous answer did not fit; "" if there was none
	// Given is the previous answer's value for each field.
	Given map[string]any
}

// Reply is a person's answer. The text holds the values of the fields, as approval.ReadAnswer parses them.
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
	Default  any // nil if there is none
	chat.Bounds
}

// Choice is one possible value of a field.
type Choice struct{ Value, Title string }

const (
	maxFields  = 30  // limits on what a person can be asked to fill in
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
	Default              any
	Format, Pattern      string
	MinLength, MaxLength int
	Minimum, Maximum     *float64
	MinItems, MaxItems   int
}

// longPattern is the longest pattern that is used; longer ones are ignored.
const longPattern = 500

// bounds returns the limits on its values. Limits that make no sense are ignored.
func (p schemaField) bounds() chat.Bounds {
	out := chat.Bounds{Format: p.Format, MinLength: max(0, p.MinLength), MaxLength: max(0, p.MaxLength), Min: p.Minimum, Max: p.Maximum, MinItems: max(0, p.MinItems), MaxItems: max(0, p.MaxItems)}
	if len(p.Pattern) <= longPattern {
		out.Pattern = p.Pattern
	}
	if !slices.Contains([]string{"email", "uri", "date", "date-time"}, out.Format) {
		out.Format = ""
	}
	return out
}

// fieldsOf reads the schema of a question. An invalid schema has no fields.
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
		f := Field{Name: name, Title: printable(p.Title, 100), Kind: cmp.Or(p.Type, "string"), Required: slices.Contains(object.Required, name), Default: p.Default, Bounds: p.bounds(),
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
	// Required fields come first.
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

// longPage limits the length of a page's address, because a person has to read it.
const longPage = 2000

// pageOf checks an address that a person is to open: it must be what
// it looks like. It returns "" if it is not.
func pageOf(address string) string {
	u, err := url.Parse(address)
	plain := strings.IndexFunc(address, func(r rune) bool { return r <= ' ' || r >= 0x7f }) < 0
	if err != nil || !plain || len(address) > longPage || u.User != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return ""
	}
	return address
}

// how says how to answer the question, if its fields do not show that.
func (q Question) how() string {
	if q.Page == "" {
		return ""
	}
	u, _ := url.Parse(q.Page) // pageOf has parsed it before
	return fmt.Sprintf("The page: %s\nIt belongs to %s. Open it yourself if you trust the server, and answer yes when it is done; no declines.", q.Page, u.Host)
}

// Text returns what people read above the fields.
func (q Question) Text() string {
	return strings.TrimSpace(q.Message + "\n\n" + q.how())
}

// read builds the content of an answer from what a person wrote. Omitted fields get the server's defaults.
func (q Question) read(text string) (map[string]any, error) {
	out, err := approval.ReadAnswer(q.Asked(), text)
	if err != nil {
		return nil, err
	}
	for _, f := range q.Fields {
		if _, given := out[f.Name]; !given && f.Default != nil {
			out[f.Name] = f.Default
		}
	}
	return out, nil
}
