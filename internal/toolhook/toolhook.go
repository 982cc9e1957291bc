// Package toolhook runs commands before and after tool calls. The
// configuration, or a repository that somebody trusts, names them.
//
// A command reads the call as JSON on its input. It answers with its exit code and optionally
// JSON on its output, in the format common to coding agents: exit 0 lets the call pass, exit 2
// denies it with the text on the error output, and hookSpecificOutput can deny it, require a
// person's approval, or rewrite its arguments.
//
// A command before a call that fails, hangs or gives an invalid answer denies the call, with a
// sentence. A command after a call never changes what happened. No answer extends rights: a
// rewritten call is judged like any other, and "allow" has no effect.
package toolhook

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"time"

	"chorus/internal/sandbox/process"
)

// The events.
const (
	Before = "before"
	After  = "after"
)

// DefaultTimeout is how long a command may take by default.
const DefaultTimeout = 10 * time.Second

// maxAnswer is how much of a command's output is read.
const maxAnswer = 1 << 20

// Hook is a command that runs before or after calls.
type Hook struct {
	Name    string
	Event   string
	Tools   string // separated by |, as in "bash|write"; "" or "*" for all
	Command string
	Timeout time.Duration
	// File is the repository's file that defines it; "" if the person's own configuration does.
	File string

	matches *regexp.Regexp // instead of Tools
	claude  bool           // its file was written for another program, whose tool names are used
}

// Means reports whether a hook is for this event of this tool.
func (h Hook) Means(event, tool string) bool {
	if h.Event != event {
		return false
	}
	if h.matches != nil {
		return h.matches.MatchString(tool) || h.matches.MatchString(claudeName(tool))
	}
	if h.Tools == "" || h.Tools == "*" {
		return true
	}
	for name := range strings.SplitSeq(h.Tools, "|") {
		if strings.EqualFold(strings.TrimSpace(name), tool) {
			return true
		}
	}
	return false
}

// Call is the input of a command.
type Call struct {
	Session  string          `json:"session_id"`
	Dir      string          `json:"cwd"`
	Event    string          `json:"hook_event_name"` // PreToolUse or PostToolUse
	Tool     string          `json:"tool_name"`
	Input    json.RawMessage `json:"tool_input"`
	Response *Response       `json:"tool_response,omitempty"`
}

// Response is the result of a call.
type Response struct {
	Text   string `json:"text"`
	Failed bool   `json:"failed"`
	Exit   int    `json:"exit_code"`
}

// Runner runs the hooks of a run.
type Runner struct {
	Hooks   []Hook
	Dir     string
	Environ []string
	// Isolated runs the command of a repository's hook where the agent's own
	// commands run. An error says why it did not run.
	Isolated func(ctx context.Context, h Hook, stdin []byte, limit time.Duration) (Ended, error)
}

// Ended is how a command ended.
type Ended struct {
	Stdout, Stderr string
	Exit           int
}

// answer is the output of a command.
type answer struct {
	Decision   string `json:"decision"` // the older form: block
	Reason     string `json:"reason"`
	Continue   *bool  `json:"continue"`
	StopReason string `json:"stopReason"`
	Specific   struct {
		Decision string          `json:"permissionDecision"` // allow, deny or ask
		Reason   string          `json:"permissionDecisionReason"`
		Input    json.RawMessage `json:"updatedInput"`
		Context  string          `json:"additionalContext"`
	} `json:"hookSpecificOutput"`
}

// denies returns why an answer denies a call, or false.
func (a answer) denies() (why string, denied bool) {
	switch {
	case a.Specific.Decision == "deny":
		return a.Specific.Reason, true
	case a.Decision == "block" || a.Decision == "deny":
		return a.Reason, true
	case a.Continue != nil && !*a.Continue:
		return a.StopReason, true
	}
	return "", false
}

func (a answer) check() error {
	switch a.Specific.Decision {
	case "", "allow", "deny", "ask":
		return nil
	}
	return fmt.Errorf("it answered the permissionDecision %.40q, which must be allow, deny or ask", a.Specific.Decision)
}

// Verdict is the result of the hooks before a call.
type Verdict struct {
	Input  json.RawMessage // the arguments after the hooks
	Denied string          // a sentence for the model; "" if it is not denied
	Ask    string          // why a person must be asked, whatever the rules say; "" leaves it to the rules
}

