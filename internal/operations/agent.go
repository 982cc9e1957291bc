package operations

import (
	"context"
	"encoding/json"
	"time"

	"chorus/internal/operation"
)

// Agents implements operations on agents.
type Agents interface {
	ListAgents(context.Context, operation.Caller, AgentQuery) (operation.List[Agent], error)
	GetAgent(context.Context, operation.Caller, AgentRef) (AgentDetail, error)
	CreateAgent(context.Context, operation.Caller, NewAgent) (Agent, error)
	ConfigureAgent(context.Context, operation.Caller, AgentSetting) (Agent, error)
	DestroyAgent(context.Context, operation.Caller, DestroyAgentRequest) (operation.None, error)
	// AgentFile reads a file or lists a directory of the agent's workspace.
	AgentFile(context.Context, operation.Caller, AgentFileRef) (Entry, error)
	// ListProfiles lists the profiles that the caller may choose for a session of an agent.
	ListProfiles(context.Context, operation.Caller, ProfileQuery) (operation.List[Profile], error)
}

// AgentQuery selects a part of the list of agents.
type AgentQuery struct{ Page }

// ProfileQuery says for which sessions to list permission profiles.
type ProfileQuery struct {
	Agent string `json:"agent,omitempty" maxLen:"64" noun:"agent" context:"agent" doc:"for sessions of this agent; left out: the default one"`
}

// Profile is a permission profile that the caller may choose.
type Profile struct {
	Name     string `json:"name"`
	About    string `json:"about,omitempty"`    // its meaning, for built-in profiles
	Standard bool   `json:"standard,omitempty"` // the agent's own profile, for sessions that name none
}

// Agent is a configured agent.
type Agent struct {
	Name        string    `json:"name"`
	Model       string    `json:"model,omitempty"`
	Permissions string    `json:"permissions,omitempty"`
	Sandbox     string    `json:"sandbox,omitempty"`
	Workspace   string    `json:"workspace,omitempty"`
	CreatedAt   time.Time `json:"createdAt,omitzero"`
	Description string    `json:"description,omitempty"`
	// State is IDLE, or BUSY while the agent works on tasks; Task is the first of them that the caller may see.
	State  string      `json:"state,omitempty"`
	Task   string      `json:"currentTask,omitempty"`
	Tasks  []TaskBrief `json:"tasks,omitempty"`
	Repo   string      `json:"repoId,omitempty"` // default repository of its tasks
	Worker string      `json:"worker,omitempty"` // claude, codex or acp: another program does its work
	// File is agent.json, for callers who may change it; nil: there is none.
	File json.RawMessage `json:"file,omitempty"`
}

// AgentDetail is an agent with everything that shapes its answers.
type AgentDetail struct {
	Agent
	SystemPrompt string    `json:"systemPrompt,omitempty"`
	Tools        []Tool    `json:"tools"`
	Docs         []Doc     `json:"docs"`
	Memory       string    `json:"memory,omitempty"`
	Version      string    `json:"version,omitempty"`        // of agent.json; an edit names it
	OwnPrompt    string    `json:"ownPrompt,omitempty"`      // from agent.json
	Secret       bool      `json:"secretInPrompt,omitempty"` // ownPrompt omits a secret
	OwnModel     string    `json:"ownModel,omitempty"`       // from agent.json; "": the default
	OwnTools     []string  `json:"ownTools,omitempty"`       // from agent.json; none: all
	Problem      string    `json:"problem,omitempty"`        // why agent.json cannot be read; its last good version applies
	Sessions     []Session `json:"sessions"`
	Settings     []Setting `json:"settings"`
}

// Tool is what an agent can do.
type Tool struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	ReadOnly    bool   `json:"readOnly"`
	Verdict     string `json:"verdict,omitempty"` // what its profile generally says: allow, ask, deny, depends
}

// Doc is a file of the agent's prompt.
type Doc struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// Entry is a file, or a directory with its entries.
type Entry struct {
	Path    string    `json:"path"`
	Dir     bool      `json:"dir"`
	Size    int64     `json:"size"`
	MovedAt time.Time `json:"movedAt"`
	Text    string    `json:"text,omitempty"` // of a file; truncated if Cut is true
	Binary  bool      `json:"binary,omitempty"`
	Cut     bool      `json:"cut,omitempty"`
	Entries []Entry   `json:"entries,omitempty"`
}

// AgentRef names an agent.
type AgentRef struct {
	Name string `json:"name" maxLen:"64" noun:"agent" context:"agent" doc:"the agent's name"`
}

// NewAgent describes a new agent.
type NewAgent struct {
	Name         string `json:"name" minLen:"2" maxLen:"32" doc:"a–z, 0–9 and hyphens"`
	Model        string `json:"model,omitempty" maxLen:"200" noun:"model" cli:"model,m" doc:"model; left out: the default"`
	Permissions  string `json:"permissions,omitempty" maxLen:"64" noun:"profile" doc:"permission profile; left out: the default"`
	SystemPrompt string `json:"systemPrompt,omitempty" maxLen:"200000" tool:"system_prompt" cli:"prompt" slash:"prompt" doc:"who the agent is and what it does"`
	Tools        string `json:"tools,omitempty" maxLen:"20000" slash:"-" doc:"names of its tools, separated by commas; task.* for a group; left out: all"`
	Type         string `json:"agentType,omitempty" enum:"chorus,claude,codex,acp" tool:"agent_type" cli:"worker" slash:"-" doc:"who does its work: a model with the tools of Chorus, or another program; left out: chorus"`
	Repo         string `json:"repoId,omitempty" maxLen:"100" noun:"repo" tool:"repo_id" cli:"repo" slash:"repo" doc:"the repository that its tasks work in unless they name another"`
	Key          string `json:"-" key:"true"`
}

