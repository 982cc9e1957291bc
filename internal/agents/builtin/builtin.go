// Package builtin has the agents that are there without having been made. Each is a file of settings, which any agent can
// have, and a file with its prompt; prompts/NAME.md in the home takes the place of the latter.
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

// Names are the agents that are built in.
func Names() []string { return []string{Dispatcher} }

// definition is the file of an agent.
type definition struct {
	Tools       []string       `json:"tools"`
	RareTools   []string       `json:"rareTools"`
	Permissions string         `json:"permissions"`
	Settings    map[string]any `json:"settings"` // keys of the configuration
}

// Define is the agent of that name and the settings it has unless somebody says otherwise; false: none is built in.
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

// prompt is the home's own text, or else the one that is built in.
func prompt(home *datadir.Home, name string) string {
	text, err := os.ReadFile(home.Prompt(name))
	if err != nil || strings.TrimSpace(string(text)) == "" {
		text, _ = files.ReadFile(name + ".md") // beside the settings
	}
	return strings.TrimSpace(strings.ReplaceAll(strings.ToValidUTF8(string(text), ""), "{workspace_dir}", filepath.Join(home.Dir(), "projects")))
}
