// Package operations is the catalogue of everything that people and programs can ask of Chorus: one file per noun, with
// its input and output types, the small interface that implements its operations, and the definitions.
//
// A new operation is a definition here and a method on the implementation of the interface; the HTTP route with its
// OpenAPI entry, the CLI command, the client call, the chat command and the tool follow from it. The guide
// docs/guides/add-an-operation.md adds one.
package operations

import "chorus/internal/operation"

// All returns every operation, in the order of the API's document.
func All() *operation.Set {
	return operation.Collect(sessions(), history(), approvals(), rules(), profiles(), agents(), records(), system(), tokens(), schedules(), memories(), skills(), hooks(), processes(), mcpServers(), projects(), tasks(), plans(), gitCommands(), workspaces(), notes(), workers(), nodes())
}

// Groups describe chat commands by their first word.
func Groups() map[string]string {
	return map[string]string{
		"memory": "What agents remember", "skill": "Skills that agents have", "schedule": "Messages to agents at set times",
		"hook": "Automatic runs, on events or at set times", "process": "Commands that agents run in the background",
		"project": "Projects with their tasks", "task": "Tasks for agents", "repo": "Repositories of projects", "git": "Git commands in repositories of projects",
		"note": "Notes of projects", "system": "The state of all work and of the server",
		"profile": "Permission profiles: show, try and save them",
		"worker":  "Workers that run tasks", "node": "Servers that share one database", "thread": "Conversations", "context": "What the agent sees of a conversation",
	}
}
