// Package skillview shows skills, and what approving one would mean, at a terminal.
package skillview

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"chorus/internal/markdown"
	"chorus/internal/operations"
	"chorus/internal/text"
	"chorus/internal/transport/cli"
)

// Show prints a skill. Control sequences in its text are removed.
func Show(v cli.View, s operations.SkillDetail) error {
	var rows details
	head(&rows, s.Skill)
	rows.add("license", s.License)
	rows.add("needs", s.Compatibility)
	rows.add("called with", s.ArgumentHint)
	for _, name := range slices.Sorted(maps.Keys(s.Metadata)) {
		rows.add(name, s.Metadata[name])
	}
	for _, remark := range s.Remarks {
		rows.add("remark", remark)
	}
	for _, f := range s.Files {
		kind := ""
		switch {
		case f.Link != "":
			kind = " -> " + f.Link
		case f.Exec:
			kind = " (executable)"
		}
		rows.add("file", f.Path+kind)
	}
	if err := v.Details(rows); err != nil || s.Body == "" {
		return err
	}
	_, err := fmt.Fprint(v.Out, markdown.Visible("\n"+s.Body+"\n"))
	return err
}

// details are names with their values.
type details [][2]string

// add adds a line unless the value is empty.
func (d *details) add(name, value string) {
	if value != "" {
		*d = append(*d, [2]string{markdown.Visible(text.OneLine(name)), markdown.Visible(text.OneLine(value))})
	}
}

func head(rows *details, s operations.Skill) {
	rows.add("name", s.Name)
	rows.add("id", s.ID)
	rows.add("status", s.Status)
	rows.add("problem", s.Problem)
	rows.add("scope", s.Scope)
	rows.add("description", s.Description)
	rows.add("folder", s.Path)
	if len(s.AllowedTools) > 0 {
		rows.add("asks for", strings.Join(s.AllowedTools, ", ")+" (grants it no rights)")
	}
	if s.Hidden {
		rows.add("called", "by people only: /"+s.Name)
	}
	if s.ApprovedBy != "" {
		rows.add("approved", s.ApprovedAt.Local().Format("2006-01-02 15:04")+" by "+cmp.Or(s.ApprovedName, s.ApprovedBy))
	}
}

// ShowDiff prints what somebody would approve.
func ShowDiff(v cli.View, d operations.SkillDiff) error {
	var rows details
	head(&rows, d.Skill)
	for _, other := range d.InsteadOf {
		rows.add("same name", other)
	}
	if err := v.Details(rows); err != nil {
		return err
	}
	var b strings.Builder
	if len(d.Changes) == 0 {
		b.WriteString("\nnothing has changed since it was approved\n")
	} else {
		fmt.Fprintf(&b, "\n%s:\n", text.Count(len(d.Changes), "difference"))
	}
	for _, c := range d.Changes {
		fmt.Fprintf(&b, "\n%s %s\n%s", c.Path, c.How, c.Diff)
		if c.Diff != "" && !strings.HasSuffix(c.Diff, "\n") {
			b.WriteString("\n")
		}
	}
	_, err := fmt.Fprint(v.Out, markdown.Visible(b.String()))
	return err
}
