package operations

import (
	"context"
	"time"

	"chorus/internal/operation"
)

// Skills implements operations on skills and everything else that needs approval before use.
type Skills interface {
	ListSkills(context.Context, operation.Caller, SkillQuery) (operation.List[Skill], error)
	GetSkill(context.Context, operation.Caller, SkillRef) (SkillDetail, error)
	DiffSkill(context.Context, operation.Caller, SkillRef) (SkillDiff, error)
	ApproveSkill(context.Context, operation.Caller, SkillApproval) (Skill, error)
	DisableSkill(context.Context, operation.Caller, SkillRef) (Skill, error)
	CallSkill(context.Context, operation.Caller, SkillCall) (Said, error)
}

// SkillPlace selects whose skills.
type SkillPlace struct {
	Workspace string `json:"workspacePath,omitempty" maxLen:"4096" cli:"repo,r" slash:"-" doc:"only skills of this folder; left out: of every folder that was worked in"`
	Agent     string `json:"agent,omitempty" maxLen:"64" noun:"agent" slash:"-" doc:"include the skills of this agent"`
	Session   string `json:"session,omitempty" maxLen:"1024" noun:"session" slash:"-" doc:"only skills of this session: of its folder, its channel and its agent"`
}

// SkillQuery filters skills.
type SkillQuery struct {
	SkillPlace
	Status string `json:"status,omitempty" enum:"on,new,changed,off,broken,overridden" doc:"only those"`
}

// Skill is a skill, or an MCP server whose tools are known.
type Skill struct {
	ID           string    `json:"id"`
	Name         string    `json:"name"`
	Kind         string    `json:"kind"`  // skill or mcp
	Scope        string    `json:"scope"` // repository, channel, agent, transport, global, user; of a server: server
	Status       string    `json:"status"`
	Description  string    `json:"description"`
	Path         string    `json:"path,omitempty"`
	AllowedTools []string  `json:"allowedTools,omitempty"` // tools that it lists, which grants no rights
	Hidden       bool      `json:"disableModelInvocation,omitempty"`
	Problem      string    `json:"problem,omitempty"` // why it is not on
	Digest       string    `json:"digest,omitempty"`
	ApprovedBy   string    `json:"approvedBy,omitempty"`
	ApprovedName string    `json:"approvedName,omitempty"` // their names; not in lists
	ApprovedAt   time.Time `json:"approvedAt,omitzero"`
}

// SkillDetail is a skill with its text and files.
type SkillDetail struct {
	Skill
	License       string            `json:"license,omitempty"`
	Compatibility string            `json:"compatibility,omitempty"`
	ArgumentHint  string            `json:"argumentHint,omitempty"`
	Metadata      map[string]string `json:"metadata,omitempty"`
	Remarks       []string          `json:"remarks,omitempty"`
	Files         []SkillFile       `json:"files"`
	Body          string            `json:"body"`
}

// SkillFile is a file of a skill.
type SkillFile struct {
	Path   string `json:"path"`
	Size   int64  `json:"size"`
	Exec   bool   `json:"executable,omitempty"`
	Link   string `json:"link,omitempty"`
	Digest string `json:"digest,omitempty"`
}

// SkillDiff is the difference to what was approved.
type SkillDiff struct {
	Skill
	InsteadOf []string      `json:"insteadOf,omitempty"` // skills of the same name that it would replace
	Changes   []SkillChange `json:"changes"`
}

// SkillChange is one changed file, or one changed description of a tool.
type SkillChange struct {
	Path string `json:"path"`
	How  string `json:"how"`
	Diff string `json:"diff,omitempty"`
}

// SkillRef names a skill.
type SkillRef struct {
	Name string `json:"name" minLen:"1" maxLen:"128" noun:"skill" doc:"the skill's name or id; mcp:NAME for an MCP server"`
	SkillPlace
}

// SkillApproval says what to approve.
type SkillApproval struct {
	Name string `json:"name" minLen:"1" maxLen:"128" noun:"skill" doc:"the skill's name or id; mcp:NAME for an MCP server"`
	SkillPlace
	Digest string `json:"digest" minLen:"1" maxLen:"64" doc:"the digest of what was shown, from skill.diff"`
}

// SkillCall calls a skill by its name.
type SkillCall struct {
	Name    string `json:"name" minLen:"1" maxLen:"64" noun:"skill" doc:"the skill's name"`
	Session string `json:"session" minLen:"1" maxLen:"1024" noun:"session" context:"session" doc:"the session to call it in"`
	Text    string `json:"text,omitempty" maxLen:"100000" doc:"the text to call it with"`
	Key     string `json:"-" key:"true"`
}

