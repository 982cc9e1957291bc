// Package claude works with the claude command line in its mode for programs: messages in both
// directions are lines of JSON, and permissions are requested over the same lines.
//
// It guarantees what package worker requires. Nothing for which claude asks
// permission is done without an answer from the host.
package claude

import (
	"cmp"
	"context"
	"encoding/json"
	"math"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"chorus/internal/chat"
	"chorus/internal/pattern"
	"chorus/internal/work"
	"chorus/internal/worker"
)

// Claude is a worker.
type Claude struct {
	worker.Program
	Command []string // "" for claude
	Args    []string // in addition to ours
	Model   string
}

var _ worker.Worker = (*Claude)(nil)

// Argv returns the command to start it.
func (c *Claude) Argv(job worker.Job) []string {
	argv := append([]string(nil), c.Command...)
	if len(argv) == 0 {
		argv = []string{"claude"}
	}
	argv = append(argv, "-p", "--output-format", "stream-json", "--input-format", "stream-json", "--verbose", "--permission-prompt-tool", "stdio")
	if c.Model != "" {
		argv = append(argv, "--model", c.Model)
	}
	if job.Session != "" {
		argv = append(argv, "--resume", job.Session)
	}
	return append(argv, c.Args...)
}

// Work implements worker.Worker.
func (c *Claude) Work(ctx context.Context, job worker.Job, host worker.Host) (worker.Outcome, error) {
	r := NewReader(host, job.Dir)
	err := c.Run(ctx, c.Argv(job), job.Key, host, func(t *worker.Talk) error {
		r.send = t.Send
		return t.Send(map[string]any{"type": "user", "session_id": job.Session, "parent_tool_use_id": nil,
			"message": map[string]any{"role": "user", "content": job.Prompt}})
	}, func(_ *worker.Talk, line []byte) (bool, error) { return r.Line(line) })
	return r.Outcome, err
}

// Reader reads what claude prints and answers its requests.
type Reader struct {
	Outcome worker.Outcome
	host    worker.Host
	dir     string
	send    func(any) error
	message string // the id of the unfinished message
	texts   bool   // whether the last thing was text
	used    chat.Usage
	begun   map[string]bool
	reset   time.Time // when the reported limit ends
	limited bool
}

// NewReader returns a reader for a host.
func NewReader(host worker.Host, dir string) *Reader {
	return &Reader{host: host, dir: dir, begun: map[string]bool{}, send: func(any) error { return nil }}
}

type event struct {
	Type      string  `json:"type"`
	Subtype   string  `json:"subtype"`
	SessionID string  `json:"session_id"`
	Parent    *string `json:"parent_tool_use_id"`
	Message   struct {
		ID      string          `json:"id"`
		Content json.RawMessage `json:"content"`
		Usage   usage           `json:"usage"`
	} `json:"message"`
	Result  string   `json:"result"`
	IsError bool     `json:"is_error"`
	Errors  []string `json:"errors"`
	Cost    float64  `json:"total_cost_usd"`
	Usage   usage    `json:"usage"`
	Limit   struct {
		Status   string `json:"status"`
		ResetsAt int64  `json:"resetsAt"`
	} `json:"rate_limit_info"`
	RequestID string `json:"request_id"`
	Request   struct {
		Subtype string          `json:"subtype"`
		Tool    string          `json:"tool_name"`
		Input   json.RawMessage `json:"input"`
		Call    string          `json:"tool_use_id"`
	} `json:"request"`
}

type usage struct {
	Input      int `json:"input_tokens"`
	Output     int `json:"output_tokens"`
	CacheRead  int `json:"cache_read_input_tokens"`
	CacheWrite int `json:"cache_creation_input_tokens"`
}

type block struct {
	Type    string          `json:"type"`
	Text    string          `json:"text"`
	Think   string          `json:"thinking"`
	ID      string          `json:"id"`
	Name    string          `json:"name"`
	Input   json.RawMessage `json:"input"`
	Call    string          `json:"tool_use_id"`
	Content json.RawMessage `json:"content"`
	IsError bool            `json:"is_error"`
}

