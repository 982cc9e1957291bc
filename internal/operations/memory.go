package operations

import (
	"context"
	"time"

	"chorus/internal/operation"
)

// Memory implements operations on memory files.
type Memory interface {
	ListMemory(context.Context, operation.Caller, operation.None) (operation.List[MemoryFile], error)
	GetMemory(context.Context, operation.Caller, MemoryRef) (MemoryText, error)
	EditMemory(context.Context, operation.Caller, MemoryEdit) (MemoryText, error)
	ForgetMemory(context.Context, operation.Caller, MemoryForget) (MemoryText, error)
	MemoryHistory(context.Context, operation.Caller, MemoryRef) (operation.List[MemoryVersion], error)
	RestoreMemory(context.Context, operation.Caller, MemoryRestore) (MemoryText, error)
	Recall(context.Context, operation.Caller, RecallQuery) (operation.List[Recalled], error)
}

// MemoryRef names a memory file.
type MemoryRef struct {
	Path string `json:"path" minLen:"1" maxLen:"1024" noun:"memory" context:"memory" doc:"the file: channel, transport, global, or as the list has it: MEMORY.md, discord/MEMORY.md, …"`
}

// MemoryEdit is a new text for a file.
type MemoryEdit struct {
	Path string `json:"path" minLen:"1" maxLen:"1024" noun:"memory" context:"memory" doc:"the file: channel, transport, global, or as the list has it: MEMORY.md, discord/MEMORY.md, …"`
	Text string `json:"text,omitempty" maxLen:"262144" doc:"its whole new text; empty: the file is removed"`
	Add  bool   `json:"add,omitempty" doc:"add the text as a line instead of replacing the file"`
	Seen int64  `json:"seen,omitempty" min:"0" cli:"-" slash:"-" doc:"the version that you read: refused if there is a newer one; left out: the current version is replaced"`
}

// MemoryForget says what to forget.
type MemoryForget struct {
	Path    string `json:"path" minLen:"1" maxLen:"1024" noun:"memory" context:"memory" doc:"the file: channel, transport, global, or as the list has it: MEMORY.md, discord/MEMORY.md, …"`
	Words   string `json:"words,omitempty" maxLen:"1000" doc:"only the lines that contain these words; left out: the whole file"`
	ForGood bool   `json:"forGood,omitempty" doc:"the whole file with its history: it cannot be restored"`
}

// MemoryRestore says which version to restore.
type MemoryRestore struct {
	Path    string `json:"path" minLen:"1" maxLen:"1024" noun:"memory" context:"memory" doc:"the file: channel, transport, global, or as the list has it: MEMORY.md, discord/MEMORY.md, …"`
	Version int64  `json:"version,omitempty" min:"0" doc:"its number in the history; left out: the one before the last change"`
}

// MemoryFile is one memory file.
type MemoryFile struct {
	Path      string    `json:"path"`
	Scope     string    `json:"scope"` // global, transport, channel or docs
	Title     string    `json:"title"`
	Size      int64     `json:"size"`
	Version   int64     `json:"version"` // 0: it was never written
	ChangedBy string    `json:"changedBy,omitempty"`
	ChangedAt time.Time `json:"changedAt,omitzero"`
	Problem   string    `json:"problem,omitempty"` // why agents do not see it, and what to do
}

// MemoryText is a memory file with its text.
type MemoryText struct {
	MemoryFile
	Text  string       `json:"text"`
	Parts []MemoryPart `json:"parts,omitempty"`
}

// MemoryPart is one author's part of a text.
type MemoryPart struct {
	By   string `json:"by"`
	Text string `json:"text"`
}

// MemoryConflict describes a conflicting edit of somebody else.
type MemoryConflict struct {
	Version    int64  `json:"version"`    // the current version
	Difference string `json:"difference"` // from the current version to the requested one, as a unified diff
}

