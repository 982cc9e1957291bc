package toollog

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"chorus/internal/chat"
)

// sidecarName is the file that says how far the journal was read. It is written last.
const sidecarName = ".toollog.json"

// ErrGap: the events do not follow on LastSeq. Nothing was written; read the
// journal from there.
var ErrGap = errors.New("events are missing before this one")

// Writer mirrors the calls of one thread. It is for one goroutine, and one process
// at a time writes a folder.
type Writer struct {
	dir   string
	st    state
	stale bool // a write failed: look at the files again first
}

// state is the sidecar: the place in the journal, and what is not in the files yet.
type state struct {
	Seq     int64            `json:"seq"`
	Waiting map[int64]string `json:"waiting,omitempty"` // ids of messages that no run has taken
	Trigger string           `json:"trigger,omitempty"` // the message that the run answers
	Calls   map[string]Call  `json:"calls,omitempty"`   // asked for, not answered
	Run     string           `json:"run,omitempty"`
	Spoke   []string         `json:"spoke,omitempty"` // ids of what the run said so far
	Hours   []string         `json:"hours,omitempty"` // files with calls of the run
}

func (s state) clone() state {
	c := s
	c.Waiting, c.Calls = map[int64]string{}, map[string]Call{}
	for k, v := range s.Waiting {
		c.Waiting[k] = v
	}
	for k, v := range s.Calls {
		c.Calls[k] = v
	}
	c.Spoke, c.Hours = slices.Clone(s.Spoke), slices.Clone(s.Hours)
	return c
}

// Open looks at the folder of a channel, which is made if it is not there, and
// mends what a crash has left. Dir gives the names for a thread.
func Open(dir, agent, channel string) (*Writer, error) {
	w := &Writer{dir: filepath.Join(dir, chat.EncodeSegment(agent), chat.EncodeSegment(channel))}
	if err := os.MkdirAll(w.dir, 0o700); err != nil {
		return nil, fmt.Errorf("open tool files: %w", err)
	}
	if err := w.load(); err != nil {
		return nil, fmt.Errorf("open tool files %s: %w", w.dir, err)
	}
	return w, nil
}

// LastSeq is the number of the last event that is in the files; after a failed
// Apply it may be lower than before.
func (w *Writer) LastSeq() int64 { return w.st.Seq }

// load reads the sidecar and cuts away what the files hold beyond it, so that the
// same events can be applied again. A sidecar that is lost means from the beginning.
func (w *Writer) load() error {
	w.st, w.stale = state{}, false
	data, err := os.ReadFile(filepath.Join(w.dir, sidecarName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if json.Unmarshal(data, &w.st) != nil || w.st.Seq < 0 {
		w.st = state{}
	}
	hours, err := w.hours()
	if err != nil {
		return err
	}
	for _, hour := range hours {
		last, err := w.mendTail(hour)
		if err == nil && last > w.st.Seq {
			err = w.rewrite(hour, func(e *Entry) bool { return e.Seq <= w.st.Seq })
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// hours lists the files, oldest first.
func (w *Writer) hours() ([]string, error) {
	list, err := os.ReadDir(w.dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, f := range list {
		if hourName.MatchString(f.Name()) && f.Type().IsRegular() {
			names = append(names, f.Name())
		}
	}
	return names, nil
}

// Apply writes what the events mean. Those up to LastSeq are skipped, the others
// must follow without a gap. After an error nothing counts as written, and the
// same events may be applied again; what a failed write left is cut away first.
func (w *Writer) Apply(events []chat.Event) error {
	if w.stale {
		if err := w.load(); err != nil {
			return fmt.Errorf("mend tool files %s: %w", w.dir, err)
		}
	}
	events = slices.DeleteFunc(slices.Clone(events), func(ev chat.Event) bool { return ev.Seq <= w.st.Seq })
	if len(events) == 0 {
		return nil
	}
	for i, ev := range events {
		if want := w.st.Seq + 1 + int64(i); ev.Seq != want {
			return fmt.Errorf("tool files: event %d where %d should come: %w", ev.Seq, want, ErrGap)
		}
	}
	b := &batch{w: w, lines: map[string][]byte{}}
	st, err := b.write(w.st, events)
	if err != nil {
		w.stale = true
		return fmt.Errorf("write tool files %s: %w", w.dir, err)
	}
	w.st = st
	return nil
}

// Sent adds the platform's ids of the messages that a run's answer became. It may
// be called again, and when the run has left the files already.
func (w *Writer) Sent(run string, ids ...string) error {
	if run == "" || len(ids) == 0 {
		return nil
	}
	err := w.edit(nil, func(e *Entry) bool {
		if e.Run == run {
			e.Call.BotMessageIDs = union(e.Call.BotMessageIDs, ids)
		}
		return true
	}, run)
	if err != nil {
		return fmt.Errorf("note the messages of run %s: %w", run, err)
	}
	return nil
}

// Unsent deletes the calls that led to one of these messages, because it was deleted.
func (w *Writer) Unsent(ids ...string) error {
	if len(ids) == 0 {
		return nil
	}
	if err := w.edit(nil, func(e *Entry) bool { return !e.ledTo(ids...) }, ids...); err != nil {
		return fmt.Errorf("delete the calls of deleted messages: %w", err)
	}
	return nil
}

// Prune deletes the calls whose results stand before a place in the journal: the
// window begins there. Apply does it by itself where the events say that the window
// moved. Lines that are not ours stay.
func (w *Writer) Prune(oldest int64) error {
	if err := w.edit(nil, func(e *Entry) bool { return !e.before(oldest) }); err != nil {
		return fmt.Errorf("prune tool files: %w", err)
	}
	return nil
}

// edit changes lines of these files, or with none named of all, and removes files that
// have none left.
func (w *Writer) edit(files []string, change func(*Entry) bool, needles ...string) error {
	if files == nil {
		var err error
		if files, err = w.hours(); err != nil {
			return err
		}
	}
	for _, name := range files {
		if err := w.rewrite(name, change, needles...); err != nil {
			return err
		}
	}
	return nil
}

func union(ids, more []string) []string {
	for _, id := range more {
		if id != "" && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}
