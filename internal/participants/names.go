package participants

import (
	"slices"
	"strings"

	"chorus/internal/chat"
	"chorus/internal/model"
)

const (
	systemName = "System"  // the sender of notes
	nobody     = "Someone" // a participant without a name
	// leastStops is the minimum number of participants that get a stop sequence.
	leastStops = 10
	// longestMention is the longest name between <@ and >; platforms' are shorter.
	longestMention = 80
)

// clean makes a name usable at the beginning of a line.
func clean(name string) string {
	for i := range len(name) {
		if name[i] <= ' ' {
			return strings.Join(strings.Fields(name), " ")
		}
	}
	return name
}

// isOwn reports whether the bot itself said it: by role, or by any of its names on the
// platform. A person who took the bot's name is still somebody else.
func (t *styledModel) isOwn(m *model.Message) bool {
	if m.Role == model.Assistant {
		return true
	}
	return m.From.Kind != chat.Person && m.From.Kind != chat.System && t.own[m.From.Name]
}

// label returns the name before a message's text.
func (t *styledModel) label(m *model.Message) string {
	if t.isOwn(m) {
		return t.Bot
	}
	name := clean(m.From.Name)
	switch {
	case name == "" && m.From.Kind == chat.System:
		return systemName
	case name == "":
		return nobody
	case t.own[name]:
		return name + " (person)"
	default:
		return name
	}
}

// nameless reports whether a message is a note of ours, which has no name in a chat.
func nameless(m *model.Message) bool {
	return m.From.Kind == chat.System && m.From.Name == "" && m.Role == model.User
}

// results reports whether a message contains results of tools.
func results(m *model.Message) bool {
	if len(m.Blocks) == 0 {
		return false
	}
	_, ok := m.Blocks[0].(chat.ToolResult)
	return ok
}

// speakers lists who speaks in a request.
type speakers struct {
	recent []string // the others with those they mention, newest first
	all    []string
}

// people goes from the newest message to the oldest.
func (t *styledModel) people(messages []*model.Message) speakers {
	var c speakers
	seen := map[string]bool{}
	most := max(t.RecentParticipants, leastStops) - 1 // the bot is one of them
	add := func(name string, spoke bool) {
		if t.own[name] || name == "" {
			return
		}
		if seen[name] {
			return
		}
		recent := len(c.recent) < most
		if !recent && !spoke {
			return
		}
		seen[name] = true
		if recent {
			c.recent = append(c.recent, name)
		}
		c.all = append(c.all, name)
	}
	for _, m := range slices.Backward(messages) {
		if results(m) {
			continue
		}
		if !t.isOwn(m) && !(t.Mode == Chat && nameless(m)) {
			add(t.label(m), true)
		}
		if len(c.recent) < most {
			for _, b := range m.Blocks {
				if text, ok := b.(chat.Text); ok {
					mentions(text.Text, func(name string) { add(name, false) })
				}
			}
		}
	}
	return c
}

// mentions finds each <@name>. An id is nobody's name.
func mentions(text string, found func(string)) {
	for {
		i := strings.Index(text, "<@")
		if i < 0 {
			return
		}
		text = text[i+2:]
		end := strings.IndexAny(text[:min(len(text), longestMention)], ">\n")
		if end <= 0 || text[end] != '>' {
			continue
		}
		name := clean(strings.TrimLeft(text[:end], "!&"))
		if strings.Trim(name, "0123456789") != "" {
			found(name)
		}
		text = text[end+1:]
	}
}

// stops returns the stop sequences to send, in Chapter3's order, and how to read the answer: every
// participant's line ends it, even if there was no room to send that sequence.
func (t *styledModel) stops(r model.Request, c speakers, all bool) ([]string, *reading) {
	read := &reading{own: t.ownNames}
	var wire []string
	add := func(stop string) {
		if stop != "" && !slices.Contains(wire, stop) {
			wire = append(wire, stop)
		}
	}
	if t.Mode == Prefill {
		for _, stop := range []string{t.TurnEnd, t.Delimiter} {
			if strings.TrimSpace(stop) != "" {
				add(stop)
				read.stops = append(read.stops, stop)
			}
		}
		if all {
			add("\n" + t.Bot + ":")
		}
		if r.Head != nil && len(r.Head.Tools) > 0 {
			add("\n" + t.Bot + "<[")
		}
	}
	if all {
		for _, name := range c.all {
			read.others = append(read.others, name+":")
		}
		if t.Mode == Prefill {
			for _, name := range c.recent {
				add("\n" + name + ":")
			}
		}
	}
	for _, stop := range slices.Concat(t.Stop, r.Settings.Stop) {
		t.configured(stop, read, add)
	}
	if t.StopLimit != 0 && len(wire) > max(t.StopLimit, 0) {
		wire = wire[:max(t.StopLimit, 0)]
	}
	return wire, read
}

// configured adds a stop sequence from the settings. "Name:" is a participant and counts
// only at the beginning of a line; anything else counts everywhere.
func (t *styledModel) configured(stop string, read *reading, add func(string)) {
	name, isName := strings.CutSuffix(strings.TrimPrefix(stop, "\n"), ":")
	switch {
	case strings.TrimSpace(stop) == "":
	case !isName || name == "" || strings.Contains(name, "\n"):
		add(stop)
		if !slices.Contains(read.stops, stop) {
			read.stops = append(read.stops, stop)
		}
	default:
		add("\n" + name + ":")
		if !t.own[name] && !slices.Contains(read.others, name+":") {
			read.others = append(read.others, name+":")
		}
	}
}

// guarded prevents a message from putting words into others' mouths: a line in it that
// begins like one of theirs gets a space in front. names are those who have spoken so
// far, so the same message is always written the same.
func guarded(text string, names map[string]bool) string {
	if strings.IndexByte(text, '\n') < 0 {
		return text
	}
	var out strings.Builder
	for i, line := range strings.SplitAfter(text, "\n") {
		if i > 0 && spokenBy(line, names) {
			out.WriteByte(' ')
		}
		out.WriteString(line)
	}
	return out.String()
}

// spokenBy reports whether a line begins with one of the names and a
// colon, or like a call or a result of theirs.
func spokenBy(line string, names map[string]bool) bool {
	for i := 0; i < len(line); i++ {
		switch line[i] {
		case ':':
			if names[line[:i]] {
				return true
			}
		case '>', '<':
			if i+1 < len(line) && line[i+1] == '[' && names[line[:i]] {
				return true
			}
		}
		if i > 2*longestMention {
			break
		}
	}
	return false
}
