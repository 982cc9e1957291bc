// Package approvalcard writes approvals for a chat platform: the card that people answer, and all that there is to know about one.
// It promises that what people say yes to is shown as it would be done: no mark is applied to it, and characters that nobody sees are spelled out.
package approvalcard

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"chorus/internal/approval"
	"chorus/internal/chat"
	"chorus/internal/markdown"
	"chorus/internal/operations"
	"chorus/internal/permit"
	"chorus/internal/permit/action"
	"chorus/internal/platform"
	"chorus/internal/room/mark"
	"chorus/internal/room/render"
	"chorus/internal/room/split"
)

// The sizes of a card: the whole of it stays below 2,000 characters. What would be changed has the room that the rest leaves.
const (
	maxCard    = 1990
	maxActions = 700
	maxUnbound = 300
	maxRisk    = 200
	maxLines   = 15
	maxPreview = 600
)

// Writer writes approvals for one platform.
type Writer struct {
	Platform string // its name, as principals have it
	Caps     platform.Caps
}

// Text is an approval with what is needed to answer it, and the answer once there is
// one. asker is the id of whoever asked for the run. clipped reports that not all of it is there.
func (w Writer) Text(c render.Card, asker string) (text string, clipped bool) {
	var b strings.Builder
	block := func(kind, s string, most int) {
		seen := literal(s)
		clipped = clipped || seen != s || split.Length(seen) > most
		if seen = split.Clip(seen, most); seen != "" {
			b.WriteString(fence(kind, seen))
		}
	}
	if approval.IsQuestion(c.Actions) {
		return w.questionText(c, asker)
	}
	b.WriteString("**" + title(c.Tool) + "**\n")
	lines := strings.Split(plainActions(c.Tool, c.Actions), "\n")
	if len(lines) > maxLines {
		lines, clipped = append(lines[:maxLines:maxLines], "…"), true
	}
	block("", strings.Join(lines, "\n"), maxActions)
	foot, cut := w.foot(c, asker)
	clipped = clipped || cut
	block("diff", c.Preview, min(maxPreview, maxCard-split.Length(b.String()+fence("diff", "")+foot)))
	return strings.TrimSpace(b.String() + foot), clipped
}

// risks are the grades of risk as a card shows them.
var risks = map[string]string{"low": "Low risk.", "medium": "Medium risk.", "high": "High risk."}

// title asks for a call of a tool.
func title(tool string) string {
	if action.IsShell(tool) {
		return "May I run this command?"
	}
	return "May I use `" + mark.Line(tool, 60) + "`?"
}

// fence is a block of code.
func fence(kind, text string) string { return "```" + kind + "\n" + text + "\n```\n" }

// foot is what stands below the call that is asked for: why it is asked, who may answer, and the answer.
func (w Writer) foot(c render.Card, asker string) (text string, clipped bool) {
	var b strings.Builder
	if grade := risks[c.Risk]; grade != "" {
		b.WriteString(strings.TrimSpace("**"+grade+"** "+mark.Words(c.RiskWhy, maxRisk)) + "\n")
	}
	small := func(label, text string) {
		if text != "" {
			clipped = clipped || split.Length(text) > maxUnbound
			b.WriteString(mark.Small(label+mark.Words(text, maxUnbound)) + "\n")
		}
	}
	small("", c.Why)
	small("Not covered by your approval: ", c.Unbound)
	switch name := permit.RuleName(c.Rule); {
	case name != "":
		small("Rule: ", name)
	case c.Rule != "":
		clipped = true // the expression is in the details
		b.WriteString(mark.Small("Rule: one of this installation's own") + "\n")
	}
	switch {
	case c.Open:
		b.WriteString(w.openText(c, asker))
	case c.By == "" || c.By == approval.BySystem:
		b.WriteString(mark.Small("No longer needed.\n"))
	case c.By == approval.ByDeadline:
		fmt.Fprintf(&b, "%s **Denied**", render.SignNot)
	case c.OK:
		fmt.Fprintf(&b, "%s **Allowed** by %s", render.SignDone, w.People(c.By))
	default:
		fmt.Fprintf(&b, "%s **Denied** by %s", render.SignNot, w.People(c.By))
	}
	if !c.Open && c.Note != "" && c.By != approval.BySystem {
		fmt.Fprintf(&b, ": %s", split.Clip(c.Note, 200))
	}
	return b.String(), clipped
}

