package participants

import (
	"slices"
	"strings"

	"chorus/internal/chat"
	"chorus/internal/model"
	"chorus/internal/model/wire"
)

const (
	begins    = "[conversation begins]" // the user's turn before a conversation that the bot began
	continues = "[continue]"            // and the one after its last words, if the answer cannot simply continue them
)

// turns presents a request as turns of the others and of the bot.
func (t *styledModel) turns(r model.Request) (model.Request, *reading, error) {
	head, err := t.memory.heading(r.Head, t.chatHeading)
	if err != nil {
		return r, nil, t.bad(r, "%v", err)
	}
	if r.Head == nil && !t.Persona {
		head.head = nil
	}
	g := &grouper{writer: writer{styledModel: t, r: r, names: t.nameSet()}}
	if t.ContextPrefix != "" {
		g.told, g.marks, g.last = slices.Clone(head.turns), slices.Clone(head.marks), others
	}
	if err := g.all(); err != nil {
		return r, nil, err
	}
	settings, read := t.settings(r, t.people(r.Messages), !asksForSummary(r.Messages))
	out := r
	out.Head, out.Settings = head.head, settings
	if out.Prefill, read.midline, err = g.close(); err != nil {
		return r, nil, err
	}
	read.trim = out.Prefill != "" && !read.midline
	out.Messages, out.Marks = g.told, g.marks
	if t.NoCache {
		out.Marks = nil
	}
	return out, read, nil
}

func (t *styledModel) chatHeading(h *model.Head) (heading, error) {
	out := heading{head: h}
	if t.Persona {
		out.head = &model.Head{System: join(h.System, t.persona()), Tools: h.Tools}
	}
	if t.ContextPrefix != "" {
		m, err := model.NewMessage(model.User, chat.Participant{}, chat.TextBlocks(t.ContextPrefix))
		out.turns, out.marks = []*model.Message{m}, []int{0}
		return out, err
	}
	return out, nil
}

// persona tells the model who the bot is.
func (t *styledModel) persona() string {
	return "You are " + t.Bot + ", one of the participants of this conversation. What others say begins with their name and a colon. Write only what " +
		t.Bot + " says next, without a name before it, and never speak for anybody else."
}

// side says whose turn a message belongs to.
type side uint8

const (
	nothing side = iota // it says nothing
	others
	bots
	answers // results of tools, which are always a turn of their own
)

// grouper groups messages into turns.
type grouper struct {
	writer
	last side // the side of the newest turn
}

// side returns the side of a message.
func (g *grouper) side(m *model.Message) side {
	calls := false
	empty := true
	for _, block := range m.Blocks {
		switch b := block.(type) {
		case chat.ToolResult:
			return answers
		case chat.ToolUse:
			calls, empty = true, false
		case chat.Text:
			empty = empty && strings.TrimSpace(b.Text) == ""
		case chat.Thinking:
		default:
			empty = false
		}
	}
	switch {
	case empty:
		return nothing
	case g.isOwn(m) && (calls || !g.OwnAsUser):
		return bots
	default:
		return others
	}
}

// all groups the messages. A turn ends where the side changes, and after a mark.
func (g *grouper) all() error {
	current, from := nothing, 0
	flush := func(to int) error {
		if current == nothing {
			return nil
		}
		err := g.turn(current, from, to)
		current = nothing
		return err
	}
	for i, m := range g.r.Messages {
		s := g.side(m)
		if s != nothing && (s != current || s == answers) {
			if err := flush(i); err != nil {
				return err
			}
			current, from = s, i
		}
		if !g.Whole && slices.Contains(g.r.Marks, i) {
			if err := flush(i + 1); err != nil {
				return err
			}
			if n := len(g.told) - 1; n >= 0 && !slices.Contains(g.marks, n) {
				g.marks = append(g.marks, n)
			}
		}
	}
	return flush(len(g.r.Messages))
}

// turn writes the messages from one index to another as one turn.
func (g *grouper) turn(s side, from, to int) error {
	if s == bots && len(g.told) == 0 {
		if err := g.say(begins); err != nil {
			return err
		}
	}
	members := g.r.Messages[from:to]
	goesOn := g.last == s && endsInText(g.told)
	g.last = s
	if s == answers || s == bots && len(members) == 1 && !goesOn && g.asItIs(members[0]) {
		g.told = append(g.told, members[0])
		return nil
	}
	kind := userGroup
	if s == bots {
		kind = ownGroup
	}
	var before *model.Message
	if len(g.told) > 0 {
		before = g.told[len(g.told)-1]
	}
	made, _, err := g.memory.turn(kind, before, members, func() (model.Role, chat.Blocks, ending) {
		if s == bots {
			return model.Assistant, g.words(members, goesOn), ending{}
		}
		return model.User, g.talk(from, to, goesOn), ending{}
	})
	if err != nil {
		return err
	}
	for _, m := range members {
		if g.side(m) != nothing {
			g.names[g.label(m)] = true
		}
	}
	if made != nil {
		g.told = append(g.told, made)
	}
	return nil
}

