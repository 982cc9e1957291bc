// Package mirror writes what happened in a thread for people, grep and export:
// log.jsonl (who said what, Guppy's LogEntry and nothing else) and context.jsonl
// (the window as the model sees it, in pi's message shapes).
//
// It promises that the files follow from the events alone. An event is written
// once, whatever crashed in between; a file that lost its end, or was deleted, is
// begun again from the first event. Nobody reads them back as truth.
//
// Where the mirror stands is kept in .mirror.json beside the files and written
// last. What the files hold beyond that place is recognised: a log entry by its
// messageId, a line of the context by its "seq", the place it has in the prompt.
package mirror

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
)

// The names of the files.
const (
	LogName     = "log.jsonl"
	ContextName = "context.jsonl"
	sidecarName = ".mirror.json"
)

// ErrGap: the events do not follow on LastSeq. Nothing was written; read the
// journal from there.
var ErrGap = errors.New("events are missing before this one")

// Thread mirrors one thread. It is for one goroutine.
type Thread struct {
	// Blobs, when set before Apply, finds the bytes of pictures and of imported
	// messages. Without it, or where it fails, a word stands in for them.
	Blobs func(hash string) ([]byte, error)

	dir    string
	st     state
	seen   map[string]bool      // messages in the log beyond what the sidecar knows
	recent map[string]time.Time // messages logged lately, by their time
	stale  bool                 // a write failed: look at the files again first
}

// state is the sidecar: the place in the journal, what the files were like
// there, and what is not in them yet.
type state struct {
	Seq         int64  `json:"seq"`
	LogSize     int64  `json:"logSize"`
	ContextSize int64  `json:"contextSize"`
	ContextLast int64  `json:"contextLast"` // place of the context's last line
	Model       string `json:"model,omitempty"`
	Waiting     []held `json:"waiting,omitempty"` // prompts that no run has taken
	Heard       []held `json:"heard,omitempty"`   // words that no request has seen
	Reply       string `json:"reply,omitempty"`   // the newest answer of the run that is on
	Cut         bool   `json:"cut,omitempty"`     // that answer was cut at its length and goes on
}

// held is a message that has not found its place in the prompt yet.
type held struct {
	Seq     int64           `json:"seq"`
	Message json.RawMessage `json:"message"`
	Name    string          `json:"name,omitempty"`   // in front of the words
	Blocks  chat.Blocks     `json:"blocks,omitempty"` // with files: its words may change by themselves
}

// Open looks at a thread's folder, which is made if it is not there, and mends
// what a crash has left.
func Open(dir string) (*Thread, error) {
	t := &Thread{dir: dir, recent: map[string]time.Time{}}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("open mirror: %w", err)
	}
	if err := t.load(); err != nil {
		return nil, fmt.Errorf("open mirror %s: %w", dir, err)
	}
	return t, nil
}

func (t *Thread) path(name string) string { return filepath.Join(t.dir, name) }

// LastSeq is the number of the last event that is in the files; after a failed
// Apply or a mended folder it may be lower than before.
func (t *Thread) LastSeq() int64 { return t.st.Seq }

// load reads the sidecar and holds the files against it. Where they do not fit,
// it begins again at 0, which is always right and only costs time.
func (t *Thread) load() error {
	t.st, t.seen, t.stale = state{}, map[string]bool{}, false
	data, err := os.ReadFile(t.path(sidecarName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if json.Unmarshal(data, &t.st) != nil {
		t.st = state{}
	}
	ok, err := t.mendContext()
	if err != nil {
		return err
	}
	if size, err := sizeOf(t.path(LogName)); err != nil {
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
	return t.mendLog()
}

func sizeOf(path string) (int64, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// Apply writes what the events mean. Those up to LastSeq are skipped, the others
// must follow without a gap. After an error nothing counts as written, and the
// same events may be applied again; what a failed write left is cut away first.
func (t *Thread) Apply(events []chat.Event) error {
	if t.stale {
		if err := t.load(); err != nil {
			return fmt.Errorf("mend mirror %s: %w", t.dir, err)
		}
	}
	events = slices.DeleteFunc(slices.Clone(events), func(ev chat.Event) bool { return ev.Seq <= t.st.Seq })
	if len(events) == 0 {
		return nil
	}
	for i, ev := range events {
		if want := t.st.Seq + 1 + int64(i); ev.Seq != want {
			return fmt.Errorf("mirror event %d where %d should come: %w", ev.Seq, want, ErrGap)
		}
	}
	b := &batch{t: t, st: t.st}
	b.st.Waiting, b.st.Heard = slices.Clone(t.st.Waiting), slices.Clone(t.st.Heard)
	for _, ev := range events {
		if err := b.take(ev); err != nil {
			return fmt.Errorf("mirror event %d: %w", ev.Seq, err)
		}
	}
	if err := b.write(); err != nil {
		t.stale = true
		return fmt.Errorf("write mirror %s: %w", t.dir, err)
	}
	t.st = b.st
	return nil
}

// batch is what one Apply will write.
type batch struct {
	t       *Thread
	st      state
	log     []byte
	context []contextLine
	rewrite bool // context is the whole file, not only what is added to it
}

func (b *batch) take(ev chat.Event) error {
	b.entry(ev)
	err := b.window(ev)
	b.st.Seq = ev.Seq
	return err
}

// write writes the files and then the sidecar.
func (b *batch) write() error {
	size, err := appendFile(b.t.path(LogName), b.log)
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
	return replaceFile(b.t.path(sidecarName), data)
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
		size, err := appendFile(path, buf.Bytes())
		b.st.ContextSize = size
		return err
	}
	if len(b.context) == 0 {
		b.st.ContextLast = 0
	}
	b.st.ContextSize = int64(buf.Len())
	return replaceFile(path, buf.Bytes())
}
