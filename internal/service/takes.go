package service

import (
	"chorus/internal/chat"
	"chorus/internal/transcript"
)

// Takes reports whether this process begins a run with a prompt: a session of one
// prompt leaves what came after its own to whoever sent it.
func (s *Service) Takes(thread chat.ThreadID, prompt transcript.Waiting) bool {
	if s.Serving.hasTold(thread) {
		return prompt.Terms.By == ServedBy // what is said at the terminal is the terminal's
	}
	now := s.Overrides.For(thread).Snapshot()
	return now.Until == 0 || prompt.Seq <= now.Until
}
