package permit

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Check writes the verdict of a preset or rules file on one action string; with
// asJSON also the rule. A shell action is taken apart as the gate does.
func Check(w io.Writer, rulesFileOrPreset, action string, asJSON bool) error {
	p, err := Load(rulesFileOrPreset)
	if err != nil {
		return err
	}
	d := p.Check(action)
	if !asJSON {
		_, err = fmt.Fprintln(w, d.Verdict)
		return err
	}
	return writeJSON(w, struct {
		Verdict Verdict `json:"verdict"`
		Rule    string  `json:"rule"`
		List    string  `json:"list"`
		Action  string  `json:"action"`
		Why     string  `json:"why,omitempty"`
	}{d.Verdict, d.Rule, d.List, d.Action, d.Why})
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
}

// Explain writes how a shell command is taken apart and judged: a tree for
// people, or JSON.
func Explain(w io.Writer, rulesFileOrPreset, command string, asJSON, color bool) error {
	p, err := Load(rulesFileOrPreset)
	if err != nil {
		return err
	}
	j := p.Judge([]Request{{Tool: "bash", Command: command}}, JudgeOptions{})
	if asJSON {
		out := struct {
			Verdict Verdict         `json:"verdict"`
			Rule    string          `json:"rule"`
			List    string          `json:"list"`
			Parts   []explainedPart `json:"parts"`
		}{j.Verdict, j.Decision.Rule, j.Decision.List, []explainedPart{}}
		for _, d := range j.Decisions {
			out.Parts = append(out.Parts, explainedPart{d.Argv, d.Verdict, d.Rule, d.Opaque, d.List, d.Kind, d.Action, d.Depth, d.Why})
		}
		return writeJSON(w, out)
	}
	_, err = io.WriteString(w, drawn(p.Name(), j, color))
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
