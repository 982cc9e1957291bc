package hooks

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"chorus/internal/chat"
	"chorus/internal/hook"
	"chorus/internal/hook/runner"
	"chorus/internal/journal"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/runsetup"
	"chorus/internal/service"
	"chorus/internal/tool"
	"chorus/internal/tool/git"
	"chorus/internal/untrusted"
)

// worker does the work of hook runs.
type worker struct{ *Handler }

// Worker does the work of hook runs.
func (o *Handler) Worker() runner.Worker { return worker{o} }

// hookPlatform marks messages of hooks, in arrivals and events.
const hookPlatform = "hook"

// Default limits of steps and actions.
const (
	shellTime = 60 * time.Second
	httpTime  = 30 * time.Second
	readLines = 500
	maxPage   = 1 << 20 // of an answer; far more than is kept of it
)

// stepsThread is the thread whose rights and sandbox a hook's steps and actions use. It is not in the journal.
func stepsThread(h hook.Hook) (chat.ThreadID, error) {
	return chat.NewThreadID(chat.HookTransport, h.ID, "steps", h.Agent)
}

func stepsRow(h hook.Hook) journal.Thread {
	thread, _ := stepsThread(h) // its parts were checked when the hook was created
	return journal.Thread{ID: thread, Agent: h.Agent, Place: h.ID, Owner: h.Owner, Dir: h.Dir}
}

// ownerOf returns a hook's owner as a caller, with their current rights.
func (o *Handler) ownerOf(ctx context.Context, owner chat.Principal) (operation.Caller, error) {
	by := operation.Caller{Principal: owner, Scopes: []operation.Scope{operation.Read, operation.Chat}}
	switch {
	case owner.Owns():
		by.Scopes = operation.Scopes()
	case owner.Kind == chat.TokenHolder:
		token, err := o.app.DB.TokenByID(ctx, owner.ID)
		if err != nil && !errors.Is(err, journal.ErrUnknown) {
			return by, err
		}
		by.Scopes = nil
		for _, s := range token.Scopes {
			by.Scopes = append(by.Scopes, operation.Scope(s))
		}
	}
	return by, nil
}

// Sees implements runner.Worker.
func (o worker) Sees(ctx context.Context, owner chat.Principal, e hook.Event) (bool, error) {
	if e.Project != "" || e.Thread == "" {
		by, err := o.ownerOf(ctx, owner)
		if err != nil || e.Project == "" {
			return by.May(operation.Admin), err // only those who run this Chorus see what concerns all projects
		}
		return o.app.SeesProject(ctx, by, e.Project)
	}
	row, err := o.app.DB.Thread(ctx, e.Thread)
	if errors.Is(err, journal.ErrUnknown) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	by, err := o.ownerOf(ctx, owner)
	return by.Sees(row.ID, row.Owner), err
}

// MayRun implements runner.Worker.
func (o worker) MayRun(ctx context.Context, h hook.Hook) (string, error) {
	return o.sessions.Lapsed(ctx, h.Owner)
}

func (o worker) values(h hook.Hook, r hook.Run) hook.Values {
	return hook.Values{Event: r.Event, Steps: r.Results, Response: r.Answer, Hook: h.Name}
}

// Prompt implements runner.Worker. Text from others is marked as untrusted.
func (o worker) Prompt(h hook.Hook, r hook.Run) string {
	v := o.values(h, r)
	v.Frame = untrusted.Frame
	return o.app.Logs.Redactor().Text(v.Render(h.Template))
}

