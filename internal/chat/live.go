package chat

// Status is what a thread is doing.
type Status string

// The states of a thread.
const (
	Idle    Status = "idle"
	Running Status = "running"
	Waiting Status = "waiting_for_permission"
	Failed  Status = "failed"
	// Delegated means that other threads work on what this one asked of them.
	Delegated Status = "waiting_for_agents"
)

// On reports whether a run is active, including one that waits for somebody.
func (s Status) On() bool { return s == Running || s == Waiting || s == Delegated }

// Live is shown but not stored, and may be dropped. It is a Delta or a Progress.
type Live interface{ live() }

// Delta is a piece of an answer that is being written. Offset counts bytes of that
// attempt's text (or thinking, or arguments of one call), so that a reader notices a gap.
// A reader that joins late first gets everything, at offset 0.
type Delta struct {
	Run     string
	Step    int
	Attempt int
	What    DeltaKind
	Call    string // for DeltaArgs
	Offset  int
	Text    string
}

// DeltaKind says what a delta is part of.
type DeltaKind string

// The kinds of deltas.
const (
	DeltaText     DeltaKind = "text"
	DeltaThinking DeltaKind = "thinking"
	DeltaArgs     DeltaKind = "args"
)

// Progress is a sign of life from a running tool or, if Call is empty, from the run itself.
type Progress struct {
	Run  string
	Call string
	Tool string
	Text string
}

func (Delta) live()    {}
func (Progress) live() {}

// Inbound is everything that enters Chorus. A transport fills it in and the engine routes it.
type Inbound struct {
	Threads    []ThreadID // who hears it; in id order if more than one
	From       Participant
	Principal  Principal
	Blocks     Blocks
	ReplyTo    string
	Intake     Intake
	Prompt     bool
	Terms      Terms
	Platform   string // if empty, the engine assigns a ULID of its own
	PlatformID string
	Version    int
	Channel    string // this and the next two as in Received
	Post       string
	Together   bool
	Fired      bool // nobody is there to send it again, so it is accepted however long the queue is
}
