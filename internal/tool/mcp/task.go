package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"chorus/internal/tool"
)

// Tasks are calls whose result is fetched later, as in version 2025-11-25 of the
// protocol: a tool that takes minutes is not lost with its connection.

const (
	taskRequired = "required"
	taskOptional = "optional"
)

// The states of a task.
const (
	taskWorking   = "working"
	taskWaiting   = "input_required"
	taskCompleted = "completed"
	taskFailed    = "failed"
	taskCancelled = "cancelled"
)

const (
	// taskSlack is how much longer than its task a call may take, so
	// that the server can be told that it is over.
	taskSlack = time.Minute
	// pollFirst is how often a task is polled if its server names no interval. A server's own interval is
	// limited to between leastPoll and mostPoll, so that it is neither flooded nor forgotten.
	pollFirst = time.Second
	leastPoll = 50 * time.Millisecond
	mostPoll  = 5 * time.Minute
	// cancelTime is how long a server may take to accept that a task is cancelled.
	cancelTime = 5 * time.Second
	// taskConnections is how many connections may be lost during one task: a
	// server that keeps crashing will not finish it.
	taskConnections = 5
)

// taskWish is what a server is asked about a task.
type taskWish struct {
	TTL int64 `json:"ttl"` // milliseconds
}

// task is the state of a task.
type task struct {
	sdk.ResultBase
	ID      string  `json:"taskId"`
	Status  string  `json:"status"`
	Message string  `json:"statusMessage,omitempty"`
	Poll    float64 `json:"pollInterval,omitempty"` // milliseconds
	TTL     float64 `json:"ttl,omitempty"`          // milliseconds for which the server keeps it; 0 (null): as long as it likes
}

func (t *task) over() bool {
	return t.Status == taskCompleted || t.Status == taskFailed || t.Status == taskCancelled
}

// pause returns how long the server wants to be left alone.
func (t *task) pause() time.Duration {
	if t.Poll <= 0 {
		return pollFirst
	}
	return min(max(time.Duration(t.Poll*float64(time.Millisecond)), leastPoll), mostPoll)
}

// taskParams names a task.
type taskParams struct {
	sdk.ParamsBase
	ID string `json:"taskId"`
}

// TaskStore stores a line of text for a call, by its key, across processes. If nothing is stored, it is "".
type TaskStore interface {
	Task(ctx context.Context, call string) (string, error)
	SetTask(ctx context.Context, call, kept string) error
}

// keptTask is what is stored about a call that was made as a task.
type keptTask struct {
	Task  string    `json:"task,omitempty"` // "": the server has not said yet which task it is
	Until time.Time `json:"until"`          // deadline for the task
}

// taskCall is a call that its server carries out as a task.
type taskCall struct {
	*remote
	args   []byte
	key    string
	show   func(string) // shows progress; never nil
	id     string       // "": there is no task yet
	until  time.Time    // deadline for the task
	said   string       // the last progress that was shown
	result *sdk.CallToolResult
}

// runTask makes a call as a task: it creates the task, polls it until it is over, and fetches its
// result. If the connection is lost, it connects again and finds the task by its id; after a crash,
// the next process does the same. A caller that gives up cancels the task.
func (r *remote) runTask(ctx context.Context, args []byte) (*sdk.CallToolResult, string, error) {
	from := tool.CallFrom(ctx)
	c := &taskCall{remote: r, args: args, key: from.Key, show: from.Progress, until: time.Now().Add(r.srv.TaskTimeout)}
	if again, err := c.takeUp(ctx); err != nil {
		return nil, "", err
	} else if again && c.id == "" {
		return nil, "Chorus was interrupted before the MCP server " + r.srv.Name + " said which task the call became. It is not made again, because it may have taken effect, fully or partly.", c.forget(ctx)
	}
	result, failed, err := c.run(ctx)
	return result, failed, errors.Join(err, c.forget(ctx))
}

func (c *taskCall) run(ctx context.Context) (*sdk.CallToolResult, string, error) {
	for lost := 0; ; lost++ {
		failed, over, err := c.srv.request(ctx, max(time.Until(c.until)+taskSlack/2, c.srv.CallTimeout), c.follow) // later than the task's own deadline
		switch {
		case err == nil && failed == "":
			return c.result, "", nil
		case err == nil && over && c.id != "" && lost < taskConnections:
			c.show("the connection was lost; the task continues")
			continue
		case c.id != "":
			c.cancel(ctx)
		}
		if failed != "" && lost > 0 {
			failed += " Its connection was lost during the task, which may have taken effect, fully or partly."
		}
		return nil, failed, err
	}
}

// takeUp checks whether a process that is gone made the call before.
// A call without a key cannot be found again.
func (c *taskCall) takeUp(ctx context.Context) (again bool, err error) {
	store := c.srv.hub.opt.Tasks
	if store == nil || c.key == "" {
		return false, nil
	}
	text, err := store.Task(ctx, c.key)
	if err != nil || text == "" {
		return false, err
	}
	var kept keptTask
	if err := json.Unmarshal([]byte(text), &kept); err != nil {
		return false, fmt.Errorf("read the task of call %s: %w", c.key, err)
	}
	c.id, c.until = kept.Task, kept.Until
	if c.id != "" {
		c.show("looking for the task again")
	}
	return true, nil
}

// remember stores the task for the call.
func (c *taskCall) remember(ctx context.Context) error {
	store := c.srv.hub.opt.Tasks
	if store == nil || c.key == "" {
		return nil
	}
	text, err := json.Marshal(keptTask{Task: c.id, Until: c.until})
	if err != nil {
		return err
	}
	return store.SetTask(ctx, c.key, string(text))
}

