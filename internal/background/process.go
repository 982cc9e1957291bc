// Package background describes the processes that agents leave running: what is stored about
// each, and the hooks that act when it ends, prints something or takes long.
//
// A hook fires for what it says and never more often than its limits allow. Everything
// needed for that is stored in the process, so a restart neither loses nor repeats a firing.
// The same instructions in plain language always give the same hooks. This package does not
// start, read or end processes; package watch does.
package background

import (
	"time"

	"chorus/internal/chat"
)

// State is the state of a process.
type State string

// The states. The last three are final.
const (
	Starting State = "starting"
	Running  State = "running"
	Exited   State = "exited" // by itself
	Killed   State = "killed" // somebody or its time limit ended it
	Lost     State = "lost"   // it is gone and nobody knows how it ended
)

// Process is a command that was left running.
type Process struct {
	ID      string
	Thread  chat.ThreadID  // the thread that started it
	Call    string         // the call that started it
	Owner   chat.Principal // on whose words, including those for whom they acted: its hooks use their rights and money
	Command string
	Dir     string
	State   State
	Exit    int // exit code in the shell's convention
	Why     string
	ReadTo  int64 // position up to which hooks have seen its output
	Hooks   []Hook
	Timeout time.Duration // 0 if there is none
	Version int64         // counts its writes to the store
	Started time.Time
	Ended   time.Time // zero while it runs
}

// Over reports whether the process has ended.
func (p Process) Over() bool { return p.State != Starting && p.State != Running }

// Principal returns the process as a principal: it acts for its owner, with no more rights than they have.
func (p Process) Principal() chat.Principal {
	owner := p.Owner
	return chat.Principal{Kind: chat.ProcessHook, ID: p.ID, Name: "process", For: &owner}
}

// MaxDepth is how many processes, schedules, agents and so on may be between a person and what a
// hook starts. It ends chains of hooks that start something with hooks.
const MaxDepth = 3

// The limits of hooks, in addition to their own.
const (
	MaxHooks        = 10
	MaxFires        = 100 // of one process
	MaxFiresMinute  = 60  // of all processes of a person
	MaxSpawned      = 3   // conversations that hooks of one process have started and that are still working
	maxPattern      = 500
	maxMessage      = 4000
	maxLine         = 2000 // length of a stored matching line
	defaultInterval = 60   // seconds between two agent turns caused by a hook
	notifyInterval  = 180  // seconds between two notices
	defaultDelay    = 2    // seconds to wait for lines after a match
)

// Fired records the result of one firing.
type Fired struct {
	Hook  int
	N     int
	Do    Action
	State string // done or refused
	Why   string
	Seq   int64 // sequence number of the words in the conversation
	At    time.Time
}

// The results of a firing.
const (
	Done    = "done"
	Refused = "refused"
)