// Before runs the hooks before a call.
func (r Runner) Before(ctx context.Context, call Call) Verdict {
	out := Verdict{Input: call.Input}
	call.Event, call.Dir = "PreToolUse", r.Dir
	var asks []string
	for _, h := range r.Hooks {
		if !h.Means(Before, call.Tool) {
			continue
		}
		call.Input = out.Input
		said, exit, stderr, err := r.run(ctx, h, call)
		why, denied := said.denies()
		switch {
		case err != nil:
			return Verdict{Denied: fmt.Sprintf("the hook %s could not be asked, so the call is not made: %v; whoever runs Chorus must fix its command", h.Name, err)}
		case exit == 2:
			return Verdict{Denied: fmt.Sprintf("the hook %s denies it: %s", h.Name, cmp.Or(strings.TrimSpace(stderr), "it gives no reason"))}
		case exit != 0:
			return Verdict{Denied: fmt.Sprintf("the hook %s ended with the code %d, so the call is not made: %s", h.Name, exit, cmp.Or(strings.TrimSpace(stderr), "it says nothing more"))}
		case denied:
			return Verdict{Denied: fmt.Sprintf("the hook %s denies it: %s", h.Name, cmp.Or(strings.TrimSpace(why), "it gives no reason"))}
		case said.Specific.Decision == "ask":
			asks = append(asks, fmt.Sprintf("the hook %s wants it asked for: %s", h.Name, cmp.Or(strings.TrimSpace(said.Specific.Reason), "it gives no reason")))
		}
		if len(said.Specific.Input) > 0 && string(said.Specific.Input) != "null" {
			out.Input = h.ownInput(call, said.Specific.Input)
		}
	}
	out.Ask = strings.Join(asks, "; ")
	return out
}

// After tells the hooks about a call that was made. What they say is added to its result for the model.
func (r Runner) After(ctx context.Context, call Call) (more string) {
	call.Event, call.Dir = "PostToolUse", r.Dir
	var said []string
	for _, h := range r.Hooks {
		if !h.Means(After, call.Tool) {
			continue
		}
		out, exit, stderr, err := r.run(ctx, h, call)
		why := strings.TrimSpace(out.Reason + "\n" + out.StopReason + "\n" + out.Specific.Context)
		switch {
		case err != nil:
			said = append(said, fmt.Sprintf("[the hook %s failed after the call: %v]", h.Name, err))
		case exit == 2 && stderr != "":
			said = append(said, fmt.Sprintf("[the hook %s says: %s]", h.Name, stderr))
		case exit != 0:
			said = append(said, fmt.Sprintf("[the hook %s ended with the code %d after the call]", h.Name, exit))
		case why != "":
			said = append(said, fmt.Sprintf("[the hook %s says: %s]", h.Name, why))
		}
	}
	return strings.Join(said, "\n")
}

// run runs a hook.
func (r Runner) run(ctx context.Context, h Hook, call Call) (out answer, exit int, stderr string, err error) {
	limit := h.Timeout
	if limit <= 0 {
		limit = DefaultTimeout
	}
	input, err := json.Marshal(h.shown(call))
	if err != nil {
		return out, 0, "", err
	}
	run := r.direct
	if h.File != "" {
		if run = r.Isolated; run == nil {
			return out, 0, "", errors.New("there is nowhere to run it")
		}
	}
	ended, err := run(ctx, h, input, limit)
	if err != nil {
		return out, 0, "", err
	}
	stderr = strings.TrimSpace(ended.Stderr)
	if ended.Exit != 0 {
		return out, ended.Exit, stderr, nil
	}
	if len(ended.Stdout) > maxAnswer {
		return out, 0, "", fmt.Errorf("it answered with more than %d bytes", maxAnswer)
	}
	if text := strings.TrimSpace(ended.Stdout); strings.HasPrefix(text, "{") {
		if err := json.Unmarshal([]byte(text), &out); err != nil {
			return out, 0, "", fmt.Errorf("its answer is not valid JSON: %w", err)
		}
	}
	return out, 0, stderr, out.check()
}

// direct runs a command of the person's own configuration in a process group of its own, which ends with it.
func (r Runner) direct(ctx context.Context, h Hook, stdin []byte, limit time.Duration) (Ended, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, process.Shell(), "-c", h.Command)
	process.Lead(cmd)
	cmd.Dir, cmd.Env, cmd.Stdin = r.Dir, process.Environ(r.Environ), bytes.NewReader(stdin)
	var stdout, failures limited
	cmd.Stdout, cmd.Stderr = &stdout, &failures
	cmd.Cancel = func() error { process.KillGroup(cmd); return nil }
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	out := Ended{Stdout: string(stdout.data), Stderr: string(failures.data)}
	var ended *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return out, Late(limit)
	case errors.As(err, &ended):
		out.Exit = ended.ExitCode()
		return out, nil
	}
	return out, err
}

// Late returns the error for a command that did not answer in time.
func Late(limit time.Duration) error { return fmt.Errorf("it did not answer within %s", limit) }

// limited keeps the beginning of what is written: one byte more than
// allowed, so that an answer that is too long is noticed.
type limited struct{ data []byte }

func (l *limited) Write(p []byte) (int, error) {
	room := max(maxAnswer+1-len(l.data), 0)
	l.data = append(l.data, p[:min(room, len(p))]...)
	return len(p), nil
}
