package workcards

import (
	"errors"
	"time"

	"chorus/internal/platform"
	"chorus/internal/workview"
)

// On a board a task is a post: the card is its first message, its title is the task's, and a tag shows its state. Calls and the worker's messages are
// in the post. It is an outbox row like any other card; the platform handles the difference.

// errNoPostYet means that a post is still being created for a call: try again later.
var errNoPostYet = errors.New("the post of a task is not there yet")

// callWithin is how long a call waits for its post. After that people find the post themselves.
const callWithin = 2 * time.Minute

// isBoard reports whether a channel is a board.
func (c *Cards) isBoard(channel string) bool {
	in, known := c.Platform.Known(channel)
	return known && in.Board
}

// entry is a post on a board. Without a label it has no tag.
func (c *Cards) entry(title string, label workview.Label) *platform.Entry {
	e := &platform.Entry{Title: c.Backend.Redact(title), Tag: label.Name, Over: label.Over}
	if label.Name == "" {
		return e
	}
	for _, l := range workview.Labels() {
		e.Tags = append(e.Tags, platform.Tag{Name: l.Name, Sign: l.Sign})
	}
	return e
}
