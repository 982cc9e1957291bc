package peernotify

import (
	"fmt"
	"strings"

	"chorus/internal/chat"
	"chorus/internal/text"
)

// Topic says what a notification is about: a thread in which something waits for whoever
// runs it (its name), a thread with new events for its watchers ("+" and its name), or a
// single word for anything else, such as "settings".
type Topic string

// Thread returns the topic of a thread in which something waits for whoever runs it.
func Thread(id chat.ThreadID) Topic { return Topic(id) }

// Events returns the topic of a thread with new events. It matters only to watchers of the thread,
// so that these notifications do not make every process look for work in it.
func Events(id chat.ThreadID) Topic { return Topic(grew + string(id)) }

const (
	grew       = "+"
	maxWord    = 64
	wordLetter = "abcdefghijklmnopqrstuvwxyz0123456789-"
)

// ParseTopic checks that s is a topic.
func ParseTopic(s string) (Topic, error) {
	if len(s) > 0 && len(s) <= maxWord && strings.Trim(s, wordLetter) == "" {
		return Topic(s), nil
	}
	if _, err := chat.ParseThreadID(strings.TrimPrefix(s, grew)); err != nil {
		return "", fmt.Errorf("topic %q: neither a word of a–z, 0–9 and hyphens nor a thread: %w", text.Clip(s, 80), err)
	}
	return Topic(s), nil
}

// Thread returns the topic's thread, or "" if it is about something else.
// watched means that it has new events and nothing waits in it.
func (t Topic) Thread() (id chat.ThreadID, watched bool) {
	name, watched := strings.CutPrefix(string(t), grew)
	if !strings.Contains(name, ":") {
		return "", false
	}
	return chat.ThreadID(name), watched
}