// plainActions are what a call would do, a line each, without the word for rules in front of them.
func plainActions(tool string, list []string) string {
	out := make([]string, len(list))
	for i, action := range list {
		rest, named := strings.CutPrefix(action, "tool:")
		if out[i] = rest; named {
			out[i] = strings.TrimPrefix(rest, tool+":")
		}
	}
	return strings.Join(out, "\n")
}

// questionText is a question of somebody else than the agent, which is answered with words.
func (w Writer) questionText(c render.Card, asker string) (text string, clipped bool) {
	var b strings.Builder
	_, from, _ := strings.Cut(c.Actions[0], ":")
	asked := c.Preview
	if len(c.Fields) > 0 {
		asked += "\n\n" + approval.HowToAnswer(c.Fields)
	}
	seen := literal(asked)
	clipped = seen != asked || split.Length(seen) > maxActions
	fmt.Fprintf(&b, "**A question for you** from `%s`\n```\n%s\n```\n", mark.Line(from, 80), split.Clip(seen, maxActions))
	switch {
	case c.Open:
		if c.Why != "" { // an answer that did not fit
			clipped = clipped || split.Length(c.Why) > maxUnbound
			b.WriteString(mark.Small("Asked again: "+mark.Words(c.Why, maxUnbound)) + "\n")
		}
		if !c.Until.IsZero() {
			b.WriteString(mark.Small("Waits until " + mark.Time(c.Until) + ".\n"))
		}
		if rule, err := approval.ParseWho(c.Who); err == nil {
			b.WriteString(mark.Small("Who can answer: " + w.whoMay(rule, asker) + "\n"))
		}
		way := "with your answer, yes to take what is suggested, or no"
		switch {
		case len(c.Fields) == 0:
			way = "yes or no"
		case slices.ContainsFunc(c.Fields, func(f chat.Field) bool { return !f.Optional && len(f.Values) == 0 }):
			way = "with your answer, or no"
		}
		start := "Reply "
		if w.Caps.Forms {
			start = "Press a button, or reply "
		}
		b.WriteString(mark.Small(start + way + "."))
	case c.By == "" || c.By == approval.BySystem:
		b.WriteString(mark.Small("No longer needed.\n"))
	case c.By == approval.ByDeadline:
		b.WriteString(mark.Small("Nobody answered in time.\n"))
	case c.OK:
		fmt.Fprintf(&b, "%s **Answered** by %s", render.SignDone, w.People(c.By))
	default:
		fmt.Fprintf(&b, "%s **Declined** by %s", render.SignNot, w.People(c.By))
	}
	return strings.TrimSpace(b.String()), clipped
}

// Panel is how a card looks.
func (w Writer) Panel(c render.Card) platform.Panel {
	switch {
	case w.Caps.MaxPanel == 0:
		return ""
	case c.Open:
		return platform.PanelAsk
	case c.By == "" || c.By == approval.BySystem || c.By == approval.ByDeadline:
		return platform.PanelOver
	case c.OK:
		return platform.PanelYes
	default:
		return platform.PanelNo
	}
}

// literal is text for a block of code, where no star is taken for a mark and nothing between
// bars is hidden: what people say yes to must be what is done. Characters that nobody sees, or
// that turn others round, are spelled out.
func literal(s string) string {
	return strings.ReplaceAll(markdown.Visible(s), "```", "'''")
}

// openText is who is waited for, and until when.
func (w Writer) openText(c render.Card, asker string) string {
	var b strings.Builder
	rule, err := approval.ParseWho(c.Who)
	switch {
	case c.FirstYes != "":
		b.WriteString(mark.Small(fmt.Sprintf("%s Approved by %s (1 of 2); one more person must approve.\n", render.SignDone, w.People(c.FirstYes))))
	case err == nil && rule.Two:
		b.WriteString(mark.Small("Two people must approve (0 of 2).\n"))
	}
	if err == nil {
		b.WriteString(mark.Small("Who can answer: " + w.whoMay(rule, asker) + "\n"))
	}
	if !c.Until.IsZero() {
		b.WriteString(mark.Small("Without an answer by " + mark.Time(c.Until) + " it is denied.\n"))
	}
	var ways []string
	if w.Caps.Buttons {
		ways = append(ways, "press a button")
	}
	if w.Caps.Reactions {
		ways = append(ways, "react with "+render.SignDone+" or "+render.SignNot)
	}
	ways = append(ways, "reply yes, no or what to do instead")
	how := strings.Join(ways[:len(ways)-1], ", ")
	if how != "" {
		how += ", or "
	}
	how += ways[len(ways)-1] + "."
	b.WriteString(mark.Small(strings.ToUpper(how[:1]) + how[1:]))
	return b.String()
}

