// Package conversation writes the events of a thread for people, grep and export:
// log.jsonl (who said what, in the format of Guppy's LogEntry) and context.jsonl (the
// window as the model sees it, in pi's message formats).
//
// The files depend only on the events. An event is written once, whatever crashed in
// between. A file that was truncated or deleted is written again from the first
// event. The program never relies on their content.
//
// The number of the last event is stored in .mirror.json next to the files and written
// last. Content beyond it is recognised: a log entry by its messageId, a line of the
// context by its "seq", which is its place in the prompt.
package conversation

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"chorus/internal/chat"
	"chorus/internal/mirror/jsonl"
)

// The names of the files.
const (
	LogName     = "log.jsonl"
	ContextName = "context.jsonl"
	sidecarName = ".mirror.json"
)

// Writer writes the files of one thread. It is for one goroutine.
type Writer struct {
	// Blobs, if set before Apply, returns the bytes of images and of imported messages.
	// Without it, or if it fails, the files have a note instead.
	Blobs func(hash string) ([]byte, error)

	dir      string
	st       state
	seen     map[string]bool      // messages in the log beyond what the sidecar knows
	recent   map[string]time.Time // recently logged messages, with their times
	follower jsonl.Follower
}

// state is the sidecar: the last event in the files, their sizes at that point, and what is not in them yet.
type state struct {
	Seq         int64  `json:"seq"`
	LogSize     int64  `json:"logSize"`
	ContextSize int64  `json:"contextSize"`
	ContextLast int64  `json:"contextLast"` // place of the context's last line
	Model       string `json:"model,omitempty"`
	Waiting     []held `json:"waiting,omitempty"` // prompts not yet taken by a run
	Heard       []held `json:"heard,omitempty"`   // messages not yet seen by a request
	Reply       string `json:"reply,omitempty"`   // the newest answer of the current run
	Cut         bool   `json:"cut,omitempty"`     // that answer was cut at the length limit and continues
	Forgot      int64  `json:"forgot,omitempty"`  // the event for which the files were last rewritten
}

// held is a message that has no place in the prompt yet.
type held struct {
	Seq     int64           `json:"seq"`
	Message json.RawMessage `json:"message"`
	Name    string          `json:"name,omitempty"`   // precedes the text
	Blocks  chat.Blocks     `json:"blocks,omitempty"` // for a message with files, whose text may change separately
}

// Open opens the directory of a thread, creating it if needed, and repairs what a crash left.
func Open(dir string) (*Writer, error) {
	t := &Writer{dir: dir, recent: map[string]time.Time{}}
	t.follower = jsonl.Follower{Last: t.LastSeq, Load: t.load, Write: t.write}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("open mirror: %w", err)
	}
	if err := t.load(); err != nil {
		return nil, fmt.Errorf("open mirror %s: %w", dir, err)
	}
	return t, nil
}

func (t *Writer) path(name string) string { return filepath.Join(t.dir, name) }

// LastSeq returns the number of the last event in the files. After a
// failed Apply or a repair it may be lower than before.
func (t *Writer) LastSeq() int64 { return t.st.Seq }

// load reads the sidecar and compares the files with it. If they differ it starts
// again at 0, which is always correct and only costs time.
func (t *Writer) load() error {
	t.st, t.seen = state{}, map[string]bool{}
	data, err := os.ReadFile(t.path(sidecarName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if json.Unmarshal(data, &t.st) != nil {
		t.st = state{}
	}
	ok, err := t.repairContext()
	if err != nil {
		return err
	}
	if size, err := jsonl.Size(t.path(LogName)); err != nil {
		return err
	} else if size < t.st.LogSize {
		ok = false
	}
	if !ok {
		t.st = state{}
		if err := os.Remove(t.path(ContextName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return t.repairLog()
}

// Restart removes the files, which are then written from the first event, because the journal
// has forgotten words that may be in them. It does so once per event.
func (t *Writer) Restart(seq int64) (done bool, err error) {
	if t.st.Seq == 0 || t.st.Forgot >= seq {
		return false, nil
	}
	for _, name := range []string{LogName, ContextName} {
		if err := os.Remove(t.path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, err
		}
	}
	t.st, t.seen, t.recent = state{Forgot: seq}, map[string]bool{}, map[string]time.Time{}
	data, err := json.Marshal(t.st)
	if err != nil {
		return false, err
	}
	return true, jsonl.Replace(t.path(sidecarName), data)
}

// Apply writes the events, like jsonl.Follower.
func (t *Writer) Apply(events []chat.Event) error {
	if err := t.follower.Apply(events); err != nil {
		return fmt.Errorf("mirror %s: %w", t.dir, err)
	}
	return nil
}

func (t *Writer) write(events []chat.Event) error {
	b := &batch{t: t, st: t.st}
	b.st.Waiting, b.st.Heard = slices.Clone(t.st.Waiting), slices.Clone(t.st.Heard)
	for _, ev := range events {
		if err := b.take(ev); err != nil {
			return fmt.Errorf("event %d: %w", ev.Seq, err)
		}
	}
	if err := b.write(); err != nil {
		return err
	}
	t.st = b.st
	return nil
}

// batch is what one Apply will write.
type batch struct {
	t       *Writer
	st      state
	log     []byte
	context []contextLine
	rewrite bool // context is the whole file, not only an addition
}

func (b *batch) take(ev chat.Event) error {
	b.entry(ev)
	err := b.window(ev)
	b.st.Seq = ev.Seq
	return err
}

// write writes the files and then the sidecar.
func (b *batch) write() error {
	size, err := jsonl.Append(b.t.path(LogName), b.log)
	if err != nil {
		return err
	}
	b.st.LogSize = size
	if err := b.writeContext(); err != nil {
		return err
	}
	data, err := json.Marshal(b.st)
	if err != nil {
		return err
	}
	return jsonl.Replace(b.t.path(sidecarName), data)
}

func (b *batch) writeContext() error {
	var buf bytes.Buffer
	for _, l := range b.context {
		buf.Write(l.raw)
		buf.WriteByte('\n')
		b.st.ContextLast = l.place
	}
	path := b.t.path(ContextName)
	if !b.rewrite {
		size, err := jsonl.Append(path, buf.Bytes())
		b.st.ContextSize = size
		return err
	}
	if len(b.context) == 0 {
		b.st.ContextLast = 0
	}
	b.st.ContextSize = int64(buf.Len())
	return jsonl.Replace(path, buf.Bytes())
}