// forget removes what was stored: the call is over.
func (c *taskCall) forget(ctx context.Context) error {
	store := c.srv.hub.opt.Tasks
	if store == nil || c.key == "" {
		return nil
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), cancelTime)
	defer stop()
	return store.SetTask(ctx, c.key, "")
}

// follow brings the task to its end on one connection.
func (c *taskCall) follow(ctx context.Context, l *live) error {
	token, done := l.watch(c.show)
	defer done()
	heard := l.heardOfTasks()
	now, known := &task{ID: c.id, Status: taskWorking, Poll: 1}, false // a resumed task is polled at once
	if c.id == "" {
		if err := c.remember(ctx); err != nil { // before the server gets the call, so that it is never made twice
			return err
		}
		params := &callParams{Name: c.raw, Arguments: json.RawMessage(c.args), Task: taskWish{TTL: (c.srv.TaskTimeout + taskSlack).Milliseconds()}}
		params.Meta = sdk.Meta{"progressToken": token}
		var made *callResult
		if err := l.withPages(ctx, func() (err error) {
			made, err = sdk.CallCustomMethod[*callParams, *callResult](ctx, l.session, ownCall, params)
			return err
		}); err != nil {
			return err
		}
		if made.task == nil { // it was done at once
			c.result = made.result
			return nil
		}
		c.id, now, known = made.task.ID, made.task, true
		if ttl := time.Duration(now.TTL * float64(time.Millisecond)); ttl > 0 {
			c.until = earlier(c.until, time.Now().Add(ttl))
		}
		if err := c.remember(ctx); err != nil {
			return err
		}
	}
	changed := l.hearTask(c.id, heard)
	defer l.forgetTask(c.id)
	for !now.over() && now.Status != taskWaiting {
		c.tell(now)
		left := time.Until(c.until)
		if left <= 0 && known { // a resumed task is polled once in any case
			return fmt.Errorf("the task was not done by %s, its deadline; `taskTimeout` of the server sets how long to wait, as long as the server keeps its tasks", c.until.UTC().Format(time.RFC3339))
		}
		if err := untilChanged(ctx, changed, min(now.pause(), max(left, leastPoll))); err != nil {
			return err
		}
		var err error
		if now, err = taskState(ctx, l, c.id); err != nil {
			return err
		}
		known = true
	}
	c.tell(now)
	if now.Status == taskCancelled {
		return errors.New("the server cancelled the task" + suffix(now.Message))
	}
	// A task that waits for input asks for it while its result is waited for.
	got, err := sdk.CallCustomMethod[*taskParams, *callResult](ctx, l.session, methodTaskResult, &taskParams{ID: c.id})
	if err != nil {
		return err
	}
	if c.result = got.result; c.result == nil {
		return errors.New("the task's result is another task")
	}
	return nil
}

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

func suffix(message string) string {
	if message = printable(message, 200); message != "" {
		return ": " + message
	}
	return ""
}

// tell shows what a server says about a running task.
func (c *taskCall) tell(t *task) {
	if text := printable(t.Message, 200); text != "" && text != c.said {
		c.said = text
		c.show(text)
	}
}

// taskState asks for the state of a task. It does not wait for the answer as long as for the task itself.
func taskState(ctx context.Context, l *live, id string) (*task, error) {
	within, cancel := context.WithTimeoutCause(ctx, l.srv.CallTimeout, errDeadline)
	defer cancel()
	now, err := sdk.CallCustomMethod[*taskParams, *task](within, l.session, methodTaskGet, &taskParams{ID: id})
	if err != nil && within.Err() != nil && ctx.Err() == nil {
		return nil, fmt.Errorf("it did not report the state of the task within %s", l.srv.CallTimeout)
	}
	return now, err
}

// cancel tells the server that nobody waits any more, if it can still be reached.
func (c *taskCall) cancel(ctx context.Context) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), cancelTime)
	defer stop()
	c.srv.mu.Lock()
	l := c.srv.live
	c.srv.mu.Unlock()
	if l == nil || over(l) {
		return
	}
	_, _ = sdk.CallCustomMethod[*taskParams, *task](ctx, l.session, methodTaskCancel, &taskParams{ID: c.id}) // it may be over already
}

// hearTask returns a channel that receives a value when the server says that a task has changed,
// until forgetTask. Anything it has said after since may have been about this task, whose id was not
// yet known here; in that case the channel receives a value at once.
func (l *live) hearTask(id string, since int64) chan struct{} {
	changed := make(chan struct{}, 1)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tasks[id] = changed
	if l.taskNews != since {
		wakeUp(changed)
	}
	return changed
}

func (l *live) forgetTask(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.tasks, id)
}

// heardOfTasks returns how many unrequested messages about tasks the server has sent.
func (l *live) heardOfTasks() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.taskNews
}

// taskChanged handles an unrequested message about a task.
func (l *live) taskChanged(params json.RawMessage) {
	var t task
	if json.Unmarshal(params, &t) != nil {
		return
	}
	l.mu.Lock()
	l.taskNews++
	changed := l.tasks[t.ID]
	l.mu.Unlock()
	if changed != nil {
		wakeUp(changed)
	}
}

// untilChanged waits until a task should be polled: after a pause,
// or when the server says that it has changed.
func untilChanged(ctx context.Context, changed <-chan struct{}, pause time.Duration) error {
	select {
	case <-time.After(pause):
	case <-changed:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}
