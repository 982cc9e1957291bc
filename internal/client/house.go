package client

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"chorus/internal/command"
)

// Approvals implements command.Desk.
func (c *Client) Approvals(ctx context.Context, _ command.Caller, q command.ApprovalQuery) (command.List[command.Approval], error) {
	return get[command.List[command.Approval]](ctx, c, values("session", q.Session, "state", q.State, "cursor", q.Cursor,
		"limit", number(min(q.Limit, maxPage))), "api", "approvals")
}

// Answer implements command.Desk.
func (c *Client) Answer(ctx context.Context, _ command.Caller, id string, in command.Verdict) (command.Approval, error) {
	var out command.Approval
	_, err := c.call(ctx, order{method: http.MethodPost, path: []string{"api", "approvals", id}, body: in}, &out)
	return out, err
}

// ListAgents implements command.Agents.
func (c *Client) ListAgents(ctx context.Context, _ command.Caller) (command.List[command.Agent], error) {
	return get[command.List[command.Agent]](ctx, c, nil, "api", "agents")
}

// GetAgent implements command.Agents.
func (c *Client) GetAgent(ctx context.Context, _ command.Caller, name string) (command.AgentDetail, error) {
	return get[command.AgentDetail](ctx, c, nil, "api", "agents", name)
}

// CreateAgent implements command.Agents.
func (c *Client) CreateAgent(ctx context.Context, _ command.Caller, in command.NewAgent) (command.Agent, error) {
	var out command.Agent
	_, err := c.call(ctx, order{method: http.MethodPost, path: []string{"api", "agents"}, body: in, key: in.Key}, &out)
	return out, err
}

// ConfigureAgent implements command.Agents.
func (c *Client) ConfigureAgent(ctx context.Context, _ command.Caller, name, key, value string) (command.Agent, error) {
	var out command.Agent
	_, err := c.call(ctx, order{method: http.MethodPatch, path: []string{"api", "agents", name}, body: map[string]string{"key": key, "value": value}}, &out)
	return out, err
}

// DestroyAgent implements command.Agents.
func (c *Client) DestroyAgent(ctx context.Context, _ command.Caller, name string, keepFiles bool) error {
	_, err := c.call(ctx, order{method: http.MethodDelete, path: []string{"api", "agents", name}, query: values("keepFiles", strconv.FormatBool(keepFiles))}, nil)
	return err
}

// AgentFile implements command.Agents.
func (c *Client) AgentFile(ctx context.Context, _ command.Caller, name, path string) (command.Entry, error) {
	return get[command.Entry](ctx, c, values("path", path), "api", "agents", name, "files")
}

// Costs implements command.Books.
func (c *Client) Costs(ctx context.Context, _ command.Caller, q command.CostQuery) (command.Costs, error) {
	return get[command.Costs](ctx, c, values("by", q.By, "since", q.Since), "api", "costs")
}

// Audit implements command.Books.
func (c *Client) Audit(ctx context.Context, _ command.Caller, q command.AuditQuery) (command.List[command.AuditLine], error) {
	return get[command.List[command.AuditLine]](ctx, c, values("session", q.Session, "agent", q.Agent, "who", q.Who, "decision", q.Decision,
		"run", q.Run, "since", moment(q.Since), "until", moment(q.Until), "before", number(q.Before), "cursor", q.Cursor, "limit", number(min(q.Limit, maxSpan))), "api", "audit")
}

// VerifyAudit implements command.Books.
func (c *Client) VerifyAudit(ctx context.Context, _ command.Caller, since string) (command.AuditCheck, error) {
	return get[command.AuditCheck](ctx, c, values("since", since), "api", "audit", "verify")
}

// moment is a time of a query; the zero one is left out.
func moment(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}

// ListTokens implements command.Keys.
func (c *Client) ListTokens(ctx context.Context, _ command.Caller) (command.List[command.Token], error) {
	return get[command.List[command.Token]](ctx, c, nil, "api", "tokens")
}

// CreateToken implements command.Keys.
func (c *Client) CreateToken(ctx context.Context, _ command.Caller, in command.NewToken) (command.Token, error) {
	body := struct {
		command.NewToken
		ExpiresIn string `json:"expiresIn,omitempty"`
	}{NewToken: in}
	if in.ExpiresIn > 0 {
		body.ExpiresIn = in.ExpiresIn.Round(time.Second).String()
	}
	var out command.Token
	_, err := c.call(ctx, order{method: http.MethodPost, path: []string{"api", "tokens"}, body: body}, &out)
	return out, err
}

// RevokeToken implements command.Keys.
func (c *Client) RevokeToken(ctx context.Context, _ command.Caller, id string) error {
	_, err := c.call(ctx, order{method: http.MethodDelete, path: []string{"api", "tokens", id}}, nil)
	return err
}

// Models implements command.House.
func (c *Client) Models(ctx context.Context, _ command.Caller) (command.List[command.Model], error) {
	return get[command.List[command.Model]](ctx, c, nil, "api", "models")
}

// Settings implements command.House.
func (c *Client) Settings(ctx context.Context, _ command.Caller) (command.List[command.Setting], error) {
	return get[command.List[command.Setting]](ctx, c, nil, "api", "settings")
}

// SetSetting implements command.House.
func (c *Client) SetSetting(ctx context.Context, _ command.Caller, key, value string) (command.Setting, error) {
	var out command.Setting
	_, err := c.call(ctx, order{method: http.MethodPut, path: []string{"api", "settings", key}, body: map[string]string{"value": value}}, &out)
	return out, err
}

// Overview implements command.House.
func (c *Client) Overview(ctx context.Context, _ command.Caller) (command.Overview, error) {
	return get[command.Overview](ctx, c, nil, "api", "overview")
}

// Health implements command.House.
func (c *Client) Health(ctx context.Context, _ command.Caller) (command.List[command.Check], error) {
	return get[command.List[command.Check]](ctx, c, nil, "api", "health")
}
