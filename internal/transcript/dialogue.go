package transcript

import (
	"cmp"
	"slices"
	"strings"
	"unicode"

	"chorus/internal/chat"
	"chorus/internal/model"
)

// textAcknowledged is the model's answer to the summary of a conversation. It makes the turns alternate.
const textAcknowledged = "Understood, I have the conversation context."

// shownTurn is a turn of the last request and the messages it was made of.
type shownTurn struct {
	parts []*model.Message
	msg   *model.Message
}

// dialogue arranges messages into turns as the run's settings say. It returns the
// turns and, for each message, the index of its turn. It reuses the turns of the
// previous request, so that their encodings are reused too.
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

// joins reports whether a message can share a turn with its neighbours. Results of calls cannot.
func joins(m *model.Message) bool {
	return m.Role == model.User && !slices.ContainsFunc(m.Blocks, func(b chat.Block) bool { _, result := b.(chat.ToolResult); return result })
}

// turnOf makes one turn of its messages, with a line break between them.
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

// sameText reports whether a block is unchanged. Only texts are ever changed here.
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

// spokenBy puts the prefix with the speaker's name before their words. Lines of theirs that begin
// like the prefix get a backslash, so that nobody can speak in another's name.
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

// spoken counts the messages of people and answers. Calls, results and notes do not count.
func spoken(all []entry) (n int) {
	for _, e := range all {
		if isSpoken(e) {
			n++
		}
	}
	return n
}

// isSpoken reports whether an entry is words or an answer, which can be counted and
// removed one by one. Calls and their results stay together.
func isSpoken(e entry) bool {
	return e.kind == words || e.kind == said && len(e.msg.Blocks.Calls()) == 0
}

// tooManySpoken reports whether so much was said that the older part should be summarised.
func (l *Log) tooManySpoken(s chat.Summary) bool {
	next, err := l.upcoming(l.seq)
	return err == nil && spoken(l.window)+spoken(next) > s.AfterMessages
}

// keepSpoken returns the index at which the newest n messages of people and answers begin,
// always at somebody's words. 0 means that nothing would be left out.
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
