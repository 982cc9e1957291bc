package app

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
	"chorus/internal/session"
	"chorus/internal/toollog"
)

// mirrors writes what people open with an editor: the session file as it goes,
// the thread's log and context when a run has ended. They follow the journal; a
// process that dies leaves them behind, and the next one catches up.
type mirrors struct {
	app    *App
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

func (s *Session) startMirrors(o SessionOptions) error {
	m := &mirrors{app: s.app, thread: s.thread, warn: o.Warn}
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

// takeLock reports false when another process mirrors this thread.
func (m *mirrors) takeLock() (bool, error) {
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
func (m *mirrors) open(s *Session, o SessionOptions) error {
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

func (m *mirrors) follow(ctx context.Context, s *Session) {
	after := m.file.LastSeq()
	if logs, err := m.app.openLogs(m.thread); err == nil {
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

// batchSize is how many events wait for the logs at most.
const batchSize = 200

func (m *mirrors) write(ev chat.Event) {
	m.say(m.file.Mirror(ev))
	if m.logs == nil || ev.Seq <= m.logs.LastSeq() {
		return
	}
	m.batch = append(m.batch, ev)
	if _, ended := ev.Body.(chat.RunEnded); ended || len(m.batch) == batchSize {
		m.flush()
	}
}

func (m *mirrors) flush() {
	if err := m.logs.Apply(m.batch); err != nil {
		m.say(err)
		m.logs = nil // the end of the session tries once more, from the journal
	}
	m.batch = nil
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	m.say(m.app.MirrorTools(ctx, m.thread))
}

// say warns once: a full disk would otherwise say so for every line.
func (m *mirrors) say(err error) {
	if err != nil && !m.warned {
		m.warned = true
		m.warn("the session file is behind: " + err.Error())
	}
}

// inherit takes the files over from a process that has ended meanwhile.
func (m *mirrors) inherit(s *Session) bool {
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
func (m *mirrors) close(s *Session) error {
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
		m.say(m.app.Mirror(ctx, m.thread))
		m.say(m.app.MirrorTools(ctx, m.thread))
	})
	return err
}

// MirrorTools brings the hourly files of a thread's calls to the journal's end, for
// agents that have them: those of rooms, and all when TOOLS_PATH says where.
func (a *App) MirrorTools(ctx context.Context, thread chat.ThreadID) error {
	dir := a.Env("TOOLS_PATH")
	if dir == "" {
		bot, err := a.bot(thread.Agent())
		if err != nil || !told(bot) {
			return nil // a mistake in the configuration is told where it matters
		}
		dir = filepath.Join(a.Home.Dir(), "tools")
	}
	if _, err := a.DB.Thread(ctx, thread); err != nil {
		return nil // nothing was said in it
	}
	agent, channel := toollog.Dir(thread)
	w, err := toollog.Open(dir, agent, channel)
	if err != nil {
		return err
	}
	var batch []chat.Event
	for ev, err := range a.DB.AllEvents(ctx, thread, w.LastSeq()) {
		if err != nil {
			return err
		}
		if batch = append(batch, ev); len(batch) == batchSize {
			if err := w.Apply(batch); err != nil {
				return err
			}
			batch = batch[:0]
		}
	}
	return w.Apply(batch)
}

func (a *App) openLogs(thread chat.ThreadID) (*mirror.Thread, error) {
	m, err := mirror.Open(a.Home.ThreadDir(thread))
	if err == nil {
		m.Blobs = func(hash string) ([]byte, error) {
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			return a.DB.Blob(ctx, hash)
		}
	}
	return m, err
}

// Mirror brings a thread's log.jsonl and context.jsonl to the journal's end.
func (a *App) Mirror(ctx context.Context, thread chat.ThreadID) error {
	if _, err := a.DB.Thread(ctx, thread); err != nil {
		return nil // nothing was said in it
	}
	m, err := a.openLogs(thread)
	if err != nil {
		return err
	}
	var batch []chat.Event
	for ev, err := range a.DB.AllEvents(ctx, thread, m.LastSeq()) {
		if err != nil {
			return err
		}
		if batch = append(batch, ev); len(batch) == 500 {
			if err := m.Apply(batch); err != nil {
				return err
			}
			batch = batch[:0]
		}
	}
	return m.Apply(batch)
}
