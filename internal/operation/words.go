package operation

import (
	"regexp"
	"strings"

	"chorus/internal/pattern"
)

var toolWord = pattern.Lazy("`([a-z]+(?:_[a-z]+)+)`")

// Words translates the commands that a text names into the form of a place. Texts name commands by their tools, in
// backquotes: `list_tasks` becomes `chorus task list` at a terminal and `/task list` in a chat. Agents and programs read
// them unchanged.
func (s *Set) Words(place, text string) string {
	if !strings.Contains(text, "`") {
		return text
	}
	return toolWord().ReplaceAllStringFunc(text, func(word string) string {
		d, ok := s.Tool(strings.Trim(word, "`"))
		switch {
		case ok && place == InCLI && len(d.CLI) > 0:
			return "`chorus " + d.CLI[0].Words + "`"
		case ok && place == InSlash && len(d.Slash) > 0:
			return "`/" + d.Slash[0].Words + "`"
		}
		return word
	})
}

// NamedIn translates the field that an error is about into the form of a place: project_id becomes --project at a terminal.
func (d *Definition) NamedIn(place string, err error) error {
	ours, ok := err.(*Error)
	if !ok || ours.Field == "" {
		return err
	}
	f, known := d.Field(ours.Field)
	tool, _, asTool := f.In(AsTool)
	here, _, isHere := f.In(place)
	if !known || !asTool || !isHere || !strings.Contains(tool, "_") {
		return err
	}
	if place == InCLI {
		here = "--" + here
		for _, c := range d.CLI {
			for _, a := range c.Arguments() {
				if f.Is(InCLI, a.Field) {
					here = strings.ToUpper(a.Field)
				}
			}
		}
	}
	said := *ours
	said.Message = regexp.MustCompile(`\b`+regexp.QuoteMeta(tool)+`\b`).ReplaceAllString(ours.Message, here)
	return &said
}
