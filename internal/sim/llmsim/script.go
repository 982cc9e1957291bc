package llmsim

import (
	"fmt"
	"os"
	"strings"

	"chorus/internal/yamltext"
)

// Script is what a file can say: YAML or JSON.
//
//	turns:                                  # each answers one request, in order
//	  - text: I will look.
//	    delay: 20ms                         # before each frame
//	    calls: [{name: bash, args: {command: ls}, fragments: 3}]
//	  - calls: [{name: stop_task, args: {task_id: "{{id of Add tests}}"}}]   # as a result gave it
//	  - fault: {kind: status, code: 429, retryAfter: "2"}
//	  - text: cut in the middle
//	    fault: {kind: cut, after: 4}        # status, error, cut, eof, malformed, stall
//	rules:                                  # before the turns, when they fit
//	  - when: {contains: weather}           # or lastToolResultContains, systemContains, model, api
//	    times: 1
//	    turn: {text: sunny}
//	default: {text: that is all}            # instead of an echo
//	bench: {turns: 200, command: "true"}    # instead of all of the above
type Script struct {
	Turns   []Turn `yaml:"turns"`
	Rules   []Rule `yaml:"rules"`
	Default *Turn  `yaml:"default"`
	Bench   *Bench `yaml:"bench"`
}

// Rule answers matching requests, whatever else is waiting.
type Rule struct {
	When  When   `yaml:"when"`
	Times int    `yaml:"times"` // how often; 0: once per turn, or forever if there is one turn
	Turns []Turn `yaml:"turns"`
	Turn  *Turn  `yaml:"turn"` // short for one turn

	used int
}

// When is a condition on a request; all given fields must match.
type When struct {
	Contains               string `yaml:"contains"` // in the user's newest text
	LastToolResultContains string `yaml:"lastToolResultContains"`
	SystemContains         string `yaml:"systemContains"`
	Model                  string `yaml:"model"`
	API                    API    `yaml:"api"`
}

func (w When) fits(r Request) bool {
	return strings.Contains(r.LastUser(), w.Contains) &&
		strings.Contains(r.LastToolResult(), w.LastToolResultContains) &&
		strings.Contains(r.System, w.SystemContains) &&
		(w.Model == "" || w.Model == r.Model) && (w.API == "" || w.API == r.API)
}

func (r *Rule) turns() []Turn {
	if r.Turn != nil {
		return []Turn{*r.Turn}
	}
	return r.Turns
}

// spent reports whether the rule is used up.
func (r *Rule) spent() bool {
	turns := r.turns()
	switch {
	case len(turns) == 0:
		return true
	case r.Times > 0:
		return r.used >= r.Times
	default:
		return len(turns) > 1 && r.used >= len(turns)
	}
}

func (r *Rule) take() Turn {
	turns := r.turns()
	turn := turns[min(r.used, len(turns)-1)]
	r.used++
	return turn
}

// ReadScript reads a script from a file.
func ReadScript(path string) (Script, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return Script{}, fmt.Errorf("read script: %w", err)
	}
	s, err := ParseScript(data)
	if err != nil {
		return Script{}, fmt.Errorf("read script %s: %w", path, err)
	}
	return s, nil
}

// ParseScript reads a script. A list is a script of turns only. An unknown key or
// fault is an error that names the line.
func ParseScript(data []byte) (Script, error) {
	var s Script
	trimmed := strings.TrimSpace(string(data))
	if strings.HasPrefix(trimmed, "-") || strings.HasPrefix(trimmed, "[") {
		if err := yamltext.Read(data, &s.Turns); err != nil {
			return Script{}, err
		}
	} else if err := yamltext.Read(data, &s); err != nil {
		return Script{}, err
	}
	return s, s.check()
}

// check finds unknown values.
func (s Script) check() error {
	all := append([]Turn(nil), s.Turns...)
	for i := range s.Rules {
		if len(s.Rules[i].turns()) == 0 {
			return fmt.Errorf("rule %d has no turn", i+1)
		}
		all = append(all, s.Rules[i].turns()...)
	}
	if s.Default != nil {
		all = append(all, *s.Default)
	}
	for i, t := range all {
		switch t.Stop {
		case "", "end", "tools", "length", "stop_sequence", "refusal", "pause":
		default:
			return fmt.Errorf("turn %d: no stop %q; there are end, tools, length, stop_sequence, refusal, pause", i+1, t.Stop)
		}
		if t.Fault == nil {
			continue
		}
		switch t.Fault.Kind {
		case StreamError, Cut, EOF, Malformed, Stall:
		case Status:
			if t.Fault.Code < 400 || t.Fault.Code > 599 {
				return fmt.Errorf("turn %d: a status fault needs a code from 400 to 599", i+1)
			}
		default:
			return fmt.Errorf("turn %d: no fault %q; there are status, error, cut, eof, malformed, stall", i+1, t.Fault.Kind)
		}
	}
	return nil
}