// Line reads one line. over says that the work is done. Lines that are not events are ignored.
func (r *Reader) Line(line []byte) (over bool, err error) {
	var e event
	if json.Unmarshal(line, &e) != nil {
		return false, nil
	}
	switch e.Type {
	case "system":
		if e.Subtype == "init" && e.SessionID != "" {
			return false, r.host.Session(e.SessionID)
		}
	case "assistant":
		if e.Parent == nil { // those of its helpers are internal
			return false, r.assistant(e)
		}
	case "user":
		if e.Parent == nil {
			return false, r.results(e)
		}
	case "rate_limit_event":
		r.limited = e.Limit.Status == "rejected"
		if e.Limit.ResetsAt > 0 {
			r.reset = time.Unix(e.Limit.ResetsAt, 0)
		}
	case "control_request":
		return false, r.asked(e)
	case "result":
		return r.result(e)
	}
	return false, nil
}

func (r *Reader) assistant(e event) error {
	if e.Message.ID != r.message || e.Message.ID == "" {
		r.message = e.Message.ID
		if err := r.add(e.Message.Usage); err != nil {
			return err
		}
	}
	for _, b := range blocks(e.Message.Content) {
		var err error
		switch b.Type {
		case "text":
			text := b.Text
			if r.texts {
				text = "\n\n" + text
			}
			r.texts = true
			err = r.host.Said(text)
		case "thinking":
			err = r.host.Thought(b.Think)
		case "tool_use":
			r.texts = false
			if b.ID != "" && !r.begun[b.ID] {
				r.begun[b.ID] = true
				err = r.host.Began(r.call(b.ID, b.Name, b.Input))
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// add reports tokens. For an unfinished message, Claude reports how many there were so far.
func (r *Reader) add(u usage) error {
	now := chat.Usage{Input: u.Input, Output: u.Output, CacheRead: u.CacheRead, CacheWrite: u.CacheWrite}
	if now.Total() == 0 {
		return nil
	}
	r.used = r.used.Plus(now)
	return r.host.Used(now)
}

func (r *Reader) results(e event) error {
	for _, b := range blocks(e.Message.Content) {
		if b.Type != "tool_result" || !r.begun[b.Call] {
			continue
		}
		r.texts = false
		if err := r.host.Ended(worker.Result{Call: b.Call, Text: text(b.Content), Failed: b.IsError}); err != nil {
			return err
		}
	}
	return nil
}

// asked answers claude's requests.
func (r *Reader) asked(e event) error {
	answer := map[string]any{"subtype": "error", "request_id": e.RequestID, "error": "this is not known here"}
	if e.Request.Subtype == "can_use_tool" {
		id := cmp.Or(e.Request.Call, e.RequestID)
		call := r.call(id, e.Request.Tool, e.Request.Input)
		if !r.begun[id] {
			r.begun[id] = true
			if err := r.host.Began(call); err != nil {
				return err
			}
		}
		decision, err := r.host.Permit(call)
		if err != nil {
			return err
		}
		verdict := map[string]any{"behavior": "deny", "message": cmp.Or(decision.Why, "this is not allowed")}
		if decision.Allow {
			verdict = map[string]any{"behavior": "allow", "updatedInput": call.Args}
		}
		answer = map[string]any{"subtype": "success", "request_id": e.RequestID, "response": verdict}
	}
	return r.send(map[string]any{"type": "control_response", "response": answer})
}

func (r *Reader) result(e event) (over bool, err error) {
	if e.Cost > 0 && e.Cost < 1e6 {
		r.Outcome.Cost = int64(math.Round(e.Cost * 1e9))
	}
	all := e.Usage
	rest := usage{max(all.Input-r.used.Input, 0), max(all.Output-r.used.Output, 0), max(all.CacheRead-r.used.CacheRead, 0), max(all.CacheWrite-r.used.CacheWrite, 0)}
	if err := r.add(rest); err != nil {
		return false, err
	}
	if !e.IsError && (e.Subtype == "success" || e.Subtype == "") {
		r.Outcome.Summary = e.Result
		return true, nil
	}
	return false, r.failure(cmp.Or(e.Result, strings.Join(e.Errors, "; "), e.Subtype), e.Subtype)
}

// limitEnds matches how older versions of claude report when the limit of its plan ends.
var limitEnds = pattern.Lazy(`limit reached\|(\d{9,11})`)

// failure classifies the failure that claude reports.
func (r *Reader) failure(text, subtype string) error {
	if strings.Contains(text, "No conversation found") {
		return worker.ErrNoSession
	}
	out := &worker.Error{Kind: work.KindOfOutput(text), Message: "claude: " + worker.Brief(text, 2000)}
	lower := strings.ToLower(text)
	switch {
	case r.limited || strings.Contains(lower, "usage limit") || strings.Contains(lower, "hit your limit"):
		out.Kind = work.ErrorRateLimit
	case subtype == "error_max_turns":
		out.Kind = work.ErrorSteps
	case subtype == "error_max_budget_usd":
		out.Kind = work.ErrorBudget
	case out.Kind == work.ErrorUnexpected:
		out.Kind = work.ErrorWorker
	}
	if out.Kind == work.ErrorRateLimit {
		out.Reset = r.reset
		if m := limitEnds().FindStringSubmatch(text); m != nil {
			at, _ := strconv.ParseInt(m[1], 10, 64) // digits only
			out.Reset = time.Unix(at, 0)
		}
	}
	return out
}

// call adds our equivalent tool to a call.
func (r *Reader) call(id, name string, input json.RawMessage) worker.Call {
	c := worker.Call{ID: id, Name: name, Args: input}
	var in struct {
		Command string `json:"command"`
		File    string `json:"file_path"`
		Book    string `json:"notebook_path"`
		Path    string `json:"path"`
		URL     string `json:"url"`
		Query   string `json:"query"`
	}
	_ = json.Unmarshal(input, &in) // unreadable input is judged as it is
	switch name {
	case "Bash":
		c.Like = worker.NewLike("bash", map[string]any{"command": in.Command})
	case "Read":
		c.Like = worker.NewLike("read", map[string]any{"path": r.path(in.File)})
	case "Write", "Edit", "MultiEdit", "NotebookEdit":
		c.Like = worker.NewLike("write", map[string]any{"path": r.path(cmp.Or(in.File, in.Book)), "content": ""})
	case "Glob", "Grep", "LS":
		c.Like = worker.NewLike("list_files", map[string]any{"path": r.path(cmp.Or(in.Path, "."))})
	case "WebFetch":
		c.Like = worker.NewLike("web_fetch", map[string]any{"url": in.URL})
	case "WebSearch":
		c.Like = worker.NewLike("web_search", map[string]any{"query": in.Query})
	}
	return c
}

// path returns a file name in the form of our tools.
func (r *Reader) path(name string) string {
	if rel, err := filepath.Rel(r.dir, name); err == nil && filepath.IsAbs(name) && filepath.IsLocal(rel) {
		return rel
	}
	return name
}

// blocks reads a message's content: a list, or a single text.
func blocks(data json.RawMessage) []block {
	var list []block
	if json.Unmarshal(data, &list) == nil {
		return list
	}
	var text string
	if json.Unmarshal(data, &text) == nil && text != "" {
		return []block{{Type: "text", Text: text}}
	}
	return nil
}

// text returns the readable part of a content.
func text(data json.RawMessage) string {
	var parts []string
	for _, b := range blocks(data) {
		if b.Type == "text" {
			parts = append(parts, b.Text)
		} else {
			parts = append(parts, "["+b.Type+"]")
		}
	}
	return strings.Join(parts, "\n")
}
