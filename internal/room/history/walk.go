package history

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"chorus/internal/room"
)

// Rules limit a walk. Zero numbers mean the defaults.
type Rules struct {
	Roles  []string // names of roles that may use .history; if empty, everybody may
	Budget int      // maximum number of messages that come back
	Depth  int      // how many commands may lead from one to the next
	Page   int      // messages per request
}

// The defaults.
const (
	DefaultBudget = 400
	DefaultDepth  = 10
	DefaultPage   = 100 // Discord's maximum
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

// May reports whether somebody may use .history. Programs may not,
// because others may have caused what an agent wrote.
func (r Rules) May(a room.Author) bool {
	if a.Program() {
		return false
	}
	return len(r.Roles) == 0 || a.Has(r.Roles)
}

// Need is what the walk has to read next.
type Need struct {
	Guild, Channel string
	Before         string        // messages older than this; "" for the newest
	Limit          int           // at most this many, the newest of them
	Askers         []room.Author // all of them must be allowed to read there; empty: it is the room itself
}

// Page is the result of a read.
type Page struct {
	Messages []room.Message // in any order
	Denied   bool           // one of the askers may not read there
	Err      error          // it could not be read; the text is for people
}

// Note is a message to people about a command.
type Note struct {
	Channel, Message string // the command
	Text             string
}

// Result is what the room has heard once the commands are carried out.
type Result struct {
	Messages []room.Message // oldest first
	Cleared  bool
	Origin   string // the channel of the first command that was followed; "" if none was
	Undone   bool   // the first command could not be followed after all and is ignored
	Notes    []Note
}

// Walk is one walk through the history of a room.
type Walk struct {
	agent   room.Agent
	rules   Rules
	at      frame
	back    *frame // where to continue if the range cannot be read
	behind  Note   // the command that led to the range
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
	parent         string // where to continue at the channel's beginning
	askers         []room.Author
	depth          int
}

// Start begins a walk for an agent in a channel, with the message before ("" for the newest). A
// platform thread continues with its parent, from the message on which it was opened.
func Start(agent room.Agent, in room.Channel, before string, rules Rules) *Walk {
	return &Walk{
		agent: agent, rules: rules.or(), seen: map[string]bool{},
		at: frame{guild: in.Guild, channel: in.ID, before: before, parent: in.Parent},
	}
}

// Next returns what to read, or false if the walk is over.
func (w *Walk) Next() (Need, bool) {
	if w.done || len(w.out) >= w.rules.Budget {
		return Need{}, false
	}
	return Need{w.at.guild, w.at.channel, w.at.before, w.rules.Page, w.at.askers}, true
}

// Give passes in what was read.
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

// beginning handles the channel's beginning: there are no older messages.
func (w *Walk) beginning() {
	if w.at.parent == "" {
		w.done = true
		return
	}
	// A platform thread has the id of the message on which it was opened.
	w.at = frame{guild: w.at.guild, channel: w.at.parent, before: after(w.at.channel), askers: w.at.askers, depth: w.at.depth}
}

// turnBack continues as if the command that led here did not exist.
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
		note.Text = "this .history is ignored: it names a channel that not everybody who asked for it may read"
	}
	w.notes = append(w.notes, note)
	w.undone = w.undone || w.back.depth == 0
	w.at, w.back = *w.back, nil
}

// message takes in a message. It returns false if the rest of the page is not needed.
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

// judge decides whether a command is followed, and if not, whether it is
// hidden. A command for somebody else is an ordinary message.
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

// follow carries out a command. It always replaces everything older.
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
			note.Text = "first is newer than last in this .history; it is ignored"
			w.notes = append(w.notes, note)
		} else {
			w.at.first = cmd.First.Message
		}
	}
	return false
}

// Result returns the result of the walk so far.
func (w *Walk) Result() Result {
	out := slices.Clone(w.out)
	slices.Reverse(out)
	return Result{Messages: out, Cleared: w.cleared, Origin: w.origin, Undone: w.undone, Notes: slices.Clone(w.notes)}
}

// after returns the number after an id, so that messages older than it include the id's message.
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
