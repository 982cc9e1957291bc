package display

import (
	"cmp"
	"strings"

	"chorus/internal/permit"
	"chorus/internal/permit/action"
)

// Status is the status of a session for people.
func Status(status string) string {
	return cmp.Or(map[string]string{
		"idle": "ready", "running": "working", "queued": "queued: others run first", "waiting": "waiting for approval",
		"interrupted": "interrupted: the program running it ended",
		"failed":      "the last run failed",
	}[status], status)
}

// FirstSentence is how a text begins: up to the full stop that ends a sentence, or its first paragraph.
func FirstSentence(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n\n")
	s = strings.Join(strings.Fields(s), " ")
	if first, _, more := strings.Cut(s, ". "); more {
		return first + "."
	}
	return s
}

// TaskState is the state of a task or a project for people: "awaiting approval" of AWAITING_APPROVAL.
func TaskState(state string) string { return strings.ToLower(strings.ReplaceAll(state, "_", " ")) }

// Actions lists what a call would do, one action per line, in words instead of the form that rules have: tool:NAME:DETAIL.
func Actions(list []string) string {
	out := make([]string, len(list))
	for i, a := range list {
		out[i] = action.Words(a)
	}
	return strings.Join(out, "\n")
}

// RuleTitle is the title of a rule whose expression is shown on demand; "": the rule is a plain word.
func RuleTitle(rule string) string {
	if name := permit.RuleName(rule); name != "" || !strings.ContainsAny(rule, ":*([\\") {
		return name
	}
	return "a rule of this installation"
}

// SkillState is the state of a skill for people.
func SkillState(status string) string {
	switch status {
	case "new", "changed":
		return status + ", needs approval"
	case "overridden":
		return "overridden by another of this name"
	}
	return status
}

// Period is a period of costs for people.
func Period(since string) string {
	return cmp.Or(map[string]string{"24h": "the last 24 hours", "7d": "the last 7 days", "30d": "the last 30 days", "month": "this month"}[since], since)
}

// Verdict says what the rules decide about a part.
func Verdict(verdict string) string {
	return cmp.Or(map[string]string{"allow": "allowed", "ask": "asked", "deny": "denied"}[verdict], verdict)
}

// ToolRule says what the rules of an agent mean for a tool.
func ToolRule(verdict string) string {
	return cmp.Or(map[string]string{"deny": "refused", "depends": "depends on the call", "ask": "asked", "allow": "allowed"}[verdict], verdict, "—")
}

// TrialVerdict says what a profile would do with a call.
func TrialVerdict(verdict string) string {
	switch verdict {
	case "allow":
		return "allowed"
	case "ask":
		return "asked"
	}
	return "refused"
}
