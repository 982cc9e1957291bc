package hook

import (
	"encoding/json"
	"fmt"
	"strings"
)

// The maximum stored length of a result's texts, in bytes.
const (
	maxOutput = 50_000
	maxErrors = 10_000
)

// Result is the result of a step or an action. Its fields depend on the type.
type Result struct {
	Type    string          `json:"type,omitempty"`
	Stdout  string          `json:"stdout,omitempty"`
	Stderr  string          `json:"stderr,omitempty"`
	Content string          `json:"content,omitempty"`
	Body    string          `json:"body,omitempty"`
	Diff    string          `json:"diff,omitempty"`
	Rows    json.RawMessage `json:"rows,omitempty"`
	Count   *int            `json:"count,omitempty"`
	Exit    *int            `json:"exit_code,omitempty"`
	Status  *int            `json:"status_code,omitempty"`
	Error   string          `json:"error,omitempty"`
	Denied  bool            `json:"denied,omitempty"` // it was not allowed and did not run
}

// Text returns the output of a step: the first of its texts that is not empty, or else the whole result.
func (r Result) Text() string {
	for _, s := range []string{r.Stdout, r.Content, r.Body, r.Diff} {
		if s != "" {
			return s
		}
	}
	r.Type = ""
	data, _ := json.Marshal(r) // text and numbers only
	return string(data)
}

// Bounded returns the result with long texts shortened.
func (r Result) Bounded() Result {
	for _, s := range []*string{&r.Stdout, &r.Content, &r.Body, &r.Diff} {
		*s = bound(*s, maxOutput)
	}
	r.Stderr, r.Error = bound(r.Stderr, maxErrors), bound(r.Error, maxErrors)
	if len(r.Rows) > maxOutput {
		r.Rows, r.Error = nil, fmt.Sprintf("the rows have more than %d bytes; ask for fewer with the parameter limit", maxOutput)
	}
	return r
}

func bound(s string, most int) string {
	if len(s) <= most {
		return s
	}
	cut := most
	for cut > 0 && s[cut]&0xC0 == 0x80 {
		cut--
	}
	return s[:cut] + fmt.Sprintf("\n[cut: %d more bytes]", len(s)-cut)
}

// empty reports whether a step ran and found nothing. A failed step has no findings.
func (r Result) empty() bool {
	if r.Error != "" {
		return false
	}
	if r.Count != nil {
		return *r.Count == 0
	}
	return strings.TrimSpace(r.Stdout+r.Content+r.Body+r.Diff) == ""
}

// Skip says why no model is asked and nothing is done after these
// steps: the first condition that is met, or "".
func Skip(steps []Step, results []Result) string {
	for i, r := range results {
		if i >= len(steps) {
			break
		}
		switch s := steps[i]; {
		case s.SkipIfExitZero && r.Exit != nil && *r.Exit == 0:
			return fmt.Sprintf("step_%d: exit code 0 (skip_llm_if_exit_zero)", i)
		case s.SkipIfEmpty && r.empty():
			return fmt.Sprintf("step_%d: output empty (skip_llm_if_empty)", i)
		case s.SkipIfStatusOK && r.Status != nil && *r.Status >= 200 && *r.Status < 300:
			return fmt.Sprintf("step_%d: HTTP %d (skip_llm_if_status_ok)", i, *r.Status)
		}
	}
	return ""
}
