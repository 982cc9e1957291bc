package approvalview

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"chorus/internal/approval"
	"chorus/internal/markdown"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/transport/cli"
)

// Rules lists the rules that were kept.
func Rules(v cli.View, _ operation.None, list operation.List[operations.KeptRule]) error {
	t := operation.Table{Head: []string{"ID", "SINCE", "BY", "AGENT", "IN", "RULE"}}
	for _, k := range list.Items {
		where := k.Dir
		if k.Channel != "" {
			where += " (" + k.Channel + ")"
		}
		t.Rows = append(t.Rows, []string{k.ID, k.At.Local().Format("2006-01-02 15:04"), cmp.Or(k.ByName, k.By), k.Agent, where, RuleLine(k)})
	}
	return cli.WriteTable(v, t, operations.ListRules.Empty)
}

// RuleLine formats rules in one line.
func RuleLine(k operations.KeptRule) string {
	return cli.ClipLine(markdown.Visible(strings.Join(k.Rules, " ")), 100)
}

// Always shows, step by step, what "always" would allow.
func Always(w io.Writer, what string, o operations.RuleProposal) {
	fmt.Fprintf(w, "%s\nalways, %s:\n", what, o.Where)
	for i, s := range o.Rules {
		fmt.Fprintf(w, "%d  %s\n", i+1, markdown.Visible(s.Means))
		for _, r := range approval.Step(s).Rows() {
			fmt.Fprintf(w, "   %-11s  %s\n", r.Name, strings.ReplaceAll(markdown.Visible(r.Text), "\n", "\n"+strings.Repeat(" ", 16)))
		}
	}
}
