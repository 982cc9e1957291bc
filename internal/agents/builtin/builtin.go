// Package builtin has the built-in agents. Each consists of a file with settings that any agent can
// have, and a file with its prompt, which prompts/NAME.md in the home replaces.
package builtin

import (
	"embed"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"chorus/internal/agents"
	"chorus/internal/datadir"
)

//go:embed *.json *.md
var files embed.FS

// Dispatcher is the agent that people talk to about projects and tasks.
const Dispatcher = "dispatcher"

// Names returns the names of the built-in agents.
func Names() []string { return []string{Dispatcher} }

// definition is the file of an agent.
type definition struct {
	Tools       []string       `json:"tools"`
	RareTools   []string       `json:"rareTools"`
	Permissions string         `json:"permissions"`
	Settings    map[string]any `json:"settings"` // keys of the configuration
}

// Define returns the agent of that name and its default settings, or false if it is not built in.
func Define(home *datadir.Home, name string) (agents.Agent, map[string]any, bool) {
	data, err := files.ReadFile(name + ".json")
	if err != nil {
		return agents.Agent{}, nil, false
	}
	var d definition
	if err := json.Unmarshal(data, &d); err != nil {
		panic(fmt.Sprintf("built-in agent %s: %v", name, err)) // a test reads them all
	}
	a := agents.Agent{Name: name, Permissions: d.Permissions, Tools: d.Tools, RareTools: d.RareTools, SystemPrompt: prompt(home, name)}
	d.Settings["systemPrompt"], d.Settings["permissions"] = a.SystemPrompt, a.Permissions
	return a, d.Settings, true
}

// prompt returns the home's own text, or else the built-in one.
func prompt(home *datadir.Home, name string) string {
	text, err := os.ReadFile(home.Prompt(name))
	if err != nil || strings.TrimSpace(string(text)) == "" {
		text, _ = files.ReadFile(name + ".md") // next to the settings
	}
	return strings.TrimSpace(strings.ReplaceAll(strings.ToValidUTF8(string(text), ""), "{workspace_dir}", filepath.Join(home.Dir(), "projects")))
}
