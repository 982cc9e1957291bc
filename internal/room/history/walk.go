package history

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"chorus/internal/room"
)

// Rules bound a walk; zero numbers mean the defaults.
type Rules struct {
	Roles  []string // names of roles that may use .history; none: everybody
	Budget int      // messages that come back at most
	Depth  int      // orders that may lead from one to the next
	Page   int      // messages that are asked for at once
}

// The defaults.
const (
	DefaultBudget = 400
	DefaultDepth  = 10
	DefaultPage   = 100 // what Discord gives at most
)

func (r Rules) or() Rules {
	if r.Budget <= 0 {
		r.Budget = DefaultBudget
	}
	if r.Depth <= 0 {
		r.Depth = DefaultDepth
	}
	if r.Page <= 0 || r.Page > DefaultPage {
		r.Page = DefaultPage
	}
	return r
}

// May reports whether somebody may use .history. Programs may not: what an agent wrote
// could have been put into its mouth.
func (r Rules) May(a room.Author) bool {
	if a.Program() {
		return false
	}
	return len(r.Roles) == 0 || a.Has(r.Roles)
}

// Need is what the walk wants to read next.
type Need struct {
	Guild, Channel string
	Before         string        // messages older than this; "" the newest
	Limit          int           // at most so many, the newest of them
	Askers         []room.Author // all of them must be able to read there; none: it is the room itself
}

// Page is what was read.
type Page struct {
	Messages []room.Message // in any order
	Denied   bool           // one of the askers may not read there
	Err      error          // it could not be read; the text is for people
}

// Note is something to tell people about an order.
type Note struct {
	Channel, Message string // the order
	Text             string
}

// Result is what the room has heard, by order of the orders.
type Result struct {
	Messages []room.Message // as they are to be told: the oldest first
	Cleared  bool
	Origin   string // the channel of the first order that was followed; "" none was
	Undone   bool   // the first order could not be followed after all: it is as if it were not there
	Notes    []Note
}

// Walk is one walk through the past of a room.
type Walk struct {
	agent   room.Agent
	rules   Rules
	at      frame
	back    *frame // where to go on if the range cannot be read
	behind  Note   // the order that led to the range
	out     []room.Message
	seen    map[string]bool
	cleared bool
	origin  string
	undone  bool
	notes   []Note
	done    bool
}

// frame is a stretch of one channel, read from its newest end.
type frame struct {
	guild, channel string
	before         string
	first          string
	parent         string // to go on with at the channel's beginning
	askers         []room.Author
	depth          int
}

// Start begins a walk for an agent in a channel, with the message before ("" for the
// newest). A platform thread goes on with its parent, from the message it was opened on.
func Start(agent room.Agent, in room.Channel, before string, rules Rules) *Walk {
	return &Walk{
		agent: agent, rules: rules.or(), seen: map[string]bool{},
		at: frame{guild: in.Guild, channel: in.ID, before: before, parent: in.Parent},
	}
}

// Next says what to read, or that the walk is over.
func (w *Walk) Next() (Need, bool) {
	if w.done || len(w.out) >= w.rules.Budget {
		return Need{}, false
	}
	return Need{w.at.guild, w.at.channel, w.at.before, w.rules.Page, w.at.askers}, true
}

// Give hands over what was read.
func (w *Walk) Give(p Page) {
	if p.Denied || p.Err != nil {
		w.turnBack(p)
		return
	}
	w.back = nil
	older := slices.Clone(p.Messages)
	slices.SortFunc(older, func(a, b room.Message) int {
		switch {
		case room.Older(b.ID, a.ID):
			return -1
		case room.Older(a.ID, b.ID):
			return 1
		}
		return 0
	})
	progress := false
	for _, m := range older {
		if w.at.before != "" && !room.Older(m.ID, w.at.before) {
			continue
		}
		progress = true
		w.at.before = m.ID
		if goOn := w.message(m); !goOn {
			return
		}
	}
	if !progress || len(older) < w.rules.Page {
		w.beginning()
	}
}

// beginning: the channel has no older messages.
func (w *Walk) beginning() {
	if w.at.parent == "" {
		w.done = true
		return
	}
	// A platform thread has the id of the message it was opened on.
	w.at = frame{guild: w.at.guild, channel: w.at.parent, before: after(w.at.channel), askers: w.at.askers, depth: w.at.depth}
}

