package local

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"chorus/internal/chat"
	"chorus/internal/digest"
	"chorus/internal/lockfile"
	"chorus/internal/mirror"
	"chorus/internal/mirror/session"
	"chorus/internal/runsetup"
)

// sessionMirror writes the session file as events arrive, and the thread's other files when
// a run has ended. They follow the journal: if the process dies they are behind, and the
// next process catches up.
type sessionMirror struct {
	app    *Sessions
	thread chat.ThreadID
	file   *session.Writer
	behind int // events since the thread's other files were written
	warn   func(string)
	cancel context.CancelFunc
	done   sync.WaitGroup
	once   sync.Once
	warned bool
	lock   *lockfile.Lock // only one process writes the files of a thread
}

func (s *Session) startMirrors(o runsetup.SessionOptions) error {
	m := &sessionMirror{app: s.app, thread: s.thread, warn: o.Warn}
	s.mirror = m
	if s.file == "" {
		path, err := session.Path(s.dir, s.ID())
		if err != nil {
			return err
		}
		s.file = path
	}
	if held, err := m.takeLock(); err != nil || !held {
		return err // the other process follows the same journal
	}
	start := s.began(o)
	ctx, cancel := context.WithCancel(context.Background())
	m.cancel = cancel
	m.done.Go(func() { // concurrently with the run, because creating files can take longer than an answer
		if err := m.open(start); err != nil {
			// A read-only repository is no reason not to talk about it.
			o.Warn("no session file: " + err.Error())
			return
		}
		m.follow(ctx, s)
	})
	return nil
}

// began is the start of the session file, as far as it is known before the file is open.
func (s *Session) began(o runsetup.SessionOptions) session.Start {
	provider, name, _ := strings.Cut(s.Info().Model, "/")
	mode := "repl"
	if o.Once {
		mode = "once"
	}
	return session.Start{SessionID: s.ID(), SessionPath: s.file, RepoRoot: s.dir, Provider: provider, Model: name, Mode: mode, Resumed: s.Start > 0}
}

// takeLock returns false if another process writes the files of this thread.
func (m *sessionMirror) takeLock() (bool, error) {
	dir, err := m.app.Home.Ensure(m.app.Home.Locks())
	if err != nil {
		return false, err
	}
	m.lock, err = lockfile.Try(filepath.Join(dir, "mirror-"+digest.Of(m.thread)[:24]+".lock"), nil)
	if errors.Is(err, lockfile.ErrHeld) {
		return false, nil
	}
	return err == nil, err
}

// open opens the session file, and adds the session to it and to the index.
func (m *sessionMirror) open(start session.Start) error {
	dir := filepath.Dir(start.SessionPath)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	w, last, err := session.Open(start.SessionPath)
	if err != nil {
		return err
	}
	if filepath.Base(dir) == session.Folder { // not a link, or it would not have been opened
		ignore := filepath.Join(dir, ".gitignore")
		if _, err := os.Lstat(ignore); os.IsNotExist(err) {
			_ = os.WriteFile(ignore, []byte("*\n"), 0o644) // sessions are private
		}
	}
	m.file = w
	action := "created"
	if start.Resumed = start.Resumed || last > 0; start.Resumed {
		action = "resumed"
	}
	if err := w.Start(start); err != nil {
		return errors.Join(err, w.Close())
	}
	return session.AppendIndex(start.RepoRoot, action, start, time.Now())
}

func (m *sessionMirror) follow(ctx context.Context, s *Session) {
	tick := time.NewTicker(mirrorEvery)
	defer tick.Stop()
	for item, err := range s.engine.Gather(ctx, m.thread, m.file.LastSeq(), tick.C) {
		if err == nil && item.Event != nil {
			m.write(*item.Event)
		}
	}
}

// mirrorEvery is the maximum delay of a session file: nobody reads it faster.
const mirrorEvery = 250 * time.Millisecond

func (m *sessionMirror) write(ev chat.Event) {
	m.say(m.file.Apply([]chat.Event{ev}))
	m.behind++
	if _, ended := ev.Body.(chat.RunEnded); ended || m.behind == mirror.BatchSize {
		m.catchUp()
	}
}

// catchUp brings the thread's other files, and the given ones, up to date with the journal.
func (m *sessionMirror) catchUp(further ...mirror.Writer) {
	m.behind = 0
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	m.say(m.app.Mirrors.CatchUp(ctx, m.thread, further...))
}

// say warns once, because a full disk would otherwise be reported for every line.
func (m *sessionMirror) say(err error) {
	if err != nil && !m.warned {
		m.warned = true
		m.warn("the session file is behind: " + err.Error())
	}
}

// inherit takes over the files of a process that has ended meanwhile.
func (m *sessionMirror) inherit(s *Session) bool {
	held, err := m.takeLock()
	if err != nil || !held {
		return false
	}
	if m.file, _, err = session.Open(s.file); err != nil {
		m.file = nil
		m.say(err)
	}
	return true
}

// close brings all files up to date.
func (m *sessionMirror) close(s *Session) error {
	var err error
	m.once.Do(func() {
		if m.lock == nil && !m.inherit(s) {
			return
		}
		defer m.lock.Release()
		if m.cancel != nil {
			m.cancel()
			m.done.Wait()
		}
		if m.file == nil {
			m.catchUp()
			return
		}
		m.catchUp(m.file)
		err = m.file.Close()
	})
	return err
}
