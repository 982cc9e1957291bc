package participants

import (
	"context"
	"iter"

	"chorus/internal/chat"
	"chorus/internal/model"
)

// Stream passes on the inner model's answer, without what others would say in
// it, and with the calls in its text turned into calls.
func (t *styledModel) Stream(ctx context.Context, p model.Prepared) iter.Seq2[model.Chunk, error] {
	read, ok := p.Reading.(*reading)
	if !ok {
		return t.inner.Stream(ctx, p)
	}
	p.Reading = read.inner
	return func(yield func(model.Chunk, error) bool) {
		listening := true
		put := func(c model.Chunk) { listening = listening && yield(c, nil) }
		a := read.answer(put)
		heard := 0
		for chunk, err := range t.inner.Stream(ctx, p) {
			switch c := chunk.(type) {
			case nil:
				yield(nil, err)
				return
			case model.TextDelta:
				heard += len(c.Text)
				a.feed(c.Text)
			case model.Done:
				if text := c.Blocks.Text(); len(text) > heard {
					a.feed(text[heard:]) // some providers send it only at the end
				}
				if done := a.done(c); listening {
					yield(done, nil)
				}
				return
			default:
				put(chunk)
			}
			if !listening {
				return
			}
		}
	}
}

// done returns the whole answer as it counts.
func (a *answer) done(d model.Done) model.Done {
	blocks := a.finish(d.Stop == chat.StopSeq)
	if a.script {
		d.Blocks = append(besides(d.Blocks), blocks...)
	} else {
		d.Blocks = a.reading.turn(d.Blocks)
	}
	if a.discarded {
		d.Blocks = nil
	}
	calls := len(d.Blocks.Calls()) > 0
	switch d.Stop {
	case chat.StopEnd, chat.StopSeq, chat.StopTools, "":
		if calls {
			d.Stop = chat.StopTools
		} else if a.cut {
			d.Stop = chat.StopSeq
		}
	case chat.StopLength:
		if a.cut && !calls {
			d.Stop = chat.StopSeq // what exceeded the limit does not count
		}
	}
	return d
}

// besides returns the blocks that are not text.
func besides(blocks chat.Blocks) chat.Blocks {
	var out chat.Blocks
	for _, b := range blocks {
		if _, text := b.(chat.Text); !text {
			out = append(out, b)
		}
	}
	return out
}

// turn reads the blocks of a chat's answer: each text separately, and none after one in
// which somebody else began to speak. The calls are real and stay.
func (r *reading) turn(blocks chat.Blocks) chat.Blocks {
	var out chat.Blocks
	cut := false
	for _, b := range blocks {
		text, ok := b.(chat.Text)
		if !ok {
			out = append(out, b)
			continue
		}
		if cut {
			continue
		}
		a := r.answer(func(model.Chunk) {})
		a.feed(text.Text)
		out = append(out, a.finish(false)...)
		cut = a.cut
	}
	return out
}
