package command

import (
	"time"

	"chorus/internal/chat"
	"chorus/internal/operation"
	"chorus/internal/operations"
)

// The mechanism's types, under the names that callers of Service know.
type (
	Caller = operation.Caller
	Scope  = operation.Scope
	Kind   = operation.Kind
	Error  = operation.Error
	File   = operation.File
	// List is a page of a list.
	List[T any] = operation.List[T]
)

// The scopes and kinds of errors.
const (
	Read    = operation.Read
	Chat    = operation.Chat
	Approve = operation.Approve
	Admin   = operation.Admin

	Invalid     = operation.Invalid
	Unsigned    = operation.Unsigned
	Forbidden   = operation.Forbidden
	NotFound    = operation.NotFound
	Conflict    = operation.Conflict
	TooLarge    = operation.TooLarge
	Busy        = operation.Busy
	Unavailable = operation.Unavailable
	Failed      = operation.Failed
)

// Functions of the mechanism.
var (
	Scopes     = operation.Scopes
	Errorf     = operation.Errorf
	KindOf     = operation.KindOf
	WithCaller = operation.WithCaller
	CallerOf   = operation.CallerOf
)

// The types of the catalogue.
type (
	NewSession    = operations.NewSession
	Spoken        = operations.Spoken
	Session       = operations.Session
	RunSummary    = operations.RunSummary
	SessionQuery  = operations.SessionQuery
	Said          = operations.Said
	RawEvent      = operations.RawEvent
	Request       = operations.Request
	Fragment      = operations.Fragment
	Format        = operations.Format
	Replayed      = operations.Replayed
	Attachment    = operations.Attachment
	SearchQuery   = operations.SearchQuery
	Hit           = operations.Hit
	ApprovalQuery = operations.ApprovalQuery
	Approval      = operations.Approval
	Vote          = operations.Vote
	Agent         = operations.Agent
	AgentDetail   = operations.AgentDetail
	Tool          = operations.Tool
	Doc           = operations.Doc
	Entry         = operations.Entry
	NewAgent      = operations.NewAgent
	CostQuery     = operations.CostQuery
	Costs         = operations.Costs
	Cost          = operations.Cost
	Budget        = operations.Budget
	AuditQuery    = operations.AuditQuery
	AuditLine     = operations.AuditLine
	AuditCheck    = operations.AuditCheck
	AuditBreak    = operations.AuditBreak
	Token         = operations.Token
	Check         = operations.Check
	Setting       = operations.Setting
	Model         = operations.Model
	Overview      = operations.Overview
	AgentStat     = operations.AgentStat
)

// The formats of an export.
const (
	Markdown  = operations.Markdown
	JSONLines = operations.JSONLines
)

// Span is a part of a session's journal.
type Span struct {
	After  int64 // only later numbers
	Before int64 // only earlier ones, the newest of them; 0: no limit
	Limit  int
}

// Words are what somebody says.
type Words struct {
	Message     string      `json:"message"`
	Attachments []string    `json:"attachments,omitempty"` // ids that Attach gave
	Mode        chat.Intake `json:"mode,omitempty"`        // how a steer comes in: inject or interrupt
	Key         string      `json:"-"`
}

// Resume continues a session of a file or of this home.
type Resume struct {
	WorkspacePath string `json:"workspacePath"`
	Provider      string `json:"provider,omitempty"`
	Model         string `json:"model,omitempty"`
	Mode          string `json:"mode,omitempty"` // full, last-N, summary
}

// Verdict is an answer to an approval.
type Verdict struct {
	Approved bool     `json:"approved"`
	Note     string   `json:"note,omitempty"`
	Always   []string `json:"always,omitempty"` // rules to keep with a yes
}

// NewToken is what a token is made of.
type NewToken struct {
	Name      string        `json:"name"`
	Scopes    []Scope       `json:"scopes"`
	ExpiresIn time.Duration `json:"-"`
	Roles     []string      `json:"roles,omitempty"`
}