// stepCall converts a step to a tool call; false: it is not one.
func stepCall(h hook.Hook, r hook.Run, s hook.Step, status *int) (runsetup.UnattendedCall, bool) {
	c := runsetup.UnattendedCall{Thread: stepsRow(h), Principal: r.Acting, ID: "hook-" + r.ID, Approved: h.Approved != "" && h.Approved == h.Digest()}
	args := map[string]any{}
	switch s.Type {
	case hook.Shell:
		limit := cmp.Or(max(time.Duration(s.Timeout)*time.Second, 0), shellTime)
		c.Name, args["command"], args["timeout"] = shellName, s.Command, limit.Seconds()
	case hook.ReadFile:
		c.Name, args["path"], args["limit"] = "read", s.Path, s.MaxLines
		if s.MaxLines == 0 {
			args["limit"] = readLines
		}
	case hook.Search:
		c.Name, args["query"] = "search_files", s.Query
		if s.Path != "" {
			args["path"] = s.Path
		}
	case hook.GitDiff:
		c.Name = git.CompareName
		c.Tools = func(b *runsetup.Toolbox) []tool.Tool {
			return []tool.Tool{b.GitCompare(git.Comparison{Base: s.BaseBranch, Path: s.Path, Folder: s.Workspace, Uncommitted: s.Uncommitted})}
		}
	case hook.HTTP:
		limit := httpTime
		if s.Timeout > 0 {
			limit = time.Duration(s.Timeout) * time.Second
		}
		status = cmp.Or(status, new(int))
		c.Name, args["url"] = "http_get", s.URL
		c.Tools = func(b *runsetup.Toolbox) []tool.Tool { return []tool.Tool{b.WebGet(limit, maxPage, status)} }
	default:
		return c, false
	}
	c.Args, _ = json.Marshal(args) // text and numbers only
	return c, true
}

const shellName = "bash"

// Step implements runner.Worker.
func (o worker) Step(ctx context.Context, h hook.Hook, r hook.Run, at int) hook.Result {
	s := h.Steps[at]
	if s.Type == hook.Query {
		return o.query(ctx, h, r, s)
	}
	var status int
	if s.Type == hook.HTTP {
		s.URL = o.values(h, r).RenderURL(s.URL)
	}
	call, _ := stepCall(h, r, s, &status)
	res, failed := o.call(ctx, call)
	if failed != nil {
		return *failed
	}
	text := res.Blocks.Text()
	if text == tool.NoOutput || text == tool.NoMatches {
		text = "" // otherwise skip_llm_if_empty would never apply
	}
	switch s.Type {
	case hook.Shell:
		return shellResult(res, text)
	case hook.HTTP:
		out := hook.Result{Status: &status, Body: text}
		if res.Failed {
			out.Body, out.Error = "", text
		}
		return out
	case hook.GitDiff:
		exit := 0
		if res.Failed {
			exit = 1
			return hook.Result{Exit: &exit, Error: text}
		}
		return hook.Result{Exit: &exit, Diff: text}
	default:
		if res.Failed {
			return hook.Result{Error: text}
		}
		return hook.Result{Content: text}
	}
}

// shellResult is the result of a command: its code is -1 if it did not end by itself.
func shellResult(res tool.Result, text string) hook.Result {
	exit := res.Exit
	if res.Failed && exit == 0 {
		exit = -1
		return hook.Result{Exit: &exit, Stderr: text}
	}
	return hook.Result{Exit: &exit, Stdout: text}
}

// call makes a call, or says why it could not be made.
func (o worker) call(ctx context.Context, call runsetup.UnattendedCall) (tool.Result, *hook.Result) {
	res, err := o.app.Setup.CallUnattended(ctx, call)
	var denied *runsetup.DeniedError
	switch {
	case errors.As(err, &denied) && denied.Asked:
		return res, &hook.Result{Denied: true, Error: denied.Why + "; check the hook and approve it: chorus hook edit " + call.Thread.Place + " --approve"}
	case errors.As(err, &denied):
		return res, &hook.Result{Denied: true, Error: denied.Why}
	case err != nil:
		return res, &hook.Result{Error: o.app.Logs.Redactor().Text(err.Error())}
	}
	return res, nil
}

// query runs a named query over what the hook's owner may see.
func (o worker) query(ctx context.Context, h hook.Hook, r hook.Run, s hook.Step) hook.Result {
	by, err := o.ownerOf(ctx, h.Owner)
	if err != nil {
		return hook.Result{Error: err.Error()}
	}
	params := map[string]string{}
	for name, value := range s.Params {
		params[name] = o.values(h, r).Render(value)
	}
	most, _ := strconv.Atoi(params["limit"])
	ask := o.queries()[s.Query]
	if ask == nil {
		return hook.Result{Error: "Unknown query: " + s.Query}
	}
	rows, count, err := ask(ctx, by, h, params, min(max(most, 0), 200))
	if err != nil {
		return hook.Result{Error: o.app.Logs.Redactor().Text(err.Error())}
	}
	data, err := json.Marshal(rows)
	if err != nil {
		return hook.Result{Error: err.Error()}
	}
	return hook.Result{Rows: data, Count: &count}
}