// MayNot tells somebody why their answer does not count, and whose would.
func (w Writer) MayNot(a approval.Approval, by chat.Principal) (string, error) {
	rule, err := approval.ParseWho(a.Who)
	if err != nil {
		return "", err
	}
	if may, _ := approval.MayAnswer(rule, a, by); may {
		return "You have approved this already; another person must approve it too.", nil
	}
	asker := ""
	if string(a.AskedBy.Kind) == w.Platform {
		asker = a.AskedBy.ID
	}
	return "You cannot answer this. Ask " + w.whoMay(rule, asker) + ".", nil
}

// whoMay is whose answer counts; asker is whoever asked for the run, "": nobody of this platform.
func (w Writer) whoMay(rule approval.Who, asker string) string {
	var who []string
	if rule.Anyone {
		who = append(who, "anyone here")
	}
	switch {
	case rule.Asker && asker != "":
		who = append(who, mark.Person(asker))
	case rule.Asker:
		who = append(who, "the person who asked")
	}
	for _, role := range rule.Roles {
		who = append(who, "anyone with the role "+role)
	}
	if rule.Local {
		who = append(who, "the person at the terminal")
	}
	return strings.Join(who, " or ")
}

// Details is all that there is to know about an approval.
func Details(q operations.Approval) platform.Answer {
	var out strings.Builder
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&out, "%s: %s\n", name, value)
		}
	}
	line("tool", q.Tool)
	line("asked by", cmp.Or(q.AskedByName, q.AskedBy))
	line("works in", q.Dir)
	line("risk", chat.Assessment{Risk: q.Risk, RiskWhy: q.RiskWhy}.Line())
	for _, part := range q.Parts {
		line("part, "+part.Verdict, part.Text)
	}
	line("rule", q.Rule)
	line("reason", q.Reason)
	line("changed since it was last approved", q.Again)
	line("not covered by the approval", q.Unbound)
	line("who can answer", q.Who)
	line("state", q.State)
	line("answered by", cmp.Or(q.AnsweredByName, q.AnsweredBy))
	line("note", q.Note)
	for _, v := range q.Votes {
		line("answer of "+cmp.Or(v.ByName, v.By), map[bool]string{true: "yes", false: "no"}[v.OK]+" "+v.Note)
	}
	for _, action := range q.Actions {
		line("action", action)
	}
	fmt.Fprintf(&out, "\narguments:\n%s\n", readable(q.ArgsJSON))
	if q.Preview != "" {
		fmt.Fprintf(&out, "\nwhat it would change:\n%s\n", q.Preview)
	}
	return platform.Answer{Text: "The file has everything about this approval.", File: platform.File{Name: "approval.txt", Text: markdown.Visible(out.String())}}
}

// readable writes arguments so that people can read them: a command as it would be typed.
func readable(raw string) string {
	var args map[string]any
	if json.Unmarshal([]byte(raw), &args) != nil {
		return raw
	}
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(args)) {
		text, ok := args[key].(string)
		if !ok {
			data, _ := json.Marshal(args[key]) // it came as JSON
			text = string(data)
		}
		if strings.Contains(text, "\n") {
			text = "\n" + text
		}
		fmt.Fprintf(&b, "%s: %s\n", key, text)
	}
	return strings.TrimRight(b.String(), "\n")
}

// People writes principals so that the platform shows the names of its own people.
func (w Writer) People(by string) string {
	names := strings.Split(by, " and ")
	for i, name := range names {
		if id, ok := strings.CutPrefix(name, w.Platform+":"); ok {
			names[i] = mark.Person(id)
		}
	}
	return strings.Join(names, " and ")
}
