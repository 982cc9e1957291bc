package operations

import (
	"context"
	"time"

	"chorus/internal/operation"
)

// Profiles implements operations on permission profiles.
type Profiles interface {
	GetProfile(context.Context, operation.Caller, ProfileRef) (ProfileDetail, error)
	// TryProfile shows how past calls would be decided under other rules; nothing is saved.
	TryProfile(context.Context, operation.Caller, ProfileDraft) (ProfileTrial, error)
	SaveProfile(context.Context, operation.Caller, ProfileEdit) (ProfileDetail, error)
	RemoveProfile(context.Context, operation.Caller, ProfileRef) (operation.None, error)
	ExplainRule(context.Context, operation.Caller, RuleText) (RuleWords, error)
}

// ProfileRef names a permission profile.
type ProfileRef struct {
	Name string `json:"name" minLen:"1" maxLen:"64" noun:"profile" doc:"the profile's name"`
}

// ProfileDraft is a set of rules that is not saved; lists left out are as they are now.
type ProfileDraft struct {
	Name  string   `json:"name" minLen:"1" maxLen:"64" doc:"the profile's name; it need not exist yet"`
	Allow []string `json:"allow,omitempty" maxItems:"500" doc:"what is done without asking; each an expression that matches whole actions, such as tool:bash:go test( .*)?"`
	Ask   []string `json:"ask,omitempty" maxItems:"500" doc:"what a person is asked about"`
	Deny  []string `json:"deny,omitempty" maxItems:"500" doc:"what is refused, whatever the other lists say"`
	From  string   `json:"from,omitempty" maxLen:"64" noun:"profile" doc:"the profile to compare with; left out: its saved version, or standard for a new one"`
	Agent string   `json:"agent,omitempty" maxLen:"64" noun:"agent" doc:"only past calls of this agent"`
	Last  int      `json:"last,omitempty" min:"1" max:"20000" default:"2000" doc:"how many of the newest decisions to check"`
}

// ProfileEdit are the new rules of a profile.
type ProfileEdit struct {
	Name  string   `json:"name" minLen:"2" maxLen:"32" pattern:"^[a-z][a-z0-9-]*$" doc:"the profile's name: a–z, 0–9 and hyphens"`
	Seen  string   `json:"seen,omitempty" maxLen:"64" doc:"the version that you read: refused if there is a newer one; left out: the current version is replaced"`
	Allow []string `json:"allow,omitempty" maxItems:"500" doc:"what is done without asking"`
	Ask   []string `json:"ask,omitempty" maxItems:"500" doc:"what a person is asked about"`
	Deny  []string `json:"deny,omitempty" maxItems:"500" doc:"what is refused, whatever the other lists say"`
}

// ProfileDetail is a permission profile with its rules.
type ProfileDetail struct {
	Name    string      `json:"name"`
	About   string      `json:"about,omitempty"`
	BuiltIn bool        `json:"builtIn,omitempty"`
	Fixed   string      `json:"fixed,omitempty"` // why this operation cannot change it; "": it can
	Version string      `json:"version"`
	Deny    []RuleWords `json:"deny"`
	Allow   []RuleWords `json:"allow"`
	Ask     []RuleWords `json:"ask"`
	Agents  []string    `json:"agents"` // that use it
}

// RuleText is a rule of a list.
type RuleText struct {
	Rule string `json:"rule" minLen:"1" maxLen:"20000" doc:"the expression, or a JSON object with rule, roles, agents and channels"`
}

// RuleWords is a rule with its description.
type RuleWords struct {
	Rule  string `json:"rule"`
	Words string `json:"words"`
}

// ProfileConflict describes a conflicting change of somebody else.
type ProfileConflict struct {
	Version    string `json:"version"`
	Difference string `json:"difference"` // from the current version to the requested one, as a unified diff
}

// ProfileTrial shows how past calls would be decided.
type ProfileTrial struct {
	Looked  int         `json:"looked"` // past decisions that were tried
	Since   time.Time   `json:"since,omitzero"`
	Before  TrialCounts `json:"before"`
	After   TrialCounts `json:"after"`
	Changes []TrialCall `json:"changes"`        // that would be decided differently, most frequent first
	Same    []TrialCall `json:"same"`           // the newest ones that would not
	More    int         `json:"more,omitempty"` // changes that are not listed
	Unused  []RuleWords `json:"unused"`         // rules of the draft that decided none of them
	Draft   struct {
		Deny  []RuleWords `json:"deny"`
		Allow []RuleWords `json:"allow"`
		Ask   []RuleWords `json:"ask"`
	} `json:"draft"` // the draft, in words
}

