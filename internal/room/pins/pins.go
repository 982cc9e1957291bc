// Package pins decides whose pinned .config counts. The configuration reads
// the contents; this package is only about people.
//
// A pin counts only if its author may configure, because the author can edit it after it was
// pinned, and if whoever pinned it may configure too, where that is known. The pins are ordered
// as the configuration layers need them: channels above first, then oldest first.
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
	By      *room.Author // who pinned it; nil if not known
	Above   int          // how many channels above this one it is pinned; 0 for here
}

// Who says who may configure by pins.
type Who struct {
	Roles []string // names of roles; if both Roles and Users are empty, whoever can pin
	Users []string // ids
	Agent room.Agent
}

// May reports whether somebody may configure. The agent itself may, because its tools have
// asked before they pinned. Other programs may only if they are named.
func (w Who) May(a room.Author) bool {
	switch {
	case w.Agent.Wrote(a), a.ID != "" && slices.Contains(w.Users, a.ID):
		return true
	case a.Program():
		return false
	}
	return len(w.Roles) == 0 && len(w.Users) == 0 || a.Has(w.Roles)
}

// Refused is a pin that does not count, with the reason.
type Refused struct {
	Pin Pin
	Why string
}

// Counting separates the pins that are configuration into those that count and
// those that are refused. Other pins are in neither list.
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

// Trouble describes a problem with a pin, for people.
type Trouble struct {
	Message string
	Text    string
}
