package mcpserver

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"chorus/internal/operation"
	"chorus/internal/text"
)

// Tasks are calls whose result is fetched later, as in version 2025-11-25 of the protocol. The SDK does not support
// them, so missing fields are added to its answers here, and taken from requests before it reads them (see lift). One
// tool can be a task: session_ask, which takes as long as an agent takes.

const (
	taskVersion = "2025-11-25"
	relatedTask = "io.modelcontextprotocol/related-task"
	askTool     = "session_ask"

	// leastTaskKept and mostTaskKept bound how long a task is kept from its start, whatever the client asks for.
	leastTaskKept = 10 * time.Minute
	mostTaskKept  = 2 * time.Hour
	// maxTasks limits a caller's tasks, including finished ones.
	maxTasks = 50
	// taskPoll is how often clients are told to poll.
	taskPoll = time.Second
)

// The states of a task.
const (
	taskWorking   = "working"
	taskCompleted = "completed"
	taskFailed    = "failed"
	taskCancelled = "cancelled"
)

// tasks are the tasks of all clients. They are kept in memory: a server that stops ends them, and the agents continue.
type tasks struct {
	mu   sync.Mutex
	list map[string]*task
}

// task is one call.
type task struct {
	owner  string // its creator; nobody else sees it
	cancel context.CancelFunc
	done   chan struct{} // closed when it has ended
	state  taskState     // guarded by tasks.mu, as are the next
	ends   time.Time     // when it is forgotten
	result *sdk.CallToolResult
	err    error
}

// taskState is a task as clients see it.
type taskState struct {
	sdk.ResultBase
	ID       string    `json:"taskId"`
	Status   string    `json:"status"`
	Message  string    `json:"statusMessage,omitempty"`
	Created  time.Time `json:"createdAt"`
	Updated  time.Time `json:"lastUpdatedAt"`
	TTL      int64     `json:"ttl"`          // milliseconds
	Interval int64     `json:"pollInterval"` // milliseconds
}

// taskMade is the answer to a call that became a task.
type taskMade struct {
	sdk.ResultBase
	Task *taskState `json:"task"`
}

type taskRef struct {
	sdk.ParamsBase
	ID string `json:"taskId"`
}

type taskList struct {
	sdk.ResultBase
	Tasks []*taskState `json:"tasks"`
}

func errTask(format string) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: format}
}

// addTasks lets session_ask be called as a task.
func (s *Server) addTasks(to *sdk.Server) error {
	to.AddReceivingMiddleware(s.withTasks)
	if err := sdk.AddReceivingCustomMethod(to, "tasks/get", func(ctx context.Context, _ *sdk.ServerSession, in *taskRef) (*taskState, error) {
		_, state, err := s.tasks.find(ctx, in.ID)
		return state, err
	}); err != nil {
		return err
	}
	if err := sdk.AddReceivingCustomMethod(to, "tasks/result", s.taskResult); err != nil {
		return err
	}
	if err := sdk.AddReceivingCustomMethod(to, "tasks/cancel", s.cancelTask); err != nil {
		return err
	}
	return sdk.AddReceivingCustomMethod(to, "tasks/list", func(ctx context.Context, _ *sdk.ServerSession, _ *taskRef) (*taskList, error) {
		return &taskList{Tasks: s.tasks.of(ownerOf(ctx))}, nil
	})
}

// withTasks adds tasks to the SDK.
func (s *Server) withTasks(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		switch method {
		case "initialize":
			res, err := next(ctx, method, req)
			if greeting, ok := res.(*sdk.InitializeResult); ok && err == nil && greeting.ProtocolVersion == taskVersion {
				return &greetingWithTasks{greeting}, nil
			}
			return res, err
		case "tools/list":
			res, err := next(ctx, method, req)
			if list, ok := res.(*sdk.ListToolsResult); ok && err == nil {
				return &toolsWithTasks{list}, nil
			}
			return res, err
		case "tools/call":
			call, ok := req.(*sdk.CallToolRequest)
			if !ok {
				return next(ctx, method, req)
			}
			wish, asTask := call.Params.Meta[taskKey]
			switch {
			case !asTask:
				return next(ctx, method, req)
			case call.Params.Name != askTool:
				return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: call.Params.Name + " cannot be called as a task"}
			}
			return s.beginTask(ctx, call, wish)
		}
		return next(operation.WithCaller(ctx, callerOf(ctx, req)), method, req)
	}
}

// ownerOf returns the owner of the tasks that a request is about.
func ownerOf(ctx context.Context) string {
	by, _ := operation.CallerOf(ctx)
	return by.Principal.String()
}

// beginTask starts a task, and answers at once.
func (s *Server) beginTask(ctx context.Context, call *sdk.CallToolRequest, wish any) (sdk.Result, error) {
	var in struct {
		TTL int64 `json:"ttl"`
	}
	if data, err := json.Marshal(wish); err != nil || json.Unmarshal(data, &in) != nil {
		return nil, errTask("task must be an object whose ttl is a number of milliseconds")
	}
	kept := mostTaskKept
	if in.TTL > 0 && in.TTL < mostTaskKept.Milliseconds() {
		kept = max(time.Duration(in.TTL)*time.Millisecond, leastTaskKept)
	}
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	now := time.Now().UTC()
	t := &task{owner: callerOf(ctx, call).Principal.String(), cancel: cancel, done: make(chan struct{}), ends: now.Add(kept), state: taskState{ID: rand.Text(), Status: taskWorking,
		Created: now, Updated: now, TTL: kept.Milliseconds(), Interval: taskPoll.Milliseconds()}}
	if !s.tasks.add(t, now) {
		cancel()
		return nil, operation.Errorf(operation.Busy, "there are %d tasks already; wait for some, or cancel them", maxTasks)
	}
	s.work.Go(func() {
		defer cancel()
		defer context.AfterFunc(s.ended, cancel)()
		result, err := s.askFor(run, call, maxAsk, func(message string) { s.tasks.tell(t, message) })
		s.tasks.finish(t, result, err)
	})
	_, state, err := s.tasks.get(t.owner, t.state.ID)
	return &taskMade{Task: state}, err
}

