// Package codex works with the codex command line: codex exec, whose events are lines of JSON.
//
// It guarantees what package worker requires. Codex does not ask before it
// acts; its sandbox and ours limit what it can do.
package codex

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"

	"chorus/internal/chat"
	"chorus/internal/work"
	"chorus/internal/worker"
)

// Codex is a worker.
type Codex struct {
	worker.Program
	Command []string // "" for codex
	Args    []string // in addition to ours
	Model   string
}

var _ worker.Worker = (*Codex)(nil)

// Argv returns the command to start it.
func (c *Codex) Argv(job worker.Job) []string {
	argv := append([]string(nil), c.Command...)
	if len(argv) == 0 {
		argv = []string{"codex"}
	}
	argv = append(argv, "exec", "--json", "--skip-git-repo-check", "-C", job.Dir)
	if c.Model != "" {
		argv = append(argv, "-m", c.Model)
	}
	if len(c.Args) == 0 {
		argv = append(argv, "--sandbox", "workspace-write")
	}
	argv = append(argv, c.Args...)
	if job.Session != "" {
		argv = append(argv, "resume", job.Session)
	}
	return append(argv, "-")
}

// Work implements worker.Worker.
func (c *Codex) Work(ctx context.Context, job worker.Job, host worker.Host) (worker.Outcome, error) {
	r := NewReader(host)
	err := c.Run(ctx, c.Argv(job), job.Key, host, func(t *worker.Talk) error {
		defer t.CloseInput()
		return t.Write([]byte(job.Prompt))
	}, func(_ *worker.Talk, line []byte) (bool, error) { return r.Line(line) })
	return worker.Outcome{Summary: r.last}, err
}

// Reader reads what codex prints.
type Reader struct {
	host  worker.Host
	begun map[string]bool
	last  string // its last text
	texts bool   // whether the last thing was text
	fault string // a reported error, which may be the last
}

// NewReader returns a reader for a host.
func NewReader(host worker.Host) *Reader { return &Reader{host: host, begun: map[string]bool{}} }

type event struct {
	Type     string `json:"type"`
	ThreadID string `json:"thread_id"`
	Message  string `json:"message"`
	Item     item   `json:"item"`
	Usage    struct {
		Input  int `json:"input_tokens"`
		Cached int `json:"cached_input_tokens"`
		Output int `json:"output_tokens"`
	} `json:"usage"`
	Error struct {
		Message string `json:"message"`
	} `json:"error"`
}

type item struct {
	ID        string          `json:"id"`
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Command   string          `json:"command"`
	Output    string          `json:"aggregated_output"`
	Exit      *int            `json:"exit_code"`
	Status    string          `json:"status"`
	Server    string          `json:"server"`
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
	Result    json.RawMessage `json:"result"`
	Query     string          `json:"query"`
	Message   string          `json:"message"`
	Changes   []struct {
		Path string `json:"path"`
		Kind string `json:"kind"`
	} `json:"changes"`
}

// Line reads one line. over says that the work is done. Lines that are not events are ignored.
func (r *Reader) Line(line []byte) (over bool, err error) {
	var e event
	if json.Unmarshal(line, &e) != nil {
		return false, nil
	}
	switch e.Type {
	case "thread.started":
		if e.ThreadID != "" {
			return false, r.host.Session(e.ThreadID)
		}
	case "item.started", "item.updated", "item.completed":
		return false, r.item(e.Item, e.Type == "item.completed")
	case "turn.completed":
		u := e.Usage
		return true, r.host.Used(chat.Usage{Input: max(u.Input-u.Cached, 0), CacheRead: u.Cached, Output: u.Output})
	case "turn.failed":
		return false, failure(cmp.Or(e.Error.Message, r.fault, "codex says that its turn failed, but not why"))
	case "error":
		r.fault = e.Message // it may try again
	}
	return false, nil
}

func (r *Reader) item(i item, done bool) error {
	switch i.Type {
	case "agent_message":
		if !done || i.Text == "" {
			return nil
		}
		text := i.Text
		if r.last = i.Text; r.texts {
			text = "\n\n" + text
		}
		r.texts = true
		return r.host.Said(text)
	case "reasoning":
		if done {
			return r.host.Thought(i.Text)
		}
		return nil
	case "error":
		r.fault = i.Message
		return nil
	case "todo_list":
		return nil
	}
	call, ok := i.call()
	if !ok {
		return nil
	}
	r.texts = false
	if !r.begun[i.ID] {
		r.begun[i.ID] = true
		if err := r.host.Began(call); err != nil {
			return err
		}
	}
	if !done {
		return nil
	}
	return r.host.Ended(i.result())
}

func (i item) call() (worker.Call, bool) {
	c := worker.Call{ID: i.ID}
	args := map[string]any{}
	switch i.Type {
	case "command_execution":
		c.Name, args["command"] = "shell", i.Command
	case "file_change":
		c.Name, args["changes"] = "apply_patch", i.Changes
	case "web_search":
		c.Name, args["query"] = "web_search", i.Query
	case "mcp_tool_call":
		c.Name, c.Args = i.Server+"."+i.Tool, i.Arguments
	default:
		return c, false
	}
	if len(c.Args) == 0 {
		c.Args, _ = json.Marshal(args) // strings and decoded JSON always encode
	}
	return c, i.ID != ""
}

func (i item) result() worker.Result {
	res := worker.Result{Call: i.ID, Failed: i.Status == "failed" || i.Status == "declined"}
	switch i.Type {
	case "command_execution":
		res.Text = i.Output
		if i.Exit != nil {
			res.Exit, res.Failed = *i.Exit, false
		}
	case "file_change":
		var b strings.Builder
		for _, c := range i.Changes {
			b.WriteString(c.Kind + " " + c.Path + "\n")
			if !res.Failed {
				res.Changed = append(res.Changed, c.Path)
			}
		}
		res.Text = b.String()
	default:
		res.Text = string(i.Result)
	}
	return res
}

// failure classifies the failure that codex reports.
func failure(text string) error {
	kind := work.KindOfOutput(text)
	lower := strings.ToLower(text)
	if strings.Contains(lower, "usage limit") {
		kind = work.ErrorRateLimit // of its plan, so it passes
	}
	if strings.Contains(lower, "no rollout found") || strings.Contains(lower, "session not found") {
		return worker.ErrNoSession
	}
	if kind == work.ErrorUnexpected {
		kind = work.ErrorWorker
	}
	return worker.Errorf(kind, "codex: %s", worker.Brief(text, 2000))
}
