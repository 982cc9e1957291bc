package runsetup

import (
	"path/filepath"

	"chorus/internal/chat"
)

// maxToolboxes is how many threads keep their tools in memory. An idle
// session beyond that costs nothing but its rows.
const maxToolboxes = 64

// CloseIdle frees idle tools after a rush, when no further thread comes that would make room.
func (s *Setup) CloseIdle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closeIdle()
}

// closeIdle frees the tools of idle threads if there are many. The caller holds s.mu.
func (s *Setup) closeIdle() {
	if len(s.toolboxes) < maxToolboxes || s.Running() == nil {
		return
	}
	for thread, b := range s.toolboxes {
		if thread.Transport() == "cli" || s.Running().Awake(thread) {
			continue
		}
		if err := b.Close(); err != nil {
			s.Log.Warn("could not close tools", "component", "app", "event", "tools_not_put_away", "thread", thread, "error", err)
		}
		delete(s.toolboxes, thread)
		s.Overrides.Forget(thread)
	}
}

// Attachments returns the folder with a session's files, which its tools see as @attachments.
func (s *Setup) Attachments(thread chat.ThreadID) string {
	return filepath.Join(s.Home.ThreadDir(thread), "attachments")
}
