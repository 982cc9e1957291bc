// Package overrides holds what somebody chose for one thread in this process, with flags and slash
// commands. The choices may change during a run and end with the process.
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
	Start  int64 // the last event when the session was opened; earlier words count as its own too
	Until  int64 // it starts no run with a later prompt; 0: no limit
}

// Own reports whether words belong to this session: its own, or those
// of the terminal session that it continues.
func (v Values) Own(s transcript.Sender) bool {
	return s.Terms.By != "" && s.Terms.By == v.By || s.Principal.Kind == chat.LocalUser && s.Seq <= v.Start
}

// Thread holds the choices for one thread.
type Thread struct {
	mu     sync.Mutex
	values Values
	always map[string]bool // actions allowed for the rest of the session
}

// Snapshot returns the current values.
func (t *Thread) Snapshot() Values {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.values
}

// Set changes the values atomically.
func (t *Thread) Set(change func(*Values)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	change(&t.values)
}

// Allow allows actions for the rest of the session.
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

// Threads are the overrides of all threads of a process. The zero value is ready to use.
type Threads struct {
	mu   sync.Mutex
	byID map[chat.ThreadID]*Thread
}

// For returns a thread's overrides, creating them at first use.
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