type namedQuery func(ctx context.Context, by operation.Caller, h hook.Hook, params map[string]string, most int) (rows any, count int, err error)

// queries are the queries of db_query. They only read.
func (o *Handler) queries() map[string]namedQuery {
	return map[string]namedQuery{
		"recent_sessions": func(ctx context.Context, by operation.Caller, _ hook.Hook, params map[string]string, most int) (any, int, error) {
			list, err := o.sessions.ListSessions(ctx, by, operations.SessionQuery{Limit: operation.Limit(most, 20, 200), Agent: params["agent"], Status: params["status"]})
			return list.Items, len(list.Items), err
		},
		"recent_events": func(ctx context.Context, by operation.Caller, _ hook.Hook, params map[string]string, most int) (any, int, error) {
			row, err := o.sessions.Find(ctx, by, params["session"])
			if err != nil {
				return nil, 0, err
			}
			n := operation.Limit(most, 50, 200)
			list, err := o.sessions.Messages(ctx, by, operations.EventRange{ID: string(row.ID), After: max(row.Next-1-int64(n), 0), Limit: n})
			return list.Items, len(list.Items), err
		},
		"open_approvals": func(ctx context.Context, by operation.Caller, _ hook.Hook, params map[string]string, most int) (any, int, error) {
			list, err := o.sessions.ListApprovals(ctx, by, operations.ApprovalQuery{Session: params["session"], Limit: operation.Limit(most, 20, 200)})
			return list.Items, len(list.Items), err
		},
		"hook_runs": func(ctx context.Context, by operation.Caller, h hook.Hook, params map[string]string, most int) (any, int, error) {
			name := cmp.Or(params["hook_id"], h.ID)
			list, err := o.ListHookRuns(ctx, by, operations.HookRunQuery{ID: name, Limit: operation.Limit(most, 10, 200)})
			return list.Items, len(list.Items), err
		},
		"costs": func(ctx context.Context, by operation.Caller, _ hook.Hook, params map[string]string, _ int) (any, int, error) {
			costs, err := o.sessions.Costs(ctx, by, operations.CostQuery{By: params["by"], Since: params["since"]})
			return costs, 1, err
		},
	}
}

