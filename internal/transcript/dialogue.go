package transcript

import (
	"cmp"
	"slices"
	"strings"
	"unicode"

	"chorus/internal/chat"
	"chorus/internal/model"
)

// textAcknowledged is the model's answer to the summary of a conversation, so that turns alternate.
const textAcknowledged = "Understood, I have the conversation context."

// shownTurn is a turn of the last request and what it was made of.
type shownTurn struct {
	parts []*model.Message
	msg   *model.Message
}

// dialogue puts messages to the model as the run's settings say. It gives the turns, and for each message the index of its
// turn. A turn that was made for the request before is used again, so that its encodings are.
func (l *Log) dialogue(all []entry, s chat.Dialogue) (turns []*model.Message, at []int, err error) {
	var shown []shownTurn
	for i := 0; i < len(all); {
		end := i + 1
		for s.MergeTurns && joins(all[i].msg) && end < len(all) && joins(all[end].msg) {
			end++
		}
		t := shownTurn{}
		for _, e := range all[i:end] {
			t.parts, at = append(t.parts, e.msg), append(at, len(shown))
		}
		if n := len(shown); n < len(l.shown) && slices.Equal(l.shown[n].parts, t.parts) && l.shownAs == s {
			t.msg = l.shown[n].msg
		} else if t.msg, err = turnOf(all[i:end], s); err != nil {
			return nil, nil, err
		}
		shown, turns, i = append(shown, t), append(turns, t.msg), end
	}
	l.shown, l.shownAs = shown, s
	return turns, at, nil
}

// joins reports whether a message can be one turn with its neighbours: the results of calls stand alone.
func joins(m *model.Message) bool {
	return m.Role == model.User && !slices.ContainsFunc(m.Blocks, func(b chat.Block) bool { _, result := b.(chat.ToolResult); return result })
}

// turnOf is one turn: its messages with a line break between them.
func turnOf(group []entry, s chat.Dialogue) (*model.Message, error) {
	var blocks chat.Blocks
	for i, e := range group {
		more := blocksOf(e, s)
		if last, next := len(blocks)-1, firstText(more); i > 0 && last >= 0 && next != nil {
			if text, ok := blocks[last].(chat.Text); ok {
				blocks[last] = chat.Text{Text: text.Text + "\n" + next.Text}
				more = more[1:]
			}
		}
		blocks = append(blocks, more...)
	}
	first := group[0].msg
	if len(group) == 1 && len(blocks) == len(first.Blocks) && slices.EqualFunc(blocks, first.Blocks, sameText) {
		return first, nil
	}
	return model.NewMessage(first.Role, first.From, blocks)
}

// sameText reports whether nothing was done to a block: only texts are changed here.
func sameText(a, b chat.Block) bool {
	x, ok := a.(chat.Text)
	y, too := b.(chat.Text)
	return ok == too && x == y
}

func firstText(blocks chat.Blocks) *chat.Text {
	if len(blocks) > 0 {
		if text, ok := blocks[0].(chat.Text); ok {
			return &text
		}
	}
	return nil
}

func blocksOf(e entry, s chat.Dialogue) chat.Blocks {
	switch {
	case e.kind == words && e.msg.Role == model.User && s.Speaker != "":
		return spokenBy(s.Speaker, e.msg.From, e.msg.Blocks)
	case e.msg.Role == model.Assistant && s.DropToolText && len(e.msg.Blocks.Calls()) > 0:
		return slices.DeleteFunc(slices.Clone(e.msg.Blocks), func(b chat.Block) bool { _, text := b.(chat.Text); return text })
	default:
		return slices.Clone(e.msg.Blocks)
	}
}

// spokenBy puts the prefix with the speaker's name before words. Lines of theirs that begin like the prefix get a
// backslash, so that nobody can speak in another's name.
func spokenBy(prefix string, from chat.Participant, blocks chat.Blocks) chat.Blocks {
	name := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == '[' || r == ']' {
			return -1
		}
		return r
	}, from.Name)
	name = cmp.Or(name, from.ID)
	begin, _, _ := strings.Cut(prefix, "{user}")
	prefix = strings.ReplaceAll(prefix, "{user}", name)
	var out chat.Blocks
	for _, b := range blocks {
		if text, ok := b.(chat.Text); ok && strings.TrimSpace(begin) != "" {
			lines := strings.Split(text.Text, "\n")
			for i, line := range lines {
				if strings.HasPrefix(strings.TrimSpace(line), strings.TrimSpace(begin)) {
					lines[i] = `\` + line
				}
			}
			b = chat.Text{Text: strings.Join(lines, "\n")}
		}
		out = append(out, b)
	}
	if text := firstText(out); text != nil {
		out[0] = chat.Text{Text: prefix + text.Text}
		return out
	}
	return append(chat.Blocks{chat.Text{Text: strings.TrimSpace(prefix)}}, out...)
}

// spoken is how many messages of people and answers there are; calls, results and notes do not count.
func spoken(all []entry) (n int) {
	for _, e := range all {
		if isSpoken(e) {
			n++
		}
	}
	return n
}

// isSpoken reports words and answers, which can be counted and taken away one by one; calls and their results stay together.
func isSpoken(e entry) bool {
	return e.kind == words || e.kind == said && len(e.msg.Blocks.Calls()) == 0
}

// tooManySpoken reports whether so much was said that the older part is due for a summary.
func (l *Log) tooManySpoken(s chat.Summary) bool {
	next, err := l.upcoming(l.seq)
	return err == nil && spoken(l.window)+spoken(next) > s.AfterMessages
}

// keepSpoken is where the newest n messages of people and answers begin, at somebody's words; 0: nothing would be left out.
func keepSpoken(all []entry, n int) int {
	i := len(all)
	for i > 0 && n > 0 {
		if i--; isSpoken(all[i]) {
			n--
		}
	}
	for ; i > 0 && i < len(all); i++ {
		if all[i].kind == words && all[i].msg.Role == model.User {
			return i
		}
	}
	return 0
}