// MemoryVersion is a file after a change.
type MemoryVersion struct {
	Version int64     `json:"version"`
	At      time.Time `json:"at"`
	By      string    `json:"by"`
	How     string    `json:"how"` // by hand, edit, forget, restore, or the tool that wrote it
	Session string    `json:"session,omitempty"`
	Diff    string    `json:"diff"` // from the previous version
}

// RecallQuery is a search in memory and past conversations.
type RecallQuery struct {
	Text  string `json:"q" minLen:"1" maxLen:"500" cli:"words" slash:"words" doc:"the words; every one must occur"`
	Limit int    `json:"limit,omitempty" min:"1" max:"100" default:"20" doc:"maximum number of results"`
}

// Recalled is one match.
type Recalled struct {
	Where string    `json:"where"` // a memory file, or a session
	Who   string    `json:"who,omitempty"`
	At    time.Time `json:"at"`
	Text  string    `json:"text"`
}

// The operations on memory.
var (
	ListMemory = operation.New(operation.Info{Name: "memory.list", Help: "List memory files", Scope: operation.Read,
		Doc:   "Agents see MEMORY.md everywhere, TRANSPORT/MEMORY.md on one transport, and TRANSPORT/CHANNEL/MEMORY.md in one channel or folder.",
		HTTP:  []operation.HTTP{{Route: "GET /api/memory", ID: "listMemory", Tag: "memory"}},
		CLI:   []operation.CLI{{Words: "memory list"}},
		Slash: []operation.Slash{{Words: "memory list", Help: "List the memory files for this channel", Show: "- `{path}` {scope}, {size} bytes, version {version} {changedBy:60}\n  {problem}"}},
		Tool:  "memory_list", Page: "/memory",
		Columns: "PATH=path | SCOPE=scope | BYTES=size | VERSION=version | CHANGED=changedAt:minute | BY=changedBy:40 | PROBLEM=problem:60",
		Empty:   "there is no memory yet; agents write it themselves, or write it: chorus memory edit MEMORY.md"}, Memory.ListMemory)

	GetMemory = operation.New(operation.Info{Name: "memory.show", Help: "Show a memory file, with who wrote what", Scope: operation.Read,
		Errors: []operation.Kind{operation.NotFound},
		HTTP:   []operation.HTTP{{Route: "GET /api/memory/file", ID: "getMemory", Tag: "memory"}},
		CLI:    []operation.CLI{{Words: "memory show", Args: "PATH", Example: "  chorus memory show MEMORY.md"}},
		Slash: []operation.Slash{{Words: "memory show", Help: "Show what is remembered here, with who wrote it", Example: "path:channel",
			Show: "**{title}** `{path}`, version {version}\n{changedAt:minute}, {changedBy}\n{problem}\n{text:block|Nothing is remembered here yet; `/memory edit` writes something.}"}},
		Tool: "memory_show", Page: "/memory"}, Memory.GetMemory)

	EditMemory = operation.New(operation.Info{Name: "memory.edit", Help: "Change a memory file", Scope: operation.Chat, Effect: operation.Changes,
		Errors: []operation.Kind{operation.NotFound, operation.Conflict},
		HTTP:   []operation.HTTP{{Route: "PUT /api/memory/file", ID: "editMemory", Tag: "memory", Body: "MemoryEdit"}},
		CLI: []operation.CLI{{Words: "memory edit", Args: "PATH", Doc: "Without --text it opens the editor that VISUAL or EDITOR names, or else nano or vi. The previous text stays in the history.",
			Example: "  chorus memory edit MEMORY.md\n  chorus memory edit MEMORY.md --text '- Answer in German.'"}},
		MCP:   "memory_edit", // agents have @memory and remember, which record whose words they write
		Slash: []operation.Slash{{Words: "memory edit", Require: "text", Help: "Change what is remembered here; the previous text stays in the history", Example: "text:We ship on Fridays add:True"}},
		Done:  "{path} has version {version}"}, Memory.EditMemory)

	ForgetMemory = operation.New(operation.Info{Name: "memory.forget", Help: "Forget a memory file, or the lines that contain some words", Scope: operation.Chat, Effect: operation.Destroys,
		Doc:    "It stays in the history and can be restored, unless it is forgotten for good.",
		Errors: []operation.Kind{operation.NotFound, operation.Conflict},
		HTTP:   []operation.HTTP{{Route: "POST /api/memory/forget", ID: "forgetMemory", Tag: "memory", Body: "MemoryForget"}},
		CLI: []operation.CLI{{Words: "memory forget", Args: "PATH [WORDS…]",
			Example: "  chorus memory forget MEMORY.md ships on Fridays\n  chorus memory forget discord/MEMORY.md --for-good --yes"}},
		MCP: "memory_forget",
		Slash: []operation.Slash{{Words: "memory forget", Options: "path words", Help: "Forget what is remembered here, or the lines that contain some words", Example: "words:ships on Fridays",
			Ask: "Forget `{path}`?\nOnly the lines that contain: {words}\n`/memory restore` restores it."}},
		Done: "{path} is forgotten as you asked"}, Memory.ForgetMemory)

	MemoryHistory = operation.New(operation.Info{Name: "memory.history", Help: "Show the history of a memory file: when, by whom, from where", Scope: operation.Read,
		Errors: []operation.Kind{operation.NotFound},
		HTTP:   []operation.HTTP{{Route: "GET /api/memory/history", ID: "memoryHistory", Tag: "memory"}},
		CLI:    []operation.CLI{{Words: "memory history", Args: "PATH"}},
		Slash:  []operation.Slash{{Words: "memory history", Help: "Show each change of what is remembered here: when, by whom, what", Example: "path:channel", Show: "**version {version}**, {at:minute}, {by} ({how})\n{diff:diff}"}},
		Tool:   "memory_history", Page: "/memory",
		Columns: "VERSION=version | AT=at:minute | BY=by:40 | HOW=how | SESSION=session",
		Empty:   "no changes yet"}, Memory.MemoryHistory)

	RestoreMemory = operation.New(operation.Info{Name: "memory.restore", Help: "Restore an earlier version of a memory file", Scope: operation.Chat, Effect: operation.Changes,
		Doc:    "This is a change like any other and can be undone. Lines keep their authors.",
		Errors: []operation.Kind{operation.NotFound, operation.Conflict},
		HTTP:   []operation.HTTP{{Route: "POST /api/memory/restore", ID: "restoreMemory", Tag: "memory", Body: "MemoryRestore"}},
		CLI: []operation.CLI{{Words: "memory restore", Args: "PATH", Alias: "undo",
			Example: "  chorus memory undo MEMORY.md\n  chorus memory restore MEMORY.md --version 3"}},
		MCP:   "memory_restore",
		Slash: []operation.Slash{{Words: "memory restore", Help: "Undo the last change of what is remembered here, or restore a version", Example: "version:3"}},
		Done:  "{path} has version {version}"}, Memory.RestoreMemory)

	Recall = operation.New(operation.Info{Name: "memory.recall", Help: "Search memory and past conversations", Scope: operation.Read,
		HTTP:    []operation.HTTP{{Route: "GET /api/recall", ID: "recall", Tag: "memory"}},
		CLI:     []operation.CLI{{Words: "memory recall", Args: "WORDS…", Example: "  chorus memory recall release friday"}},
		MCP:     "memory_recall",
		Slash:   []operation.Slash{{Words: "memory recall", Options: "q", Help: "Search memory and past conversations", Example: "words:release friday", Show: "- `{where}` {at:minute} {who:30}: {text:200}"}},
		Columns: "WHERE=where | AT=at:minute | WHO=who:30 | FOUND=text:120", Page: "/memory",
		Empty: "nothing was found"}, Memory.Recall)
)

func memories() []operation.Any {
	return []operation.Any{ListMemory, GetMemory, EditMemory, ForgetMemory, MemoryHistory, RestoreMemory, Recall}
}
