package work

import (
	"slices"
	"strings"
)

// ErrorKind classifies why an attempt failed, for people.
type ErrorKind string

// The kinds.
const (
	ErrorNone       ErrorKind = ""
	ErrorAuth       ErrorKind = "auth"
	ErrorRateLimit  ErrorKind = "rate_limit"
	ErrorBudget     ErrorKind = "budget"
	ErrorContext    ErrorKind = "context"
	ErrorTimeout    ErrorKind = "timeout"
	ErrorNetwork    ErrorKind = "network"
	ErrorDenied     ErrorKind = "denied"
	ErrorStopped    ErrorKind = "stopped"
	ErrorSteps      ErrorKind = "steps"
	ErrorGit        ErrorKind = "git"
	ErrorConflict   ErrorKind = "conflict"
	ErrorWorker     ErrorKind = "worker"
	ErrorUnexpected ErrorKind = "unexpected"
)

// explanations give the title of each kind and what to do about it.
var explanations = map[ErrorKind][2]string{
	ErrorAuth:       {"Authentication error", "Check the provider's key: chorus doctor names it."},
	ErrorRateLimit:  {"Rate limit", "Wait: the task continues by itself. It helps to let the project work on fewer tasks at once (max_concurrent_agents of edit_project)."},
	ErrorBudget:     {"Budget spent", "Raise the budget or wait until the next day: chorus costs shows what was spent."},
	ErrorContext:    {"Context window full", "Divide the task into smaller ones."},
	ErrorTimeout:    {"Timeout", "Divide the task into smaller ones, or raise the worker's deadline."},
	ErrorNetwork:    {"Network error", "Check the connection to the provider: chorus doctor looks at it."},
	ErrorDenied:     {"Permission denied", "Allow what it needs in the agent's profile, or say in the description how to do without."},
	ErrorStopped:    {"Cancelled", "Restart the task when it should continue (restart_task)."},
	ErrorSteps:      {"Step limit reached", "Divide the task into smaller ones, or raise the agent's maxSteps."},
	ErrorGit:        {"Git error", "Look at the repository: chorus git status (get_git_status)."},
	ErrorConflict:   {"Merge conflict", "Reopen the task to let its worker resolve it, or create a task that resolves it: chorus task resolve-conflict (resolve_conflict)."},
	ErrorWorker:     {"Worker failed", "Look at the worker's log on the task's page."},
	ErrorUnexpected: {"Unexpected error", "Look at the task's conversation; restarting the task tries again (restart_task)."},
}

// Title returns the kind's title for people.
func (k ErrorKind) Title() string {
	if e, ok := explanations[k]; ok {
		return e[0]
	}
	return "Unknown error"
}

// Fix says what to do.
func (k ErrorKind) Fix() string {
	if e, ok := explanations[k]; ok {
		return e[1]
	}
	return "Look at the task's conversation; restarting the task tries again (restart_task)."
}

// Temporary reports whether waiting helps, so that it costs no retry.
func (k ErrorKind) Temporary() bool { return k == ErrorRateLimit || k == ErrorBudget }

// KindOfOutput classifies the output of a failed foreign program by whole words: "author" does
// not mean authentication. It is for programs that report nothing better.
func KindOfOutput(text string) ErrorKind {
	words := map[string]bool{}
	lower := strings.ToLower(text)
	for _, w := range strings.FieldsFunc(lower, func(r rune) bool { return !('a' <= r && r <= 'z' || '0' <= r && r <= '9' || r == '_') }) {
		words[w] = true
	}
	has := func(phrases ...string) bool {
		return slices.ContainsFunc(phrases, func(p string) bool {
			return strings.Contains(p, " ") && strings.Contains(lower, p) || words[p]
		})
	}
	switch {
	case has("rate_limit", "rate_limit_error", "429", "overloaded_error", "rate limit"):
		return ErrorRateLimit
	case has("authentication", "authentication_error", "unauthorized", "401", "invalid api key", "not logged in"):
		return ErrorAuth
	case has("quota", "usage limit", "credit balance", "billing_error"):
		return ErrorBudget
	case has("prompt is too long", "context window", "context_length_exceeded"):
		return ErrorContext
	case has("timeout", "timed out", "deadline exceeded"):
		return ErrorTimeout
	case has("permission denied", "eacces", "permission_denied"):
		return ErrorDenied
	case has("cancelled", "canceled", "interrupted"):
		return ErrorStopped
	default:
		return ErrorUnexpected
	}
}
