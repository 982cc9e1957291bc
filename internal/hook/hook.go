package hook

import (
	"encoding/json"
	"time"

	"chorus/internal/chat"
)

// Hook gathers context, asks a model and acts when something happened or a time has come.
type Hook struct {
	ID       string
	Name     string
	Project  string // a label for filtering lists
	Owner    chat.Principal
	Agent    string
	Dir      string // where its steps and its model work; "": a new folder for each run
	Enabled  bool
	Approved string // the digest that its owner approved; see Definition.Digest
	Secret   string // of incoming webhooks
	Due      time.Time
	LastAt   time.Time // when its last run began
	// Passed counts the triggers that did not become runs. PassedWhy says why the last one did not.
	Passed    int
	PassedWhy string
	Created   time.Time
	Updated   time.Time
	Definition
}

// Definition says what a hook does. It is stored as JSON.
type Definition struct {
	Trigger  Trigger       `json:"trigger"`
	Steps    []Step        `json:"context_steps,omitempty"`
	Template string        `json:"prompt_template,omitempty"`
	Actions  []Action      `json:"actions,omitempty"`
	Model    string        `json:"model,omitempty"`  // provider/model; "": the agent's
	Budget   int64         `json:"budget,omitempty"` // the maximum cost of a run's model, in billionths of a dollar; 0: no limit of its own
	Cooldown time.Duration `json:"cooldown,omitempty"`
	// Since is when events begin to count: when it was created, enabled, or given its trigger.
	Since time.Time `json:"since,omitzero"`
}

// The types of triggers.
const (
	Periodic = "periodic"
	OnEvent  = "event"
	Webhook  = "webhook"
)

// Trigger says what starts a hook.
type Trigger struct {
	Type     string `json:"type"`
	Interval int    `json:"interval_seconds,omitempty"`
	// Schedule is used instead of an interval, in the words that schedules know. Spec is its parsed form.
	Schedule string `json:"schedule,omitempty"`
	Zone     string `json:"zone,omitempty"`
	Spec     string `json:"spec,omitempty"`
	Event    string `json:"event_type,omitempty"`
	// Session and Agent restrict events to theirs; "" means those of all that the owner may see.
	Session string `json:"session,omitempty"`
	Agent   string `json:"agent,omitempty"`
	// Where maps fields of the event, as dotted paths, to required values; * stands for any text.
	Where map[string]string `json:"where,omitempty"`
}

// The types of steps.
const (
	Shell    = "shell"
	ReadFile = "read_file"
	HTTP     = "http"
	Query    = "db_query"
	GitDiff  = "git_diff"
	Search   = "search"
)

// Step gathers context.
type Step struct {
	Type       string            `json:"type"`
	Command    string            `json:"command,omitempty"`
	Timeout    int               `json:"timeout,omitempty"` // seconds
	Path       string            `json:"path,omitempty"`
	MaxLines   int               `json:"max_lines,omitempty"`
	URL        string            `json:"url,omitempty"`
	Query      string            `json:"query,omitempty"`
	Params     map[string]string `json:"params,omitempty"`
	Workspace  string            `json:"workspace,omitempty"`
	BaseBranch string            `json:"base_branch,omitempty"`
	// Uncommitted includes uncommitted changes and new files in a diff.
	Uncommitted bool `json:"uncommitted,omitempty"`

	SkipIfExitZero bool `json:"skip_llm_if_exit_zero,omitempty"`
	SkipIfEmpty    bool `json:"skip_llm_if_empty,omitempty"`
	SkipIfStatusOK bool `json:"skip_llm_if_status_ok,omitempty"`
}

// The types of actions, besides Shell.
const (
	Say       = "say"
	Operation = "operation"
)

// Action is carried out after the model has answered, or after the steps if no model is asked.
type Action struct {
	Type    string          `json:"type"`
	Session string          `json:"session,omitempty"`
	Text    string          `json:"text,omitempty"`
	Command string          `json:"command,omitempty"`
	Timeout int             `json:"timeout,omitempty"` // seconds
	Name    string          `json:"name,omitempty"`    // name of the operation, as in tools
	Args    json.RawMessage `json:"args,omitempty"`
}

// The states of a run.
const (
	Waiting   = "waiting" // for its turn
	Running   = "running"
	Completed = "completed"
	Failed    = "failed"
	Skipped   = "skipped"
)

// The stages of a run.
const (
	StageSteps   = "steps"
	StageModel   = "model"
	StageActions = "actions"
)

// Run is one run of a hook.
type Run struct {
	ID     string
	Hook   string
	Reason string         // periodic, event:<type>, manual or webhook
	Acting chat.Principal // the hook, acting for its owner and its cause
	State  string
	Why    string // why it was skipped or failed
	Progress
	Created time.Time
	Started time.Time
	Ended   time.Time
}

// Over reports whether a run has ended.
func (r Run) Over() bool { return r.State != Waiting && r.State != Running }

// Progress is how far a run has come. It is stored as JSON.
type Progress struct {
	Event   json.RawMessage `json:"event,omitempty"`
	Stage   string          `json:"stage,omitempty"`
	Begun   bool            `json:"begun,omitempty"` // the next step or action has begun and has no result yet
	Results []Result        `json:"results,omitempty"`
	Thread  chat.ThreadID   `json:"thread,omitempty"`
	Seq     int64           `json:"seq,omitempty"` // sequence number of the prompt
	Prompt  string          `json:"prompt,omitempty"`
	Answer  string          `json:"answer,omitempty"`
	Done    []Result        `json:"done,omitempty"` // results of the actions
	Tokens  int             `json:"tokens,omitempty"`
	Cost    int64           `json:"cost,omitempty"` // in billionths of a dollar
}

// Event is something that may trigger hooks.
type Event struct {
	Key    string // unique, for readers that may read it twice
	Type   string
	At     time.Time
	Thread chat.ThreadID
	// Project is the project it belongs to; "" if none. Whoever may see the project may see the event.
	Project string
	Data    json.RawMessage // an object
}
