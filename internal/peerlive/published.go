package peerlive

import "chorus/internal/chat"

// published is what was already published of an unfinished answer. A new stream
// begins with the text so far, of which only the rest is new.
type published struct {
	run           string
	step, attempt int
	texts         map[place]string
}

// place identifies the text that a piece belongs to.
type place struct {
	what chat.DeltaKind
	call string
}

// unpublished returns the part of a piece that was not published yet, or nil.
func (t *published) unpublished(piece chat.Live) chat.Live {
	d, ok := piece.(chat.Delta)
	if !ok {
		return piece
	}
	if t.texts == nil || d.Run != t.run || d.Step != t.step || d.Attempt != t.attempt {
		*t = published{run: d.Run, step: d.Step, attempt: d.Attempt, texts: map[place]string{}}
	}
	at := place{d.What, d.Call}
	have := t.texts[at]
	if d.Offset < 0 || d.Offset > len(have) {
		return d // what is missing before it will not arrive any more
	}
	known := have[d.Offset:min(d.Offset+len(d.Text), len(have))]
	if d.Text[:len(known)] != known { // the text started over
		t.texts[at] = have[:d.Offset] + d.Text
		return d
	}
	d.Offset, d.Text = d.Offset+len(known), d.Text[len(known):]
	if d.Text == "" {
		return nil
	}
	t.texts[at] += d.Text
	return d
}
