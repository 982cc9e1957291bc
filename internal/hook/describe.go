package hook

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"chorus/internal/text"
)

// Sentences describe what a hook does, in order, for people who decide whether it may.
func (h Hook) Sentences() (out []string) {
	for i, s := range h.Steps {
		out = append(out, fmt.Sprintf("step_%d: %s", i, s.sentence()))
	}
	if strings.TrimSpace(h.Template) != "" {
		asks := "asks " + cmp.Or(h.Model, "the model of the agent "+h.Agent)
		if h.Budget > 0 {
			asks += ", for at most " + text.Dollars(float64(h.Budget)/1e9)
		}
		out = append(out, asks)
	} else {
		out = append(out, "asks no model")
	}
	for _, a := range h.Actions {
		out = append(out, a.sentence())
	}
	if h.Cooldown > 0 {
		out = append(out, "then rests for "+h.Cooldown.String())
	}
	return out
}

func (s Step) sentence() string {
	var out string
	switch s.Type {
	case Shell:
		out = "runs " + s.Command + atMost(s.Timeout)
	case ReadFile:
		out = "reads " + s.Path
	case HTTP:
		out = "asks for " + s.URL + atMost(s.Timeout)
	case Query:
		out = "looks up " + s.Query
	case GitDiff:
		out = "compares the repository with " + cmp.Or(s.BaseBranch, "its main branch")
		if s.Uncommitted {
			out += ", including uncommitted changes"
		}
	case Search:
		out = "searches files for " + s.Query
	}
	if s.Type == GitDiff || s.Type == Search {
		out += below(s.Path)
	}
	switch {
	case s.SkipIfExitZero:
		out += "; if it succeeds, nothing more is done"
	case s.SkipIfStatusOK:
		out += "; if the response is a success, nothing more is done"
	}
	if s.SkipIfEmpty {
		out += "; if it finds nothing, nothing more is done"
	}
	return out
}

func (a Action) sentence() string {
	switch a.Type {
	case Say:
		return fmt.Sprintf("says %q in the session %s", a.Text, a.Session)
	case Shell:
		return "runs " + a.Command + atMost(a.Timeout)
	default:
		return strings.TrimSpace("calls " + a.Name + " " + string(a.Args))
	}
}

func atMost(seconds int) string {
	if seconds == 0 {
		return ""
	}
	return " (at most " + (time.Duration(seconds) * time.Second).String() + ")"
}

func below(path string) string {
	if path == "" {
		return ""
	}
	return " in " + path
}

// NextTimes returns when a periodic trigger is due next, at most most times.
func (t Trigger) NextTimes(after time.Time, most int) (out []time.Time) {
	for range most {
		if after = t.Next(after); after.IsZero() {
			break
		}
		out = append(out, after)
	}
	return out
}
