package operations

import (
	"context"

	"chorus/internal/operation"
)

// Commands runs what people type after a slash in a conversation that a server holds.
type Commands interface {
	RunCommand(context.Context, operation.Caller, CommandLine) (CommandAnswer, error)
	// RunFirst answers a command before its conversation exists.
	RunFirst(context.Context, operation.Caller, FirstCommand) (FirstAnswer, error)
	CompleteCommand(context.Context, operation.Caller, CommandStart) (operation.List[Completion], error)
	CompleteFirst(context.Context, operation.Caller, FirstLineStart) (operation.List[Completion], error)
}

// CommandLine is a typed command.
type CommandLine struct {
	ID   string `json:"id" maxLen:"1024" noun:"session" context:"session" doc:"the session's id"`
	Line string `json:"line" minLen:"1" maxLen:"300000" doc:"the command: /memory show"`
}

// CommandStart is the part of a command typed so far.
type CommandStart struct {
	ID   string `json:"id" maxLen:"1024" noun:"session" context:"session" doc:"the session's id"`
	Line string `json:"line,omitempty" maxLen:"4096" doc:"the text typed so far, or @ and the start of a file name; left out: every command"`
}

// FirstLineStart is the text typed so far for a conversation that does not exist yet.
type FirstLineStart struct {
	Line          string `json:"line,omitempty" maxLen:"4096" doc:"the text typed so far, or @ and the start of a file name; left out: every command"`
	Agent         string `json:"agent,omitempty" maxLen:"64" noun:"agent" doc:"who would answer"`
	WorkspacePath string `json:"workspacePath,omitempty" maxLen:"4096" doc:"the folder it would work in; left out: its own, which is empty"`
	Model         string `json:"model,omitempty" maxLen:"300" noun:"model" doc:"the model that would answer"`
}

// FirstCommand is a command typed before the first message of a conversation, which does not exist yet.
type FirstCommand struct {
	NewSession        // what it would be
	Line       string `json:"line" minLen:"1" maxLen:"300000" doc:"the command: /mode plan"`
}

// FirstAnswer is the result of a command typed before the first message.
type FirstAnswer struct {
	Text    string  `json:"text,omitempty" doc:"the answer, as Markdown"`
	Begin   bool    `json:"begin,omitempty" doc:"the command needs the conversation: create it and run the command there"`
	Session Session `json:"session" doc:"what the session would be after this command; create it with this model and this mode"`
}

// CommandAnswer is the result of a command.
type CommandAnswer struct {
	Text    string `json:"text" doc:"the answer, as Markdown"`
	Confirm string `json:"confirm,omitempty" doc:"the text is a question; send this line to confirm"`
	Said    bool   `json:"said,omitempty" doc:"the line was a message for the agent, and was sent"`
}

// Completion is a possible continuation of a line.
type Completion struct {
	Line  string `json:"line,omitempty" doc:"the whole line with this choice; left out: it only says what is expected"`
	Label string `json:"label"`
	About string `json:"about,omitempty"`
}

// The operations on typed commands.
var (
	RunCommand = operation.New(operation.Info{Name: "session.command", Help: "Run a command that somebody types in a conversation",
		Doc:   "The commands are those of chat; /help lists them. Commands that need confirmation ask first. A line that calls a skill is sent to the agent.",
		Scope: operation.Chat, Effect: operation.Changes, Errors: []operation.Kind{operation.NotFound, operation.Conflict},
		HTTP: []operation.HTTP{{Route: "POST /api/sessions/{id}/commands", ID: "runCommand", Body: "CommandLine", MaxBody: 1 << 20}}}, Commands.RunCommand)

	RunFirst = operation.New(operation.Info{Name: "session.command_first", Help: "Run a command that somebody types before the first message",
		Doc:   "It creates no session. Commands that choose something, such as /mode, answer with what the session would be; others say that they need it.",
		Scope: operation.Chat, Errors: []operation.Kind{operation.NotFound},
		HTTP: []operation.HTTP{{Route: "POST /api/commands", ID: "runFirst", Tag: "sessions", Body: "FirstCommand", MaxBody: 1 << 20}}}, Commands.RunFirst)

	CompleteCommand = operation.New(operation.Info{Name: "session.complete", Help: "Complete a command that somebody types", Scope: operation.Chat,
		Errors: []operation.Kind{operation.NotFound},
		HTTP:   []operation.HTTP{{Route: "GET /api/sessions/{id}/commands", ID: "completeCommand"}}}, Commands.CompleteCommand)

	CompleteFirst = operation.New(operation.Info{Name: "session.complete_first", Help: "Complete the first line of a new conversation", Scope: operation.Chat,
		Errors: []operation.Kind{operation.Forbidden},
		HTTP:   []operation.HTTP{{Route: "GET /api/commands", ID: "completeFirst", Tag: "sessions"}}}, Commands.CompleteFirst)
)

func commands() []operation.Any {
	return []operation.Any{RunCommand, RunFirst, CompleteCommand, CompleteFirst}
}