// TrialCounts counts past calls by verdict.
type TrialCounts struct {
	Allow int `json:"allow"`
	Ask   int `json:"ask"`
	Deny  int `json:"deny"`
}

// TrialCall is a past call.
type TrialCall struct {
	Action  string    `json:"action"`
	Times   int       `json:"times"`
	At      time.Time `json:"at"` // the last time
	Agent   string    `json:"agent,omitempty"`
	Session string    `json:"session,omitempty"`
	Before  string    `json:"before"` // allow, ask or deny
	After   string    `json:"after"`
	Rule    string    `json:"rule,omitempty"` // that would decide
	Words   string    `json:"words,omitempty"`
	Why     string    `json:"why,omitempty"`
}

// The operations on permission profiles.
var (
	GetProfile = operation.New(operation.Info{Name: "profile.get", Help: "Show a permission profile: its rules in words, and which agents use it", Scope: operation.Admin,
		HTTP: []operation.HTTP{{Route: "GET /api/profiles/{name}", ID: "getProfile", Tag: "agents"}},
		CLI:  []operation.CLI{{Words: "permit profile show", Args: "NAME", Example: "  chorus permit profile show standard"}},
		Page: "/permissions"}, Profiles.GetProfile)

	TryProfile = operation.New(operation.Info{Name: "profile.try", Help: "Show how past calls would be decided under other rules; nothing is saved", Scope: operation.Admin,
		Doc:    "The newest decisions of the audit log are evaluated again under the current rules and under the draft. Answers of people and calls that somebody has always allowed do not count: the result says what would be asked.",
		HTTP:   []operation.HTTP{{Route: "POST /api/profiles/{name}/try", ID: "tryProfile", Tag: "agents", Body: "ProfileDraft"}},
		CLI:    []operation.CLI{{Words: "permit profile try", Args: "NAME", Example: "  chorus permit profile try standard --deny 'tool:bash:curl( .*)?'"}},
		Errors: []operation.Kind{operation.NotFound},
		Page:   "/permissions"}, Profiles.TryProfile)

	SaveProfile = operation.New(operation.Info{Name: "profile.save", Help: "Save a permission profile of your own", Scope: operation.Admin, Effect: operation.Changes,
		Doc:    "It is stored in settings.json. Lists that you leave out do not change. With the version that you read, the change is refused if there is a newer one, and the answer has the difference.",
		Errors: []operation.Kind{operation.Conflict},
		HTTP:   []operation.HTTP{{Route: "PUT /api/profiles/{name}", ID: "saveProfile", Tag: "agents", Body: "ProfileEdit", NeedsBody: true}},
		CLI:    []operation.CLI{{Words: "permit profile save", Args: "NAME", Example: "  chorus permit profile save careful --allow 'tool:read:.*' --ask 'tool:bash:.*'"}},
		Done:   "{name} is saved; it applies from the next call"}, Profiles.SaveProfile)

	RemoveProfile = operation.New(operation.Info{Name: "profile.remove", Help: "Remove a permission profile that no agent uses", Scope: operation.Admin, Effect: operation.Destroys,
		Errors: []operation.Kind{operation.NotFound, operation.Conflict},
		HTTP:   []operation.HTTP{{Route: "DELETE /api/profiles/{name}", ID: "removeProfile", Tag: "agents"}},
		CLI:    []operation.CLI{{Words: "permit profile remove", Args: "NAME"}},
		Done:   "{name} is removed"}, Profiles.RemoveProfile)

	ExplainRule = operation.New(operation.Info{Name: "rule.explain", Help: "Explain a permission rule in words", Scope: operation.Read,
		HTTP: []operation.HTTP{{Route: "GET /api/rules/explain", ID: "explainRule", Tag: "approvals"}},
		CLI:  []operation.CLI{{Words: "permit words", Args: "RULE", Example: "  chorus permit words 'tool:bash:go (build|test)( .*)?'"}},
		Done: "{words}"}, Profiles.ExplainRule)
)

func profiles() []operation.Any {
	return []operation.Any{GetProfile, TryProfile, SaveProfile, RemoveProfile, ExplainRule}
}
