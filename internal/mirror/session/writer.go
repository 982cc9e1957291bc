package session

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"chorus/internal/chat"
)

// ErrNotLog: the file is there and is something else; it was not touched.
var ErrNotLog = errors.New("this is not a session log; choose another file")

// ErrClosed: the writer was closed.
var ErrClosed = errors.New("the session log is closed")

// Writer appends to one session log. Each event is one write of whole lines. After an error
// the file ends where it ended before, and the call may be repeated. It is for one
// goroutine.
type Writer struct {
	f       *os.File // nil once closed
	path    string
	size    int64
	torn    bool // bytes beyond size could not be cut away yet
	session string
	last    int64
	waiting map[int64]speech  // prompts that no run has taken yet
	notes   map[string][]byte // arguments of open work_notes calls
	now     func() time.Time
}

// Open opens or makes a log, repairs its end, and gives the number of the last event in it:
// 0 for none. An incomplete last line is cut away (or ended, if only its newline is
// missing), and so are the lines of an event of which some are missing.
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

// makeFolder makes the directory; a new .agent keeps itself out of the repository, since
// logs contain whatever tools printed.
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

// LastSeq is the number of the last event that is in the log as a whole.
func (w *Writer) LastSeq() int64 {
	return w.last
}

// Start writes session_start. Numbers count within a session: where the log so
// far belongs to another one, LastSeq begins again at 0.
func (w *Writer) Start(s Start) error {
	s.SessionPath = cmp.Or(s.SessionPath, w.path)
	if err := w.append(w.now(), 0, &startLine{"session_start", s}); err != nil {
		return err
	}
	w.belongTo(s.SessionID)
	return nil
}

// belongTo restarts the numbers where the log continues with another session.
func (w *Writer) belongTo(session string) {
	if w.session != "" && w.session != session {
		w.forget()
	}
	w.session = session
}

// Apply writes what the events mean. Those up to LastSeq are skipped; the others come in
// the order of their numbers.
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

// append writes the lines in one write, so that only a full disk or a crash can leave some
// of them; those are cut away, here or by the next Open.
func (w *Writer) append(at time.Time, seq int64, data ...any) error {
	if w.f == nil {
		return ErrClosed
	}
	if w.torn {
		if err := w.cut(); err != nil {
			return err
		}
	}
	var buf []byte
	for i, d := range data {
		if m, ok := d.(marked); ok {
			m.setMark(seq, len(data)-1-i)
		}
		line, err := encode(at, d)
		if err != nil {
			return err
		}
		buf = append(buf, line...)
	}
	if len(buf) == 0 {
		return nil
	}
	if _, err := w.f.Write(buf); err != nil {
		w.torn = true
		return errors.Join(fmt.Errorf("write session log: %w", err), w.cut())
	}
	w.size += int64(len(buf))
	return nil
}

func (w *Writer) cut() error {
	if err := w.f.Truncate(w.size); err != nil {
		return fmt.Errorf("repair session log %s: %w", w.path, err)
	}
	w.torn = false
	return nil
}

// Close closes the file. Closing twice is harmless.
func (w *Writer) Close() error {
	if w.f == nil {
		return nil
	}
	err := w.f.Close()
	w.f = nil
	return err
}

var _ io.Closer = (*Writer)(nil)
