package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"chorus/internal/text"
	"chorus/internal/tool"
)

// remote is one tool of a server.
type remote struct {
	srv  *server
	raw  string // the server's name for it
	task bool   // it is called as a task
	spec tool.Spec
	keep tool.Keep
}

var (
	_ tool.Tool    = (*remote)(nil)
	_ tool.Labeler = (*remote)(nil)
)

// offer returns the tools of the server, whether it has resources, and
// whether it ever started and may start again.
func (s *server) offer(keep tool.Keep) (tools []tool.Tool, resources, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.came || s.state == Failed || s.state == Off {
		return nil, false, false
	}
	for _, l := range s.tools {
		spec := l.spec
		if l.task {
			spec.Once, spec.Limit = s.hub.opt.Tasks != nil, s.TaskTimeout+taskSlack
		}
		tools = append(tools, &remote{srv: s, raw: l.raw, task: l.task, spec: spec, keep: keep})
	}
	return tools, s.resources, true
}

func (r *remote) Spec() tool.Spec { return r.spec }

// ServerOf returns the name of the server that a tool belongs to, or "" if it belongs to no single server.
func ServerOf(t tool.Tool) string {
	if r, ok := t.(*remote); ok {
		return r.srv.Name
	}
	return ""
}

// Access implements tool.Tool: nobody knows what a server touches.
func (r *remote) Access([]byte) []tool.Access { return nil }

func (r *remote) Label(args []byte) string {
	label := printable(r.srv.Name, 40) + ": " + printable(r.raw, 60)
	var fields map[string]json.RawMessage
	if json.Unmarshal(args, &fields) != nil {
		return label
	}
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		value := string(fields[key])
		var plain string
		if json.Unmarshal(fields[key], &plain) == nil {
			value = plain
		}
		label += " " + printable(key, 30) + "=" + printable(value, 60)
		if len(label) > 120 {
			return text.Clip(label, 120)
		}
	}
	return label
}

// Run implements tool.Tool. Whatever the server does, the answer is a result.
func (r *remote) Run(ctx context.Context, args []byte) (tool.Result, error) {
	if err := ctx.Err(); err != nil {
		return tool.Result{}, err
	}
	var object map[string]json.RawMessage
	if json.Unmarshal(args, &object) != nil || object == nil {
		return tool.Fail("Invalid arguments for " + r.spec.Name + ": they must be one JSON object."), nil
	}
	call := r.call
	if r.task {
		call = r.runTask
	}
	result, failed, err := call(ctx, args)
	if err != nil {
		return tool.Result{}, err
	}
	if failed != "" {
		return r.srv.failure(failed), nil
	}
	var a answer
	a.call(result)
	return a.result(ctx, r.srv.source(), r.keep), nil
}

// call makes a call and waits for its answer.
func (r *remote) call(ctx context.Context, args []byte) (result *sdk.CallToolResult, failed string, err error) {
	failed, err = r.srv.do(ctx, func(ctx context.Context, l *live) error {
		token, done := l.watch(tool.CallFrom(ctx).Progress)
		defer done()
		params := &sdk.CallToolParams{Name: r.raw, Arguments: json.RawMessage(args), Meta: sdk.Meta{"progressToken": token}}
		return l.withPages(ctx, func() (err error) {
			result, err = l.session.CallTool(ctx, params)
			return err
		})
	})
	return result, failed, err
}

// source marks a text as written by the server.
func (s *server) source() string { return "mcp server " + printable(s.Name, 60) }

// failure returns an answer that a call failed. The reason quotes the server.
func (s *server) failure(why string) tool.Result {
	res := tool.Fail(why)
	res.UntrustedFrom = s.source()
	return res
}

var errDeadline = errors.New("the call took too long")

// do makes one request of the server within its deadline. failed says in words for the model
// why the request failed. err is set only if the caller's context ended.
func (s *server) do(ctx context.Context, request func(context.Context, *live) error) (failed string, err error) {
	failed, _, err = s.request(ctx, s.CallTimeout, request)
	return failed, err
}

// request is do with its own time limit. lost reports that the
// request failed because the connection was lost.
func (s *server) request(ctx context.Context, limit time.Duration, request func(context.Context, *live) error) (failed string, lost bool, err error) {
	l, absent := s.connection(ctx)
	if ctx.Err() != nil {
		return "", false, ctx.Err()
	}
	if l == nil {
		return absent, false, nil
	}
	// The calls of a closed connection must not keep it open.
	within, end := context.WithCancelCause(ctx)
	defer end(nil)
	defer context.AfterFunc(l.ctx, func() { end(errEnded) })()
	call := &pending{key: tool.CallFrom(ctx).Key, ctx: within, limit: limit}
	call.timer = time.AfterFunc(limit, func() { end(errDeadline) })
	defer call.timer.Stop()
	defer l.begin(call)()
	if l.courier != nil {
		go l.probe(within, end)
	}
	err = request(within, l)
	var wire *jsonrpc.Error
	switch {
	case err == nil:
		return "", false, nil
	case ctx.Err() != nil:
		return "", false, ctx.Err()
	case errors.Is(context.Cause(within), errDeadline):
		return fmt.Sprintf("The MCP server %s did not answer within %s, and the call was cancelled. It may have taken effect, fully or partly.", s.Name, limit), false, nil
	case isClosed(err) || over(l):
		if l.proc != nil {
			l.lost.Store(true)
		}
		return fmt.Sprintf("The MCP server %s failed during this call: %s. It is being restarted. The call may have taken effect, fully or partly.", s.Name, l.explain(errEnded)), true, nil
	case errors.As(err, &wire):
		return fmt.Sprintf("The MCP server %s answered with an error: %s", s.Name, s.redact(text.Clip(strings.ToValidUTF8(wire.Message, ""), 2000))), false, nil
	}
	return fmt.Sprintf("The call of the MCP server %s failed: %s", s.Name, l.explain(err)), false, nil
}

// over reports whether a connection has ended.
func over(l *live) bool {
	if l.lost.Load() {
		return true
	}
	select {
	case <-l.gone:
		return true
	case <-l.ctx.Done():
		return true
	default:
		return false
	}
}

// watch passes the progress of a call to show until done is called.
func (l *live) watch(show func(string)) (token string, done func()) {
	token = fmt.Sprintf("chorus-%d", l.tokens.Add(1))
	l.mu.Lock()
	l.watched[token] = show
	l.mu.Unlock()
	return token, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.watched, token)
	}
}

// progress shows what a server says about a running call.
func (l *live) progress(p *sdk.ProgressNotificationParams) {
	if p == nil {
		return
	}
	token, _ := p.ProgressToken.(string)
	l.mu.Lock()
	show := l.watched[token]
	l.mu.Unlock()
	if text := progressText(p); show != nil && text != "" {
		show(text)
	}
}

// progressText returns a message, a count, or both. It leaves out numbers that make no sense.
func progressText(p *sdk.ProgressNotificationParams) string {
	count := ""
	switch {
	case p.Progress < 0 || p.Total < 0:
	case p.Total > 0 && p.Progress <= p.Total:
		count = fmt.Sprintf("%.4g of %.4g", p.Progress, p.Total)
	case p.Total == 0 && p.Progress > 0:
		count = fmt.Sprintf("%.4g", p.Progress)
	}
	message := printable(p.Message, 200)
	if message != "" && count != "" {
		return message + " (" + count + ")"
	}
	return message + count
}
