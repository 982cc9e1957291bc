package operations

import (
	"context"

	"chorus/internal/operation"
)

// Workspaces implements operations on the files of projects.
type Workspaces interface {
	ReadFile(context.Context, operation.Caller, FileQuery) (FileText, error)
	SearchFiles(context.Context, operation.Caller, FileSearch) (FilesFound, error)
	RunCommand(context.Context, operation.Caller, ShellCommand) (CommandResult, error)
}

// Restarter restarts the server.
type Restarter interface {
	Restart(context.Context, operation.Caller, RestartRequest) (Restarting, error)
}

// FileQuery names a file of a project.
type FileQuery struct {
	Path     string `json:"path" minLen:"1" maxLen:"4096" slashDoc:"within the repository, such as docs/plan.md" doc:"within the repository, such as docs/plan.md; PROJECT/docs/plan.md if no project is named; or the full path on the server"`
	MaxLines int    `json:"maxLines,omitempty" min:"1" max:"5000" default:"200" tool:"max_lines" cli:"lines,n" slash:"lines" doc:"maximum number of lines"`
	GitPlace
}

// FileText is the contents of a file.
type FileText struct {
	Path    string `json:"path"`
	Content string `json:"content"`
	Lines   int    `json:"lines"` // of the whole file
	Cut     bool   `json:"truncated,omitempty"`
}

// FileSearch is a search in the files of a project.
type FileSearch struct {
	Pattern string `json:"pattern" minLen:"1" maxLen:"1000" doc:"grep: a regular expression; find: a name with * and ?"`
	Path    string `json:"path,omitempty" maxLen:"4096" doc:"the folder, as in read_file; left out: the whole repository"`
	Mode    string `json:"mode,omitempty" enum:"grep,find" default:"grep" doc:"grep searches the contents of files, find their names"`
	GitPlace
}

// FilesFound is the result of a search.
type FilesFound struct {
	Mode    string `json:"mode"`
	Path    string `json:"path"`
	Results string `json:"results"` // one per line, or (no matches)
	Cut     bool   `json:"truncated,omitempty"`
}

// ShellCommand is a command for the shell.
type ShellCommand struct {
	Command string `json:"command" minLen:"1" maxLen:"20000" doc:"the shell command"`
	Dir     string `json:"workingDir" minLen:"1" maxLen:"4096" tool:"working_dir" cli:"dir" slash:"dir" doc:"a project's id: its first repository; or a folder, as in read_file"`
	Timeout int    `json:"timeout,omitempty" min:"1" max:"120" default:"30" doc:"timeout in seconds"`
	GitPlace
}

// CommandResult is the result of a command.
type CommandResult struct {
	Code   int    `json:"returncode"`
	Stdout string `json:"stdout"` // at most 4,000 characters
	Stderr string `json:"stderr"` // at most 2,000 characters; if the command did not end by itself: how it ended
	Dir    string `json:"workingDir"`
	Cut    bool   `json:"truncated,omitempty"`
}

// RestartRequest says why to restart the server.
type RestartRequest struct {
	Reason string `json:"reason,omitempty" maxLen:"500" doc:"the reason, for the log"`
	Key    string `json:"-" key:"true"`
}

// Restarting says that the server restarts.
type Restarting struct {
	Status  string `json:"status"`
	Message string `json:"message"`
}

// The operations on the files of projects, and on the server itself.
var (
	ReadFile = operation.New(operation.Info{Name: "workspace.read", Help: "Read a file of a project", Scope: operation.Read,
		Errors: gitErrors(), Judged: "project_read_file",
		HTTP:  []operation.HTTP{{Route: "GET /api/files/content", ID: "readProjectFile"}},
		CLI:   []operation.CLI{{Words: "project read", Args: "PATH", Example: "  chorus project read docs/plan.md -p my-web-app"}},
		Slash: []operation.Slash{{Words: "project read", Show: "`{path}`\n{content:block}"}},
		Tool:  "read_file"}, Workspaces.ReadFile)

	SearchFiles = operation.New(operation.Info{Name: "workspace.search", Help: "Search the contents or names of a project's files", Scope: operation.Read,
		Errors: gitErrors(), Judged: "project_search_files",
		HTTP:  []operation.HTTP{{Route: "GET /api/files/search", ID: "searchProjectFiles"}},
		CLI:   []operation.CLI{{Words: "project search", Args: "PATTERN [PATH]", Example: "  chorus project search 'func main' -p my-web-app\n  chorus project search '*.css' --mode find -p my-web-app"}},
		Slash: []operation.Slash{{Words: "project search", Show: "{results:block}"}},
		Tool:  "search_files"}, Workspaces.SearchFiles)

	RunProjectCommand = operation.New(operation.Info{Name: "workspace.run", Help: "Run a shell command in a project, in the sandbox of its agents", Scope: operation.Chat, Effect: operation.Changes,
		Doc:    "Rules that forbid something to agents forbid it here too. Only the project's owner can use it.",
		Errors: gitErrors(), Judged: "project_run_command",
		HTTP:  []operation.HTTP{{Route: "POST /api/files/commands", ID: "runProjectCommand", Body: "ShellCommand", Status: 200}},
		CLI:   []operation.CLI{{Words: "project run", Args: "WORKINGDIR COMMAND", Example: "  chorus project run my-web-app 'make test' --timeout 120"}},
		Slash: []operation.Slash{{Words: "project run", Show: "code {returncode}\n{stdout:block}\n{stderr:block}"}},
		Tool:  "run_command"}, Workspaces.RunCommand)

	RestartDaemon = operation.New(operation.Info{Name: "system.restart", Help: "Restart the server: current answers finish, and runs continue afterwards", Scope: operation.Admin, Effect: operation.Changes,
		Errors: []operation.Kind{operation.Conflict},
		HTTP:   []operation.HTTP{{Route: "POST /api/system/restart", ID: "restartDaemon", Tag: "system", Body: "RestartRequest", Status: 202}},
		CLI:    []operation.CLI{{Words: "work restart-server", Args: "[REASON]", Example: "  chorus work restart-server 'new settings' --server http://127.0.0.1:8420"}},
		Slash:  []operation.Slash{{Words: "system restart"}},
		Tool:   "restart_daemon", Done: "{message}"}, Restarter.Restart)
)

func workspaces() []operation.Any {
	return []operation.Any{ReadFile, SearchFiles, RunProjectCommand, RestartDaemon}
}
