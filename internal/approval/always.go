package approval

import (
	"strings"
)

// Always is what "always" may mean for an approval. It is shown before anything is
// kept, and a person picks one of its steps.
type Always struct {
	Steps []Step
	Where string // for whom and where it would hold
	Never string // why nothing can be kept; then there are no steps
}

// Step is one set of rules. The first allows exactly what was asked, each further one
// what the one before it allows, and more.
type Step struct {
	Rules []string
	Means string
	Also  []string // samples of what else it would allow
	Still []string // samples of what would be asked all the same
}

// Row is a line of a proposal as people read it.
type Row struct{ Name, Text string }

// Rows are the step as a small table.
func (s Step) Rows() []Row {
	var out []Row
	for i, r := range s.Rules {
		out = append(out, Row{[]string{"rule", ""}[min(i, 1)], r})
	}
	add := func(name string, list []string) {
		if len(list) > 0 {
			out = append(out, Row{name, strings.Join(list, "\n")})
		}
	}
	if len(s.Also) == 0 {
		out = append(out, Row{"also allows", "nothing else"})
	}
	add("also allows", s.Also)
	add("still asks", s.Still)
	return out
}
