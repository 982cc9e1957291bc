package command

import (
	"encoding/json"
	"time"

	"chorus/internal/chat"
)

// ApprovalQuery narrows a list of approvals.
type ApprovalQuery struct {
	Session string
	State   string // pending, approved, denied, expired, cancelled; "": pending; "all"
	Cursor  string
	Limit   int
}

// Approval is a question with everything a person needs to answer it.
type Approval struct {
	ID         string          `json:"id"`
	Session    string          `json:"session"`
	Thread     string          `json:"thread,omitempty"` // the session's whole name
	Agent      string          `json:"agent"`
	Run        string          `json:"run"`
	CallID     string          `json:"callId"`
	Tool       string          `json:"tool"`
	ArgsJSON   string          `json:"argsJson"`
	Label      string          `json:"label,omitempty"`
	Actions    []string        `json:"actions"`
	Dir        string          `json:"dir,omitempty"`
	Preview    string          `json:"preview,omitempty"`
	Risk       string          `json:"risk,omitempty"`
	Rule       string          `json:"rule,omitempty"`
	Reason     string          `json:"reason,omitempty"`
	Again      string          `json:"again,omitempty"`
	AskedBy    string          `json:"askedBy"`
	Payer      string          `json:"payer"`
	AskedAt    time.Time       `json:"askedAt"`
	Deadline   time.Time       `json:"deadline,omitzero"`
	Who        string          `json:"who"` // may answer
	MayAnswer  bool            `json:"mayAnswer"`
	Votes      []Vote          `json:"votes,omitempty"`
	State      string          `json:"state"`
	AnsweredBy string          `json:"answeredBy,omitempty"`
	AnsweredAt time.Time       `json:"answeredAt,omitzero"`
	Note       string          `json:"note,omitempty"`
	Bound      json.RawMessage `json:"bound,omitempty"`
}

// Vote is what one person said to an approval.
type Vote struct {
	By   string    `json:"by"`
	OK   bool      `json:"ok"`
	Note string    `json:"note,omitempty"`
	At   time.Time `json:"at"`
}

// Verdict is an answer to an approval.
type Verdict struct {
	Approved bool   `json:"approved"`
	Note     string `json:"note,omitempty"`
}

// Agent is who answers.
type Agent struct {
	Name        string    `json:"name"`
	Model       string    `json:"model,omitempty"`
	Permissions string    `json:"permissions,omitempty"`
	Sandbox     string    `json:"sandbox,omitempty"`
	Workspace   string    `json:"workspace,omitempty"`
	CreatedAt   time.Time `json:"createdAt,omitzero"`
	Description string    `json:"description,omitempty"`
}

// AgentDetail is an agent with all that shapes its answers.
type AgentDetail struct {
	Agent
	SystemPrompt string    `json:"systemPrompt,omitempty"`
	Tools        []Tool    `json:"tools"`
	Docs         []Doc     `json:"docs"`
	Memory       string    `json:"memory,omitempty"`
	Sessions     []Session `json:"sessions"`
	Settings     []Setting `json:"settings"`
}

// Tool is what an agent can do.
type Tool struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	ReadOnly    bool   `json:"readOnly"`
	Verdict     string `json:"verdict,omitempty"` // what its profile says in general: allow, ask, deny, depends
}

// Doc is a file that the agent is given to read.
type Doc struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// Entry is a file, or a directory with what is in it.
type Entry struct {
	Path    string    `json:"path"`
	Dir     bool      `json:"dir"`
	Size    int64     `json:"size"`
	MovedAt time.Time `json:"movedAt"`
	Text    string    `json:"text,omitempty"` // of a file; cut where Cut is true
	Binary  bool      `json:"binary,omitempty"`
	Cut     bool      `json:"cut,omitempty"`
	Entries []Entry   `json:"entries,omitempty"`
}

// NewAgent is what an agent is made of.
type NewAgent struct {
	Name         string `json:"name"`
	Model        string `json:"model,omitempty"`
	Permissions  string `json:"permissions,omitempty"`
	SystemPrompt string `json:"systemPrompt,omitempty"`
	Key          string `json:"-"`
}

