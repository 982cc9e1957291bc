package runsetup

import (
	"chorus/internal/tool/files"
)

// fileLocks are those of every writer on this home: threads that share a workspace wait
// for each other, in this process and in others. The caller holds mu.
func (a *Setup) fileLocks() *files.Locks {
	if a.locks == nil {
		a.locks = files.SharedLocks(a.Home.Locks())
	}
	return a.locks
}
