package transcript

import (
	"encoding/json"
	"fmt"
	"time"

	"chorus/internal/chat"
	"chorus/internal/model"
)

// Codec names the format of snapshots. A snapshot in another format is
// ignored, and the thread is folded from its beginning.
const Codec = "transcript-5"

type savedMessage struct {
	Role   model.Role       `json:"role"`
	From   chat.Participant `json:"from"`
	Blocks chat.Blocks      `json:"blocks"`
}

type savedEntry struct {
	Place int64        `json:"place"`
	Seq   int64        `json:"seq"`
	Kind  entryKind    `json:"kind"`
	Msg   savedMessage `json:"msg"`
	ID    string       `json:"id,omitempty"`
	At    time.Time    `json:"at,omitzero"`
}

type savedItem struct {
	Seq  int64          `json:"seq"`
	Kind entryKind      `json:"kind"`
	Msgs []savedMessage `json:"msgs"`
	IDs  []string       `json:"ids,omitempty"`
	At   time.Time      `json:"at,omitzero"`
	What string         `json:"what,omitempty"`
}

type saved struct {
	Seq      int64             `json:"seq"`
	Place    int64             `json:"place"`
	Window   []savedEntry      `json:"window"`
	Turn     *turn             `json:"turn,omitempty"`
	Pending  []savedItem       `json:"pending,omitempty"`
	Waiting  []Waiting         `json:"waiting,omitempty"`
	Run      *Run              `json:"run,omitempty"`
	Ended    *chat.RunEnded    `json:"ended,omitempty"`
	Notes    map[string]string `json:"notes,omitempty"`
	Edits    map[int64]edit    `json:"edits,omitempty"`
	Hidden   []savedEntry      `json:"hidden,omitempty"`
	Renderer string            `json:"renderer,omitempty"`
	Read     []string          `json:"read,omitempty"`
	Modified []string          `json:"modified,omitempty"`
	Used     int               `json:"used,omitempty"`
	UsedAt   int               `json:"usedAt,omitempty"`
	Rolled   int64             `json:"rolled,omitempty"`
	Mark     int64             `json:"mark,omitempty"`
	Sent     sent              `json:"sent,omitzero"`
	Renewal  *savedItem        `json:"renewal,omitempty"`
}

func save(m *model.Message) savedMessage { return savedMessage{m.Role, m.From, m.Blocks} }

func (s savedMessage) message() (*model.Message, error) {
	return model.NewMessage(s.Role, s.From, s.Blocks)
}

func (e entry) save() savedEntry { return savedEntry{e.place, e.seq, e.kind, save(e.msg), e.id, e.at} }

func (s savedEntry) entry() (entry, error) {
	msg, err := s.Msg.message()
	return entry{s.Place, s.Seq, s.Kind, msg, s.ID, s.At}, err
}

func readEntries(list []savedEntry) (out []entry, err error) {
	for _, s := range list {
		e, err := s.entry()
		if err != nil {
			return nil, fmt.Errorf("read snapshot: %w", err)
		}
		out = append(out, e)
	}
	return out, nil
}

func (it item) save() savedItem {
	s := savedItem{Seq: it.seq, Kind: it.kind, IDs: it.ids, At: it.at, What: it.what}
	for _, m := range it.msgs {
		s.Msgs = append(s.Msgs, save(m))
	}
	return s
}

func (s savedItem) item() (item, error) {
	it := item{seq: s.Seq, kind: s.Kind, ids: s.IDs, at: s.At, what: s.What}
	for _, m := range s.Msgs {
		msg, err := m.message()
		if err != nil {
			return it, err
		}
		it.msgs = append(it.msgs, msg)
	}
	return it, nil
}

// Snapshot encodes the folded state. Its size depends on the window, not on the history.
func (l *Log) Snapshot() ([]byte, error) {
	s := saved{Seq: l.seq, Place: l.place, Turn: l.turn, Waiting: l.waiting, Run: l.run, Ended: l.ended,
		Notes: l.notes, Edits: l.edits, Read: l.read, Modified: l.modified, Used: l.used, UsedAt: l.usedAt, Rolled: l.rolled, Mark: l.mark, Sent: l.sent, Renderer: l.renderer}
	for _, e := range l.window {
		s.Window = append(s.Window, e.save())
	}
	for _, e := range l.hidden {
		s.Hidden = append(s.Hidden, e.save())
	}
	for _, it := range l.pending {
		s.Pending = append(s.Pending, it.save())
	}
	if l.renewal != nil {
		renewal := l.renewal.save()
		s.Renewal = &renewal
	}
	data, err := json.Marshal(s)
	if err != nil {
		return nil, fmt.Errorf("snapshot: %w", err)
	}
	return data, nil
}

// Restore returns the log that Snapshot encoded.
func Restore(data []byte, blob func(hash string) ([]byte, error)) (*Log, error) {
	var s saved
	if err := json.Unmarshal(data, &s); err != nil {
		return nil, fmt.Errorf("read snapshot: %w", err)
	}
	l := New(blob)
	l.seq, l.place, l.turn, l.waiting, l.run, l.ended = s.Seq, s.Place, s.Turn, s.Waiting, s.Run, s.Ended
	l.read, l.modified, l.used, l.usedAt = s.Read, s.Modified, s.Used, s.UsedAt
	l.rolled, l.mark, l.sent = s.Rolled, s.Mark, s.Sent
	if s.Notes != nil {
		l.notes = s.Notes
	}
	if s.Edits != nil {
		l.edits = s.Edits
	}
	l.renderer = s.Renderer
	var err error
	if l.window, err = readEntries(s.Window); err != nil {
		return nil, err
	}
	if l.hidden, err = readEntries(s.Hidden); err != nil {
		return nil, err
	}
	for _, si := range s.Pending {
		it, err := si.item()
		if err != nil {
			return nil, fmt.Errorf("read snapshot: %w", err)
		}
		l.pending = append(l.pending, it)
	}
	if s.Renewal != nil {
		it, err := s.Renewal.item()
		if err != nil {
			return nil, fmt.Errorf("read snapshot: %w", err)
		}
		l.renewal = &it
	}
	return l, nil
}