// taskResult waits for a task's end.
func (s *Server) taskResult(ctx context.Context, _ *sdk.ServerSession, in *taskRef) (*sdk.CallToolResult, error) {
	t, _, err := s.tasks.find(ctx, in.ID)
	if err != nil {
		return nil, err
	}
	select {
	case <-t.done:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	s.tasks.mu.Lock()
	defer s.tasks.mu.Unlock()
	switch {
	case t.state.Status == taskCancelled:
		return nil, errTask("the task was cancelled")
	case t.err != nil:
		return nil, t.err
	}
	out := *t.result
	out.Meta = sdk.Meta{relatedTask: map[string]string{"taskId": in.ID}}
	return &out, nil
}

// cancelTask stops the agent of a task.
func (s *Server) cancelTask(ctx context.Context, _ *sdk.ServerSession, in *taskRef) (*taskState, error) {
	t, state, err := s.tasks.find(ctx, in.ID)
	switch {
	case err != nil:
		return nil, err
	case state.Status != taskWorking:
		return nil, errTask("the task has ended: it is " + state.Status)
	}
	s.tasks.end(t, taskCancelled, "")
	t.cancel()
	_, state, err = s.tasks.find(ctx, in.ID)
	return state, err
}

// add stores a task; false: its owner has too many. Expired ones are forgotten.
func (l *tasks) add(t *task, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	count := 0
	for id, one := range l.list {
		switch {
		case now.After(one.ends):
			one.cancel()
			delete(l.list, id)
		case one.owner == t.owner:
			count++
		}
	}
	if count >= maxTasks {
		return false
	}
	l.list[t.state.ID] = t
	return true
}

func (l *tasks) find(ctx context.Context, id string) (*task, *taskState, error) {
	return l.get(ownerOf(ctx), id)
}

// get finds a task of its owner, with its state. A task of somebody else does not exist for the caller.
func (l *tasks) get(owner, id string) (*task, *taskState, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t := l.list[id]
	if t == nil || t.owner != owner || time.Now().After(t.ends) {
		return nil, nil, errTask("there is no such task; it may have expired")
	}
	state := t.state
	return t, &state, nil
}

// of returns the tasks of an owner, oldest first.
func (l *tasks) of(owner string) []*taskState {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := []*taskState{}
	for _, t := range l.list {
		if state := t.state; t.owner == owner && time.Now().Before(t.ends) {
			out = append(out, &state)
		}
	}
	slices.SortFunc(out, func(a, b *taskState) int { return a.Created.Compare(b.Created) })
	return out
}

// tell records progress of a task.
func (l *tasks) tell(t *task, message string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t.state.Status == taskWorking {
		t.state.Message, t.state.Updated = text.Clip(text.OneLine(message), 200), time.Now().UTC()
	}
}

// finish records the end of a call. If the result reports a failure, the task has failed as well.
func (l *tasks) finish(t *task, result *sdk.CallToolResult, err error) {
	l.mu.Lock()
	t.result, t.err = result, err
	l.mu.Unlock()
	status := taskCompleted
	if err != nil || result.IsError {
		status = taskFailed
	}
	l.end(t, status, "")
}

// end sets a task's final state; a task that has ended does not change.
func (l *tasks) end(t *task, status, message string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t.state.Status == taskWorking {
		t.state.Status, t.state.Message, t.state.Updated = status, message, time.Now().UTC()
		close(t.done)
	}
}

// greetingWithTasks is the greeting with fields that the SDK lacks.
type greetingWithTasks struct{ *sdk.InitializeResult }

func (g *greetingWithTasks) MarshalJSON() ([]byte, error) {
	return withField(g.InitializeResult, "capabilities", func(capabilities map[string]any) {
		capabilities["tasks"] = json.RawMessage(`{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}`)
	})
}

// toolsWithTasks is the list of tools, with the one that can be called as a task.
type toolsWithTasks struct{ *sdk.ListToolsResult }

func (l *toolsWithTasks) MarshalJSON() ([]byte, error) {
	type tool struct {
		*sdk.Tool
		Execution json.RawMessage `json:"execution,omitempty"`
	}
	tools := make([]tool, len(l.Tools))
	for i, one := range l.Tools {
		if tools[i] = (tool{Tool: one}); one.Name == askTool {
			tools[i].Execution = json.RawMessage(`{"taskSupport":"optional"}`)
		}
	}
	return withField(l.ListToolsResult, "", func(list map[string]any) { list["tools"] = tools })
}

// withField encodes a value as JSON, with one changed field.
func withField(value any, field string, change func(map[string]any)) ([]byte, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	var whole map[string]any
	if err := json.Unmarshal(data, &whole); err != nil {
		return nil, err
	}
	part := whole
	if field != "" {
		if part, _ = whole[field].(map[string]any); part == nil {
			part = map[string]any{}
			whole[field] = part
		}
	}
	change(part)
	return json.Marshal(whole)
}
