package runsetup

import (
	"chorus/internal/tool/files"
)

// fileLocks returns the locks shared by all writers on this home: threads that share a workspace
// wait for each other, in this process and in others. The caller holds s.mu.
func (s *Setup) fileLocks() *files.Locks {
	if s.locks == nil {
		s.locks = files.SharedLocks(s.Home.Locks())
	}
	return s.locks
}
