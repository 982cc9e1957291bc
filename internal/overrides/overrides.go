// Package overrides keeps what somebody chose for one thread in this process: flags and
// slash commands. They change while a run goes on and end with the process.
package overrides

import (
	"sync"

	"chorus/internal/chat"
	"chorus/internal/transcript"
)

// Values are the choices for a thread at one moment.
type Values struct {
	chat.Terms
	CanAsk bool
	Start  int64 // the last event there was when the session was opened; what came before is its own too
	Until  int64 // it begins no run with a later prompt; 0: with any
}

// Own reports whether words are this session's: its own, or those of a terminal that it
// was opened to go on with.
func (v Values) Own(s transcript.Sender) bool {
	return s.Terms.By != "" && s.Terms.By == v.By || s.Principal.Kind == chat.LocalUser && s.Seq <= v.Start
}

// Thread is what was chosen for one thread.
type Thread struct {
	mu     sync.Mutex
	values Values
	always map[string]bool // actions that were allowed for the rest of the session
}

// Snapshot is what holds now.
func (t *Thread) Snapshot() Values {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.values
}

// Set changes the values in one step.
func (t *Thread) Set(change func(*Values)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	change(&t.values)
}

// Allow lets actions pass for the rest of the session.
func (t *Thread) Allow(actions ...string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.always == nil {
		t.always = map[string]bool{}
	}
	for _, action := range actions {
		t.always[action] = true
	}
}

// Allowed reports whether an action was allowed for the rest of the session.
func (t *Thread) Allowed(action string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.always[action]
}

// Threads are the overrides of all threads of a process. The zero value works.
type Threads struct {
	mu   sync.Mutex
	byID map[chat.ThreadID]*Thread
}

// For gives a thread's overrides, made at first use.
func (t *Threads) For(thread chat.ThreadID) *Thread {
	t.mu.Lock()
	defer t.mu.Unlock()
	o := t.byID[thread]
	if o == nil {
		if t.byID == nil {
			t.byID = map[chat.ThreadID]*Thread{}
		}
		o = &Thread{}
		o.values.CanAsk = thread.Transport() != "cli" // elsewhere somebody will come by
		t.byID[thread] = o
	}
	return o
}

// Forget drops what was chosen for a thread.
func (t *Threads) Forget(thread chat.ThreadID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.byID, thread)
}
