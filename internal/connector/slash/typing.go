package slash

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"chorus/internal/platform"
)

// Suggestion is a possible continuation of a typed line.
type Suggestion struct {
	Line  string // the whole line if it is chosen; "": it only says what is expected
	Label string
	About string
}

// Typing is the option of a command whose value is being typed.
type Typing struct {
	Path   string
	Option platform.Option
	Typed  string // the start of the value
	before string // the line up to the value, including the option's name if it was written
}

// With is the line with a value for the option.
func (t Typing) With(value string) string {
	if strings.ContainsFunc(value, unicode.IsSpace) || value == "" {
		value = `"` + strings.ReplaceAll(value, `"`, "'") + `"`
	}
	return t.before + value + " "
}

// Suggest returns possible continuations of a line: commands and options, and the option whose value is being typed.
// nil: of none.
func Suggest(list []platform.Command, line string) ([]Suggestion, *Typing) {
	words, ok := strings.CutPrefix(strings.TrimLeftFunc(line, unicode.IsSpace), "/")
	if !ok {
		return nil, nil
	}
	path := ""
	for {
		end := strings.IndexFunc(words, unicode.IsSpace)
		if end < 0 {
			return commandsWith(list, path, words), nil
		}
		i := slices.IndexFunc(list, func(c platform.Command) bool { return strings.EqualFold(c.Name, words[:end]) })
		if i < 0 {
			return nil, nil
		}
		path, words = strings.TrimPrefix(path+"/"+list[i].Name, "/"), strings.TrimLeftFunc(words[end:], unicode.IsSpace)
		if len(list[i].Sub) == 0 {
			return optionsFor(list[i].Options, path, line, words)
		}
		list = list[i].Sub
	}
}

// commandsWith returns the commands whose names begin so.
func commandsWith(list []platform.Command, path, typed string) (out []Suggestion) {
	head := "/" + strings.ReplaceAll(path, "/", " ")
	if path != "" {
		head += " "
	}
	for _, c := range list {
		if !c.Menu && strings.HasPrefix(c.Name, strings.ToLower(typed)) {
			out = append(out, Suggestion{Line: head + c.Name + " ", Label: head + c.Name, About: c.Description})
		}
	}
	return out
}

// optionsFor returns what can follow a command's name.
func optionsFor(options []platform.Option, path, line, rest string) ([]Suggestion, *Typing) {
	list, typed := tokens(rest), ""
	if n := len(list); n > 0 && !unicode.IsSpace(rune(line[len(line)-1])) {
		typed, list = list[n-1].raw, list[:n-1]
	}
	given, last := givenBy(options, list)
	before := strings.TrimSuffix(line, typed)
	if name, value, ok := strings.Cut(typed, "="); ok {
		if at := slices.IndexFunc(options, func(o platform.Option) bool { return o.Name == name }); at >= 0 {
			t := &Typing{Path: path, Option: options[at], Typed: strings.Trim(value, `"“”`), before: before + name + "="}
			return t.choices(), t
		}
	}
	var out []Suggestion
	for _, o := range options {
		if !given[o.Name] && typed != "" && strings.HasPrefix(o.Name, typed) {
			out = append(out, Suggestion{Line: before + o.Name + "=", Label: o.Name + "=", About: o.Description})
		}
	}
	at := slices.IndexFunc(options, func(o platform.Option) bool { return !given[o.Name] })
	if last != "" || at < 0 {
		return out, nil
	}
	t := &Typing{Path: path, Option: options[at], Typed: strings.Trim(typed, `"“”`), before: before}
	if typed == "" {
		for _, o := range options[at+1:] {
			if !given[o.Name] {
				out = append(out, Suggestion{Line: before + o.Name + "=", Label: o.Name + "=", About: o.Description})
			}
		}
	}
	return append(t.choices(), out...), t
}

// givenBy returns the options that the words have filled, and the one that takes further words.
func givenBy(options []platform.Option, list []token) (given map[string]bool, last string) {
	given = map[string]bool{}
	for _, t := range list {
		at := slices.IndexFunc(options, func(o platform.Option) bool { return t.name != "" && o.Name == t.name })
		if at < 0 {
			if last != "" {
				continue
			}
			at = slices.IndexFunc(options, func(o platform.Option) bool { return !given[o.Name] })
		}
		if at < 0 {
			return given, ""
		}
		given[options[at].Name] = true
		if last = options[at].Name; takesOne(options[at]) || t.quoted {
			last = ""
		}
	}
	return given, last
}

// choices are the values in the option's definition, or a description of what is expected.
func (t Typing) choices() (out []Suggestion) {
	o := t.Option
	add := func(value, label string) {
		if strings.HasPrefix(strings.ToLower(value), strings.ToLower(t.Typed)) {
			out = append(out, Suggestion{Line: t.With(value), Label: label, About: o.Description})
		}
	}
	for _, c := range o.Choices {
		add(c.Value, c.Label)
	}
	if o.Kind == platform.Flag {
		add("true", o.Name+"=true")
		add("false", o.Name+"=false")
	}
	if len(out) == 0 && len(o.Choices) == 0 && o.Kind != platform.Flag && t.Typed == "" {
		what := o.Name
		if !o.Required {
			what += " (optional)"
		}
		out = append(out, Suggestion{Label: what, About: o.Description})
	}
	return out
}

// Explain describes how to write a command, or lists a word's subcommands; "": there is none.
func Explain(list []platform.Command, words string) string {
	c, path, rest := Find(list, strings.TrimPrefix(strings.TrimSpace(words), "/"))
	switch {
	case path == "":
		return ""
	case c == nil:
		return usage(list, path, strings.TrimSpace(rest))
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s\n", written(strings.ReplaceAll(path, "/", " "), *c), c.Description)
	for _, o := range c.Options {
		fmt.Fprintf(&b, "- %s: %s\n", o.Name, o.Description)
	}
	return strings.TrimRight(b.String(), "\n")
}

// written is a command with its options as somebody would write it.
func written(words string, c platform.Command) string {
	words = "/" + words
	for _, o := range c.Options {
		if o.Required {
			words += " " + strings.ToUpper(o.Name)
		} else {
			words += " [" + strings.ToUpper(o.Name) + "]"
		}
	}
	return words
}
