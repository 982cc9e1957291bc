package operations

import (
	"context"
	"time"

	"chorus/internal/operation"
)

// Processes implements operations on background commands of agents.
type Processes interface {
	ListProcesses(context.Context, operation.Caller, ProcessQuery) (operation.List[Process], error)
	GetProcess(context.Context, operation.Caller, ProcessRef) (Process, error)
	ProcessLogs(context.Context, operation.Caller, ProcessLogQuery) (ProcessOutput, error)
	KillProcess(context.Context, operation.Caller, ProcessRef) (Process, error)
	HookProcess(context.Context, operation.Caller, NewProcessHooks) (Process, error)
	PreviewHooks(context.Context, operation.Caller, HookWords) (operation.List[ProcessHook], error)
}

// ProcessQuery filters processes.
type ProcessQuery struct {
	Session string `json:"session,omitempty" maxLen:"1024" noun:"session" doc:"only those of this session"`
	Running bool   `json:"running,omitempty" doc:"only running ones"`
}

// ProcessRef names a process.
type ProcessRef struct {
	ID string `json:"id" minLen:"1" maxLen:"64" noun:"process" doc:"the process's id, or its first characters"`
}

// ProcessLogQuery selects a part of a process's output.
type ProcessLogQuery struct {
	ID    string `json:"id" minLen:"1" maxLen:"64" noun:"process" doc:"the process's id, or its first characters"`
	Lines int    `json:"lines,omitempty" min:"1" max:"5000" cli:"lines,n" doc:"number of last lines; left out: 20"`
	From  int64  `json:"from,omitempty" min:"1" doc:"everything from this position, instead of the last lines"`
	Bytes int    `json:"bytes,omitempty" min:"1" max:"1048576" doc:"maximum number of bytes; left out: 65536"`
	Whole bool   `json:"whole,omitempty" doc:"with from: leave an incomplete last line for the next time, unless the process has ended"`
}

// ProcessOutput is a part of a process's output.
type ProcessOutput struct {
	ID     string `json:"id"`
	Text   string `json:"text"`
	From   int64  `json:"from"`  // position of the text in the whole output
	Next   int64  `json:"next"`  // position to continue from
	Total  int64  `json:"total"` // bytes of output so far
	Status string `json:"status"`
}

// HookWords are instructions in plain language.
type HookWords struct {
	Instructions string `json:"instructions" minLen:"1" maxLen:"4000" doc:"what should happen when, in plain words, such as 'when it fails, tell me'"`
	ID           string `json:"id,omitempty" maxLen:"64" noun:"process" cli:"process" doc:"for this process: its agent's model reads what the grammar does not understand, at your expense"`
}

// NewProcessHooks are hooks for a running process.
type NewProcessHooks struct {
	ID           string `json:"id" minLen:"1" maxLen:"64" noun:"process" doc:"the process's id, or its first characters"`
	Instructions string `json:"instructions,omitempty" maxLen:"4000" doc:"what should happen when, in plain words, such as 'when it fails, tell me'"`
	Hooks        string `json:"hooks,omitempty" maxLen:"60000" slash:"-" doc:"instead of instructions: hooks as a JSON list, as they were shown after a model read the instructions"`
}

// Process is a background command.
type Process struct {
	ID        string             `json:"id"`
	Command   string             `json:"command"`
	Status    string             `json:"status"` // starting, running, exited, killed or lost
	Exit      *int               `json:"exit,omitempty"`
	Why       string             `json:"why,omitempty"`
	Owner     string             `json:"owner"` // whose rights and money its hooks use
	OwnerName string             `json:"ownerName"`
	Agent     string             `json:"agent"`
	SessionID string             `json:"sessionId"`
	Directory string             `json:"directory"`
	StartedAt time.Time          `json:"startedAt"`
	EndedAt   time.Time          `json:"endedAt,omitzero"`
	EndsBy    time.Time          `json:"endsBy,omitzero"` // its time limit
	LastLine  string             `json:"lastLine,omitempty"`
	Hooks     []ProcessHook      `json:"hooks"`
	Fired     []ProcessHookFired `json:"fired,omitempty"` // newest first
}

// ProcessHook says what should happen when.
type ProcessHook struct {
	Says       string `json:"says"` // the whole hook as a sentence
	On         string `json:"on"`   // exit, output or timeout
	If         string `json:"if,omitempty"`
	Pattern    string `json:"pattern,omitempty"`
	After      int    `json:"after,omitempty"` // seconds
	Do         string `json:"do"`              // notify_channel, inject_context, spawn_thread, stop_process or stop_thread
	Message    string `json:"message,omitempty"`
	MaxFires   *int   `json:"maxFires,omitempty"`   // how often it may fire
	Interval   *int   `json:"interval,omitempty"`   // minimum seconds between two fires
	Delay      *int   `json:"delay,omitempty"`      // seconds to wait for further lines after a match
	Fires      int    `json:"fires,omitempty"`      // how often it has fired
	Suppressed int    `json:"suppressed,omitempty"` // how often it would have fired, but too soon
}

// ProcessHookFired is the result of a hook that fired.
type ProcessHookFired struct {
	Hook  int       `json:"hook"` // counted from 1
	Do    string    `json:"do"`
	State string    `json:"state"` // done or refused
	Why   string    `json:"why,omitempty"`
	Seq   int64     `json:"seq,omitempty"` // of the message in the session
	At    time.Time `json:"at"`
}

