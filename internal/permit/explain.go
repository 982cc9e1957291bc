package permit

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"chorus/internal/permit/action"
	"chorus/internal/permit/canonical"
	"chorus/internal/permit/shell"
	"chorus/internal/text"
	"chorus/internal/theme"
)

// WriteCheck writes the verdict on one action string; with asJSON also the
// rule. It takes a shell action apart as Judge does.
func (p *Profile) WriteCheck(w io.Writer, action string, who Who, asJSON bool) error {
	d := p.For(who).Check(action)
	if !asJSON {
		_, err := fmt.Fprintln(w, d.Verdict)
		return err
	}
	return text.WriteJSON(w, struct {
		Verdict Verdict `json:"verdict"`
		Rule    string  `json:"rule"`
		List    string  `json:"list"`
		Action  string  `json:"action"`
		Why     string  `json:"why,omitempty"`
		Scope   string  `json:"scope,omitempty"`
	}{d.Verdict, d.Rule, d.List, d.Action, d.Why, d.Scope})
}

// Check judges an action string as if it were the call.
func (p *Profile) Check(given string) Decision {
	tool, detail, ok := action.Split(given)
	if !ok {
		return p.Decide(given)
	}
	tool, detail = canonicalName(tool, detail)
	if action.IsShell(tool) {
		return p.Judge([]Request{{Tool: tool, Command: detail}}, JudgeOptions{}).Decision
	}
	return p.Decide(given)
}

type explainedPart struct {
	Argv    []string   `json:"argv"`
	Verdict Verdict    `json:"verdict"`
	Rule    string     `json:"rule"`
	Opaque  bool       `json:"opaque"`
	List    string     `json:"list"`
	Kind    shell.Kind `json:"kind,omitempty"`
	Action  string     `json:"action"`
	Depth   int        `json:"depth"`
	Why     string     `json:"why,omitempty"`
	Scope   string     `json:"scope,omitempty"`
}

// WriteExplained writes how a shell command is taken apart and judged, as a tree for people
// or as JSON. If the text that is judged and run differs from the given one, it shows both.
// It also lists matching rules that are restricted to others.
func (p *Profile) WriteExplained(w io.Writer, command string, who Who, asJSON bool, look theme.Theme) error {
	j := p.Judge([]Request{{Tool: "bash", Command: command}}, JudgeOptions{Who: who, Guesses: true})
	others := p.forOthers(who, j)
	runs, err := canonical.Text(command)
	if given := strings.TrimSpace(command); err != nil || runs == given || strings.ReplaceAll(runs, "\n", "; ") == given {
		runs = "" // do not show the same text twice
	}
	if asJSON {
		out := struct {
			Verdict Verdict         `json:"verdict"`
			Rule    string          `json:"rule"`
			List    string          `json:"list"`
			Scope   string          `json:"scope,omitempty"`
			Runs    string          `json:"runs,omitempty"`
			Parts   []explainedPart `json:"parts"`
			Others  []string        `json:"rules_for_others,omitempty"`
		}{j.Verdict, j.Decision.Rule, j.Decision.List, j.Decision.Scope, runs, []explainedPart{}, others}
		for _, d := range j.Decisions {
			out.Parts = append(out.Parts, explainedPart{d.Argv, d.Verdict, d.Rule, d.Opaque, d.List, d.Kind, d.Action, d.Depth, d.Why, d.Scope})
		}
		return text.WriteJSON(w, out)
	}
	out := drawTree(p.Name(), j, look)
	if runs != "" {
		out = "given:  " + indented(command) + "\njudged: " + indented(runs) + "\n" + out
	}
	for _, o := range others {
		out += "for others: " + line(o) + "\n"
	}
	_, err = io.WriteString(w, out)
	return err
}

// indented aligns the lines of a command below each other and removes anything that could move the cursor.
func indented(command string) string {
	lines := strings.Split(strings.TrimSpace(command), "\n")
	for i := range lines {
		lines[i] = line(lines[i])
	}
	return strings.Join(lines, "\n        ")
}

