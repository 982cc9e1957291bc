//go:build !linux

package process

// KeepPrivate does nothing: other systems do not show a process's environment
// and memory to its user's other processes in this way.
func KeepPrivate() error { return nil }
