// Package acp works with any agent that speaks the Agent Client Protocol
// (lines of JSON-RPC) over its standard streams.
//
// It guarantees what package worker requires. Nothing for which the agent asks
// permission is done without an answer from the host.
package acp

import (
	"cmp"
	"context"
	"encoding/json"
	"path/filepath"
	"strings"

	"chorus/internal/chat"
	"chorus/internal/work"
	"chorus/internal/worker"
)

// ACP is a worker.
type ACP struct {
	worker.Program
	Command []string
}

var _ worker.Worker = (*ACP)(nil)

// Work implements worker.Worker.
func (a *ACP) Work(ctx context.Context, job worker.Job, host worker.Host) (worker.Outcome, error) {
	if len(a.Command) == 0 {
		return worker.Outcome{}, worker.Errorf(work.ErrorWorker, "an ACP agent needs a command (worker.command)")
	}
	r := NewReader(host, job)
	err := a.Run(ctx, a.Command, job.Key, host, func(t *worker.Talk) error {
		r.send = t.Send
		return r.begin()
	}, func(_ *worker.Talk, line []byte) (bool, error) { return r.Line(line) })
	return worker.Outcome{Summary: strings.TrimSpace(r.last.String())}, err
}

// The ids of the requests. Each request is made once.
const (
	initialize = iota + 1
	newSession
	loadSession
	prompt
)

// Reader is the client side of the protocol.
type Reader struct {
	host     worker.Host
	job      worker.Job
	send     func(any) error
	session  string
	begun    map[string]bool
	ended    map[string]bool
	calls    map[string]toolCall
	last     strings.Builder // what it has said since its last call
	prompted bool            // the prompt was given; anything earlier belongs to an earlier session
}

// NewReader returns a reader for a host.
func NewReader(host worker.Host, job worker.Job) *Reader {
	return &Reader{host: host, job: job, send: func(any) error { return nil }, begun: map[string]bool{}, ended: map[string]bool{}, calls: map[string]toolCall{}}
}

type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int             `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data"`
	} `json:"error"`
}

type toolCall struct {
	ID        string          `json:"toolCallId"`
	Title     string          `json:"title"`
	Kind      string          `json:"kind"`
	Status    string          `json:"status"`
	Input     json.RawMessage `json:"rawInput"`
	Output    json.RawMessage `json:"rawOutput"`
	Locations []struct {
		Path string `json:"path"`
	} `json:"locations"`
	Content []struct {
		Type    string `json:"type"`
		Path    string `json:"path"`
		Content struct {
			Text string `json:"text"`
		} `json:"content"`
	} `json:"content"`
}

type object = map[string]any

