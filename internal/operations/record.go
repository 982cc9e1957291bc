package operations

import (
	"cmp"
	"context"
	"time"

	"chorus/internal/operation"
)

// Records implements operations on costs and decisions.
type Records interface {
	Costs(context.Context, operation.Caller, CostQuery) (Costs, error)
	Audit(context.Context, operation.Caller, AuditQuery) (operation.List[AuditLine], error)
	// ExportAudit writes the matching lines while they are read.
	ExportAudit(context.Context, operation.Caller, AuditExport) (operation.File, error)
	VerifyAudit(context.Context, operation.Caller, VerifyRequest) (AuditCheck, error)
	ForgetPerson(context.Context, operation.Caller, ForgetRequest) (Forgotten, error)
}

// ForgetRequest names a person to forget.
type ForgetRequest struct {
	Person string `json:"person" minLen:"3" maxLen:"200" doc:"who: kind:id, such as discord:110000000000000042"`
	DryRun bool   `json:"dryRun,omitempty" doc:"only show how much would be removed"`
}

// Forgotten is what was removed of a person.
type Forgotten struct {
	Person   string `json:"person"`
	Messages int    `json:"messages"` // their messages
	Sessions int    `json:"sessions"` // that contained them
	Contexts int    `json:"contexts"` // saved contexts that hold some of them, and are removed
	DryRun   bool   `json:"dryRun,omitempty"`
}

// CostQuery selects the costs to sum up.
type CostQuery struct {
	By    string `json:"by,omitempty" enum:"model,agent,person,channel,thread,session,day,month,run" default:"model" doc:"what to group by"`
	Since string `json:"since,omitempty" maxLen:"40" default:"month" doc:"the start: 2026-11-01, 2026-11, 7d, 12h, today, month or all"`
	// Under is the prefix of the ids of the threads to count; it cannot be sent over HTTP.
	Under string `json:"-"`
}

// Costs are sums of costs.
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
	Reserved         float64 `json:"reserved,omitempty"` // of calls that have not ended
	Calls            int     `json:"calls"`
	Unpriced         int     `json:"unpriced,omitempty"`
	InputTokens      int     `json:"inputTokens"`
	OutputTokens     int     `json:"outputTokens"`
	CacheReadTokens  int     `json:"cacheReadTokens,omitempty"`
	CacheWriteTokens int     `json:"cacheWriteTokens,omitempty"`
}

// Budget is a limit and its current use.
type Budget struct {
	Name     string  `json:"name"`
	Per      string  `json:"per"`
	Soft     float64 `json:"soft,omitempty"`
	Hard     float64 `json:"hard,omitempty"`
	Spent    float64 `json:"spent"`              // including reserved amounts
	Reserved float64 `json:"reserved,omitempty"` // of calls that have not ended
}

// AuditQuery filters the audit log; zero fields do not.
type AuditQuery struct {
	Session  string    `json:"session,omitempty" maxLen:"1024" noun:"session" cli:"thread" doc:"only this session's"`
	Agent    string    `json:"agent,omitempty" maxLen:"64" noun:"agent" doc:"only this agent's"`
	Who      string    `json:"who,omitempty" maxLen:"200" cli:"principal" doc:"only what this person asked for, such as local:ada"`
	Decision string    `json:"decision,omitempty" maxLen:"64" doc:"allow, ask_approved, ask_denied, deny or changed"`
	Run      string    `json:"run,omitempty" maxLen:"64" doc:"only this run's"`
	Since    time.Time `json:"since,omitzero" doc:"not older than this moment"`
	Until    time.Time `json:"until,omitzero" doc:"older than this moment"`
	Before   int64     `json:"before,omitempty" min:"0" max:"9007199254740991" doc:"only lines with a smaller number"`
	Cursor   string    `json:"cursor,omitempty" maxLen:"1024" cli:"-" slash:"-" doc:"next of the previous page"`
	Limit    int       `json:"limit,omitempty" min:"1" max:"500" default:"50" doc:"maximum number of results"`
}

