package transcript

import (
	"slices"
	"time"

	"chorus/internal/chat"
	"chorus/internal/model"
	"chorus/internal/window"
)

// RollDue says whether the window must be cut, or pictures left out, before the next
// request, and returns the event to write. Messages leave because of their age only
// before the first request of a run: what the run works on stays, however long it takes.
// The age of a prompt counts from when it was taken.
func (l *Log) RollDue(s chat.Settings, now time.Time) (chat.Rolled, bool) {
	w := s.Window
	if l.run != nil && !l.run.Asked.IsZero() {
		w.AgeSeconds = 0
	}
	if w == (chat.Window{}) || w.NoImages && w == (chat.Window{NoImages: true}) {
		return chat.Rolled{}, false
	}
	next, err := l.upcoming(l.seq)
	if err != nil {
		return chat.Rolled{}, false
	}
	all := append(l.window[:len(l.window):len(l.window)], next...)
	items := make([]window.Item, len(all))
	for i, e := range all {
		items[i] = window.Item{Size: textChars(e.msg.Blocks), Own: e.kind == said, Result: e.kind == results, Age: now.Sub(e.at)}
		if !w.NoImages {
			items[i].Images = imageSizes(e.msg.Blocks)
		}
	}
	since := int(l.place + int64(len(next)) - l.rolled)
	plan := window.Build(items, since, window.Limits{Messages: w.Messages, Characters: w.Characters, HardMax: w.HardMax,
		Threshold: w.Threshold, Images: w.Images, ImageBytes: w.ImageBytes, CacheImages: w.CacheImages, Mark: l.marked(all) + 1,
		Age: time.Duration(w.AgeSeconds) * time.Second})
	if !plan.Rolled && !plan.Dimmed {
		return chat.Rolled{}, false
	}
	out := chat.Rolled{KeepFrom: all[plan.From].place, Because: plan.Because}
	if plan.Dimmed {
		out.Images = &plan.Images
	}
	return out, true
}

// marked returns the index of the message with the lasting cache mark, or -1.
func (l *Log) marked(all []entry) int {
	if l.mark == 0 {
		return -1
	}
	return slices.IndexFunc(all, func(e entry) bool { return e.place == l.mark })
}

func textChars(blocks chat.Blocks) int {
	n := 0
	for _, b := range blocks {
		switch v := b.(type) {
		case chat.Text:
			n += len(v.Text)
		case chat.ToolUse:
			n += len(v.Name) + len(v.Args)
		case chat.ToolResult:
			n += textChars(v.Blocks)
		}
	}
	return n
}

// imageSizes returns the sizes of a message's pictures, including those in results.
func imageSizes(blocks chat.Blocks) []int64 {
	var out []int64
	for _, b := range blocks {
		switch v := b.(type) {
		case chat.Image:
			out = append(out, v.Size)
		case chat.ToolResult:
			out = append(out, imageSizes(v.Blocks)...)
		}
	}
	return out
}

// roll cuts the window and leaves pictures out. Messages without a place
// are cut too if they would come before the cut.
func (l *Log) roll(b chat.Rolled) error {
	next, err := l.upcoming(l.seq)
	if err != nil {
		return err
	}
	all := l.place + int64(len(next))
	cut := b.KeepFrom > l.firstPlace()
	if beyond := min(b.KeepFrom-1, all) - l.place; beyond > 0 {
		l.cutPending(beyond)
	}
	if cut || b.Images == nil {
		if err := l.cutBefore(b.KeepFrom); err != nil {
			return err
		}
		l.rolled = all // what waits for its place was there before the roll
	}
	if b.Images != nil {
		return l.keepImages(*b.Images)
	}
	return nil
}

func (l *Log) firstPlace() int64 {
	if len(l.window) == 0 {
		return l.place + 1
	}
	return l.window[0].place
}

// cutPending drops the first n messages that wait for their place.
func (l *Log) cutPending(n int64) {
	l.place += n
	if l.turn != nil {
		l.turn = nil // its answer leaves with the window
		n--
	}
	for i := range l.pending {
		gone := min(n, int64(len(l.pending[i].msgs)))
		l.pending[i].msgs = l.pending[i].msgs[gone:]
		l.pending[i].ids = l.pending[i].ids[min(gone, int64(len(l.pending[i].ids))):]
		n -= gone
	}
	l.pending = slices.DeleteFunc(l.pending, func(it item) bool { return len(it.msgs) == 0 })
}

// keepImages keeps only the newest n pictures and replaces the others with a short text.
func (l *Log) keepImages(n int) error {
	dim := func(msg **model.Message) error {
		blocks, left := dimmed((*msg).Blocks, n)
		n = left
		if blocks == nil {
			return nil
		}
		changed, err := model.NewMessage((*msg).Role, (*msg).From, blocks)
		if err == nil {
			*msg = changed
		}
		return err
	}
	for i := len(l.pending) - 1; i >= 0; i-- {
		for k := len(l.pending[i].msgs) - 1; k >= 0; k-- {
			if err := dim(&l.pending[i].msgs[k]); err != nil {
				return err
			}
		}
	}
	if l.turn != nil {
		l.turn.msg = nil
		for i := len(l.turn.Calls) - 1; i >= 0; i-- {
			blocks, left := dimmed(l.turn.Calls[i].Result.Blocks, n)
			if n = left; blocks != nil {
				l.turn.Calls[i].Result.Blocks = blocks
			}
		}
	}
	l.window = slices.Clone(l.window)
	for i := len(l.window) - 1; i >= 0; i-- {
		if err := dim(&l.window[i].msg); err != nil {
			return err
		}
	}
	l.sent = sent{}
	return nil
}

// dimmed returns a message's blocks with only its newest n pictures, or nil if that
// changes nothing, and how many pictures may still be kept before it.
func dimmed(blocks chat.Blocks, n int) (chat.Blocks, int) {
	var out chat.Blocks
	for i := len(blocks) - 1; i >= 0; i-- {
		switch v := blocks[i].(type) {
		case chat.Image:
			if n > 0 {
				n--
				continue
			}
			if out == nil {
				out = slices.Clone(blocks)
			}
			out[i] = chat.Text{Text: imageText(v)}
		case chat.ToolResult:
			inner, left := dimmed(v.Blocks, n)
			if n = left; inner != nil {
				if out == nil {
					out = slices.Clone(blocks)
				}
				v.Blocks = inner
				out[i] = v
			}
		}
	}
	return out, n
}

func imageText(im chat.Image) string {
	if im.Name == "" {
		return "[a picture that is no longer shown]"
	}
	return "[picture " + im.Name + ", no longer shown]"
}

// dimAll leaves out every picture of a request.
func dimAll(messages []*model.Message) error {
	for i, m := range messages {
		blocks, _ := dimmed(m.Blocks, 0)
		if blocks == nil {
			continue
		}
		changed, err := model.NewMessage(m.Role, m.From, blocks)
		if err != nil {
			return err
		}
		messages[i] = changed
	}
	return nil
}

// Cached returns how many tokens of the next request a provider's cache should hold.
func (l *Log) Cached() int {
	if l.run == nil || l.sent.Model != l.run.Model || l.sent.Head != l.run.Head {
		return 0
	}
	return l.sent.Tokens
}

// Head returns the head that the window's last answered request began with, if it went to
// this model. It is "" if there was none or the window was cut since.
func (l *Log) Head(model string) string {
	if l.sent.Model != model {
		return ""
	}
	return l.sent.Head
}
