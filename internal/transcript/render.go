package transcript

import (
	"cmp"
	"slices"
	"time"

	"chorus/internal/chat"
	"chorus/internal/model"
	"chorus/internal/untrusted"
	"chorus/internal/window"
)

// What the model reads when a call has no result of its own.
const (
	textInterrupted = "interrupted: the server stopped while this ran; check its effects before repeating it"
	textNoResult    = "no result: this call was not run"
	textEarlier     = "(What was said before this is no longer shown.)"
)

// Interrupted is the result of a call that was running when the process ended.
func Interrupted() chat.Blocks { return chat.TextBlocks(textInterrupted) }

// upcoming returns what the next request shows beyond the window: the results of the
// last answer, then the words and notes up to sees, in order.
func (l *Log) upcoming(sees int64) ([]entry, error) {
	var out []entry
	at := l.place
	add := func(seq int64, kind entryKind, msg *model.Message, id string, when time.Time) {
		at++
		out = append(out, entry{at, seq, kind, msg, id, when})
	}
	if l.turn != nil {
		msg, err := l.turn.message()
		if err != nil {
			return nil, err
		}
		add(l.turn.Seq, results, msg, "", l.turn.At)
	}
	for _, it := range l.pending {
		if it.seq > sees {
			continue
		}
		for i, msg := range it.msgs {
			add(it.seq, kindOf(it.kind, msg), msg, it.id(i), it.at)
		}
	}
	return out, nil
}

// kindOf distinguishes answers from results among imported lines.
func kindOf(kind entryKind, msg *model.Message) entryKind {
	if msg.Role == model.Assistant {
		return said
	}
	for _, b := range msg.Blocks {
		if _, ok := b.(chat.ToolResult); ok {
			return results
		}
	}
	return kind
}

// message returns the user turn that answers all calls in order. It is
// made only once, so that its encodings are kept.
func (t *turn) message() (*model.Message, error) {
	if t.msg != nil {
		return t.msg, nil
	}
	complete := true
	var blocks chat.Blocks
	for _, c := range t.Calls {
		r := chat.ToolResult{Call: c.Shown, Name: c.Use.Name}
		switch {
		case c.Done:
			r.Blocks, r.Failed = untrusted.Blocks(c.Result.UntrustedFrom, c.Result.Blocks), c.Result.Failed
		case c.Began:
			r.Blocks, r.Failed, complete = Interrupted(), true, false
		default:
			r.Blocks, r.Failed, complete = chat.TextBlocks(textNoResult), true, false
		}
		if len(r.Blocks) == 0 {
			r.Blocks = chat.TextBlocks("(no output)")
		}
		blocks = append(blocks, r)
	}
	msg, err := model.NewMessage(model.User, chat.Participant{Kind: chat.System}, blocks)
	if err == nil && complete {
		t.msg = msg
	}
	return msg, err
}

// Request renders what the model would be sent now, including events up to sees.
func (l *Log) Request(head *model.Head, sees int64) (model.Request, error) {
	next, err := l.upcoming(sees)
	if err != nil {
		return model.Request{}, err
	}
	req := model.Request{Head: head, Blob: l.blob, Messages: make([]*model.Message, 0, len(l.window)+len(next)+1)}
	all := append(l.window, next...) // beyond the window's length, which nobody reads after this
	if len(all) > 0 && all[0].msg.Role == model.Assistant {
		// A window may begin anywhere, but a conversation must not begin with the agent.
		if l.opening == nil {
			if l.opening, err = model.NewMessage(model.User, chat.Participant{Kind: chat.System}, chat.TextBlocks(textEarlier)); err != nil {
				return model.Request{}, err
			}
		}
		all = slices.Concat([]entry{{msg: l.opening}}, all)
	}
	if l.run != nil {
		req.Settings = l.run.Settings
	}
	if req.Settings.Summary.Conversation && len(all) > 0 && all[0].kind == summary {
		if l.acknowledged == nil {
			if l.acknowledged, err = model.NewMessage(model.Assistant, chat.Participant{Kind: chat.Agent}, chat.TextBlocks(textAcknowledged)); err != nil {
				return model.Request{}, err
			}
		}
		all = slices.Concat(all[:1:1], []entry{{place: all[0].place, msg: l.acknowledged}}, all[1:])
	}
	req.Marks = marks(len(all)-len(next), len(all), l.markAt(all))
	if d := req.Settings.Dialogue; d != (chat.Dialogue{ReportActions: d.ReportActions}) {
		var at []int
		if req.Messages, at, err = l.dialogue(all, d); err != nil {
			return model.Request{}, err
		}
		for i, mark := range req.Marks {
			req.Marks[i] = at[mark]
		}
		req.Marks = slices.Compact(req.Marks)
	} else {
		for _, e := range all {
			req.Messages = append(req.Messages, e.msg)
		}
	}
	if req.Settings.Window.NoImages {
		if err := dimAll(req.Messages); err != nil {
			return model.Request{}, err
		}
	}
	return req, nil
}

// markAt returns the index of the lasting cache mark's message, or of the
// message that should get one. It is -1 in an empty window.
func (l *Log) markAt(all []entry) int {
	if len(all) == 0 {
		return -1
	}
	if i, ok := slices.BinarySearchFunc(all, l.mark, func(e entry, place int64) int { return cmp.Compare(e.place, place) }); ok && l.mark > 0 {
		return i
	}
	return window.Mark(len(all))
}

// marks puts cache marks where keeping a prefix pays off: the lasting one, one at the end of the
// last request, and one at the end of this request, where the next one will look.
func marks(window, total, first int) []int {
	var out []int
	for _, at := range []int{first, window - 1, total - 1} {
		if at >= 0 && !slices.Contains(out, at) {
			out = append(out, at)
		}
	}
	slices.Sort(out)
	return out
}

// Tokens returns the size of the next request: the provider's own count as far as
// there is one, and our estimate for what came after it.
func (l *Log) Tokens() int {
	n := l.used
	from := l.usedAt
	if n == 0 {
		n, from = l.headSize, 0
	}
	for _, e := range l.window[min(from, len(l.window)):] {
		n += MessageTokens(e.msg)
	}
	if l.turn != nil {
		if msg, err := l.turn.message(); err == nil {
			n += MessageTokens(msg)
		}
	}
	for _, it := range l.pending {
		for _, msg := range it.msgs {
			n += MessageTokens(msg)
		}
	}
	return n
}

// SetHead tells the log the size of the system prompt and the tools.
func (l *Log) SetHead(head *model.Head) {
	n := len(head.System)
	for _, t := range head.Tools {
		n += len(t.Name) + len(t.Description) + len(t.Schema)
	}
	l.headSize = model.Tokens(n)
}

// imageChars is the size of a picture, in characters of text.
const imageChars = 4800

// MessageTokens estimates the tokens of one message: four characters per token, rounded up.
func MessageTokens(m *model.Message) int { return model.Tokens(blockChars(m.Blocks)) }

func blockChars(blocks chat.Blocks) int {
	n := 0
	for _, b := range blocks {
		switch v := b.(type) {
		case chat.Text:
			n += len(v.Text)
		case chat.Image:
			n += imageChars
		case chat.Thinking:
			n += len(v.Text) + len(v.Redacted)
		case chat.ToolUse:
			n += len(v.Name) + len(v.Args)
		case chat.ToolResult:
			n += blockChars(v.Blocks)
		case chat.File:
			n += len(v.Name) + len(v.Path)
		}
	}
	return n
}