// DecisionText describes a decision of the audit log for people. Programs and addresses use the word itself.
func DecisionText(decision string) string {
	return cmp.Or(map[string]string{"allow": "allowed", "deny": "refused", "ask_approved": "asked, allowed", "ask_denied": "asked, refused"}[decision], decision)
}

// AuditExport says which lines of the audit log to write, and how.
type AuditExport struct {
	Session  string    `json:"session,omitempty" maxLen:"1024" noun:"session" doc:"only this session's"`
	Agent    string    `json:"agent,omitempty" maxLen:"64" noun:"agent" doc:"only this agent's"`
	Who      string    `json:"who,omitempty" maxLen:"200" doc:"only what this person asked for, such as local:ada"`
	Decision string    `json:"decision,omitempty" maxLen:"64" doc:"allow, ask_approved, ask_denied, deny or changed"`
	Run      string    `json:"run,omitempty" maxLen:"64" doc:"only this run's"`
	Since    time.Time `json:"since,omitzero" doc:"not older than this moment"`
	Until    time.Time `json:"until,omitzero" doc:"older than this moment"`
	Format   Format    `json:"format,omitempty" enum:"csv,jsonl" default:"csv" doc:"left out: csv"`
}

// AuditLine is one entry of the audit log.
type AuditLine struct {
	Seq      int64     `json:"seq"`
	At       time.Time `json:"at"`
	Who      string    `json:"who"`
	WhoName  string    `json:"whoName,omitempty"`
	Agent    string    `json:"agent,omitempty"`
	Session  string    `json:"session,omitempty"`
	Thread   string    `json:"thread,omitempty"`
	Run      string    `json:"run,omitempty"`
	Call     string    `json:"call,omitempty"`
	Action   string    `json:"action"`
	Decision string    `json:"decision"`
	Rule     string    `json:"rule,omitempty"`
	Detail   string    `json:"detail,omitempty"`
	Words    string    `json:"words,omitempty"` // the detail in words: with names instead of keys
	Hash     string    `json:"hash,omitempty"`  // "": from before the chain
}

// VerifyRequest says from where to check the audit log.
type VerifyRequest struct {
	Since string `json:"since,omitempty" maxLen:"128" doc:"start at the seal with this hash: a head that you kept"`
}

// AuditCheck is the result of checking the audit log.
type AuditCheck struct {
	OK       bool        `json:"ok"`
	Lines    int64       `json:"lines"`
	Chains   int64       `json:"chains"`                // of threads, and one of lines without a thread
	Before   int64       `json:"beforeChain,omitempty"` // lines that are covered together
	Head     string      `json:"head"`                  // the hash of the newest seal
	HeadSeal int64       `json:"headSeal,omitempty"`
	Problem  string      `json:"problem,omitempty"`
	Break    *AuditBreak `json:"break,omitempty"` // the first line that was changed
}

// AuditBreak is where the audit log was changed.
type AuditBreak struct {
	Thread string `json:"thread,omitempty"` // the line's thread; "": none
	Line   int64  `json:"line"`             // its number in that thread
	Seal   int64  `json:"seal,omitempty"`   // the seal that shows it
	What   string `json:"what"`
	Text   string `json:"text"`
}

