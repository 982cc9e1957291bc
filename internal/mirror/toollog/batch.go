package toollog

import (
	"path/filepath"

	"chorus/internal/mirror/jsonl"
)

// batch is what one Apply writes. New lines are held back until some line
// has to be changed, so that they can be found then.
type batch struct {
	w     *Writer
	st    state
	lines map[string][]byte // by file, to be appended
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
		if _, err := jsonl.Append(filepath.Join(b.w.dir, name), data); err != nil {
			return err
		}
	}
	clear(b.lines)
	return nil
}