// The operations on skills.
var (
	ListSkills = operation.New(operation.Info{Name: "skill.list", Help: "List skills and MCP servers with their status", Scope: operation.Read,
		Doc: "A skill is off until somebody approves it, and off again when one of its files changes. Callers\n" +
			"without the scope admin see only skills that are on.",
		Errors: []operation.Kind{operation.NotFound},
		HTTP:   []operation.HTTP{{Route: "GET /api/skills", ID: "listSkills"}},
		CLI:    []operation.CLI{{Words: "skill list", Example: "  chorus skill list\n  chorus skill list --repo . --status new"}},
		Slash:  []operation.Slash{{Words: "skill list", Options: "status", Help: "List the skills that agents have here", Example: "status:new", Show: "- **{name}** {status}, {scope}: {description:120}\n  {problem:120}"}},
		Tool:   "skill_list", Page: "/skills", Label: "{name} ({status}, {scope}): {description:60}",
		Columns: "NAME=name | STATUS=status | SCOPE=scope | ID=id | DESCRIPTION=description:60",
		Empty:   "there are no skills; put a folder with a SKILL.md into .agents/skills of a repository, or into skills of the home"}, Skills.ListSkills)

	GetSkill = operation.New(operation.Info{Name: "skill.get", Help: "Show a skill: its instructions and files", Scope: operation.Read,
		Errors: []operation.Kind{operation.NotFound, operation.Conflict},
		HTTP:   []operation.HTTP{{Route: "GET /api/skills/{name}", ID: "getSkill"}},
		CLI:    []operation.CLI{{Words: "skill show", Args: "NAME"}},
		Slash: []operation.Slash{{Words: "skill show", Help: "Show a skill: its instructions and files", Example: "name:deploy",
			Show: "**{name}** {status}, {scope}\n{description}\n{problem}\n{files:list}\n{body:block}"}},
		Tool: "skill_get", Page: "/skills"}, Skills.GetSkill)

	DiffSkill = operation.New(operation.Info{Name: "skill.diff", Help: "Show how a skill differs from what was approved", Scope: operation.Admin,
		Errors: []operation.Kind{operation.NotFound, operation.Conflict},
		HTTP:   []operation.HTTP{{Route: "GET /api/skills/{name}/diff", ID: "diffSkill"}},
		CLI:    []operation.CLI{{Words: "skill diff", Args: "NAME", Example: "  chorus skill diff deploy\n  chorus skill diff mcp:github"}},
		MCP:    "skill_diff",
		Slash: []operation.Slash{{Words: "skill diff", Help: "Show how a skill differs from what was approved", Example: "name:deploy",
			Show: "**{name}** {status}, {scope}: {description}\n{problem}\nIt would replace {insteadOf}\n{changes:diffs}"}}, Page: "/skills"}, Skills.DiffSkill)

	// Not a tool, not for MCP clients either: a model must not approve its own instructions.
	ApproveSkill = operation.New(operation.Info{Name: "skill.approve", Help: "Approve a skill as it is now", Scope: operation.Admin, Effect: operation.Changes,
		Doc: "The approved version is copied, and agents read and run the copy. The digest is that of what was shown (skill.diff): if\n" +
			"the skill has changed since, nothing is approved.",
		Errors: []operation.Kind{operation.NotFound, operation.Conflict},
		HTTP:   []operation.HTTP{{Route: "POST /api/skills/{name}/approve", ID: "approveSkill", Body: "SkillApproval"}},
		CLI: []operation.CLI{{Words: "skill approve", Args: "NAME", Alias: "trust", Doc: "Shows the difference, asks, and stores a copy of what was shown: agents read and run that copy.",
			Example: "  chorus skill approve deploy\n  chorus skill approve mcp:github --yes"}},
		Slash: []operation.Slash{{Words: "skill approve", Options: "name", First: "skill.diff", Help: "Show how a skill differs, and approve it as it is now", Example: "name:deploy"}},
		Done:  "{name} is {status}"}, Skills.ApproveSkill)

	DisableSkill = operation.New(operation.Info{Name: "skill.disable", Help: "Turn a skill off until it is approved again", Scope: operation.Admin, Effect: operation.Changes,
		Errors: []operation.Kind{operation.NotFound, operation.Conflict},
		HTTP:   []operation.HTTP{{Route: "POST /api/skills/{name}/disable", ID: "disableSkill", Body: "SkillPlace"}},
		CLI:    []operation.CLI{{Words: "skill disable", Args: "NAME"}},
		Slash:  []operation.Slash{{Words: "skill disable", Help: "Turn a skill off until it is approved again", Example: "name:deploy"}},
		Done:   "{name} is {status}"}, Skills.DisableSkill)

	CallSkill = operation.New(operation.Info{Name: "skill.call", Help: "Call a skill by its name in a session", Scope: operation.Chat, Effect: operation.Creates,
		Doc:    "The same as the message /NAME TEXT there. Use it for skills that models do not find by themselves.",
		Errors: []operation.Kind{operation.NotFound, operation.Conflict, operation.Busy},
		HTTP:   []operation.HTTP{{Route: "POST /api/sessions/{session}/skills/{name}", ID: "callSkill", Tag: "skills", Body: "SkillCall", Status: 202}},
		CLI:    []operation.CLI{{Words: "skill call", Args: "NAME SESSION [TEXT]", Example: "  chorus skill call review 01J9 'the last commit'"}},
		Slash:  []operation.Slash{{Words: "skill run", Options: "name text", First: "skill.get", Speaks: "/{name} {text}", Help: "Have the agent here use a skill", Example: "name:deploy text:staging"}},
		Tool:   "skill_call", Done: "called"}, Skills.CallSkill)
)

func skills() []operation.Any {
	return []operation.Any{ListSkills, GetSkill, DiffSkill, ApproveSkill, DisableSkill, CallSkill}
}
