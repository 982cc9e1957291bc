package operations

import (
	"context"

	"chorus/internal/operation"
)

// AgentEditing implements operations that edit agents.
type AgentEditing interface {
	// EditAgent changes an agent as a whole, unless somebody else has changed it since the caller read it.
	EditAgent(context.Context, operation.Caller, AgentEdit) (Agent, error)
	// PreviewAgent shows what a model would see if a conversation with the agent started now.
	PreviewAgent(context.Context, operation.Caller, AgentDraft) (AgentPreview, error)
}

// AgentEdit is a change of an agent; fields left out do not change.
type AgentEdit struct {
	Name         string  `json:"name" maxLen:"64" noun:"agent" context:"agent" doc:"the agent's name"`
	Seen         string  `json:"seen,omitempty" maxLen:"64" doc:"the version that you read: refused if there is a newer one; left out: the current version is replaced"`
	Model        *string `json:"model,omitempty" maxLen:"200" noun:"model" cli:"model,m" doc:"model; empty: the default"`
	Permissions  *string `json:"permissions,omitempty" maxLen:"64" noun:"profile" doc:"permission profile"`
	SystemPrompt *string `json:"systemPrompt,omitempty" maxLen:"200000" cli:"prompt" doc:"who the agent is and what it does"`
	Tools        *string `json:"tools,omitempty" maxLen:"20000" doc:"names of its tools, separated by commas; task.* for a group; empty: all"`
}

// AgentDraft is an agent that is not saved; fields left out are as they are now, or as in a new agent.
type AgentDraft struct {
	Name         string  `json:"name" minLen:"2" maxLen:"32" doc:"the agent's name; it need not exist yet"`
	Model        *string `json:"model,omitempty" maxLen:"200" noun:"model" cli:"model,m" doc:"model; empty: the default"`
	Permissions  *string `json:"permissions,omitempty" maxLen:"64" noun:"profile" doc:"permission profile"`
	SystemPrompt *string `json:"systemPrompt,omitempty" maxLen:"200000" cli:"prompt" doc:"who the agent is and what it does"`
	Tools        *string `json:"tools,omitempty" maxLen:"20000" doc:"names of its tools, separated by commas; empty: all"`
}

// AgentConflict describes a conflicting edit of somebody else.
type AgentConflict struct {
	Version    string `json:"version"`    // the current version
	Difference string `json:"difference"` // from the current version to the requested one, as a unified diff
}

// AgentPreview is what a model sees when a conversation with an agent starts.
type AgentPreview struct {
	Name          string         `json:"name"`
	Model         string         `json:"model"`
	ContextWindow int            `json:"contextWindow,omitempty"`
	Permissions   string         `json:"permissions"`
	Worker        string         `json:"worker,omitempty"` // another program does its work, and does not get the rest
	System        string         `json:"system"`           // the system prompt
	Tools         []PreviewTool  `json:"tools"`            // that the model sees
	Searched      []string       `json:"searched"`         // tools that it can find by searching
	Refused       []string       `json:"refused"`          // tools that are not offered, because the profile never allows them
	Servers       []string       `json:"servers"`          // MCP servers whose tools are added; they are not started for a preview
	Notes         []PreviewNote  `json:"notes"`            // other notes: the date, memory, skills
	Tokens        PreviewWeights `json:"tokens"`
}

// PreviewTool is a tool as a model reads it.
type PreviewTool struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	ReadOnly    bool   `json:"readOnly"`
	Tokens      int    `json:"tokens"`
}

// PreviewNote is a note for the model besides the conversation.
type PreviewNote struct {
	What   string `json:"what"`
	Text   string `json:"text"`
	Tokens int    `json:"tokens"`
}

// PreviewWeights are sizes in tokens, estimated as in runs: four characters each.
type PreviewWeights struct {
	System int `json:"system"`
	Tools  int `json:"tools"`
	Notes  int `json:"notes"`
	Total  int `json:"total"`
}

// The operations that edit agents.
var (
	EditAgent = operation.New(operation.Info{Name: "agent.edit", Help: "Change an agent, unless somebody else has changed it meanwhile", Scope: operation.Admin, Effect: operation.Changes,
		Doc:    "With the version that you read (agent show), the change is refused if there is a newer one, and the answer has the difference.",
		Errors: []operation.Kind{operation.NotFound, operation.Conflict},
		HTTP:   []operation.HTTP{{Route: "PUT /api/agents/{name}", ID: "editAgent", Body: "AgentEdit", NeedsBody: true}},
		CLI: []operation.CLI{{Words: "agent edit", Args: "NAME",
			Example: "  chorus agent edit frontend --prompt \"You look after the web pages.\" --tools read,edit,bash"}},
		Done: "{name} is changed; it applies from the next run"}, AgentEditing.EditAgent)

	PreviewAgent = operation.New(operation.Info{Name: "agent.preview", Help: "Preview what a model sees of an agent: its system prompt, tools and notes, with their size", Scope: operation.Admin,
		Doc:    "It is assembled as for a run, in its own folder; MCP servers are listed but not started. With changes in the request, it shows the agent with those changes.",
		Errors: []operation.Kind{operation.NotFound},
		HTTP:   []operation.HTTP{{Route: "POST /api/agents/{name}/preview", ID: "previewAgent", Body: "AgentDraft"}},
		CLI:    []operation.CLI{{Words: "agent preview", Args: "NAME", Example: "  chorus agent preview frontend\n  chorus agent preview frontend --permissions locked --json"}},
		Page:   "/agents"}, AgentEditing.PreviewAgent)
)
