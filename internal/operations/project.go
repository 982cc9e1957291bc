package operations

import (
	"context"
	"time"

	"chorus/internal/operation"
)

// Projects implements operations on projects.
type Projects interface {
	ListProjects(context.Context, operation.Caller, ProjectList) (operation.List[Project], error)
	CreateProject(context.Context, operation.Caller, NewProject) (Project, error)
	GetProject(context.Context, operation.Caller, ProjectRef) (Project, error)
	EditProject(context.Context, operation.Caller, ProjectChanges) (Project, error)
	PauseProject(context.Context, operation.Caller, ProjectRef) (Project, error)
	ResumeProject(context.Context, operation.Caller, ProjectRef) (Project, error)
	DeleteProject(context.Context, operation.Caller, ProjectDeletion) (DeletedProject, error)
	SetActiveProject(context.Context, operation.Caller, ActiveProjectChoice) (ActiveProject, error)
	SetProjectChannel(context.Context, operation.Caller, ProjectChannelLink) (ProjectChannel, error)
	SetControlInterface(context.Context, operation.Caller, ProjectChannelName) (ProjectChannel, error)
	GetProjectChannels(context.Context, operation.Caller, ProjectRef) (ProjectChannel, error)
	GetProjectForChannel(context.Context, operation.Caller, ChannelRef) (ChannelProject, error)
	AddRepo(context.Context, operation.Caller, NewRepo) (Repo, error)
	ListRepos(context.Context, operation.Caller, RepoQuery) (operation.List[Repo], error)
}

// NewProject describes a new project.
type NewProject struct {
	Name     string  `json:"name" minLen:"1" maxLen:"100" doc:"its name; the id is derived from it: \"My Web App\" becomes my-web-app"`
	Weight   float64 `json:"creditWeight,omitempty" min:"0" max:"1000" tool:"credit_weight" cli:"weight" slash:"weight" doc:"its share of the workers relative to other projects; left out: 1"`
	MaxRuns  int     `json:"maxConcurrentAgents,omitempty" min:"1" max:"64" tool:"max_concurrent_agents" cli:"max-agents" slash:"max_agents" doc:"how many of its tasks run at once; left out: 2"`
	Repo     string  `json:"repoUrl,omitempty" maxLen:"2048" tool:"repo_url" cli:"repo" slash:"repo" doc:"a repository to work on: a URL to clone, or a folder on the server; you can add more later"`
	Branch   string  `json:"defaultBranch,omitempty" maxLen:"200" tool:"default_branch" cli:"branch" slash:"-" doc:"the branch to merge into; left out: the repository's default"`
	Shared   *bool   `json:"shared,omitempty" slashDoc:"everybody here can see it and add tasks; left out: yes" doc:"everybody who may talk to this Chorus can see it and add tasks; left out: yes if it is created on a chat platform"`
	Channels *bool   `json:"autoCreateChannels,omitempty" tool:"auto_create_channels" cli:"-" slash:"-" doc:"on a chat platform, create a channel for it"`
	Board    string  `json:"board,omitempty" enum:"channel,forum" cli:"-" slash:"-" doc:"with autoCreateChannels: a channel with cards, or a forum with a post for each task; left out: channel"`
	Key      string  `json:"-" key:"true"`
}

// ProjectChanges are the fields of a project to change; others do not change.
type ProjectChanges struct {
	ID         string   `json:"id,omitempty" maxLen:"64" noun:"project" tool:"project_id" slash:"project" doc:"the project's id; left out: the active project"`
	Name       string   `json:"name,omitempty" maxLen:"100" doc:"another name; the id stays"`
	Weight     *float64 `json:"creditWeight,omitempty" min:"0" max:"1000" tool:"credit_weight" cli:"weight" slash:"weight" doc:"its share of the workers relative to other projects"`
	MaxRuns    *int     `json:"maxConcurrentAgents,omitempty" min:"1" max:"64" tool:"max_concurrent_agents" cli:"max-agents" slash:"max_agents" doc:"how many of its tasks run at once"`
	TokenLimit *int64   `json:"budgetLimit,omitempty" min:"0" tool:"budget_limit" cli:"token-limit" slash:"token_limit" doc:"tokens that its tasks may use in 24 hours; 0: no limit"`
	Shared     *bool    `json:"shared,omitempty" slash:"-" doc:"everybody who may talk to this Chorus sees it"`
	Approvers  string   `json:"approvers,omitempty" maxLen:"2000" slash:"-" doc:"who can approve results of its tasks: owner, local, role:NAME or keys such as discord:123, separated by commas; anyone: everybody who sees it"`
	OnConflict string   `json:"onConflict,omitempty" enum:"ask,task" tool:"on_conflict" cli:"on-conflict" slash:"-" doc:"what to do about merge conflicts: ask a person, or create a task that resolves them"`
}