// turnBack goes on as if the order that led here were not there.
func (w *Walk) turnBack(p Page) {
	if w.back == nil {
		if p.Err != nil {
			w.notes = append(w.notes, Note{w.at.channel, "", fmt.Sprintf("older messages could not be read: %v", p.Err)})
		}
		w.done = true
		return
	}
	note := w.behind
	note.Text = fmt.Sprintf("the range of this .history could not be read: %v", p.Err)
	if p.Denied {
		note.Text = "this .history is left out: it names a channel that not everybody who asked for it may read"
	}
	w.notes = append(w.notes, note)
	w.undone = w.undone || w.back.depth == 0
	w.at, w.back = *w.back, nil
}

// message takes one in; false: the page is of no more use.
func (w *Walk) message(m room.Message) (goOn bool) {
	if w.at.first != "" && room.Older(m.ID, w.at.first) {
		w.done = true
		return false
	}
	if cmd, is, err := Parse(m.Text); is {
		applies, hide := w.judge(m, cmd, err)
		if applies {
			return w.follow(m, cmd)
		}
		if hide {
			return true
		}
	}
	key := w.at.channel + "/" + m.ID
	if !w.seen[key] {
		w.seen[key] = true
		w.out = append(w.out, m)
	}
	if m.ID == w.at.first || len(w.out) >= w.rules.Budget {
		w.done = true
	}
	return !w.done
}

// judge says whether an order is followed, and otherwise whether it is hidden. One for
// somebody else is a message like any other.
func (w *Walk) judge(m room.Message, cmd Command, err error) (applies, hide bool) {
	note := func(format string, args ...any) {
		w.notes = append(w.notes, Note{w.at.channel, m.ID, fmt.Sprintf(format, args...)})
	}
	switch {
	case err != nil:
		note("%v", err)
		return false, true
	case !w.agent.Addressed(cmd.Targets):
		return false, false
	case m.Author.Program():
		return false, true
	case !w.rules.May(m.Author):
		note("%s may not use .history here; it needs the role %s", m.Author.Name, strings.Join(w.rules.Roles, " or "))
		return false, true
	}
	return true, false
}

// follow does what an order says. It always replaces everything older.
func (w *Walk) follow(m room.Message, cmd Command) (goOn bool) {
	key, note := w.at.channel+"/"+m.ID, Note{Channel: w.at.channel, Message: m.ID}
	stop := func(text string) bool {
		if note.Text = text; text != "" {
			w.notes = append(w.notes, note)
		}
		w.done = true
		return false
	}
	w.origin = cmp.Or(w.origin, w.at.channel)
	switch {
	case cmd.Clear():
		w.cleared = true
		return stop("")
	case w.seen[key]:
		return stop("this .history leads back to itself; it is followed once")
	case w.at.depth >= w.rules.Depth:
		return stop(fmt.Sprintf("more than %d .history orders lead from one to the next; the rest is left out", w.rules.Depth))
	}
	w.seen[key] = true
	back := w.at
	w.back, w.behind = &back, note
	w.at = frame{
		guild: cmp.Or(cmd.Last.Guild, w.at.guild), channel: cmp.Or(cmd.Last.Channel, w.at.channel),
		before: after(cmd.Last.Message), askers: append(slices.Clone(w.at.askers), m.Author), depth: w.at.depth + 1,
	}
	if cmd.First != nil {
		if room.Older(cmd.Last.Message, cmd.First.Message) {
			note.Text = "first is newer than last in this .history; it is left out"
			w.notes = append(w.notes, note)
		} else {
			w.at.first = cmd.First.Message
		}
	}
	return false
}

// Result is what came of the walk, at any time.
func (w *Walk) Result() Result {
	out := slices.Clone(w.out)
	slices.Reverse(out)
	return Result{Messages: out, Cleared: w.cleared, Origin: w.origin, Undone: w.undone, Notes: slices.Clone(w.notes)}
}

// after is the number after an id: what is older than it includes the id's message.
func after(id string) string {
	digits := []byte(id)
	for i := len(digits) - 1; i >= 0; i-- {
		if digits[i] != '9' {
			digits[i]++
			return string(digits)
		}
		digits[i] = '0'
	}
	return "1" + string(digits)
}
