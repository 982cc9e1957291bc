package transcript

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"chorus/internal/chat"
	"chorus/internal/model"
)

func (l *Log) imported(ev chat.Event, b chat.Imported) error {
	msgs, ids, err := l.lines(ev.Seq, b)
	if err != nil {
		return err
	}
	if b.Instead {
		l.renewal = &item{seq: ev.Seq, kind: words, msgs: msgs, ids: ids, at: ev.At}
		if l.run != nil {
			return nil // the run keeps its conversation until it has ended
		}
		return l.renew()
	}
	if len(msgs) > 0 {
		l.pending = append(l.pending, item{seq: ev.Seq, kind: words, msgs: msgs, ids: ids, at: ev.At})
	}
	return nil
}

// lines loads what was imported. An empty import needs no blob. If the bytes are lost, a
// message tells the model so, and the conversation continues without them.
func (l *Log) lines(seq int64, b chat.Imported) (msgs []*model.Message, ids []string, err error) {
	if b.Blob == "" && b.Count == 0 {
		return nil, nil, nil
	}
	if l.blob == nil {
		return nil, nil, fmt.Errorf("import from %s: no blobs here", b.Source)
	}
	data, err := l.blob(b.Blob)
	if errors.Is(err, chat.ErrLost) {
		msg, err := model.NewMessage(model.User, chat.Participant{Kind: chat.System},
			chat.TextBlocks(fmt.Sprintf("[%d earlier messages (%s) are lost: their file is missing or damaged]", b.Count, b.Source)))
		return []*model.Message{msg}, []string{""}, err
	}
	if err != nil {
		return nil, nil, fmt.Errorf("import from %s: %w", b.Source, err)
	}
	var lines []chat.Line
	if err := json.Unmarshal(data, &lines); err != nil {
		return nil, nil, fmt.Errorf("import from %s: %w", b.Source, err)
	}
	taken := l.calledAs
	if b.Instead {
		taken = func(string) bool { return false } // everything shown now is replaced
	}
	return pairLines(lines, seq, taken)
}

// renew replaces everything before the import with what was imported. What
// came after it follows in its old order, with new places.
func (l *Log) renew() error {
	if l.renewal == nil {
		return nil
	}
	fresh := *l.renewal
	l.renewal = nil
	first := l.place + 1
	if i := slices.IndexFunc(l.window, func(e entry) bool { return e.seq > fresh.seq && e.kind != results }); i >= 0 {
		first = l.window[i].place
	}
	if err := l.cutBefore(first); err != nil {
		return err
	}
	next := []item{fresh}
	for _, e := range l.window {
		next = append(next, item{seq: e.seq, kind: e.kind, msgs: []*model.Message{e.msg}, ids: []string{e.id}, at: e.at})
	}
	if l.turn != nil {
		msg, err := l.turn.message()
		if err != nil {
			return err
		}
		next = append(next, item{seq: l.turn.Seq, kind: results, msgs: []*model.Message{msg}, at: l.turn.At})
		l.turn = nil
	}
	for _, it := range l.pending {
		if it.seq > fresh.seq {
			next = append(next, it)
		}
	}
	l.window = nil
	l.pending = slices.DeleteFunc(next, func(it item) bool { return len(it.msgs) == 0 })
	return nil
}
