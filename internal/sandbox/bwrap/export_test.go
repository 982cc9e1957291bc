//go:build linux

package bwrap

// WithoutLandlock leaves landlock out.
func (e *Executor) WithoutLandlock() {
	m := e.machine()
	m.landlock = 0
	e.machine = func() machine { return m }
}

// Waiting is how many sandboxes wait for a command.
func (e *Executor) Waiting() int {
	e.pool.mu.Lock()
	defer e.pool.mu.Unlock()
	return e.pool.count
}
