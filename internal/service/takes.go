package service

import (
	"chorus/internal/chat"
	"chorus/internal/transcript"
)

// Takes reports whether this process may start a run with a prompt: a session of one prompt leaves later messages to whoever sent them.
func (s *Service) Takes(thread chat.ThreadID, prompt transcript.Waiting) bool {
	if s.Serving.hasTold(thread) {
		return prompt.Terms.By == ServedBy // messages typed at the terminal belong to the terminal
	}
	now := s.Overrides.For(thread).Snapshot()
	return now.Until == 0 || prompt.Seq <= now.Until
}