// The operations on processes. Agents have their own tools for their processes (package tool/process). These are for a
// person, for all of their processes, and also for the person's own MCP clients.
var (
	ListProcesses = operation.New(operation.Info{Name: "process.list", Help: "List background commands of agents, newest first", Scope: operation.Read,
		MCP:    "process_list",
		Errors: []operation.Kind{operation.NotFound},
		HTTP:   []operation.HTTP{{Route: "GET /api/processes", Tag: "processes", ID: "listProcesses"}},
		CLI:    []operation.CLI{{Words: "process list", Example: "  chorus process list --running"}},
		Slash:  []operation.Slash{{Words: "process list", Options: "running", Example: "running:True", Show: "- `{id}` {status}, {startedAt:minute}: {command:100}\n  {lastLine:100}"}},
		Page:   "/processes", Label: "{command:50}, {status} since {startedAt:minute}",
		Columns: "ID=id | STATUS=status | STARTED=startedAt:minute | AGENT=agent | OWNER=ownerName:30 | COMMAND=command:60 | LAST LINE=lastLine:40",
		Empty:   "there are no processes; agents start them with run_background"}, Processes.ListProcesses)

	GetProcess = operation.New(operation.Info{Name: "process.get", Help: "Show a process with its hooks and what they did", Scope: operation.Read,
		Errors: []operation.Kind{operation.NotFound, operation.Conflict},
		HTTP:   []operation.HTTP{{Route: "GET /api/processes/{id}", Tag: "processes", ID: "getProcess"}},
		CLI:    []operation.CLI{{Words: "process show", Args: "ID"}},
		MCP:    "process_get",
		Slash: []operation.Slash{{Words: "process show", Example: "id:01K9",
			Show: "`{command:300}`\n{status} {why}, since {startedAt:minute}\nended {endedAt:minute} with {exit}\n{hooks:list}\n{fired:list}"}}, Page: "/processes"}, Processes.GetProcess)

	ProcessLogs = operation.New(operation.Info{Name: "process.logs", Help: "Read the output of a process", Scope: operation.Read,
		Doc:    "The last 16 MB are kept, for a week after its end. `next` is the position to read on from.",
		Errors: []operation.Kind{operation.NotFound, operation.Conflict},
		HTTP:   []operation.HTTP{{Route: "GET /api/processes/{id}/logs", Tag: "processes", ID: "processLogs"}},
		CLI:    []operation.CLI{{Words: "process logs", Args: "ID", Example: "  chorus process logs 01J9 -n 100"}},
		MCP:    "process_logs",
		Slash:  []operation.Slash{{Words: "process logs", Options: "id lines", Set: map[string]any{"bytes": 1500}, Example: "id:01K9 lines:50", Show: "{text:block}\n{status}, {total} bytes in all"}},
		Done:   "{text}", Page: "/processes"}, Processes.ProcessLogs)

	KillProcess = operation.New(operation.Info{Name: "process.kill", Help: "End a process; it is killed if it does not end within 5 seconds", Scope: operation.Chat, Effect: operation.Changes,
		Errors: []operation.Kind{operation.NotFound, operation.Conflict},
		HTTP:   []operation.HTTP{{Route: "POST /api/processes/{id}/kill", Tag: "processes", ID: "killProcess"}},
		CLI:    []operation.CLI{{Words: "process kill", Args: "ID"}},
		MCP:    "process_kill",
		Slash:  []operation.Slash{{Words: "process kill", Example: "id:01K9"}},
		Done:   "process {id} is {status}"}, Processes.KillProcess)

	HookProcess = operation.New(operation.Info{Name: "process.hook", Help: "Say what should happen when a process ends, prints something or takes long", Scope: operation.Chat, Effect: operation.Changes,
		Doc: "`chorus process understand` shows how words are understood. Instructions that the grammar does not understand are read by a model and answered with 409: nothing applies until " +
			"you send the hooks that were shown as `hooks`. Hooks run with the rights and the money of the process's owner.",
		Errors: []operation.Kind{operation.NotFound, operation.Conflict},
		HTTP:   []operation.HTTP{{Route: "POST /api/processes/{id}/hooks", Tag: "processes", ID: "hookProcess", Body: "NewProcessHooks"}},
		CLI:    []operation.CLI{{Words: "process hook", Args: "ID [INSTRUCTIONS]", Example: "  chorus process hook 01J9 'when it fails, look at the log and fix it'"}},
		Slash:  []operation.Slash{{Words: "process hook", Options: "id instructions", First: "process.understand", Help: "Say what should happen when a process ends, prints or takes long; it is shown first"}},
		MCP:    "process_hook",
		Done:   "process {id} has its hooks; `chorus process show {id}` lists them"}, Processes.HookProcess)

	PreviewHooks = operation.New(operation.Info{Name: "process.understand", Help: "Show how instructions for a process are understood", Scope: operation.Read,
		Errors:  []operation.Kind{operation.NotFound, operation.Conflict},
		HTTP:    []operation.HTTP{{Route: "GET /api/processes/understand", Tag: "processes", ID: "previewHooks"}},
		CLI:     []operation.CLI{{Words: "process understand", Args: "INSTRUCTIONS", Example: "  chorus process understand 'tell me when it is done; if it fails, fix it'"}},
		MCP:     "process_understand",
		Columns: "UNDERSTOOD AS=says", Empty: "nothing would happen"}, Processes.PreviewHooks)
)

func processes() []operation.Any {
	return []operation.Any{ListProcesses, PreviewHooks, GetProcess, ProcessLogs, KillProcess, HookProcess}
}
