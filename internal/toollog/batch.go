package toollog

import (
	"encoding/json"
	"fmt"
	"path/filepath"

	"chorus/internal/chat"
)

// batch is what one Apply writes. New lines are held until something wants to
// change lines, so that it finds them.
type batch struct {
	w     *Writer
	lines map[string][]byte // by file, to be appended
}

var _ sink = (*batch)(nil)

// write takes the events in order and gives the state behind them, which is in the sidecar then.
func (b *batch) write(from state, events []chat.Event) (state, error) {
	f := &fold{from.clone(), b}
	for _, ev := range events {
		if err := f.take(ev); err != nil {
			return state{}, fmt.Errorf("event %d: %w", ev.Seq, err)
		}
	}
	if err := b.flush(); err != nil {
		return state{}, err
	}
	data, err := json.Marshal(f.st)
	if err != nil {
		return state{}, err
	}
	return f.st, replaceFile(filepath.Join(b.w.dir, sidecarName), data)
}

func (b *batch) add(e Entry) error {
	line, err := encode(e)
	if err != nil {
		return err
	}
	b.lines[hourOf(e.At)] = append(b.lines[hourOf(e.At)], line...)
	return nil
}

func (b *batch) edit(files []string, change func(*Entry) bool, needles ...string) error {
	if err := b.flush(); err != nil {
		return err
	}
	return b.w.edit(files, change, needles...)
}

func (b *batch) flush() error {
	for name, data := range b.lines {
		if err := appendFile(filepath.Join(b.w.dir, name), data); err != nil {
			return err
		}
	}
	clear(b.lines)
	return nil
}