// The operations on records.
var (
	GetCosts = operation.New(operation.Info{Name: "cost.sum", Help: "Sum up costs", Scope: operation.Read,
		HTTP: []operation.HTTP{{Route: "GET /api/costs", ID: "costs", Tag: "records"}},
		CLI: []operation.CLI{{Words: "cost", Help: "Show costs, and how much of the budgets is left",
			Doc: "Sums up the costs of model calls. A call whose end is unknown counts with the full amount\n" +
				"that was reserved for it. Days and months are in UTC.",
			Example: "  chorus cost                            this month, by model\n" +
				"  chorus cost --by person --since 7d\n" +
				"  chorus cost --by day --since 2026-11"}},
		Tool: "cost_sum"}, Records.Costs)

	ListAudit = operation.New(operation.Info{Name: "audit.list", Help: "List who was allowed what and why", Scope: operation.Read,
		Errors: []operation.Kind{operation.NotFound},
		HTTP:   []operation.HTTP{{Route: "GET /api/audit", ID: "audit", Tag: "records"}},
		CLI: []operation.CLI{{Words: "audit list", Help: "List decisions and changes, the newest first",
			Example: "  chorus audit list --agent frontend --since 24h\n  chorus audit list --decision deny --since 2026-01-01 --until 2026-02-01 --json"}},
		Columns: "LINE=seq | AT=at:minute | BY=whoName:– | AGENT=agent:– | DECISION=decision | ACTION=action:60 | RULE=rule:40 | DETAIL=detail:60",
		Empty:   "no matching audit entries"}, Records.Audit)

	ExportAudit = operation.NewDownload(operation.Info{Name: "audit.export", Help: "Export lines of the audit log", Scope: operation.Read,
		Doc:    "As CSV or JSON lines, newest first, at most 100,000 lines. If there are more, the last line says so.",
		Errors: []operation.Kind{operation.NotFound},
		HTTP:   []operation.HTTP{{Route: "GET /api/audit/export", ID: "exportAudit", Tag: "records", Media: CSVMedia + "," + JSONLinesMedia}},
		CLI: []operation.CLI{{Words: "audit export", Help: "Write decisions and changes as CSV or JSON lines, the newest first",
			Example: "  chorus audit export --since 7d --output audit.csv\n  chorus audit export --decision deny --format jsonl"}}}, Records.ExportAudit)

	VerifyAudit = operation.New(operation.Info{Name: "audit.verify", Help: "Check that the audit log is intact", Scope: operation.Admin,
		HTTP: []operation.HTTP{{Route: "GET /api/audit/verify", ID: "verifyAudit", Tag: "records"}},
		CLI: []operation.CLI{{Words: "audit verify", Help: "Check that the audit log is intact",
			Doc: "Checks the chain of hashes of every thread and reports the first line that was changed,\n" +
				"removed or inserted. Seals record the ends of all chains, so it also finds a chain that was\n" +
				"cut short and a thread that is missing. Exits with 1 if it finds something. If all is\n" +
				"intact, it writes a seal.\n\n" +
				"Somebody who can write the file can rewrite all of it. Keep the head that is printed\n" +
				"where they cannot write, and pass it to --since the next time: the seal it names must\n" +
				"still exist, and everything after it is checked.",
			Example: "  chorus audit verify\n  chorus audit verify --since 5f0c…"}}}, Records.VerifyAudit)
)

// ForgetPerson forgets what somebody said.
var ForgetPerson = operation.New(operation.Info{Name: "person.forget", Help: "Forget what somebody said", Scope: operation.Admin, Effect: operation.Destroys,
	HTTP: []operation.HTTP{{Route: "POST /api/forget", ID: "forgetPerson", Tag: "records", Body: "ForgetRequest"}},
	CLI: []operation.CLI{{Words: "forget", Args: "PERSON", Help: "Forget what a person said, at their request",
		Doc: "Removes the words of a person from the journal, search, log.jsonl, context.jsonl, titles,\n" +
			"blobs and saved contexts. That something was said, when and at what cost is kept, and the\n" +
			"audit log gets a line. Requests that contained the words can no longer be replayed.\n" +
			"A saved context goes as a whole if it has a message of theirs, or quotes one: any under\n" +
			"their name, and one of twenty letters or more anywhere.\n\n" +
			"What agents made from them (answers, summaries, files, docs, notes) is not searched, nor\n" +
			"are backups, what terminals store (session files, typed lines) and what providers store.",
		Example: "  chorus forget discord:110000000000000042 --dry-run --yes\n  chorus forget discord:110000000000000042 --yes"}},
	Done: "{person} is forgotten"}, Records.ForgetPerson)

func records() []operation.Any {
	return []operation.Any{GetCosts, ListAudit, ExportAudit, VerifyAudit, ForgetPerson}
}