// ProjectRef names a project.
type ProjectRef struct {
	ID string `json:"id,omitempty" maxLen:"64" noun:"project" tool:"project_id" slash:"project" doc:"the project's id; left out: the active project"`
}

// ProjectList selects a part of the list of projects.
type ProjectList struct{ Page }

// RepoQuery filters repositories.
type RepoQuery struct {
	Project string `json:"projectId,omitempty" maxLen:"64" noun:"project" tool:"project_id" cli:"project,p" slash:"project" doc:"only those of a project"`
	Page
}

// ProjectDeletion names a project to delete.
type ProjectDeletion struct {
	ID      string `json:"id" minLen:"1" maxLen:"64" noun:"project" tool:"project_id" slash:"project" doc:"the project's id"`
	Archive bool   `json:"archiveChannels,omitempty" tool:"archive_channels" cli:"archive-channels" slash:"archive_channels" doc:"archive its channel on the chat platform"`
}

// DeletedProject says what was deleted.
type DeletedProject struct {
	ID      string `json:"deleted"`
	Name    string `json:"name"`
	Channel string `json:"channelId,omitempty"`
	Archive bool   `json:"archiveChannels,omitempty"`
}

// ActiveProjectChoice says which project a conversation is about.
type ActiveProjectChoice struct {
	ID string `json:"projectId,omitempty" maxLen:"64" noun:"project" tool:"project_id" slash:"project" doc:"the project's id; left out: none"`
	// Session is filled in if the caller is in a session.
	Session string `json:"session,omitempty" maxLen:"1024" noun:"session" context:"session" tool:"-" slash:"-" doc:"the conversation"`
}

// ActiveProject is the active project of a conversation.
type ActiveProject struct {
	ID      string `json:"activeProject,omitempty"`
	Name    string `json:"name,omitempty"`
	Message string `json:"message,omitempty"`
}

// ProjectChannelLink links a project to a channel of a chat platform.
type ProjectChannelLink struct {
	ID      string `json:"id" minLen:"1" maxLen:"64" noun:"project" tool:"project_id" slash:"project" doc:"the project's id"`
	Channel string `json:"channelId" maxLen:"128" tool:"channel_id" slash:"channel" doc:"the channel's id; empty: none"`
}

// ProjectChannel is the channel of a project.
type ProjectChannel struct {
	ID      string `json:"projectId"`
	Channel string `json:"channelId"`
}

// ProjectChannelName links a project to a channel by its name.
type ProjectChannelName struct {
	ID      string `json:"id" minLen:"1" maxLen:"64" noun:"project" tool:"project_id" slash:"project" doc:"the project's id"`
	Channel string `json:"channelName" minLen:"1" maxLen:"128" tool:"channel_name" slash:"channel" doc:"the channel's name, such as #web-app"`
}

// ChannelRef names a channel of a chat platform.
type ChannelRef struct {
	Channel string `json:"channelId" minLen:"1" maxLen:"128" tool:"channel_id" slash:"channel" doc:"the channel's id"`
}

// ChannelProject is the project of a channel.
type ChannelProject struct {
	Channel string `json:"channelId"`
	ID      string `json:"projectId,omitempty"`
	Name    string `json:"projectName,omitempty"`
}