func (r *Reader) request(id int, method string, params object) error {
	return r.send(object{"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

func (r *Reader) begin() error {
	return r.request(initialize, "initialize", object{"protocolVersion": 1, "clientInfo": object{"name": "chorus", "version": "1"},
		"clientCapabilities": object{"fs": object{"readTextFile": false, "writeTextFile": false}, "terminal": false}})
}

// Line reads one line. over says that the work is done. Lines that are not messages are ignored.
func (r *Reader) Line(line []byte) (over bool, err error) {
	var m message
	if json.Unmarshal(line, &m) != nil {
		return false, nil
	}
	switch {
	case m.Method == "session/update":
		return false, r.update(m.Params)
	case m.Method == "session/request_permission" && len(m.ID) > 0:
		return false, r.permission(m)
	case m.Method != "":
		if len(m.ID) == 0 {
			return false, nil
		}
		return false, r.send(object{"jsonrpc": "2.0", "id": m.ID, "error": object{"code": -32601, "message": "method not found"}})
	}
	var id int
	if json.Unmarshal(m.ID, &id) != nil {
		return false, nil
	}
	if m.Error != nil {
		return false, r.failed(id, m)
	}
	return r.answered(id, m.Result)
}

func (r *Reader) answered(id int, result json.RawMessage) (over bool, err error) {
	var answer struct {
		Capabilities struct {
			Load bool `json:"loadSession"`
		} `json:"agentCapabilities"`
		Session string `json:"sessionId"`
		Stop    string `json:"stopReason"`
		Usage   struct {
			Input  int `json:"inputTokens"`
			Output int `json:"outputTokens"`
			Read   int `json:"cachedReadTokens"`
			Write  int `json:"cachedWriteTokens"`
		} `json:"usage"`
	}
	_ = json.Unmarshal(result, &answer) // null is an answer too
	where := object{"cwd": r.job.Dir, "mcpServers": []any{}}
	switch id {
	case initialize:
		if r.job.Session == "" {
			return false, r.request(newSession, "session/new", where)
		}
		if !answer.Capabilities.Load {
			return false, worker.ErrNoSession
		}
		where["sessionId"], r.session = r.job.Session, r.job.Session
		return false, r.request(loadSession, "session/load", where)
	case newSession:
		if r.session = answer.Session; r.session == "" {
			return false, worker.Errorf(work.ErrorWorker, "the agent gave its session no name")
		}
		if err := r.host.Session(r.session); err != nil {
			return false, err
		}
		return false, r.prompt()
	case loadSession:
		return false, r.prompt()
	case prompt:
		u := answer.Usage
		if err := r.host.Used(chat.Usage{Input: u.Input, Output: u.Output, CacheRead: u.Read, CacheWrite: u.Write}); err != nil {
			return false, err
		}
		return answer.Stop == "end_turn" || answer.Stop == "", stopped(answer.Stop)
	}
	return false, nil
}

func (r *Reader) prompt() error {
	r.prompted = true
	return r.request(prompt, "session/prompt", object{"sessionId": r.session, "prompt": []any{object{"type": "text", "text": r.job.Prompt}}})
}

// stopped returns the error for a turn that did not end by itself.
func stopped(reason string) error {
	switch reason {
	case "end_turn", "":
		return nil
	case "max_tokens", "max_turn_requests":
		return worker.Errorf(work.ErrorSteps, "the agent reached its limit (%s)", reason)
	case "cancelled":
		return worker.Errorf(work.ErrorStopped, "the agent was stopped")
	default:
		return worker.Errorf(work.ErrorWorker, "the agent stopped: %s", worker.Brief(reason, 200))
	}
}

func (r *Reader) failed(id int, m message) error {
	if id == loadSession {
		return worker.ErrNoSession
	}
	text := m.Error.Message + said(m.Error.Data)
	kind := work.KindOfOutput(text)
	switch {
	case m.Error.Code == -32000:
		kind = work.ErrorAuth
	case kind == work.ErrorUnexpected:
		kind = work.ErrorWorker
	}
	return worker.Errorf(kind, "the agent failed: %s", worker.Brief(text, 2000))
}

func said(data json.RawMessage) string {
	if len(data) == 0 || string(data) == "null" {
		return ""
	}
	return " (" + string(data) + ")"
}

func (r *Reader) update(params json.RawMessage) error {
	var p struct {
		Update struct {
			Kind    string          `json:"sessionUpdate"`
			Content json.RawMessage `json:"content"`
		} `json:"update"`
	}
	if json.Unmarshal(params, &p) != nil || !r.prompted {
		return nil
	}
	switch p.Update.Kind {
	case "agent_message_chunk", "agent_thought_chunk":
		var c struct {
			Text string `json:"text"`
		}
		if json.Unmarshal(p.Update.Content, &c) != nil || c.Text == "" {
			return nil
		}
		if p.Update.Kind == "agent_thought_chunk" {
			return r.host.Thought(c.Text)
		}
		r.last.WriteString(c.Text)
		return r.host.Said(c.Text)
	case "tool_call", "tool_call_update":
		var u struct {
			Update toolCall `json:"update"`
		}
		if json.Unmarshal(params, &u) != nil || u.Update.ID == "" {
			return nil
		}
		return r.call(u.Update)
	}
	return nil
}

// call processes an update of a call: later messages contain only what has changed.
func (r *Reader) call(now toolCall) error {
	c := r.calls[now.ID]
	c.ID, c.Title, c.Kind, c.Status = now.ID, cmp.Or(now.Title, c.Title), cmp.Or(now.Kind, c.Kind), cmp.Or(now.Status, c.Status)
	if len(now.Input) > 0 && string(now.Input) != "null" {
		c.Input = now.Input
	}
	if len(now.Output) > 0 {
		c.Output = now.Output
	}
	if len(now.Content) > 0 {
		c.Content = now.Content
	}
	if len(now.Locations) > 0 {
		c.Locations = now.Locations
	}
	r.calls[c.ID] = c
	if err := r.began(c); err != nil || r.ended[c.ID] {
		return err
	}
	if c.Status != "completed" && c.Status != "failed" {
		return nil
	}
	r.ended[c.ID] = true
	return r.host.Ended(c.result())
}

func (r *Reader) began(c toolCall) error {
	if r.begun[c.ID] {
		return nil
	}
	r.begun[c.ID] = true
	r.last.Reset()
	return r.host.Began(r.made(c))
}

func (c toolCall) result() worker.Result {
	res := worker.Result{Call: c.ID, Failed: c.Status == "failed"}
	var parts []string
	for _, part := range c.Content {
		if part.Type == "diff" {
			res.Changed = append(res.Changed, part.Path)
			parts = append(parts, "changed "+part.Path)
		} else if part.Content.Text != "" {
			parts = append(parts, part.Content.Text)
		}
	}
	if res.Text = strings.Join(parts, "\n"); res.Text == "" {
		res.Text = string(c.Output)
	}
	return res
}

// made returns the call in the form in which it is judged, with our equivalent tool.
func (r *Reader) made(c toolCall) worker.Call {
	out := worker.Call{ID: c.ID, Name: cmp.Or(c.Kind, "tool"), Args: c.Input}
	if len(out.Args) == 0 {
		out.Args, _ = json.Marshal(object{"title": c.Title}) // a text always encodes
	}
	var in struct {
		Command json.RawMessage `json:"command"`
		Path    string          `json:"path"`
		File    string          `json:"file_path"`
		URL     string          `json:"url"`
	}
	_ = json.Unmarshal(c.Input, &in) // unreadable input is judged as it is
	path := cmp.Or(in.Path, in.File)
	if path == "" && len(c.Locations) > 0 {
		path = c.Locations[0].Path
	}
	if rel, err := filepath.Rel(r.job.Dir, path); err == nil && filepath.IsAbs(path) && filepath.IsLocal(rel) {
		path = rel
	}
	switch c.Kind {
	case "execute":
		if command := words(in.Command); command != "" {
			out.Like = worker.NewLike("bash", object{"command": command})
		}
	case "edit", "delete", "move":
		if path != "" {
			out.Like = worker.NewLike("write", object{"path": path, "content": ""})
		}
	case "read", "search":
		if path != "" {
			out.Like = worker.NewLike("read", object{"path": path})
		}
	case "fetch":
		if in.URL != "" {
			out.Like = worker.NewLike("web_fetch", object{"url": in.URL})
		}
	}
	return out
}

// words returns a command that was given as a text. One given as a list is judged as it is.
func words(data json.RawMessage) (text string) {
	_ = json.Unmarshal(data, &text)
	return text
}

func (r *Reader) permission(m message) error {
	var p struct {
		Call    toolCall `json:"toolCall"`
		Options []struct {
			ID   string `json:"optionId"`
			Kind string `json:"kind"`
		} `json:"options"`
	}
	outcome := object{"outcome": "cancelled"}
	if json.Unmarshal(m.Params, &p) == nil && p.Call.ID != "" {
		if err := r.call(p.Call); err != nil {
			return err
		}
		decision, err := r.host.Permit(r.made(r.calls[p.Call.ID]))
		if err != nil {
			return err
		}
		want := []string{"reject_once", "reject_always"}
		if decision.Allow {
			want = []string{"allow_once"} // never allow_always: the rules are checked each time
		}
		for _, kind := range want {
			for _, o := range p.Options {
				if o.Kind == kind && outcome["outcome"] == "cancelled" {
					outcome = object{"outcome": "selected", "optionId": o.ID}
				}
			}
		}
	}
	return r.send(object{"jsonrpc": "2.0", "id": m.ID, "result": object{"outcome": outcome}})
}
