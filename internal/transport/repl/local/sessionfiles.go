package local

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"chorus/internal/chat"
	"chorus/internal/lockfile"
	"chorus/internal/mirror"
	"chorus/internal/mirrors"
	"chorus/internal/runsetup"
	"chorus/internal/session"
)

// sessionMirror writes what people open with an editor: the session file as it goes,
// the thread's log and context when a run has ended. They follow the journal; a
// process that dies leaves them behind, and the next one catches up.
type sessionMirror struct {
	app    *Sessions
	thread chat.ThreadID
	file   *session.Writer
	logs   *mirror.Thread
	batch  []chat.Event // for logs; they are written at a run's end
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
	if err := m.open(s, o); err != nil {
		// A repository that cannot be written is no reason not to talk about it.
		o.Warn("no session file: " + err.Error())
		return nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	m.cancel = cancel
	m.done.Go(func() { m.follow(ctx, s) })
	return nil
}

// takeLock reports false when another process sessionMirror this thread.
func (m *sessionMirror) takeLock() (bool, error) {
	dir, err := m.app.Home.Ensure(m.app.Home.Locks())
	if err != nil {
		return false, err
	}
	sum := sha256.Sum256([]byte(m.thread))
	m.lock, err = lockfile.Try(filepath.Join(dir, "mirror-"+hex.EncodeToString(sum[:12])+".lock"), nil)
	if errors.Is(err, lockfile.ErrHeld) {
		return false, nil
	}
	return err == nil, err
}

// open opens the session file and says in it and in the index what begins.
func (m *sessionMirror) open(s *Session, o runsetup.SessionOptions) error {
	dir := filepath.Dir(s.file)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if filepath.Base(dir) == session.Folder {
		ignore := filepath.Join(dir, ".gitignore")
		if _, err := os.Lstat(ignore); os.IsNotExist(err) {
			_ = os.WriteFile(ignore, []byte("*\n"), 0o644) // sessions are nobody else's business
		}
	}
	w, last, err := session.Open(s.file)
	if err != nil {
		return err
	}
	m.file = w
	provider, name, _ := strings.Cut(s.Info().Model, "/")
	mode := "repl"
	if o.Once {
		mode = "once"
	}
	action := "created"
	if last > 0 || s.Start > 0 {
		action = "resumed"
	}
	err = w.Start(session.Start{SessionID: s.ID(), SessionPath: s.file, RepoRoot: s.dir, Provider: provider, Model: name, Mode: mode, Resumed: action == "resumed"})
	if err != nil {
		return errors.Join(err, w.Close())
	}
	return session.Index(session.IndexPath(s.dir)).Append(session.Entry{SessionID: s.ID(), Action: action, SessionPath: s.file,
		RepoRoot: s.dir, Provider: provider, Model: name, Mode: mode})
}

func (m *sessionMirror) follow(ctx context.Context, s *Session) {
	after := m.file.LastSeq()
	if logs, err := m.app.Mirrors.OpenLogs(m.thread); err == nil {
		m.logs, after = logs, min(after, logs.LastSeq())
	}
	tick := time.NewTicker(mirrorEvery)
	defer tick.Stop()
	for item, err := range s.engine.Gather(ctx, m.thread, after, tick.C) {
		if err == nil && item.Event != nil {
			m.write(*item.Event)
		}
	}
}

// mirrorEvery is how far behind a session file may be: nobody reads it faster.
const mirrorEvery = 250 * time.Millisecond

func (m *sessionMirror) write(ev chat.Event) {
	m.say(m.file.Mirror(ev))
	if m.logs == nil || ev.Seq <= m.logs.LastSeq() {
		return
	}
	m.batch = append(m.batch, ev)
	if _, ended := ev.Body.(chat.RunEnded); ended || len(m.batch) == mirrors.BatchSize {
		m.flush()
	}
}

func (m *sessionMirror) flush() {
	if err := m.logs.Apply(m.batch); err != nil {
		m.say(err)
		m.logs = nil // the end of the session tries once more, from the journal
	}
	m.batch = nil
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	m.say(m.app.Mirrors.MirrorTools(ctx, m.thread))
}

// say warns once: a full disk would otherwise say so for every line.
func (m *sessionMirror) say(err error) {
	if err != nil && !m.warned {
		m.warned = true
		m.warn("the session file is behind: " + err.Error())
	}
}

// inherit takes the files over from a process that has ended meanwhile.
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

// close brings everything to the journal's end.
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
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if m.file != nil {
			if m.logs != nil {
				m.flush()
			}
			for ev, rerr := range m.app.DB.AllEvents(ctx, m.thread, m.file.LastSeq()) {
				if rerr != nil {
					break
				}
				m.say(m.file.Mirror(ev))
			}
			err = m.file.Close()
		}
		m.say(m.app.Mirrors.Mirror(ctx, m.thread))
		m.say(m.app.Mirrors.MirrorTools(ctx, m.thread))
	})
	return err
}
