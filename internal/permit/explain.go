package permit

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Check writes the verdict of a preset or rules file on one action string of
// somebody; with asJSON also the rule. A shell action is taken apart as the gate does.
func Check(w io.Writer, rulesFileOrPreset, action string, who Who, asJSON bool) error {
	p, err := Load(rulesFileOrPreset)
	if err != nil {
		return err
	}
	return p.WriteCheck(w, action, who, asJSON)
}

// WriteCheck is Check for a profile that is there already.
func (p *Profile) WriteCheck(w io.Writer, action string, who Who, asJSON bool) error {
	d := p.For(who).Check(action)
	if !asJSON {
		_, err := fmt.Fprintln(w, d.Verdict)
		return err
	}
	return writeJSON(w, struct {
		Verdict Verdict `json:"verdict"`
		Rule    string  `json:"rule"`
		List    string  `json:"list"`
		Action  string  `json:"action"`
		Why     string  `json:"why,omitempty"`
		Scope   string  `json:"scope,omitempty"`
	}{d.Verdict, d.Rule, d.List, d.Action, d.Why, d.Scope})
}

// Check judges an action string as the gate would judge the call it stands for.
func (p *Profile) Check(action string) Decision {
	tool, detail, ok := Split(action)
	if !ok {
		return p.Decide(action)
	}
	tool, detail = toCanonical(tool, detail)
	if slices.Contains(shellTools, tool) {
		return p.Judge([]Request{{Tool: tool, Command: detail}}, JudgeOptions{}).Decision
	}
	return p.Decide(action)
}

type explainedPart struct {
	Argv    []string `json:"argv"`
	Verdict Verdict  `json:"verdict"`
	Rule    string   `json:"rule"`
	Opaque  bool     `json:"opaque"`
	List    string   `json:"list"`
	Kind    Kind     `json:"kind,omitempty"`
	Action  string   `json:"action"`
	Depth   int      `json:"depth"`
	Why     string   `json:"why,omitempty"`
	Scope   string   `json:"scope,omitempty"`
}

// Explain writes how a shell command of somebody is taken apart and judged: a tree
// for people, or JSON. Rules for others that speak of it are named too.
func Explain(w io.Writer, rulesFileOrPreset, command string, who Who, asJSON, color bool) error {
	p, err := Load(rulesFileOrPreset)
	if err != nil {
		return err
	}
	return p.WriteExplained(w, command, who, asJSON, color)
}

// WriteExplained is Explain for a profile that is there already.
func (p *Profile) WriteExplained(w io.Writer, command string, who Who, asJSON, color bool) error {
	j := p.Judge([]Request{{Tool: "bash", Command: command}}, JudgeOptions{Who: who, Guesses: true})
	others := p.forOthers(who, j)
	if asJSON {
		out := struct {
			Verdict Verdict         `json:"verdict"`
			Rule    string          `json:"rule"`
			List    string          `json:"list"`
			Scope   string          `json:"scope,omitempty"`
			Parts   []explainedPart `json:"parts"`
			Others  []string        `json:"rules_for_others,omitempty"`
		}{j.Verdict, j.Decision.Rule, j.Decision.List, j.Decision.Scope, []explainedPart{}, others}
		for _, d := range j.Decisions {
			out.Parts = append(out.Parts, explainedPart{d.Argv, d.Verdict, d.Rule, d.Opaque, d.List, d.Kind, d.Action, d.Depth, d.Why, d.Scope})
		}
		return writeJSON(w, out)
	}
	text := drawn(p.Name(), j, color)
	for _, o := range others {
		text += "for others: " + oneLine(o) + "\n"
	}
	_, err := io.WriteString(w, text)
	return err
}

// forOthers lists the restricted rules that speak of some part and do not apply.
func (p *Profile) forOthers(who Who, j Judgement) []string {
	var out []string
	for i := range p.scoped {
		s := &p.scoped[i]
		if s.only.appliesTo(who) {
			continue
		}
		if slices.ContainsFunc(j.Decisions, func(d Decision) bool { return s.rule.matches(d.Action) }) {
			out = append(out, fmt.Sprintf("%s %s (%s)", s.list, shortened(s.rule.pattern, 72), s.rule.scope))
		}
	}
	return out
}

// Propose writes what "always allow" may mean for a command that is asked for, and
// what of the other commands each proposal would allow as well.
func Propose(w io.Writer, rulesFileOrPreset, command string, others []string, who Who, asJSON bool) error {
	p, err := Load(rulesFileOrPreset)
	if err != nil {
		return err
	}
	return p.WriteProposals(w, command, others, who, asJSON)
}

// WriteProposals is Propose for a profile that is there already.
func (p *Profile) WriteProposals(w io.Writer, command string, others []string, who Who, asJSON bool) error {
	j := p.Judge([]Request{requestOf(command)}, JudgeOptions{Who: who})
	got := Narrow(j, others...)
	if asJSON {
		type proposal struct {
			Rules []string `json:"rules"`
			Means string   `json:"means"`
			Also  []string `json:"also"`
			Still []string `json:"still"`
		}
		out := struct {
			Verdict   Verdict    `json:"verdict"`
			Proposals []proposal `json:"proposals"`
		}{j.Verdict, []proposal{}}
		for _, g := range got {
			out.Proposals = append(out.Proposals, proposal{g.Rules, g.Means, slices.Concat([]string{}, g.Also), slices.Concat([]string{}, g.Still)})
		}
		return writeJSON(w, out)
	}
	var b strings.Builder
	if len(got) == 0 {
		b.WriteString(map[Verdict]string{Allow: "allowed already", Ask: "no rule can allow this unasked", Deny: "denied; an allow rule changes nothing"}[j.Verdict])
		if why := j.Decision.Why; why != "" {
			b.WriteString(": " + oneLine(why))
		}
		b.WriteString("\n")
	}
	for i, g := range got {
		fmt.Fprintf(&b, "%d. %s\n", i+1, oneLine(g.Means))
		for _, r := range g.Rules {
			fmt.Fprintf(&b, "   %s\n", oneLine(r))
		}
		for _, a := range g.Also {
			fmt.Fprintf(&b, "   also: %s\n", oneLine(a))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func writeJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// drawn is the tree for people.
func drawn(profile string, j Judgement, color bool) string {
	paint := func(v Verdict, s string) string {
		if !color {
			return s
		}
		return fmt.Sprintf("\x1b[%dm%s\x1b[0m", map[Verdict]int{Allow: 32, Ask: 33, Deny: 31}[v], s)
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
		_, text, _ := Split(d.Action)
		tool, _, _ := Split(d.Action)
		if tool != "bash" {
			text = tool + " " + text
		}
		fmt.Fprintf(&b, "%s  %s  (%s)\n", paint(d.Verdict, fmt.Sprintf("%-5s", d.Verdict)), oneLine(text), reason(d))
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
	case d.Rule == "" && d.Kind == KindWrapper:
		s = "only starts what stands below"
	case d.Rule == "" && d.Kind == KindGuess:
		s = "as far as the script tells"
	case d.Rule == "":
		s = "needs no rule of its own"
	default:
		s = d.List + " " + shortened(d.Rule, 72)
		if d.Scope != "" {
			s += " for " + d.Scope
		}
	}
	if d.Why != "" {
		s += "; " + d.Why
	}
	return s
}

// oneLine keeps control characters of a command off the terminal.
func oneLine(s string) string {
	q := strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0:
			return '\uFFFD'
		}
		return r
	}, s)
	return shortened(q, 160)
}

func shortened(s string, most int) string {
	if r := []rune(s); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return s
}
