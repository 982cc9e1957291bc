package operations

import (
	"context"
	"time"

	"chorus/internal/operation"
)

// Rules implements operations on what people always allow.
type Rules interface {
	// ProposeRules returns rules that would always allow an approval's call.
	ProposeRules(context.Context, operation.Caller, ApprovalRef) (RuleProposal, error)
	ListRules(context.Context, operation.Caller, operation.None) (operation.List[KeptRule], error)
	// RemoveRules removes all named rules, or none if one is unknown.
	RemoveRules(context.Context, operation.Caller, RuleRefs) (operation.List[KeptRule], error)
}

// RuleProposal is what "always" may mean for an approval.
type RuleProposal struct {
	ID    string     `json:"id"`              // the approval's
	Where string     `json:"where"`           // for whom and where a rule would apply
	Never string     `json:"never,omitempty"` // why no rule can be kept; then there are none
	Rules []RuleStep `json:"rules"`           // the first allows exactly the call, each further one more
}

// RuleStep is a set of rules that are kept together.
type RuleStep struct {
	Rules []string `json:"rules"`
	Means string   `json:"means"`
	Also  []string `json:"alsoAllows"` // examples of what else it would allow
	Still []string `json:"stillAsks"`  // examples of what would still need approval
}

// KeptRule is a rule that always allows something.
type KeptRule struct {
	ID       string    `json:"id"`
	By       string    `json:"by"`
	ByName   string    `json:"byName,omitempty"`
	Agent    string    `json:"agent"`
	Dir      string    `json:"dir"`
	Channel  string    `json:"channel,omitempty"`
	At       time.Time `json:"at"`
	Approval string    `json:"approval,omitempty"`
	Means    string    `json:"means,omitempty"`
	Rules    []string  `json:"rules"`
}

// RuleRefs names kept rules.
type RuleRefs struct {
	IDs []string `json:"ids" minItems:"1" maxItems:"100" cli:"id" doc:"the ids of the rules"`
}

// The operations on kept rules.
var (
	ProposeRules = operation.New(operation.Info{Name: "rule.propose", Help: "Show which rules would always allow an approval's call", Scope: operation.Approve,
		HTTP: []operation.HTTP{{Route: "GET /api/approvals/{id}/rules", ID: "proposeRules", Tag: "approvals"}}}, Rules.ProposeRules)

	ListRules = operation.New(operation.Info{Name: "rule.list", Help: "List what is always allowed, oldest first", Scope: operation.Admin,
		HTTP:    []operation.HTTP{{Route: "GET /api/rules", ID: "listRules", Tag: "approvals"}},
		CLI:     []operation.CLI{{Words: "permit allowed list", Help: "List the rules that always allow calls, oldest first", Example: "  chorus permit allowed list --json"}},
		Columns: "ID=id | SINCE=at:minute | BY=byName | AGENT=agent | IN=dir | RULE=rules:100", Empty: "nothing is always allowed"}, Rules.ListRules)

	RemoveRules = operation.New(operation.Info{Name: "rule.remove", Help: "Remove rules, so that their calls need approval again", Scope: operation.Admin, Effect: operation.Changes,
		Errors: []operation.Kind{operation.NotFound},
		HTTP:   []operation.HTTP{{Route: "POST /api/rules/remove", ID: "removeRules", Tag: "approvals", Body: "RuleRefs"}},
		CLI: []operation.CLI{{Words: "permit allowed remove", Args: "ID…", Help: "Remove rules, so that their calls need approval again",
			Example: "  chorus permit allowed remove 3f2a91c0"}}}, Rules.RemoveRules)
)

func rules() []operation.Any { return []operation.Any{ProposeRules, ListRules, RemoveRules} }
