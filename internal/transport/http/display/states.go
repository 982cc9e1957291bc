package display

import (
	"cmp"
	"strings"

	"chorus/internal/permit"
)

// Status is the status of a session for people.
func Status(status string) string {
	switch status {
	case "idle":
		return "ready"
	case "running":
		return "working"
	case "queued":
		return "queued: others run first"
	case "waiting":
		return "waiting for approval"
	case "failed":
		return "the last run failed"
	}
	return status
}

// Actions are what a call would do, a line each. The prefix that rules have before a shell
// command is left out.
func Actions(list []string) string {
	out := make([]string, len(list))
	for i, action := range list {
		out[i] = strings.TrimPrefix(action, "tool:bash:")
	}
	return strings.Join(out, "\n")
}

// RuleTitle is what a rule is called where its expression is behind a click; "": it is a word itself.
func RuleTitle(rule string) string {
	if name := permit.RuleName(rule); name != "" || !strings.ContainsAny(rule, ":*([\\") {
		return name
	}
	return "a rule of this installation"
}

// Decision says how something was decided, for people; programs and addresses have the word itself.
func Decision(decision string) string {
	switch decision {
	case "allow":
		return "allowed"
	case "deny":
		return "refused"
	case "ask_approved":
		return "asked, allowed"
	case "ask_denied":
		return "asked, refused"
	}
	return decision
}

// SkillState is the state of a skill for people.
func SkillState(status string) string {
	switch status {
	case "new", "changed":
		return status + ", to be looked at"
	case "overridden":
		return "another of this name counts"
	}
	return status
}

// Period is a period of costs for people.
func Period(since string) string {
	switch since {
	case "24h":
		return "the last 24 hours"
	case "7d":
		return "the last 7 days"
	case "30d":
		return "the last 30 days"
	case "month":
		return "this month"
	}
	return since
}

// Verdict is what the rules say of a part.
func Verdict(verdict string) string {
	switch verdict {
	case "allow":
		return "allowed"
	case "ask":
		return "asked"
	case "deny":
		return "denied"
	}
	return verdict
}

// ToolRule says what the rules of an agent mean for a tool.
func ToolRule(verdict string) string {
	switch verdict {
	case "deny":
		return "refused"
	case "depends":
		return "rules decide"
	case "ask":
		return "asked for"
	case "allow":
		return "allowed"
	}
	return cmp.Or(verdict, "—")
}

// TrialVerdict is what a profile that is tried out would do with a call.
func TrialVerdict(verdict string) string {
	switch verdict {
	case "allow":
		return "allowed"
	case "ask":
		return "asked"
	}
	return "refused"
}
