package toollog

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"chorus/internal/chat"
	"chorus/internal/mirror/jsonl"
)

// sidecarName is the file that says how far the journal was read. It is written last.
const sidecarName = ".toollog.json"

// Writer writes the calls of one thread. It must be used from one goroutine,
// and only one process at a time may write a directory.
type Writer struct {
	dir      string
	st       state
	follower jsonl.Follower
}

// state is the sidecar: the last event in the files, and what is not in them yet.
type state struct {
	Seq     int64            `json:"seq"`
	Waiting map[int64]string `json:"waiting,omitempty"` // ids of messages not yet taken by a run
	Trigger string           `json:"trigger,omitempty"` // the message that the run answers
	Calls   map[string]Call  `json:"calls,omitempty"`   // requested, without a result
	Run     string           `json:"run,omitempty"`
	Spoke   []string         `json:"spoke,omitempty"` // ids of the run's messages so far
	Hours   []string         `json:"hours,omitempty"` // files with calls of the run
}

func (s state) clone() state {
	c := s
	c.Waiting, c.Calls = map[int64]string{}, map[string]Call{}
	maps.Copy(c.Waiting, s.Waiting)
	maps.Copy(c.Calls, s.Calls)
	c.Spoke, c.Hours = slices.Clone(s.Spoke), slices.Clone(s.Hours)
	return c
}

// Open opens the directory of a channel, creating it if needed, and repairs
// what a crash left. Dir returns the names for a thread.
func Open(dir, agent, channel string) (*Writer, error) {
	w := &Writer{dir: filepath.Join(dir, chat.EncodeSegment(agent), chat.EncodeSegment(channel))}
	w.follower = jsonl.Follower{Last: w.LastSeq, Load: w.load, Write: w.write}
	if err := os.MkdirAll(w.dir, 0o700); err != nil {
		return nil, fmt.Errorf("open tool files: %w", err)
	}
	if err := w.load(); err != nil {
		return nil, fmt.Errorf("open tool files %s: %w", w.dir, err)
	}
	return w, nil
}

// LastSeq returns the number of the last event in the files. After a failed Apply it may be lower than before.
func (w *Writer) LastSeq() int64 { return w.st.Seq }

// load reads the sidecar and removes what the files contain beyond it, so that the same events
// can be applied again. Without a sidecar it starts at the first event.
func (w *Writer) load() error {
	w.st = state{}
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
		last, err := w.repairTail(hour)
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
		if hourName().MatchString(f.Name()) && f.Type().IsRegular() {
			names = append(names, f.Name())
		}
	}
	return names, nil
}

// Apply writes the events, like jsonl.Follower.
func (w *Writer) Apply(events []chat.Event) error {
	if err := w.follower.Apply(events); err != nil {
		return fmt.Errorf("tool files %s: %w", w.dir, err)
	}
	return nil
}

func (w *Writer) write(events []chat.Event) error {
	b := &batch{w: w, lines: map[string][]byte{}, st: w.st.clone()}
	for _, ev := range events {
		if err := b.take(ev); err != nil {
			return fmt.Errorf("event %d: %w", ev.Seq, err)
		}
	}
	if err := b.flush(); err != nil {
		return err
	}
	data, err := json.Marshal(b.st)
	if err != nil {
		return err
	}
	if err := jsonl.Replace(filepath.Join(w.dir, sidecarName), data); err != nil {
		return err
	}
	w.st = b.st
	return nil
}

// edit changes lines of these files, or of all if none are named, and removes files without lines.
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
