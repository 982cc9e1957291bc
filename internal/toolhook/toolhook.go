// Package toolhook runs the commands that the configuration names before and after calls of tools.
//
// A command reads the call as JSON on its input and answers with its exit code and, if it likes, JSON on its output,
// in the form that coding agents have in common: exit 0 lets the call pass, exit 2 denies it with what stands on the
// error output, and hookSpecificOutput can deny it or rewrite its arguments.
//
// It promises that a command before a call that fails, hangs or answers nonsense denies the call, with a sentence; that
// one after a call never changes what happened; and that no answer widens a right: what a command rewrites is judged
// like any other call, and its "allow" means nothing.
package toolhook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"chorus/internal/sandbox/process"
)

// The events.
const (
	Before = "before"
	After  = "after"
)

// DefaultTimeout is how long a command may take where nothing else is said.
const DefaultTimeout = 10 * time.Second

// maxAnswer is the most that is read of a command's output.
const maxAnswer = 1 << 20

// Hook is a command that runs before or after calls.
type Hook struct {
	Name    string
	Event   string
	Tools   string // which, separated by | as in "bash|write"; "" or "*": all
	Command string
	Timeout time.Duration
}

// Means reports whether a hook is for an event of a tool.
func (h Hook) Means(event, tool string) bool {
	if h.Event != event {
		return false
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

// Call is what a command reads.
type Call struct {
	Session  string          `json:"session_id"`
	Dir      string          `json:"cwd"`
	Event    string          `json:"hook_event_name"` // PreToolUse or PostToolUse
	Tool     string          `json:"tool_name"`
	Input    json.RawMessage `json:"tool_input"`
	Response *Response       `json:"tool_response,omitempty"`
}

// Response is what came of a call.
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
}

// answer is what a command may write.
type answer struct {
	Decision string `json:"decision"` // the older form: block
	Reason   string `json:"reason"`
	Specific struct {
		Decision string          `json:"permissionDecision"` // allow, deny or ask
		Reason   string          `json:"permissionDecisionReason"`
		Input    json.RawMessage `json:"updatedInput"`
		Context  string          `json:"additionalContext"`
	} `json:"hookSpecificOutput"`
}

// Before asks the hooks before a call. input is what the call has then; a denial is a sentence for the model.
func (r Runner) Before(ctx context.Context, call Call) (input json.RawMessage, denied string) {
	input, call.Event, call.Dir = call.Input, "PreToolUse", r.Dir
	for _, h := range r.Hooks {
		if !h.Means(Before, call.Tool) {
			continue
		}
		call.Input = input
		out, exit, stderr, err := r.run(ctx, h, call)
		switch {
		case err != nil:
			return nil, fmt.Sprintf("the hook %s could not be asked, so the call is not made: %v; whoever runs Chorus must mend its command", h.Name, err)
		case exit == 2:
			return nil, fmt.Sprintf("the hook %s denies it: %s", h.Name, orElse(stderr, "it gives no reason"))
		case exit != 0:
			return nil, fmt.Sprintf("the hook %s ended with the code %d, so the call is not made: %s", h.Name, exit, orElse(stderr, "it says nothing more"))
		case out.Decision == "block":
			return nil, fmt.Sprintf("the hook %s denies it: %s", h.Name, orElse(out.Reason, "it gives no reason"))
		case out.Specific.Decision == "deny", out.Specific.Decision == "ask": // nobody can be asked by a command
			return nil, fmt.Sprintf("the hook %s denies it: %s", h.Name, orElse(out.Specific.Reason, "it gives no reason"))
		}
		if len(out.Specific.Input) > 0 && string(out.Specific.Input) != "null" {
			input = out.Specific.Input
		}
	}
	return input, ""
}

// After tells the hooks of a call that was made. What they say is added to its result for the model.
func (r Runner) After(ctx context.Context, call Call) (more string) {
	call.Event, call.Dir = "PostToolUse", r.Dir
	var said []string
	for _, h := range r.Hooks {
		if !h.Means(After, call.Tool) {
			continue
		}
		out, exit, stderr, err := r.run(ctx, h, call)
		switch {
		case err != nil:
			said = append(said, fmt.Sprintf("[the hook %s failed after the call: %v]", h.Name, err))
		case exit == 2 && stderr != "":
			said = append(said, fmt.Sprintf("[the hook %s says: %s]", h.Name, stderr))
		case exit != 0:
			said = append(said, fmt.Sprintf("[the hook %s ended with the code %d after the call]", h.Name, exit))
		case out.Reason != "" || out.Specific.Context != "":
			said = append(said, fmt.Sprintf("[the hook %s says: %s]", h.Name, strings.TrimSpace(out.Reason+"\n"+out.Specific.Context)))
		}
	}
	return strings.Join(said, "\n")
}

func orElse(text, otherwise string) string {
	if text = strings.TrimSpace(text); text == "" {
		return otherwise
	}
	return text
}

// run runs a command in a group of its own, which ends with it.
func (r Runner) run(ctx context.Context, h Hook, call Call) (out answer, exit int, stderr string, err error) {
	limit := h.Timeout
	if limit <= 0 {
		limit = DefaultTimeout
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	input, err := json.Marshal(call)
	if err != nil {
		return out, 0, "", err
	}
	cmd := exec.CommandContext(ctx, process.Shell(), "-c", h.Command)
	process.Lead(cmd)
	cmd.Dir, cmd.Env, cmd.Stdin = r.Dir, process.Environ(r.Environ), bytes.NewReader(input)
	var stdout, failures limited
	cmd.Stdout, cmd.Stderr = &stdout, &failures
	cmd.Cancel = func() error { process.KillGroup(cmd); return nil }
	cmd.WaitDelay = time.Second
	err = cmd.Run()
	stderr = strings.TrimSpace(string(failures.data))
	var ended *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return out, 0, "", fmt.Errorf("it did not answer within %s", limit)
	case errors.As(err, &ended):
		return out, ended.ExitCode(), stderr, nil
	case err != nil:
		return out, 0, "", err
	case stdout.cut:
		return out, 0, "", fmt.Errorf("it answered with more than %d bytes", maxAnswer)
	}
	if text := bytes.TrimSpace(stdout.data); len(text) > 0 && text[0] == '{' {
		if err := json.Unmarshal(text, &out); err != nil {
			return out, 0, "", fmt.Errorf("its answer is no JSON that can be read: %w", err)
		}
	}
	return out, 0, stderr, nil
}

// limited keeps the beginning of what is written.
type limited struct {
	data []byte
	cut  bool
}

func (l *limited) Write(p []byte) (int, error) {
	if room := maxAnswer - len(l.data); room < len(p) {
		l.data, l.cut = append(l.data, p[:max(room, 0)]...), true
		return len(p), nil
	}
	l.data = append(l.data, p...)
	return len(p), nil
}
