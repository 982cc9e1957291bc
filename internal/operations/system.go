package operations

import (
	"context"
	"fmt"
	"strings"
	"time"

	"chorus/internal/operation"
)

// System implements operations on the whole system.
type System interface {
	Models(context.Context, operation.Caller, operation.None) (operation.List[Model], error)
	Settings(context.Context, operation.Caller, operation.None) (operation.List[Setting], error)
	SetSetting(context.Context, operation.Caller, SettingValue) (Setting, error)
	// Health shows what is missing, and how to get it.
	Health(context.Context, operation.Caller, operation.None) (operation.List[Check], error)
}

// Overviews implements the operation that shows an overview.
type Overviews interface {
	Overview(context.Context, operation.Caller, operation.None) (Overview, error)
}

// Check is the result of one check.
type Check struct {
	Section string `json:"section"`
	Name    string `json:"name"`
	State   string `json:"state"` // ok, warn, broken
	Detail  string `json:"detail,omitempty"`
	Fix     string `json:"fix,omitempty"`
}

// Setting is one key of the configuration.
type Setting struct {
	Key     string   `json:"key"`
	Label   string   `json:"label,omitempty"` // its name for people
	Value   string   `json:"value"`
	Source  string   `json:"source,omitempty"` // the file that set it; "": built in
	Doc     string   `json:"doc,omitempty"`
	Section string   `json:"section,omitempty"` // its description
	Kind    string   `json:"kind,omitempty"`    // text, whole number, number, true or false, or list of texts
	Choices []string `json:"choices,omitempty"`
	Default string   `json:"default,omitempty"` // built-in value
	Fixed   bool     `json:"fixed,omitempty"`   // a file or the environment sets it, so it cannot be set here
}

// SettingValue sets one key of the configuration.
type SettingValue struct {
	Key   string `json:"key" maxLen:"200" noun:"setting" doc:"the setting's name"`
	Value string `json:"value" maxLen:"200000" doc:"empty: the built-in value"`
}

// Model is an available model.
type Model struct {
	Name          string   `json:"name"` // provider/model
	Provider      string   `json:"provider"`
	Ready         bool     `json:"ready"` // there is a key for it, or it needs none
	ContextWindow int      `json:"contextWindow,omitempty"`
	MaxOutput     int      `json:"maxOutput,omitempty"`
	InputPrice    float64  `json:"inputPrice,omitempty"` // dollars per million tokens
	OutputPrice   float64  `json:"outputPrice,omitempty"`
	Can           []string `json:"can,omitempty"`
	Default       bool     `json:"default,omitempty"`
}

// Words describe a model's price and context size, for a selection list.
func (m Model) Words() string {
	var out []string
	if m.InputPrice > 0 || m.OutputPrice > 0 {
		out = append(out, fmt.Sprintf("$%g in, $%g out a million tokens", m.InputPrice, m.OutputPrice))
	}
	if m.ContextWindow > 0 {
		out = append(out, fmt.Sprintf("%dk window", m.ContextWindow/1000))
	}
	return strings.Join(out, " · ")
}

// Overview shows what is running, waiting and failed.
type Overview struct {
	Running   []Session   `json:"running"`
	Queued    []Session   `json:"queued"` // waiting until fewer run, in this order
	Waiting   []Approval  `json:"waiting"`
	Failed    []Session   `json:"failed"` // whose last run failed within the last day
	Recent    []Session   `json:"recent"`
	Agents    []AgentStat `json:"agents"`
	Today     float64     `json:"today"` // dollars
	Month     float64     `json:"month"`
	Budgets   []Budget    `json:"budgets"`
	Version   string      `json:"version"`
	Sandbox   string      `json:"sandbox"`
	Model     string      `json:"model"` // the default model
	StartedAt time.Time   `json:"startedAt"`
	Nodes     []Node      `json:"nodes,omitempty"` // if several share the database
}

// AgentStat is an agent with its threads.
type AgentStat struct {
	Agent
	Threads int `json:"threads"`
	Running int `json:"running"`
	Waiting int `json:"waiting"`
}

// The operations on the whole system.
var (
	GetOverview = operation.New(operation.Info{Name: "system.overview", Help: "Show what is running, waiting and failed", Scope: operation.Read,
		HTTP: []operation.HTTP{{Route: "GET /api/overview", ID: "overview", Tag: "system"}}, Tool: "system_overview"}, Overviews.Overview)

	ListModels = operation.New(operation.Info{Name: "model.list", Help: "List available models", Scope: operation.Read,
		HTTP:    []operation.HTTP{{Route: "GET /api/models", ID: "models", Tag: "system"}},
		Slash:   []operation.Slash{{Words: "models", Show: "- `{name}`: {ready:ready|needs a key}, {contextWindow:thousands} tokens, {can}"}},
		Tool:    "model_list",
		Columns: "MODEL=name | READY=ready | WINDOW=contextWindow | OUTPUT=maxOutput | $ IN=inputPrice | $ OUT=outputPrice | CAN=can",
		Empty:   "no models are known"}, System.Models)

	ListSettings = operation.New(operation.Info{Name: "setting.list", Help: "List settings and where each value comes from", Scope: operation.Read,
		HTTP: []operation.HTTP{{Route: "GET /api/settings", ID: "settings", Tag: "system"}},
		Tool: "setting_list", Columns: "KEY=key | VALUE=value:60 | FROM=source:(built in)", Empty: "there are no settings"}, System.Settings)

	SetSetting = operation.New(operation.Info{Name: "setting.set", Help: "Change a setting", Scope: operation.Admin, Effect: operation.Changes,
		Errors: []operation.Kind{operation.Conflict},
		HTTP:   []operation.HTTP{{Route: "PUT /api/settings/{key}", ID: "setSetting", Tag: "system", Body: "Value"}},
		Tool:   "setting_set", Done: "{key} is set"}, System.SetSetting)

	CheckHealth = operation.New(operation.Info{Name: "system.health", Help: "Show what is missing and how to get it", Scope: operation.Read,
		HTTP: []operation.HTTP{{Route: "GET /api/health", ID: "health", Tag: "system"}},
		Tool: "system_health", Columns: "SECTION=section | NAME=name | STATE=state | DETAIL=detail:100", Empty: "nothing was checked"}, System.Health)
)

func system() []operation.Any {
	return []operation.Any{GetOverview, ListModels, ListSettings, SetSetting, CheckHealth, operation.Names}
}
