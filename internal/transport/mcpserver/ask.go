package mcpserver

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"chorus/internal/feed"
	"chorus/internal/operation"
	"chorus/internal/operations"
)

// askRequest is the input of session_ask.
type askRequest struct {
	Message   string `json:"message"`
	ID        string `json:"id"`
	Agent     string `json:"agent"`
	Workspace string `json:"workspacePath"`
	Seconds   int    `json:"seconds"`
}

const askSchema = `{"type":"object","additionalProperties":false,"required":["message"],"properties":{` +
	`"message":{"type":"string","minLength":1,"maxLength":1000000,"description":"the message"},` +
	`"id":{"type":"string","maxLength":1024,"description":"the session's id; left out: a new session"},` +
	`"agent":{"type":"string","maxLength":64,"description":"who answers in a new session; left out: the default agent"},` +
	`"workspacePath":{"type":"string","maxLength":4096,"description":"the folder a new session works in; left out: its own"},` +
	`"seconds":{"type":"integer","minimum":1,"maximum":3600,"default":300,"description":"how long to wait for the answer; the agent continues afterwards"}}}`

const askText = "Send a message to an agent and wait for its answer. The answer has the session's id, to continue with. status is done; " +
	"waiting if the agent waits for an approval, which approvals names; running if it takes longer than seconds: read the rest with session_messages; " +
	"or failed. Cancelling the call stops the agent."

// defaultAsk and maxAsk limit how long a call waits.
const (
	defaultAsk = 5 * time.Minute
	maxAsk     = time.Hour
)

// asked is the output of session_ask.
type asked struct {
	SessionID string                `json:"sessionId"`
	Status    string                `json:"status"` // done, waiting, running, failed
	Text      string                `json:"text"`
	Approvals []operations.Approval `json:"approvals,omitempty"`
}

func (s *Server) addAsk(to *sdk.Server) {
	no, yes := false, true
	to.AddTool(&sdk.Tool{Name: askTool, Title: "Ask an agent", Description: askText, InputSchema: json.RawMessage(askSchema),
		Annotations: &sdk.ToolAnnotations{Title: "Ask an agent", DestructiveHint: &no, OpenWorldHint: &yes}}, s.ask)
}

func (s *Server) ask(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	return s.askFor(ctx, req, defaultAsk, progressOf(ctx, req))
}

// askFor waits as long as the caller requests, or else the given time.
func (s *Server) askFor(ctx context.Context, req *sdk.CallToolRequest, wait time.Duration, progress func(string)) (*sdk.CallToolResult, error) {
	var in askRequest
	if err := json.Unmarshal(req.Params.Arguments, &in); err != nil {
		return answer("the arguments do not fit: "+err.Error(), true), nil
	}
	key, _ := req.Params.Meta[idempotencyKey].(string)
	a := asking{to: s.o.Executor, by: callerOf(ctx, req), progress: progress}
	if err := a.begin(ctx, in, key); err != nil {
		return s.failed("session.ask", err), nil
	}
	if in.Seconds > 0 {
		wait = min(time.Duration(in.Seconds)*time.Second, maxAsk)
	}
	within, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	out, err := a.follow(within)
	switch {
	case s.ended.Err() != nil: // the server is stopping, and the agent continues at the next start
		return nil, ctx.Err()
	case ctx.Err() != nil:
		a.abort(ctx)
		return nil, ctx.Err()
	case within.Err() != nil:
		out.Status = "running"
	case err != nil:
		return s.failed("session.ask", err), nil
	}
	out.SessionID = a.session
	data, err := json.Marshal(out)
	if err != nil {
		return nil, err
	}
	return answer(string(data), false), nil
}

// progressOf reports progress to the caller.
func progressOf(ctx context.Context, req *sdk.CallToolRequest) func(string) {
	token := req.Params.GetProgressToken()
	if token == nil {
		return func(string) {}
	}
	count := 0.0
	return func(text string) {
		count++
		_ = req.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: token, Progress: count, Message: text}) // lost progress is harmless
	}
}

// asking is one prompt and the run that answers it.
type asking struct {
	to       operation.Executor
	by       operation.Caller
	progress func(string)
	session  string
	seq      int64
	run      string // "": it has not started yet
}

func (a *asking) begin(ctx context.Context, in askRequest, key string) error {
	a.session = in.ID
	if in.ID == "" {
		session := ""
		if key != "" {
			session = "mcp/" + key
		}
		made, err := operations.CreateSession.Call(ctx, a.to, a.by, operations.NewSession{Agent: in.Agent, WorkspacePath: in.Workspace, Key: session})
		if err != nil {
			return err
		}
		a.session = made.SessionID
	}
	said, err := operations.Say.Call(ctx, a.to, a.by, operations.Message{ID: a.session, Message: in.Message, Key: key})
	a.seq = said.Seq
	return err
}

// follow reads the session until the run ends or waits for somebody.
func (a *asking) follow(ctx context.Context) (out asked, err error) {
	texts := []string{}
	defer func() { out.Text = strings.Join(texts, "\n\n") }()
	for item, err := range operations.Watch.Follow(ctx, a.to, a.by, operations.WatchRequest{ID: a.session, After: a.seq - 1}) {
		if err != nil {
			return out, err
		}
		switch it := item.(type) {
		case feed.Trace:
			a.noteRun(it)
			continue
		case feed.Refused:
			if it.PromptSeq == a.seq {
				return out, operation.Errorf(operation.Busy, "the message was not accepted: %s", it.Reason)
			}
			continue
		}
		if a.run == "" || item.Header().Run != a.run {
			continue
		}
		switch it := item.(type) {
		case feed.ToolCall:
			a.progress(it.Label)
		case feed.AssistantMessage:
			if it.Text != "" {
				texts = append(texts, it.Text)
				a.progress(it.Text)
			}
		case feed.ApprovalRequired:
			out.Status = "waiting"
			list, err := operations.ListApprovals.Call(ctx, a.to, a.by, operations.ApprovalQuery{Session: a.session})
			out.Approvals = list.Items
			return out, err
		case feed.Completed:
			if len(texts) == 0 && it.Text != "" {
				texts = append(texts, it.Text)
			}
			out.Status = "done"
			return out, nil
		case feed.Error:
			texts = append(texts, it.Message)
			out.Status = "failed"
			return out, nil
		}
	}
	if ctx.Err() == nil {
		err = operation.Errorf(operation.Unavailable, "the stream of session %s ended before the answer; read it with session_messages", a.session)
	}
	return out, err
}

// noteRun remembers which run answers the prompt.
func (a *asking) noteRun(it feed.Trace) {
	var data struct {
		Run  string  `json:"run"`
		Seqs []int64 `json:"seqs"`
	}
	if a.run == "" && it.Kind == "took" && json.Unmarshal(it.Data, &data) == nil && slices.Contains(data.Seqs, a.seq) {
		a.run = data.Run
	}
}

// abort stops the run once it is known to be the right one.
func (a *asking) abort(ctx context.Context) {
	if a.run == "" {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer cancel()
	_, _ = operations.Abort.Call(ctx, a.to, a.by, operations.AbortRequest{ID: a.session}) // on an error the run ends at its limits
}