// Project groups tasks.
type Project struct {
	ID         string  `json:"id"`
	Name       string  `json:"name"`
	Status     string  `json:"status"` // ACTIVE, PAUSED or ARCHIVED
	Weight     float64 `json:"creditWeight"`
	MaxRuns    int     `json:"maxConcurrentAgents"`
	TokenLimit int64   `json:"budgetLimit,omitempty"` // in 24 hours
	Tokens     int64   `json:"tokensUsed"`            // in 24 hours
	Channel    string  `json:"channelId,omitempty"`
	Owner      string  `json:"owner"`
	OwnerName  string  `json:"ownerName,omitempty"`
	// Approvers can approve results of its tasks; none: everybody who sees it.
	Approvers     []string       `json:"approvers,omitempty"`
	ApproverNames []string       `json:"approverNames,omitempty"`
	OnConflict    string         `json:"onConflict"` // ask or task
	Shared        bool           `json:"shared"`
	Workspace     string         `json:"workspace"`
	Tasks         map[string]int `json:"tasks,omitempty"` // by status
	Repos         []Repo         `json:"repos,omitempty"`
	Open          int            `json:"openTasks"`
	AutoChannels  bool           `json:"autoCreateChannels,omitempty"` // of a new project: it gets a channel
	CreatedAt     time.Time      `json:"createdAt"`
}

// NewRepo describes a repository to register.
type NewRepo struct {
	Project string `json:"projectId,omitempty" maxLen:"64" noun:"project" tool:"project_id" cli:"project,p" slash:"project" doc:"the project; left out: the active project"`
	Source  string `json:"source" enum:"clone,link,init" doc:"clone (of a URL), link (an existing checkout, never pushed) or init (a new one)"`
	URL     string `json:"url,omitempty" maxLen:"2048" doc:"for a clone: the URL"`
	Path    string `json:"path,omitempty" maxLen:"4096" doc:"for a link: the folder on the server"`
	Name    string `json:"name,omitempty" maxLen:"100" doc:"its name; left out: taken from the URL or the folder"`
	Branch  string `json:"defaultBranch,omitempty" maxLen:"200" tool:"default_branch" cli:"branch" slash:"branch" doc:"the branch to merge into; left out: the repository's default"`
	Key     string `json:"-" key:"true"`
}

// Repo is a repository of a project.
type Repo struct {
	ID      string `json:"id"`
	Project string `json:"projectId"`
	Source  string `json:"sourceType"`
	URL     string `json:"url,omitempty"`
	Path    string `json:"path,omitempty"`
	Branch  string `json:"defaultBranch,omitempty"`
}