// Explained describes one thing that a call would do, for people.
type Explained struct {
	Verdict Verdict
	Text    string // a command, or a tool and what it would do
	Depth   int    // how deep it is nested: 0 for the call itself
	Why     string // why the rules decide so; "" if there is nothing to add
}

// Explained lists the parts of a call in order, each before the parts it starts.
func (j Judgement) Explained() []Explained {
	out := make([]Explained, len(j.Decisions))
	for i, d := range j.Decisions {
		out[i] = Explained{d.Verdict, partText(d), d.Depth, plainReason(d)}
	}
	return out
}

// partText describes what a part does, without the shell's rule prefix.
func partText(d Decision) string {
	tool, detail, ok := action.Split(d.Action)
	switch {
	case !ok:
		return d.Action
	case tool == "bash":
		return detail
	}
	return tool + " " + detail
}

// plainReason is like reason, without regular expressions.
func plainReason(d Decision) string {
	switch {
	case d.List == ListCatastrophic:
		return "refused under every profile: " + d.Why
	case d.Why != "":
		return d.Why
	case d.List == ListImplicit:
		return "no rule covers it"
	case d.Verdict == Ask:
		return "" // the verdict says enough
	}
	return RuleName(d.Rule)
}

// forOthers lists the restricted rules that match some part but do not apply.
func (p *Profile) forOthers(who Who, j Judgement) []string {
	var out []string
	for i := range p.scoped {
		s := &p.scoped[i]
		if s.only.appliesTo(who) {
			continue
		}
		if slices.ContainsFunc(j.Decisions, func(d Decision) bool { return s.rule.matches(d.Action) }) {
			out = append(out, fmt.Sprintf("%s %s (%s)", s.list, text.Clip(s.rule.pattern, 72), s.rule.scope))
		}
	}
	return out
}

// drawTree draws the parts as a tree.
func drawTree(profile string, j Judgement, look theme.Theme) string {
	paint := func(v Verdict, s string) string {
		return look.Paint(map[Verdict]theme.Style{Allow: theme.Good, Ask: theme.Warn, Deny: theme.Bad}[v], s)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s under %s\n", paint(j.Verdict, j.Verdict.String()), profile)
	open := make([]bool, 0, 8) // which ancestors have a later sibling
	for i, d := range j.Decisions {
		later := false
		for _, n := range j.Decisions[i+1:] {
			if n.Depth <= d.Depth {
				later = n.Depth == d.Depth
				break
			}
		}
		for len(open) <= d.Depth {
			open = append(open, false)
		}
		open[d.Depth] = later
		for depth := range d.Depth {
			b.WriteString(map[bool]string{true: "│  ", false: "   "}[open[depth]])
		}
		b.WriteString(map[bool]string{true: "├─ ", false: "└─ "}[later])
		fmt.Fprintf(&b, "%s  %s  (%s)\n", paint(d.Verdict, fmt.Sprintf("%-5s", d.Verdict)), line(partText(d)), reason(d))
	}
	return b.String()
}

func reason(d Decision) string {
	var s string
	switch {
	case d.List == ListCatastrophic:
		return "refused under every profile: " + d.Why
	case d.List == ListImplicit:
		s = "no rule"
	case d.Rule == "" && d.Kind == shell.KindWrapper:
		s = "only starts the commands below"
	case d.Rule == "" && d.Kind == shell.KindGuess:
		s = "if variables have the values that the script assigns"
	case d.Rule == "":
		s = "needs no rule of its own"
	default:
		s = d.List + " " + text.Clip(d.Rule, 72)
		if d.Scope != "" {
			s += " for " + d.Scope
		}
	}
	if d.Why != "" {
		s += "; " + d.Why
	}
	return s
}

// line shortens a text to one line of output.
func line(s string) string { return text.Clip(text.OneLine(s), 160) }
