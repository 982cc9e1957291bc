package approval

import (
	"strings"
)

// Always describes what "always" can mean for an approval. It is shown before
// anything is stored, and a person picks one of its steps.
type Always struct {
	Steps []Step
	Where string // for whom and where it would apply
	Never string // why nothing can be stored; there are then no steps
}

// Step is one set of rules. The first step allows exactly what was asked. Each
// further one allows what the previous one allows, and more.
type Step struct {
	Rules []string
	Means string
	Also  []string // examples of what else it would allow
	Still []string // examples of what would still be asked
}

// Row is a line of a proposal for people.
type Row struct{ Name, Text string }

// Rows returns the step as a small table.
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