func (o *Handler) queryNames() (names []string) {
	for name := range o.queries() {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Ask implements runner.Worker: each run has a thread of its own.
func (o worker) Ask(ctx context.Context, h hook.Hook, r hook.Run) (chat.ThreadID, int64, string, error) {
	thread, err := chat.NewThreadID(chat.HookTransport, h.ID, r.ID, h.Agent)
	if err != nil {
		return "", 0, "", err
	}
	row, err := o.app.DB.Thread(ctx, thread)
	if errors.Is(err, journal.ErrUnknown) {
		made := service.Standing{Terms: chat.Terms{Model: h.Model, MaxCost: h.Budget, By: service.ServedBy}}
		if err := o.sessions.Begin(ctx, journal.Thread{ID: thread, Owner: h.Owner, Dir: h.Dir, Title: h.Name}, made, false); err != nil {
			return "", 0, "", err
		}
		row, err = o.app.DB.Thread(ctx, thread)
	}
	if err != nil {
		return "", 0, "", err
	}
	seq, refused, err := o.tell(ctx, row, h, r, r.Prompt, r.ID)
	return thread, seq, refused, err
}

// tell sends a message to a thread, once per key.
func (o worker) tell(ctx context.Context, row journal.Thread, h hook.Hook, r hook.Run, words, key string) (seq int64, refused string, err error) {
	said, err := o.sessions.SayUnattended(ctx, operation.Caller{Principal: r.Acting}, row, words,
		chat.Inbound{Principal: r.Acting, From: chat.Participant{ID: h.ID, Name: "hook " + h.Name, Kind: chat.System}, Platform: hookPlatform, PlatformID: key})
	return said.Seq, said.Refused, err
}

// Await implements runner.Worker.
func (o worker) Await(ctx context.Context, thread chat.ThreadID, seq int64, waits func()) (runner.Answer, error) {
	var out runner.Answer
	for item, err := range o.sessions.Engine.Watch(ctx, thread, seq) {
		if err != nil || item.Event == nil {
			continue // a temporary problem; watching continues
		}
		switch b := item.Event.Body.(type) {
		case chat.Refused:
			if b.Seq == seq {
				return runner.Answer{Failed: b.Why}, nil
			}
		case chat.ApprovalAsked:
			waits()
		case chat.Said:
			if text := b.Blocks.Text(); b.Error == nil && text != "" {
				out.Text = text
			}
		case chat.RunEnded:
			out.Tokens, out.Cost = b.Usage.Total(), b.Cost
			if b.Reason != chat.EndDone {
				out.Failed = endedBadly(b)
			}
			return out, nil
		}
	}
	if ctx.Err() != nil {
		return out, ctx.Err()
	}
	return out, errors.New("the answer could not be waited for")
}

func endedBadly(b chat.RunEnded) string {
	switch {
	case b.Error != nil:
		return b.Error.Message
	case b.Text != "":
		return b.Text
	default:
		return "the run ended: " + string(b.Reason)
	}
}

// actionCall converts an action to a tool call; false: it is not one.
func (o *Handler) actionCall(h hook.Hook, r hook.Run, a hook.Action, args json.RawMessage) (runsetup.UnattendedCall, bool) {
	switch a.Type {
	case hook.Shell:
		return stepCall(h, r, hook.Step{Type: hook.Shell, Command: a.Command, Timeout: a.Timeout}, nil)
	case hook.Operation:
		if len(args) == 0 {
			args = json.RawMessage(`{}`)
		}
		call, _ := stepCall(h, r, hook.Step{Type: hook.Shell}, nil)
		call.Name, call.Args = a.Name, args
		call.Tools = func(*runsetup.Toolbox) []tool.Tool { return o.app.OperationTools(false, "") }
		return call, true
	default:
		return runsetup.UnattendedCall{}, false
	}
}

// Act implements runner.Worker.
func (o worker) Act(ctx context.Context, h hook.Hook, r hook.Run, at int) hook.Result {
	a := h.Actions[at]
	if a.Type == hook.Say {
		return o.say(ctx, h, r, at)
	}
	call, _ := o.actionCall(h, r, a, o.values(h, r).RenderArgs(a.Args))
	call.ID = fmt.Sprintf("hook-%s-%d", r.ID, at)
	res, failed := o.call(ctx, call)
	if failed != nil {
		return *failed
	}
	text := res.Blocks.Text()
	if a.Type == hook.Shell {
		out := shellResult(res, text)
		if *out.Exit != 0 {
			out.Error = fmt.Sprintf("the command ended with exit code %d: %s", *out.Exit, out.Text())
		}
		return out
	}
	if res.Failed {
		return hook.Result{Error: text}
	}
	return hook.Result{Content: text}
}

// say sends a message to a session that the hook's owner may see.
func (o worker) say(ctx context.Context, h hook.Hook, r hook.Run, at int) hook.Result {
	by, err := o.ownerOf(ctx, h.Owner)
	if err != nil {
		return hook.Result{Error: err.Error()}
	}
	row, err := o.sessions.Find(ctx, by, h.Actions[at].Session)
	if err != nil {
		return hook.Result{Error: err.Error()}
	}
	v := o.values(h, r)
	v.Frame = untrusted.Frame
	seq, refused, err := o.tell(ctx, row, h, r, o.app.Logs.Redactor().Text(v.Render(h.Actions[at].Text)), fmt.Sprintf("%s/%d", r.ID, at))
	switch {
	case err != nil:
		return hook.Result{Error: o.app.Logs.Redactor().Text(err.Error())}
	case refused != "":
		return hook.Result{Error: refused}
	}
	return hook.Result{Content: fmt.Sprintf("said in %s as number %d", row.ID.Thread(), seq)}
}