// endsInText reports whether further text would follow text.
func endsInText(told []*model.Message) bool {
	if len(told) == 0 {
		return false
	}
	blocks := told[len(told)-1].Blocks
	if len(blocks) == 0 {
		return false
	}
	_, text := blocks[len(blocks)-1].(chat.Text)
	return text
}

// say adds a user turn of our own.
func (g *grouper) say(text string) error {
	m, err := model.NewMessage(model.User, chat.Participant{Kind: chat.System}, chat.TextBlocks(text))
	g.told = append(g.told, m)
	return err
}

// asItIs reports whether one of the bot's messages can be sent unchanged.
func (g *grouper) asItIs(m *model.Message) bool {
	return m.Role == model.Assistant && !slices.ContainsFunc(m.Blocks, func(b chat.Block) bool {
		_, image := b.(chat.Image)
		return image
	})
}

// words puts the bot's own messages into one turn, separated by a space.
func (g *grouper) words(members []*model.Message, goesOn bool) chat.Blocks {
	var out chat.Blocks
	for _, m := range members {
		first := true
		for _, block := range m.Blocks {
			if img, ok := block.(chat.Image); ok {
				block = chat.Text{Text: wire.Unseen(img)} // only users can show pictures
			}
			text, ok := block.(chat.Text)
			if !ok {
				out, first = append(out, block), false
				continue
			}
			if strings.TrimSpace(text.Text) == "" {
				continue
			}
			if first && len(out) == 0 && goesOn {
				text.Text = " " + text.Text
			}
			if n := len(out); n > 0 {
				if before, ok := out[n-1].(chat.Text); ok {
					if first {
						before.Text += " "
					}
					out[n-1] = chat.Text{Text: before.Text + text.Text}
					first = false
					continue
				}
			}
			out, first = append(out, text), false
		}
	}
	return out
}

// talk puts the others' messages into one turn: one line each, with pictures after the text they belong to.
func (g *grouper) talk(from, to int, goesOn bool) chat.Blocks {
	var out chat.Blocks
	var text strings.Builder
	if goesOn {
		text.WriteByte('\n')
	}
	flush := func() {
		if text.Len() > 0 {
			out = append(out, chat.Text{Text: text.String()})
			text.Reset()
		}
	}
	for i := from; i < to; i++ {
		m := g.r.Messages[i]
		if g.side(m) == nothing {
			continue
		}
		if text.Len() > 0 && !(goesOn && text.Len() == 1) {
			text.WriteByte('\n')
		}
		text.WriteString(g.line(i))
		if pictures := shown(m.Blocks); len(pictures) > 0 && g.entry.Images {
			flush()
			out = append(out, pictures...)
		}
		g.names[g.label(m)] = true
	}
	flush()
	return out
}

// line returns what one of the others said. A note of ours needs no name.
func (g *grouper) line(i int) string {
	m := g.r.Messages[i]
	if nameless(m) {
		return strings.TrimSpace(m.Blocks.Text())
	}
	names := g.names
	if g.isOwn(m) {
		names = nil
	}
	line := g.label(m) + ":"
	g.lines(i, names, func(text string, _ bool) { line = text })
	return line
}

// close returns how the answer begins: with the bot's last words, if it is to continue them, or
// with its name, if the style says so. Both only if the model allows it.
func (g *grouper) close() (prefill string, midline bool, err error) {
	can := g.entry.Prefill
	switch n := len(g.told) - 1; {
	case g.r.Prefill != "":
		return g.r.Prefill, true, nil
	case g.last == bots && !can:
		return "", false, g.say(continues)
	case g.last == bots:
		blocks := g.told[n].Blocks
		if len(blocks.Calls()) > 0 {
			return "", false, nil
		}
		g.told = g.told[:n]
		g.marks = slices.DeleteFunc(g.marks, func(i int) bool { return i >= n })
		return trimEnd(blocks.Text()), true, nil
	case g.PersonaPrefill && can && g.last == others && (g.r.Settings.ThinkingBudget == 0 || !g.entry.Thinking):
		// A request for thinking takes precedence: a prefilled answer cannot think first.
		return g.Bot + ":", false, nil
	default:
		return "", false, nil
	}
}
