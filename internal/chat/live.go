package chat

// Status is what a thread is doing.
type Status string

// The states of a thread.
const (
	Idle    Status = "idle"
	Running Status = "running"
	Waiting Status = "waiting_for_permission"
	Failed  Status = "failed"
	// Delegated: other threads work on what this one asked of them.
	Delegated Status = "waiting_for_agents"
)

// On reports whether a run is on, also one that waits for somebody.
func (s Status) On() bool { return s == Running || s == Waiting || s == Delegated }

// Live is what is shown but not kept: it may be dropped. One of Delta, Progress.
type Live interface{ live() }

// Delta is a piece of an answer in the making. Offset counts bytes of that
// attempt's text (or thinking, or arguments of one call) so that a reader
// notices a gap; a reader that comes late first gets everything at offset 0.
type Delta struct {
	Run     string
	Step    int
	Attempt int
	What    DeltaKind
	Call    string // for DeltaArgs
	Offset  int
	Text    string
}

// DeltaKind says what a delta is a piece of.
type DeltaKind string

// The kinds of deltas.
const (
	DeltaText     DeltaKind = "text"
	DeltaThinking DeltaKind = "thinking"
	DeltaArgs     DeltaKind = "args"
)

// Progress is a sign of life from a running tool, or, without a call, from the run itself.
type Progress struct {
	Run  string
	Call string
	Tool string
	Text string
}

func (Delta) live()    {}
func (Progress) live() {}

// Inbound is everything that enters: a transport fills it in, the engine routes it.
type Inbound struct {
	Threads    []ThreadID // who hears it; in id order when more than one
	From       Participant
	Principal  Principal
	Blocks     Blocks
	ReplyTo    string
	Intake     Intake
	Prompt     bool
	Terms      Terms
	Platform   string // empty: the engine gives it a ULID of its own
	PlatformID string
	Version    int
	Channel    string // as in Received, like those that follow
	Post       string
	Together   bool
	Fired      bool // nobody waits who could say it again: no queue is too long for it
}
