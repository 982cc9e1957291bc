// Package pins says whose pinned .config counts. What stands in one is for the
// configuration to read; here it is only about people.
//
// It promises that words count only if whoever wrote them may configure, because their
// author can change them after they were pinned, and if whoever pinned them may too,
// where that is known; and that the order is the one the layers want: the channels
// above first, then the oldest first.
package pins

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"chorus/internal/room"
)

// Pin is a pinned message.
type Pin struct {
	Message room.Message
	By      *room.Author // who pinned it; nil: not known
	Above   int          // how many channels above this one it is pinned; 0: here
}

// Who may configure by pins.
type Who struct {
	Roles []string // names of roles; none here and no users: whoever can pin
	Users []string // ids
	Agent room.Agent
}

// May reports whether somebody may. The agent itself may: its own tools have asked
// before they pinned. Other programs may only by name.
func (w Who) May(a room.Author) bool {
	switch {
	case w.Agent.Wrote(a), a.ID != "" && slices.Contains(w.Users, a.ID):
		return true
	case a.Program():
		return false
	}
	return len(w.Roles) == 0 && len(w.Users) == 0 || a.Has(w.Roles)
}

// Refused is a pin that does not count, and why.
type Refused struct {
	Pin Pin
	Why string
}

// Counting sorts out the pins that are configuration and count. Pins that are none are
// in neither list.
func Counting(all []Pin, who Who) (count []Pin, refused []Refused) {
	for _, p := range all {
		if !strings.HasPrefix(p.Message.Text, ".config") || !room.IsDotCommand(p.Message.Text) {
			continue
		}
		switch {
		case !who.May(p.Message.Author):
			refused = append(refused, Refused{p, fmt.Sprintf("%s, who wrote it, may not configure here%s", name(p.Message.Author), who.needed())})
		case p.By != nil && !who.May(*p.By):
			refused = append(refused, Refused{p, fmt.Sprintf("%s, who pinned it, may not configure here%s", name(*p.By), who.needed())})
		default:
			count = append(count, p)
		}
	}
	slices.SortStableFunc(count, func(a, b Pin) int {
		switch {
		case a.Above != b.Above:
			return b.Above - a.Above
		case room.Older(a.Message.ID, b.Message.ID):
			return -1
		case room.Older(b.Message.ID, a.Message.ID):
			return 1
		}
		return 0
	})
	return count, refused
}

func (w Who) needed() string {
	if len(w.Roles) == 0 {
		return ""
	}
	return "; it needs the role " + strings.Join(w.Roles, " or ")
}

func name(a room.Author) string {
	return cmp.Or(a.Name, "somebody")
}

// Trouble is what is wrong with a pin, in a sentence for people.
type Trouble struct {
	Message string
	Text    string
}
