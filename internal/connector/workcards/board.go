package workcards

import (
	"errors"
	"time"

	"chorus/internal/platform"
	"chorus/internal/workview"
)

// On a board a task is a post: the card is its first message, its title the task's, its state a tag. Calls and what the worker does stand in
// it. It is a row of the outbox like any other card; what is different is the platform's to do.

// errNoPostYet says that somebody is to be called in a post that is being made: it is looked at again.
var errNoPostYet = errors.New("the post of a task is not there yet")

// callWithin is how long a call waits for its post. After that whoever it was for finds the post alone.
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
