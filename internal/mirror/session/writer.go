package session

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"chorus/internal/chat"
)

// ErrNotLog means that the file exists and is not a session log. It was not touched.
var ErrNotLog = errors.New("this is not a session log; choose another file")

// ErrClosed means that the writer was closed.
var ErrClosed = errors.New("the session log is closed")

// Writer appends to one session log. Each event is one write of whole lines. After an error the
// file ends where it ended before, and the call may be repeated. It must be used from one
// goroutine.
type Writer struct {
	f       *os.File // nil once closed
	path    string
	size    int64
	torn    bool // bytes beyond size could not be removed yet
	session string
	last    int64
	waiting map[int64]speech  // prompts not yet taken by a run
	notes   map[string][]byte // arguments of open work_notes calls
	now     func() time.Time
	lines   bytes.Buffer // those of one event
}

// maxKept is how much memory is kept for the lines of the next event.
const maxKept = 16 << 10

// Open opens or creates a log, repairs its end, and returns the number of the last event
// in it, or 0. An incomplete last line is removed (or completed, if only its newline is
// missing), and so are the lines of an incomplete event.
func Open(path string) (*Writer, int64, error) {
	if err := makeFolder(filepath.Dir(path)); err != nil {
		return nil, 0, fmt.Errorf("open session log %s: %w", path, err)
	}
	f, err := openLog(path)
	if err != nil {
		return nil, 0, fmt.Errorf("open session log: %w", err)
	}
	w := &Writer{f: f, path: path, now: time.Now}
	w.forget()
	if err := w.recover(); err != nil {
		_ = f.Close()
		return nil, 0, fmt.Errorf("open session log %s: %w", path, err)
	}
	return w, w.last, nil
}

// makeFolder creates the directory. A new .agent excludes itself from the
// repository, since logs contain whatever tools printed.
func makeFolder(dir string) error {
	if _, err := os.Stat(dir); err == nil {
		return nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if filepath.Base(dir) != Folder {
		return nil
	}
	return os.WriteFile(filepath.Join(dir, ".gitignore"), []byte("*\n"), 0o600)
}

func (w *Writer) forget() {
	w.last, w.waiting, w.notes = 0, map[int64]speech{}, map[string][]byte{}
}

// LastSeq returns the number of the last event that is completely in the log.
func (w *Writer) LastSeq() int64 {
	return w.last
}

// Start writes session_start. Numbers count within a session: if the log so
// far belongs to another one, LastSeq starts again at 0.
func (w *Writer) Start(s Start) error {
	s.SessionPath = cmp.Or(s.SessionPath, w.path)
	if err := w.append(w.now(), 0, &startLine{"session_start", s}); err != nil {
		return err
	}
	w.belongTo(s.SessionID)
	return nil
}

// belongTo restarts the numbers if the log continues with another session.
func (w *Writer) belongTo(session string) {
	if w.session != "" && w.session != session {
		w.forget()
	}
	w.session = session
}

// Apply writes the events. It skips those up to LastSeq; the others must come in the order of their numbers.
func (w *Writer) Apply(events []chat.Event) error {
	for _, ev := range events {
		if err := w.write(ev); err != nil {
			return err
		}
	}
	return nil
}

func (w *Writer) write(ev chat.Event) error {
	if ev.Body == nil || (ev.Seq != 0 && ev.Seq <= w.last) {
		return nil
	}
	at := ev.At
	if at.IsZero() {
		at = w.now()
	}
	if err := w.append(at, ev.Seq, w.linesOf(ev)...); err != nil {
		return fmt.Errorf("session log, event %d: %w", ev.Seq, err)
	}
	w.absorb(ev)
	w.last = max(w.last, ev.Seq)
	return nil
}

// append writes the lines in one write, so that only a full disk or a crash can leave a
// part of them; that part is removed, here or by the next Open.
func (w *Writer) append(at time.Time, seq int64, data ...any) error {
	if w.f == nil {
		return ErrClosed
	}
	if w.torn {
		if err := w.cut(); err != nil {
			return err
		}
	}
	w.lines.Reset()
	for i, d := range data {
		if m, ok := d.(marked); ok {
			m.setMark(seq, len(data)-1-i)
		}
		if err := encode(&w.lines, at, d); err != nil {
			return err
		}
	}
	size := w.lines.Len()
	if size == 0 {
		return nil
	}
	_, err := w.f.Write(w.lines.Bytes())
	if w.lines.Cap() > maxKept {
		w.lines = bytes.Buffer{}
	}
	if err != nil {
		w.torn = true
		return errors.Join(fmt.Errorf("write session log: %w", err), w.cut())
	}
	w.size += int64(size)
	return nil
}

func (w *Writer) cut() error {
	if err := w.f.Truncate(w.size); err != nil {
		return fmt.Errorf("repair session log %s: %w", w.path, err)
	}
	w.torn = false
	return nil
}

// Close closes the file. It may be called twice.
func (w *Writer) Close() error {
	if w.f == nil {
		return nil
	}
	err := w.f.Close()
	w.f = nil
	return err
}

var _ io.Closer = (*Writer)(nil)