// CostQuery is over which time and by what spending is summed.
type CostQuery struct {
	By    string // agent, model, person, channel, day, month, session, run
	Since string // 24h, 7d, 2026-01-31, month
}

// Costs are sums of spending.
type Costs struct {
	By      string    `json:"by"`
	Since   time.Time `json:"since"`
	Total   float64   `json:"total"`
	Rows    []Cost    `json:"rows"`
	Budgets []Budget  `json:"budgets"`
}

// Cost is one sum. Unpriced calls have no known price; their tokens count.
type Cost struct {
	Key              string  `json:"key"`
	Dollars          float64 `json:"dollars"`
	Calls            int     `json:"calls"`
	Unpriced         int     `json:"unpriced,omitempty"`
	InputTokens      int     `json:"inputTokens"`
	OutputTokens     int     `json:"outputTokens"`
	CacheReadTokens  int     `json:"cacheReadTokens,omitempty"`
	CacheWriteTokens int     `json:"cacheWriteTokens,omitempty"`
}

// Budget is a ceiling and how near it is.
type Budget struct {
	Name  string  `json:"name"`
	Per   string  `json:"per"`
	Soft  float64 `json:"soft,omitempty"`
	Hard  float64 `json:"hard,omitempty"`
	Spent float64 `json:"spent"`
}

// AuditQuery narrows the audit log; zero fields do not.
type AuditQuery struct {
	Session  string
	Agent    string
	Who      string
	Decision string
	Run      string
	Since    time.Time // not older
	Until    time.Time // older than this
	Before   int64     // only lines with a smaller number
	Cursor   string
	Limit    int
}

// AuditLine is one decision.
type AuditLine struct {
	Seq      int64     `json:"seq"`
	At       time.Time `json:"at"`
	Who      string    `json:"who"`
	Agent    string    `json:"agent,omitempty"`
	Session  string    `json:"session,omitempty"`
	Thread   string    `json:"thread,omitempty"`
	Run      string    `json:"run,omitempty"`
	Call     string    `json:"call,omitempty"`
	Action   string    `json:"action"`
	Decision string    `json:"decision"`
	Rule     string    `json:"rule,omitempty"`
	Detail   string    `json:"detail,omitempty"`
	Hash     string    `json:"hash,omitempty"` // "": from before the chain
}

// AuditCheck is what a look at the chain found.
type AuditCheck struct {
	OK       bool        `json:"ok"`
	Lines    int64       `json:"lines"`
	Before   int64       `json:"beforeChain,omitempty"` // lines that are covered together
	Head     string      `json:"head"`
	HeadLine int64       `json:"headLine,omitempty"` // the last good one
	Problem  string      `json:"problem,omitempty"`
	Break    *AuditBreak `json:"break,omitempty"` // the first line that is not as written
}

// AuditBreak is where the audit log is not what was written.
type AuditBreak struct {
	Line int64  `json:"line"`
	What string `json:"what"`
	Text string `json:"text"`
}

// NewToken is what a token is made of.
type NewToken struct {
	Name      string        `json:"name"`
	Scopes    []Scope       `json:"scopes"`
	ExpiresIn time.Duration `json:"-"`
	Roles     []string      `json:"roles,omitempty"`
}

// Token opens the API. Text is there once, when it is made.
type Token struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	Scopes    []Scope   `json:"scopes"`
	Roles     []string  `json:"roles,omitempty"`
	CreatedAt time.Time `json:"createdAt"`
	UsedAt    time.Time `json:"usedAt,omitzero"`
	ExpiresAt time.Time `json:"expiresAt,omitzero"`
	RevokedAt time.Time `json:"revokedAt,omitzero"`
	Text      string    `json:"token,omitempty"`
}

// Holder is the principal of whoever shows a token.
func (t Token) Holder() chat.Principal {
	return chat.Principal{Kind: chat.TokenHolder, ID: t.ID, Name: t.Name, Roles: t.Roles}
}
