package always

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"chorus/internal/permit"
	"chorus/internal/text"
)

// WriteProposals writes what "always allow" may mean for a command that a profile asks
// about, and which of the other commands each proposal would allow too, or why no rule can allow it.
func WriteProposals(w io.Writer, p *permit.Profile, command string, others []string, who permit.Who, asJSON bool) error {
	j := p.Judge([]permit.Request{permit.RequestOf(command)}, permit.JudgeOptions{Who: who})
	got := Propose(j, others...)
	never := ""
	if len(got) == 0 {
		never = Never(j)
	}
	if asJSON {
		return writeJSON(w, j.Verdict, got, never)
	}
	var b strings.Builder
	line := func(s string) string { return text.Clip(text.OneLine(s), 160) }
	if never != "" {
		b.WriteString(text.Clip(text.OneLine(never), 300) + "\n")
	}
	for i, g := range got {
		fmt.Fprintf(&b, "%d. %s\n", i+1, line(g.Means))
		for _, r := range g.Rules {
			fmt.Fprintf(&b, "   %s\n", line(r))
		}
		for _, a := range g.Also {
			fmt.Fprintf(&b, "   also: %s\n", line(a))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func writeJSON(w io.Writer, verdict permit.Verdict, proposals []Proposal, never string) error {
	type proposal struct {
		Rules []string `json:"rules"`
		Means string   `json:"means"`
		Also  []string `json:"also"`
		Still []string `json:"still"`
	}
	out := struct {
		Verdict   permit.Verdict `json:"verdict"`
		Proposals []proposal     `json:"proposals"`
		Never     string         `json:"never,omitempty"` // why there are none
	}{verdict, []proposal{}, never}
	for _, p := range proposals {
		out.Proposals = append(out.Proposals, proposal{p.Rules, p.Means, slices.Concat([]string{}, p.Also), slices.Concat([]string{}, p.Still)})
	}
	return text.WriteJSON(w, out)
}