// AgentSetting sets one key of an agent.
type AgentSetting struct {
	Name  string `json:"name" maxLen:"64" noun:"agent" context:"agent" doc:"the agent's name"`
	Key   string `json:"key" minLen:"1" maxLen:"200" doc:"which setting"`
	Value string `json:"value" maxLen:"200000" doc:"empty: the built-in value"`
}

// DestroyAgentRequest names an agent to remove.
type DestroyAgentRequest struct {
	Name      string `json:"name" maxLen:"64" noun:"agent" doc:"the agent's name"`
	KeepFiles bool   `json:"keepFiles,omitempty" doc:"keep its files, in .trash of the home folder"`
}

// AgentFileRef names a file of an agent's workspace.
type AgentFileRef struct {
	Name string `json:"name" maxLen:"64" noun:"agent" context:"agent" doc:"the agent's name"`
	Path string `json:"path,omitempty" maxLen:"4096" doc:"within the workspace; left out: the workspace itself"`
}

// The operations on agents.
var (
	ListAgents = operation.New(operation.Info{Name: "agent.list", Help: "List agents", Scope: operation.Read,
		HTTP: []operation.HTTP{{Route: "GET /api/agents", ID: "listAgents"}},
		CLI:  []operation.CLI{{Words: "agent list"}}, Slash: []operation.Slash{{Words: "worker agents"}}, Tool: "list_agents", Former: "agent_list",
		Columns: "NAME=name | MODEL=model:(default) | PERMISSIONS=permissions:standard | STATE=state | TASK=currentTask | CREATED=createdAt:minute",
		Empty:   "there are no agents; create one: chorus agent create NAME"}, Agents.ListAgents)

	CreateAgent = operation.New(operation.Info{Name: "agent.create", Help: "Create an agent", Scope: operation.Admin, Effect: operation.Creates,
		Errors: []operation.Kind{operation.Conflict, operation.NotFound},
		HTTP:   []operation.HTTP{{Route: "POST /api/agents", ID: "createAgent", Body: "NewAgent", Status: 201}},
		CLI: []operation.CLI{{Words: "agent create", Args: "NAME", Help: "Create an agent with a workspace of its own",
			Doc: "Creates agents/NAME in the home folder: agent.json, docs/ and a workspace that is a\n" +
				"git repository. A folder template/ in the home replaces the built-in one.",
			Example: "  chorus agent create frontend --prompt \"You look after the web pages.\"\n  chorus chat --agent frontend"}},
		Slash: []operation.Slash{{Words: "worker create"}},
		Tool:  "create_agent", Former: "agent_create", Done: "{name} is ready"}, Agents.CreateAgent)

	GetAgent = operation.New(operation.Info{Name: "agent.get", Help: "Show an agent with everything that shapes its answers", Scope: operation.Read,
		HTTP: []operation.HTTP{{Route: "GET /api/agents/{name}", ID: "getAgent"}},
		CLI:  []operation.CLI{{Words: "agent show", Args: "NAME", Help: "Show an agent"}},
		Tool: "agent_get"}, Agents.GetAgent)

	ConfigureAgent = operation.New(operation.Info{Name: "agent.config", Help: "Change one setting of an agent", Scope: operation.Admin, Effect: operation.Changes,
		Errors: []operation.Kind{operation.Conflict},
		HTTP:   []operation.HTTP{{Route: "PATCH /api/agents/{name}", ID: "configureAgent", Body: "Change"}},
		CLI: []operation.CLI{{Words: "agent config", Args: "NAME KEY VALUE",
			Example: "  chorus agent config frontend model anthropic/claude-sonnet-4-5\n  chorus agent config frontend permissions guarded"}},
		Tool: "agent_config", Done: "{name}: {key} is set; it applies from the next run"}, Agents.ConfigureAgent)

	DestroyAgent = operation.New(operation.Info{Name: "agent.destroy", Help: "Remove an agent", Scope: operation.Admin, Effect: operation.Destroys,
		Errors: []operation.Kind{operation.Conflict},
		HTTP:   []operation.HTTP{{Route: "DELETE /api/agents/{name}", ID: "destroyAgent"}},
		CLI:    []operation.CLI{{Words: "agent destroy", Args: "NAME"}},
		Done:   "{name} is removed"}, Agents.DestroyAgent)

	AgentFile = operation.New(operation.Info{Name: "agent.file", Help: "Read a file or list a folder of an agent's workspace", Scope: operation.Read,
		HTTP: []operation.HTTP{{Route: "GET /api/agents/{name}/files", ID: "agentFile"}}, Tool: "agent_file"}, Agents.AgentFile)

	ListProfiles = operation.New(operation.Info{Name: "profile.list", Help: "List the permission profiles that you may choose", Scope: operation.Read,
		Doc:    "The built-in ones and those of the agent's configuration. Without the scope admin only those that ask first are there.",
		Errors: []operation.Kind{operation.NotFound},
		HTTP:   []operation.HTTP{{Route: "GET /api/profiles", ID: "listProfiles", Tag: "agents"}}}, Agents.ListProfiles)
)

func agents() []operation.Any {
	return []operation.Any{ListAgents, CreateAgent, GetAgent, ConfigureAgent, EditAgent, PreviewAgent, DestroyAgent, AgentFile, ListProfiles}
}
