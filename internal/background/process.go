// Package background knows the processes that agents leave running: what is kept about each, and the hooks that act when
// it ends, prints something or takes long.
//
// It promises that a hook fires for what it says and never more often than its limits allow; that everything it needs to know
// for that is in the process, so that a restart loses and doubles nothing; and that instructions in plain language
// become the same hooks every time. Nothing here starts, reads or ends a process: package watch does.
package background

import (
	"time"

	"chorus/internal/chat"
)

// State is how a process is.
type State string

// The states. The last three are final.
const (
	Starting State = "starting"
	Running  State = "running"
	Exited   State = "exited" // by itself
	Killed   State = "killed" // somebody or its time limit ended it
	Lost     State = "lost"   // it is gone and nobody saw how
)

// Process is a command that was left running.
type Process struct {
	ID      string
	Thread  chat.ThreadID  // in which it was started
	Call    string         // by which call
	Owner   chat.Principal // on whose words, with all for whom those acted: whose rights and money its hooks use
	Command string
	Dir     string
	State   State
	Exit    int // in the shell's convention
	Why     string
	ReadTo  int64 // up to where hooks have seen its output
	Hooks   []Hook
	Timeout time.Duration // 0: none
	Version int64         // counts what was written about it
	Started time.Time
	Ended   time.Time // zero: it runs
}

// Over reports that the process has ended.
func (p Process) Over() bool { return p.State != Starting && p.State != Running }

// Principal is the process as somebody who acts: for its owner, with no more rights than they have.
func (p Process) Principal() chat.Principal {
	owner := p.Owner
	return chat.Principal{Kind: chat.ProcessHook, ID: p.ID, Name: "process", For: &owner}
}

// MaxDepth is how many processes, schedules, agents and the like may stand between a person and what a hook starts: a
// hook that starts what has a hook ends there.
const MaxDepth = 3

// The limits of hooks, beside those that each has.
const (
	MaxHooks        = 10
	MaxFires        = 100 // of one process
	MaxFiresMinute  = 60  // of all processes of a person
	MaxSpawned      = 3   // conversations that hooks of one process have begun and that still work
	maxPattern      = 500
	maxMessage      = 4000
	maxLine         = 2000 // of a line that matched, kept
	defaultInterval = 60   // seconds between two turns of an agent that a hook causes
	notifyInterval  = 180  // seconds between two notices
	defaultDelay    = 2    // seconds that lines after a match have to come
)

// Fired is what became of a hook's firing.
type Fired struct {
	Hook  int
	N     int
	Do    Action
	State string // done or refused
	Why   string
	Seq   int64 // of the words in the conversation
	At    time.Time
}

// What becomes of a firing.
const (
	Done    = "done"
	Refused = "refused"
)
