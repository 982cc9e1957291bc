package repl

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"sort"
	"strings"

	"chorus/internal/approval"
	"chorus/internal/chat"
	"chorus/internal/markdown"
	"chorus/internal/permit"
	"chorus/internal/theme"
)

// card is an approval with everything needed to answer it. Nothing in it is cut
// or hidden: control characters are spelled out.
func card(a approval.Approval, label string, width int, look theme.Theme) []string {
	width = max(width, 20)
	bar := look.Paint(theme.Warn, "│") + " "
	room := width - 2
	title := "Allow " + visibleLine(a.Call.Name) + " to run this?"
	if approval.IsQuestion(a.Actions) {
		title = "A question for you"
	}
	out := []string{look.Paint(theme.Warn, "┌ ") + look.Paint(theme.Strong, markdown.Truncate(title, room))}
	args := arguments(a.Call.Args, a.Preview != "")
	column := len("does") // the names form a column as wide as the longest, within limits
	for _, arg := range args {
		column = max(column, min(markdown.Width(arg.name), room/3))
	}
	rows := func(name string, lines []string) {
		for i, line := range lines {
			head := strings.Repeat(" ", column)
			if i == 0 {
				head = markdown.Truncate(visibleLine(name), column)
				head += strings.Repeat(" ", column-markdown.Width(head))
			}
			out = append(out, bar+look.Paint(theme.Faint, head)+"  "+line)
		}
	}
	row := func(name, value string) { rows(name, hardWrap(markdown.Visible(value), room-column-2)) }
	words := func(name, value string) { // our own text, whose spaces mean nothing
		rows(name, markdown.Wrap(markdown.Visible(value), max(room-column-2, 8)))
	}
	for _, arg := range args {
		row(arg.name, arg.value)
	}
	if a.Dir != "" {
		row("in", a.Dir)
	}
	if does := doesLines(a); does != "" {
		row("does", does)
	}
	if a.Rule != "" {
		words("rule", cmp.Or(permit.RuleName(a.Rule), a.Rule))
	}
	if len(a.Parts) > 1 {
		row("parts", partLines(a.Parts))
	}
	if a.Risk != "" {
		words("risk", a.Line())
	}
	if a.Reason != "" && !strings.Contains(a.Line(), a.Reason) {
		words("why", a.Reason)
	}
	if a.Again != "" {
		words("now", "asked again: "+a.Again)
	}
	if unbound := approval.Unbound(a.Bound); unbound != "" {
		words("note", "not covered: "+unbound)
	}
	if a.NeedsTwo() {
		words("who", "two people must approve ("+a.Who+")")
	}
	if label != "" && len(a.Call.Args) == 0 {
		row("", label)
	}
	if a.Preview != "" {
		out = append(out, bar)
		for _, line := range markdown.Diff(a.Preview, room, look) {
			out = append(out, bar+line)
		}
	}
	return out
}

// partLines are the parts of a call with the verdict of the rules on each, nested as they start each other.
func partLines(parts []chat.JudgedPart) string {
	var b strings.Builder
	for _, p := range parts {
		fmt.Fprintf(&b, "%s%-5s  %s", strings.Repeat("  ", p.Depth), p.Verdict, visibleLine(p.Text))
		if p.Why != "" {
			fmt.Fprintf(&b, "  (%s)", visibleLine(p.Why))
		}
		b.WriteByte('\n')
	}
	return strings.TrimSuffix(b.String(), "\n")
}

const choices = "[y]es  [n]o  [a]lways…  (n and words: no, with that note)"

// numberedChoices are the same for a screen reader.
const numberedChoices = "1 [y]es, 2 [n]o, 3 [a]lways; n and words is a no with that note:"

// questionChoices are the ways to answer a question that needs more than yes or no.
const questionChoices = "your answer, [y]es for the suggestion, or [n]o to decline"

// readAnswer parses the answer to a question: a no, a yes to its suggestion, or the answer itself.
func readAnswer(line string) (v verdict, ok bool) {
	switch line = strings.TrimSpace(line); strings.ToLower(line) {
	case "":
		return verdict{}, false
	case "n", "no":
		return verdict{}, true
	case "y", "yes":
		return verdict{ok: true}, true
	}
	return verdict{ok: true, note: line}, true
}

// doesLines are the actions of a call, if its arguments do not already show them: one per line, without the rule prefix.
func doesLines(a approval.Approval) string {
	if approval.IsQuestion(a.Actions) {
		return ""
	}
	own := "tool:" + a.Call.Name + ":"
	others := func(action string) bool { return !strings.HasPrefix(action, own) }
	if len(a.Parts) > 1 && !slices.ContainsFunc(a.Actions, others) {
		return "" // the command is shown above, its parts below
	}
	if len(a.Actions) == 1 {
		_, detail, _ := strings.Cut(strings.TrimPrefix(a.Actions[0], "tool:"), ":")
		if slices.ContainsFunc(arguments(a.Call.Args, false), func(arg argument) bool { return arg.value == detail }) {
			return ""
		}
	}
	out := make([]string, len(a.Actions))
	for i, action := range a.Actions {
		out[i] = strings.TrimPrefix(strings.TrimPrefix(action, own), "tool:")
	}
	return strings.Join(out, "\n")
}

type argument struct{ name, value string }

// arguments lists the arguments of a call, the short ones first. Long text that a
// diff shows anyway is only counted.
func arguments(raw []byte, hasDiff bool) []argument {
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		if len(bytes.TrimSpace(raw)) == 0 {
			return nil
		}
		return []argument{{"arguments", string(raw)}}
	}
	var out []argument
	for name, value := range fields {
		text := string(value)
		var s string
		if json.Unmarshal(value, &s) == nil {
			text = s
		} else if pretty := (&bytes.Buffer{}); json.Indent(pretty, value, "", "  ") == nil {
			text = pretty.String()
		}
		// Two lines are easy to read; longer text is in the diff, line by line.
		if hasDiff && (len(text) > 200 || strings.Count(text, "\n") > 1) {
			text = fmt.Sprintf("(%d bytes, the change is shown below)", len(text))
		}
		out = append(out, argument{name, text})
	}
	sort.Slice(out, func(i, j int) bool {
		if a, b := strings.Contains(out[i].value, "\n"), strings.Contains(out[j].value, "\n"); a != b {
			return b
		}
		return out[i].name < out[j].name
	})
	return out
}

// hardWrap breaks lines exactly at the column, so that no space is lost.
func hardWrap(s string, width int) []string {
	return markdown.Diff(s, max(width, 8), theme.Theme{})
}

func visibleLine(s string) string { return strings.ReplaceAll(markdown.Visible(s), "\n", `\n`) }

// verdict is a person's answer to a card.
type verdict struct {
	ok     bool
	always bool
	note   string
	step   *approval.Step // to be kept
}

// readVerdict parses what was typed. Anything but a clear answer is no verdict:
// a prompt typed by mistake must not approve or deny.
func readVerdict(line string) (v verdict, ok bool) {
	line = strings.TrimSpace(line)
	word, rest, _ := strings.Cut(line, " ")
	rest = strings.TrimSpace(rest)
	switch strings.ToLower(strings.TrimRight(word, ",:;.")) {
	case "y", "yes":
		return verdict{ok: true}, rest == ""
	case "a", "always":
		return verdict{ok: true, always: true}, rest == ""
	case "n", "no":
		return verdict{note: rest}, true
	}
	return verdict{}, false
}
