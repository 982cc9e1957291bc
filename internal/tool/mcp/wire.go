package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// The SDK's types omit what it does not know: how a tool wants to be called as a task, and the task that a
// call becomes. The SDK lets us add methods with our own types, but not replace those that it has. Therefore
// ours have other names towards the SDK, and their real names on the way to the server.
const (
	ownPrefix = "chorus:"
	ownList   = ownPrefix + "tools/list"
	ownCall   = ownPrefix + "tools/call"

	methodTaskGet    = "tasks/get"
	methodTaskResult = "tasks/result"
	methodTaskCancel = "tasks/cancel"
	methodTaskStatus = "notifications/tasks/status"
)

// addMethods lets a client send what the SDK does not know.
func addMethods(c *sdk.Client) error {
	return errors.Join(
		sdk.AddSendingCustomMethod[*listParams, *listResult](c, ownList),
		sdk.AddSendingCustomMethod[*callParams, *callResult](c, ownCall),
		sdk.AddSendingCustomMethod[*taskParams, *task](c, methodTaskGet),
		sdk.AddSendingCustomMethod[*taskParams, *callResult](c, methodTaskResult),
		sdk.AddSendingCustomMethod[*taskParams, *task](c, methodTaskCancel),
	)
}

// realName replaces our method name in a message by the real one.
func realName(msg jsonrpc.Message) jsonrpc.Message {
	if req, ok := msg.(*jsonrpc.Request); ok && strings.HasPrefix(req.Method, ownPrefix) {
		named := *req
		named.Method = strings.TrimPrefix(req.Method, ownPrefix)
		return &named
	}
	return msg
}

// realBody does the same to the body of an HTTP request.
func realBody(req *http.Request) error {
	if req.Method != http.MethodPost || req.Body == nil {
		return nil
	}
	data, err := io.ReadAll(req.Body)
	_ = req.Body.Close()
	if err != nil {
		return err
	}
	if bytes.Contains(data, []byte(`"`+ownPrefix)) { // otherwise there is nothing to decode
		if msg, derr := jsonrpc.DecodeMessage(data); derr == nil {
			if data, err = jsonrpc.EncodeMessage(realName(msg)); err != nil {
				return err
			}
		}
	}
	req.ContentLength = int64(len(data))
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil }
	req.Body, err = req.GetBody()
	return err
}

// listParams and listResult are tools/list with everything that tools say about themselves.
type listParams struct {
	sdk.ParamsBase
	Cursor string `json:"cursor,omitempty"`
}

type listResult struct {
	sdk.ResultBase
	Tools      []*offered `json:"tools"`
	NextCursor string     `json:"nextCursor,omitempty"`
}

// offered is a tool as its server describes it, and how it wants to be called.
type offered struct {
	sdk.Tool
	task string // required, optional, forbidden; "": as forbidden
}

func (o *offered) UnmarshalJSON(data []byte) error {
	var execution struct {
		Execution struct {
			TaskSupport string `json:"taskSupport"`
		} `json:"execution"`
	}
	if err := json.Unmarshal(data, &o.Tool); err != nil {
		return err
	}
	if json.Unmarshal(data, &execution) == nil { // otherwise it says nothing that is known
		o.task = execution.Execution.TaskSupport
	}
	return nil
}

// callParams is tools/call as a task.
type callParams struct {
	sdk.ParamsBase
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	Task      taskWish        `json:"task"`
}

// callResult is what a call became: a task, or an immediate result.
type callResult struct {
	sdk.ResultBase
	task   *task
	result *sdk.CallToolResult
}

func (r *callResult) UnmarshalJSON(data []byte) error {
	var made struct {
		Task *task `json:"task"`
	}
	if json.Unmarshal(data, &made) == nil && made.Task != nil && made.Task.ID != "" {
		r.task = made.Task
		return nil
	}
	r.result = &sdk.CallToolResult{}
	return json.Unmarshal(data, r.result)
}
