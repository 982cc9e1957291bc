package repl

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"chorus/internal/text"
)

// Listed is a session that the person could continue.
type Listed struct {
	ID     string
	Active time.Time
	Title  string
}

const noOthers = "there is no other session here"

// Others is the answer to /resume without an id.
func Others(list []Listed) string {
	if len(list) == 0 {
		return noOthers
	}
	var out strings.Builder
	for _, l := range list {
		fmt.Fprintf(&out, "%s  %s  %s\n", l.ID, l.Active.Local().Format("2006-01-02 15:04"), text.Clip(strings.Join(strings.Fields(l.Title), " "), 60))
	}
	return out.String() + "continue one with /resume ID"
}

// ResumeChoices are the choices for /resume: sessions whose id begins with, or whose title contains, what was typed.
func ResumeChoices(list []Listed, typed string) (out []Completion) {
	for _, l := range list {
		title := text.Clip(strings.Join(strings.Fields(l.Title), " "), 60)
		if l.is(typed) {
			out = append(out, Completion{Line: "/resume " + l.ID, Label: cmp.Or(title, "(no words yet)"), About: l.Active.Local().Format("2006-01-02 15:04")})
		}
	}
	return out
}

// is reports whether a session is meant by the beginning of its id or a part of its title.
func (l Listed) is(typed string) bool {
	title := strings.Join(strings.Fields(l.Title), " ")
	return strings.HasPrefix(l.ID, typed) || strings.Contains(strings.ToLower(title), strings.ToLower(typed))
}

// Choose returns the one session that is meant by the beginning of its id or a part of its title.
func Choose(list []Listed, typed string) (Listed, error) {
	found := slices.DeleteFunc(slices.Clone(list), func(l Listed) bool { return !l.is(typed) })
	switch len(found) {
	case 0:
		return Listed{}, fmt.Errorf("there is no other recent session %q; /resume lists them", typed)
	case 1:
		return found[0], nil
	}
	return Listed{}, fmt.Errorf("%q means %d sessions; type more of the id or the title", typed, len(found))
}

// PlainBlock is an answer without its code fence, if it is a single block.
func PlainBlock(text string) string {
	inner, opens := strings.CutPrefix(text, "```\n")
	inner, closes := strings.CutSuffix(inner, "\n```")
	if !opens || !closes || strings.Contains(inner, "```") {
		return text
	}
	return inner
}

// Answer formats the answer to a command: wrapped on a terminal, unchanged in a pipe.
func Answer(text string, con Console) string {
	text = PlainBlock(text)
	if con.OutTTY {
		text = strings.Join(wrapRows(text, con.room()), "\n")
	}
	return text
}

// Cleared is the answer to /clear.
func Cleared(messages int) string {
	if messages == 0 {
		return "nothing was said yet"
	}
	return text.Count(messages, "message") + " left out from now on; the journal keeps them"
}

// FirstSentence is the part of a description that lists show.
func FirstSentence(description string) string {
	words := strings.Join(strings.Fields(description), " ")
	if i := strings.Index(words, ". "); i >= 0 {
		words = words[:i]
	}
	return text.Clip(strings.TrimSuffix(words, "."), 100)
}
