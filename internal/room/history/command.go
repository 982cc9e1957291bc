// Package history implements .history: the command that replaces what was said
// before it in a room by a range of other messages, or by nothing.
//
// Every walk ends, whatever people link to: each command is followed once, commands lead to
// other commands only up to a fixed depth, and no more messages come back than the budget allows.
// Nobody can use an agent to read what they could not read themselves. A command with a mistake
// changes nothing and is answered with an explanation. The package reads nothing itself: it says
// what it needs, and its caller supplies it.
package history

import (
	"errors"
	"fmt"
	"strings"

	"chorus/internal/pattern"
	"chorus/internal/suggest"
	"chorus/internal/text"
)

// Link names a message. Without a channel, it is in the channel that contains the link.
type Link struct{ Guild, Channel, Message string }

// Command is a .history command.
type Command struct {
	Targets string // who is meant; "" for everybody
	First   *Link  // where the range begins; nil: as far back as the budget allows
	Last    *Link  // where it ends, including that message; nil: the command clears
}

// Clear reports whether the command only removes messages and brings none.
func (c Command) Clear() bool { return c.Last == nil }

var (
	address = pattern.Lazy(`^<?https?://(?:[a-z]+\.)?discord(?:app)?\.com/channels/(@me|\d{1,25})/(\d{1,25})/(\d{1,25})/?(?:\?[^\s>]*)?>?$`)
	pair    = pattern.Lazy(`^(\d{15,25})-(\d{15,25})$`)
	number  = pattern.Lazy(`^\d{1,25}$`)
)

var errDirect = errors.New("direct messages cannot be brought into another conversation")

// maxShown is how much of somebody's text an error message repeats.
const maxShown = 60

// ParseLink reads the address of a message, the pair of numbers that
// the platform copies for it, or its number alone.
func ParseLink(s string) (Link, error) {
	s = strings.TrimSpace(s)
	if m := address().FindStringSubmatch(s); m != nil {
		if m[1] == "@me" {
			return Link{}, errDirect
		}
		return Link{m[1], m[2], m[3]}, nil
	}
	if m := pair().FindStringSubmatch(s); m != nil {
		return Link{Channel: m[1], Message: m[2]}, nil
	}
	if number().MatchString(s) {
		return Link{Message: s}, nil
	}
	return Link{}, fmt.Errorf("%q is not a message link; use \"Copy Message Link\" on the message", text.Clip(s, maxShown))
}

const word = ".history"

// Parse reads a command. Text that does not begin with .history is not a command and no mistake.
// Text that begins with it but cannot be understood is an error, with a message for its author.
func Parse(text string) (cmd Command, is bool, err error) {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	head, rest, more := strings.Cut(text, "\n")
	targets, ok := strings.CutPrefix(head, word)
	if !ok || targets != "" && targets[0] != ' ' && targets[0] != '\t' {
		return Command{}, false, nil
	}
	cmd.Targets = strings.TrimSpace(targets)
	line, body, _ := strings.Cut(rest, "\n")
	if !more || strings.TrimRight(line, " \t") != "---" {
		return Command{}, true, errors.New("the second line of .history must be ---, and the lines after it first: and last: with links to messages (none to clear)")
	}
	if err := cmd.bounds(body); err != nil {
		return Command{}, true, err
	}
	return cmd, true, nil
}

// bounds reads the lines after the ---.
func (c *Command) bounds(body string) error {
	for line := range strings.SplitSeq(body, "\n") {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		key, value, _ := strings.Cut(line, ":")
		var to **Link
		switch strings.ToLower(strings.TrimSpace(key)) {
		case "first":
			to = &c.First
		case "last":
			to = &c.Last
		default:
			return unknownLine(line, key)
		}
		if *to != nil {
			return fmt.Errorf("%s occurs twice in this .history", strings.TrimSpace(key))
		}
		link, err := ParseLink(value)
		if err != nil {
			return fmt.Errorf("%s of this .history: %w", strings.TrimSpace(key), err)
		}
		*to = &link
	}
	if c.First != nil && c.Last != nil && c.First.Channel != c.Last.Channel {
		return errors.New("first and last of this .history are in different channels")
	}
	return nil
}

func unknownLine(line, key string) error {
	if best := suggest.Best(strings.TrimSpace(key), []string{"first", "last"}); best != "" {
		return fmt.Errorf(".history knows first: and last:, not %q; did you mean %s?", text.Clip(line, maxShown), best)
	}
	return fmt.Errorf(".history knows first: and last:, not %q", text.Clip(line, maxShown))
}