// The operations on projects and their repositories.
var (
	ListProjects = operation.New(operation.Info{Name: "project.list", Help: "List projects", Scope: operation.Read,
		HTTP:    []operation.HTTP{{Route: "GET /api/projects", ID: "listProjects"}},
		CLI:     []operation.CLI{{Words: "project list"}},
		Slash:   []operation.Slash{{Words: "project list"}},
		Tool:    "list_projects",
		Label:   "{name:60} ({status}, {openTasks} open)",
		Columns: "ID=id | NAME=name:40 | STATUS=status | OPEN TASKS=openTasks | WEIGHT=creditWeight | AT ONCE=maxConcurrentAgents | TOKENS (24 H)=tokensUsed",
		Empty:   "there are no projects; create one: chorus project create 'My Web App'"}, Projects.ListProjects)

	CreateProject = operation.New(operation.Info{Name: "project.create", Help: "Create a project for tasks", Scope: operation.Chat, Effect: operation.Creates,
		Errors: []operation.Kind{operation.NotFound, operation.Conflict},
		HTTP:   []operation.HTTP{{Route: "POST /api/projects", ID: "createProject", Body: "NewProject", Status: 201}},
		CLI: []operation.CLI{{Words: "project create", Args: "NAME",
			Example: "  chorus project create 'My Web App' --repo https://github.com/me/web-app.git\n  chorus project create Website --repo ~/src/website --max-agents 1"}},
		Slash: []operation.Slash{{Words: "project create"}},
		Tool:  "create_project", Done: "project {id} is created"}, Projects.CreateProject)

	GetProject = operation.New(operation.Info{Name: "project.get", Help: "Show a project with its repositories and how many tasks it has", Scope: operation.Read,
		Errors: []operation.Kind{operation.NotFound},
		HTTP:   []operation.HTTP{{Route: "GET /api/projects/{id}", ID: "getProject"}},
		CLI:    []operation.CLI{{Words: "project show", Args: "ID"}},
		Slash: []operation.Slash{{Words: "project show", Show: "**{name}** `{id}` {status}, {openTasks} open, {maxConcurrentAgents} at once\n{tokensUsed} tokens in 24 hours, limit {budgetLimit} (0: none)\n" +
			"channel {channelId}\nof {ownerName}, {shared:everybody here sees it|only its owner sees it}"}},
		Tool: "get_project"}, Projects.GetProject)

	EditProject = operation.New(operation.Info{Name: "project.edit", Help: "Change a project's name, weight or limits", Scope: operation.Chat, Effect: operation.Changes,
		Errors: []operation.Kind{operation.NotFound},
		HTTP:   []operation.HTTP{{Route: "PATCH /api/projects/{id}", ID: "editProject", Body: "ProjectChanges", NeedsBody: true}},
		CLI:    []operation.CLI{{Words: "project edit", Args: "ID", Example: "  chorus project edit my-web-app --weight 3 --max-agents 4"}},
		Slash:  []operation.Slash{{Words: "project edit"}},
		Tool:   "edit_project", Done: "project {id} is changed"}, Projects.EditProject)

	PauseProject = operation.New(operation.Info{Name: "project.pause", Help: "Start no more tasks of a project; tasks in progress continue", Scope: operation.Chat, Effect: operation.Changes,
		Errors: []operation.Kind{operation.NotFound},
		HTTP:   []operation.HTTP{{Route: "POST /api/projects/{id}/pause", ID: "pauseProject"}},
		CLI:    []operation.CLI{{Words: "project pause", Args: "ID"}},
		Slash:  []operation.Slash{{Words: "project pause"}},
		Tool:   "pause_project", Done: "project {id} is paused"}, Projects.PauseProject)

	ResumeProject = operation.New(operation.Info{Name: "project.resume", Help: "Resume a paused project", Scope: operation.Chat, Effect: operation.Changes,
		Errors: []operation.Kind{operation.NotFound},
		HTTP:   []operation.HTTP{{Route: "POST /api/projects/{id}/resume", ID: "resumeProject"}},
		CLI:    []operation.CLI{{Words: "project resume", Args: "ID"}},
		Slash:  []operation.Slash{{Words: "project resume"}},
		Tool:   "resume_project", Done: "project {id} is resumed"}, Projects.ResumeProject)

	DeleteProject = operation.New(operation.Info{Name: "project.delete", Help: "Delete a project with its tasks; files and conversations are kept", Scope: operation.Chat, Effect: operation.Destroys,
		Errors: []operation.Kind{operation.NotFound, operation.Conflict},
		HTTP:   []operation.HTTP{{Route: "DELETE /api/projects/{id}", ID: "deleteProject"}},
		CLI:    []operation.CLI{{Words: "project delete", Args: "ID"}},
		Slash:  []operation.Slash{{Words: "project delete"}},
		Tool:   "delete_project", Done: "project {deleted} is deleted"}, Projects.DeleteProject)

	SetActiveProject = operation.New(operation.Info{Name: "project.activate", Help: "Set or clear the active project of this conversation", Scope: operation.Chat, Effect: operation.Changes,
		Doc:    "Commands that need a project use this one if none is named.",
		Errors: []operation.Kind{operation.NotFound},
		HTTP:   []operation.HTTP{{Route: "POST /api/projects/active", ID: "setActiveProject", Body: "ActiveProjectChoice"}},
		CLI:    []operation.CLI{{Words: "project activate", Args: "SESSION [PROJECTID]", Example: "  chorus project activate 01J9 my-web-app"}},
		Slash:  []operation.Slash{{Words: "project activate"}},
		Tool:   "set_active_project"}, Projects.SetActiveProject)

	SetProjectChannel = operation.New(operation.Info{Name: "project.channel", Help: "Link a channel of a chat platform to a project", Scope: operation.Chat, Effect: operation.Changes,
		Errors: []operation.Kind{operation.NotFound, operation.Conflict},
		HTTP:   []operation.HTTP{{Route: "PUT /api/projects/{id}/channel", ID: "setProjectChannel", Body: "ProjectChannelLink"}},
		CLI:    []operation.CLI{{Words: "project channel", Args: "ID CHANNELID", Example: "  chorus project channel my-web-app 1234567890"}},
		Slash:  []operation.Slash{{Words: "project channel"}},
		Tool:   "set_project_channel", Done: "{projectId} is linked to channel {channelId}"}, Projects.SetProjectChannel)

	SetControlInterface = operation.New(operation.Info{Name: "project.control", Help: "Link a channel of a chat platform to a project by the channel's name", Scope: operation.Chat, Effect: operation.Changes,
		Errors: []operation.Kind{operation.NotFound, operation.Conflict},
		HTTP:   []operation.HTTP{{Route: "POST /api/projects/{id}/control-interface", ID: "setControlInterface", Body: "ProjectChannelName"}},
		CLI:    []operation.CLI{{Words: "project control", Args: "ID CHANNELNAME", Example: "  chorus project control my-web-app web-app"}},
		Slash:  []operation.Slash{{Words: "project control"}},
		Tool:   "set_control_interface", Done: "{projectId} is linked to channel {channelId}"}, Projects.SetControlInterface)

	GetProjectChannels = operation.New(operation.Info{Name: "project.channels", Help: "Show which channel belongs to a project", Scope: operation.Read,
		Errors: []operation.Kind{operation.NotFound},
		HTTP:   []operation.HTTP{{Route: "GET /api/projects/{id}/channel", ID: "getProjectChannels"}},
		CLI:    []operation.CLI{{Words: "project channels", Args: "ID"}},
		Slash:  []operation.Slash{{Words: "project channels"}},
		Tool:   "get_project_channels"}, Projects.GetProjectChannels)

	GetProjectForChannel = operation.New(operation.Info{Name: "project.of-channel", Help: "Show which project a channel belongs to", Scope: operation.Read,
		HTTP:  []operation.HTTP{{Route: "GET /api/channels/{channelId}/project", ID: "getProjectForChannel", Tag: "projects"}},
		CLI:   []operation.CLI{{Words: "project of-channel", Args: "CHANNELID", Example: "  chorus project of-channel 1234567890"}},
		Slash: []operation.Slash{{Words: "project of-channel"}},
		Tool:  "get_project_for_channel"}, Projects.GetProjectForChannel)

	AddRepo = operation.New(operation.Info{Name: "repo.add", Help: "Register a repository for a project", Scope: operation.Chat, Effect: operation.Creates,
		Doc:    "It is cloned or created when a task first needs it. Tasks work on a link in its own worktrees, and it is never pushed.",
		Errors: []operation.Kind{operation.NotFound, operation.Conflict},
		HTTP:   []operation.HTTP{{Route: "POST /api/repos", ID: "addRepo", Body: "NewRepo", Status: 201}},
		CLI: []operation.CLI{{Words: "repo add", Args: "SOURCE",
			Example: "  chorus repo add clone --url https://github.com/me/web-app.git -p my-web-app\n  chorus repo add link --path ~/src/website -p website"}},
		Slash: []operation.Slash{{Words: "repo add"}},
		Tool:  "add_repo", Done: "repository {id} is registered for {projectId}"}, Projects.AddRepo)

	ListRepos = operation.New(operation.Info{Name: "repo.list", Help: "List repositories", Scope: operation.Read,
		Errors:  []operation.Kind{operation.NotFound},
		HTTP:    []operation.HTTP{{Route: "GET /api/repos", ID: "listRepos"}},
		CLI:     []operation.CLI{{Words: "repo list"}},
		Slash:   []operation.Slash{{Words: "repo list"}},
		Tool:    "list_repos",
		Label:   "{id} of {projectId}",
		Columns: "ID=id | PROJECT=projectId | SOURCE=sourceType | BRANCH=defaultBranch | WHERE=url:60 | PATH=path:60",
		Empty:   "there are no repositories; add one: chorus repo add clone --url https://… -p PROJECT"}, Projects.ListRepos)
)

func projects() []operation.Any {
	return []operation.Any{ListProjects, CreateProject, SetActiveProject, GetProject, EditProject, PauseProject, ResumeProject, DeleteProject,
		SetProjectChannel, SetControlInterface, GetProjectChannels, GetProjectForChannel, AddRepo, ListRepos}
}
