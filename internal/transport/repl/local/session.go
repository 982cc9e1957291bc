package local

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"chorus/internal/approval"
	"chorus/internal/chat"
	"chorus/internal/engine"
	"chorus/internal/id"
	"chorus/internal/journal"
	"chorus/internal/mirror/session"
	"chorus/internal/notice"
	"chorus/internal/overrides"
	"chorus/internal/runsetup"
	"chorus/internal/settings"
	"chorus/internal/transport/repl"
	"chorus/internal/usage"
	"chorus/internal/window"
)

// Session is one conversation at the terminal.
type Session struct {
	asker    func() (*asker, error) // for commands of operations, created at first use
	app      *Sessions
	engine   *engine.Engine
	thread   chat.ThreadID
	dir      string
	file     string
	Choice   *overrides.Thread
	mirror   *sessionMirror
	once     bool // run, not chat
	fresh    bool // not in the journal yet
	mu       sync.Mutex
	attached []string // references of files for the next prompt
	Start    int64    // the last event when the session was opened

	remarks <-chan notice.Notice // nil: it runs once
	deaf    func()

	unfinished int64 // the event before unfinished work; -1: there is none
}

var _ repl.Session = (*Session)(nil)

// OpenSession creates a conversation, or opens the one that the options name.
func (sessions *Sessions) OpenSession(ctx context.Context, o runsetup.SessionOptions) (*Session, error) {
	if o.Warn == nil {
		o.Warn = func(string) {}
	}
	if err := sessions.Setup.Check(&o); err != nil {
		return nil, err
	}
	s := &Session{app: sessions, dir: o.Dir, once: o.Once}
	s.asker = sync.OnceValues(s.newAsker)
	lines, err := s.find(ctx, o)
	if err != nil {
		return nil, err
	}
	if len(o.Servers) > 0 {
		sessions.Setup.SetServers(s.thread, o.Servers)
	}
	sessions.Setup.PrepareToolbox(s.thread, s.dir)
	s.Choice = sessions.Overrides.For(s.thread)
	s.Choice.Set(func(c *overrides.Values) {
		c.Terms = chat.Terms{Model: o.Model, Mode: o.Mode, Profile: o.Profile, MaxSteps: o.MaxSteps, Yes: o.Yes, Sandbox: o.Sandbox, By: id.New()}
		c.CanAsk, c.Start = o.CanAsk, s.Start
		if o.Once {
			c.Until = max(1, s.Start)
		}
	})
	if err := s.findUnfinished(ctx); err != nil {
		return nil, err
	}
	s.engine = sessions.Engine(func(t chat.ThreadID) bool { return t == s.thread })
	if s.fresh && len(lines) > 0 {
		if err := s.importLines(ctx, lines, o.File); err != nil {
			return nil, err
		}
	}
	if !s.fresh && len(lines) == 0 {
		if err := s.trim(ctx, o.ResumeMode); err != nil {
			return nil, err
		}
	}
	if err := s.startMirrors(o); err != nil {
		return nil, err
	}
	if !o.Once {
		s.remarks, s.deaf = sessions.Notices.Subscribe()
		sessions.Isolation.Announce(ctx, s.Info().Sandbox)
		sessions.StartBackground()
	}
	return s, nil
}

// trim applies a resume mode to a thread in the journal.
func (s *Session) trim(ctx context.Context, mode string) error {
	n := 0
	switch {
	case mode == "" || mode == "full":
		return nil
	case strings.HasPrefix(mode, "last-"):
		var err error
		if n, err = strconv.Atoi(strings.TrimPrefix(mode, "last-")); err != nil || n < 1 {
			return usage.Wrap(fmt.Errorf("resume mode %q: how many prompts?", mode))
		}
	}
	err := s.engine.Trim(ctx, s.thread, n)
	if errors.Is(err, engine.ErrBusy) {
		return fmt.Errorf("session %s still has an interrupted run; continue it first, without --resume-mode", s.ID())
	}
	if err == nil {
		row, rerr := s.app.DB.Thread(ctx, s.thread)
		s.Start, err = row.Next-1, rerr
	}
	return err
}

// find decides which thread the session is, and which lines it must start with
// if it comes from a file.
func (s *Session) find(ctx context.Context, o runsetup.SessionOptions) ([]chat.Line, error) {
	name := o.ID
	var log session.Log
	var doubts []string // problems of the file: they only matter if the session is read from it
	s.file = o.File
	if o.File == "" && o.ID != "" {
		s.file, _ = session.Path(o.Dir, o.ID)
	}
	if s.file != "" {
		f, err := os.Open(s.file)
		switch {
		case err == nil:
			log, err = session.Read(f, func(text string) { doubts = append(doubts, text) })
			f.Close()
			if err != nil {
				return nil, fmt.Errorf("read session %s: %w", s.file, err)
			}
			name = cmp.Or(name, log.Start.SessionID)
		case !os.IsNotExist(err):
			return nil, fmt.Errorf("read session: %w", err)
		}
	}
	if name != "" {
		row, err := s.app.Service.FindThread(ctx, name)
		if err == nil {
			return nil, s.adopt(ctx, row, o)
		}
		if !errors.Is(err, journal.ErrUnknown) {
			return nil, err
		}
		if o.ID != "" && len(log.Lines()) == 0 {
			return nil, fmt.Errorf("there is no session %q here; `chorus thread list` shows them", o.ID)
		}
	}
	for _, text := range doubts {
		o.Warn(text)
	}
	if o.Agent != chat.DefaultAgent && !s.app.Settings.Agents().Exists(o.Agent) {
		return nil, usage.Wrap(fmt.Errorf("there is no agent %q; `chorus agent list` shows them, `chorus agent create %s` makes it", o.Agent, o.Agent))
	}
	s.fresh = true
	if name == "" || !settings.PlainID(name) {
		name = id.New()
	}
	var err error
	if s.thread, err = chat.NewThreadID("cli", settings.Place(o.Dir), name, o.Agent); err != nil {
		return nil, err
	}
	return session.Resume(log.Lines(), cmp.Or(o.ResumeMode, "full"), o.Warn), nil
}

// adopt continues a thread of the journal.
func (s *Session) adopt(ctx context.Context, row journal.Thread, o runsetup.SessionOptions) error {
	if row.ID.Transport() != "cli" {
		return fmt.Errorf("%s is not a terminal session", row.ID)
	}
	s.thread, s.Start = row.ID, row.Next-1
	if row.Dir != "" {
		s.dir = row.Dir
	}
	if row.Dir != "" && row.Dir != o.Dir {
		o.Warn(fmt.Sprintf("this session works in %s", row.Dir))
	}
	return nil
}

func (s *Session) row(thread chat.ThreadID) journal.Thread {
	_, place, _, agent := thread.Parts()
	return journal.Thread{ID: thread, Agent: agent, Place: place, Owner: s.app.Me(), Dir: s.dir}
}

// importLines starts the thread with a conversation from elsewhere.
func (s *Session) importLines(ctx context.Context, lines []chat.Line, source string) error {
	data, err := json.Marshal(lines)
	if err != nil {
		return err
	}
	blob := chat.NewBlob(data)
	row := s.row(s.thread)
	done, err := s.app.DB.Commit(ctx, journal.Commit{Thread: s.thread, Create: &row, Blobs: []chat.Blob{blob},
		Events: []chat.Event{{Thread: s.thread, Who: row.Owner.String(), Platform: "local", PlatformID: id.New(),
			Body: chat.Imported{Source: cmp.Or(filepath.Base(source), "session"), Blob: blob.Hash, Count: len(lines)}}}})
	if err != nil {
		return fmt.Errorf("import %d messages: %w", len(lines), err)
	}
	s.fresh, s.Start = false, done.Next-1
	return nil
}

// ID is the session's short id.
func (s *Session) ID() string { return s.thread.Thread() }

// Thread is the session's thread.
func (s *Session) Thread() chat.ThreadID { return s.thread }

// GoOn wakes the thread to continue an interrupted run. It reports whether there is
// one.
func (s *Session) GoOn() bool {
	if s.unfinished < 0 {
		return false
	}
	s.engine.Wake(s.thread)
	return true
}

// Open reports whether there is a run to continue, or a prompt that waits.
// It ignores read errors: the next command reports them.
func (s *Session) Open(ctx context.Context) bool {
	if s.fresh {
		return false
	}
	row, err := s.app.DB.Thread(ctx, s.thread)
	return err == nil && (row.Status.On() || row.Waiting > 0)
}

// Unfinished is the number of the last event before the work that was unfinished when
// the session was opened: the interrupted run. If only prompts wait, or nothing does, it is
// the last event.
func (s *Session) Unfinished() int64 {
	if s.unfinished < 0 {
		return s.Start
	}
	return s.unfinished
}

// findUnfinished looks before the engine starts, because its sweep may continue the
// thread at once.
func (s *Session) findUnfinished(ctx context.Context) error {
	s.unfinished = -1
	if s.fresh {
		return nil
	}
	row, err := s.app.DB.Thread(ctx, s.thread)
	if err != nil {
		return err
	}
	if row.Status.On() {
		at, err := s.app.DB.LastRunAt(ctx, s.thread)
		s.unfinished = max(0, at-1)
		return err
	}
	seqs, err := s.app.DB.PendingPrompts(ctx, s.thread)
	if err == nil && len(seqs) > 0 {
		s.unfinished = row.Next - 1 // an earlier run may have ended after the prompt
	}
	return err
}

// Used reports whether the session contains any message.
func (s *Session) Used() bool { return !s.fresh }

// Attach attaches a file to the next prompt.
func (s *Session) Attach(ctx context.Context, name string, file io.Reader) error {
	stored, err := s.app.Service.StoreAttachment(ctx, s.thread, name, file)
	if err != nil {
		return fmt.Errorf("attach %s: %w", name, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.attached = append(s.attached, stored.ID)
	return nil
}

func (s *Session) Send(ctx context.Context, text string) (repl.Receipt, error) {
	me := s.app.Me()
	ahead := -1 // the prompt itself is counted
	if !s.fresh {
		if row, err := s.app.DB.Thread(ctx, s.thread); err == nil && row.Status.On() {
			ahead = 0 // a run is active, perhaps in another process: it comes first
		}
	}
	if s.once {
		s.Choice.Set(func(c *overrides.Values) { c.Until = math.MaxInt64 })
	}
	bot, err := s.app.Settings.Bot(s.thread.Agent())
	if err != nil {
		return repl.Receipt{}, err
	}
	blocks := chat.TextBlocks(window.Clip(text, bot.MaxMessageChars))
	s.mu.Lock()
	attached := s.attached
	s.mu.Unlock()
	for _, ref := range attached {
		more, err := s.app.Service.Attached(ctx, s.thread, ref, bot)
		if err != nil {
			return repl.Receipt{}, err
		}
		blocks = append(blocks, more...)
	}
	got, err := s.engine.Deliver(ctx, chat.Inbound{Threads: []chat.ThreadID{s.thread}, Principal: me, Prompt: true, Intake: chat.Intake(bot.Intake),
		From: chat.Participant{ID: me.ID, Name: me.Name, Kind: chat.Person}, Blocks: blocks, Terms: s.Choice.Snapshot().Terms}, s.row)
	if err != nil {
		return repl.Receipt{}, err
	}
	s.mu.Lock()
	s.fresh, s.attached = false, s.attached[len(attached):] // another file may have been attached meanwhile
	s.mu.Unlock()
	if s.once {
		s.Choice.Set(func(c *overrides.Values) { c.Until = got[0].Seq })
	}
	return repl.Receipt{Seq: got[0].Seq, Refused: got[0].Refused, Position: max(0, got[0].Waiting+ahead)}, nil
}

func (s *Session) Steer(ctx context.Context, text string, mode chat.Intake) (bool, error) {
	if s.fresh {
		_, err := s.Send(ctx, text)
		return true, err
	}
	me := s.app.Me()
	return s.engine.Steer(ctx, s.thread, chat.Steered{From: chat.Participant{ID: me.ID, Name: me.Name, Kind: chat.Person},
		Principal: me, Blocks: chat.TextBlocks(text), Mode: mode, Terms: s.Choice.Snapshot().Terms})
}

func (s *Session) Abort(ctx context.Context, all bool) error {
	if s.fresh {
		return nil
	}
	_, err := s.engine.Abort(ctx, s.thread, s.app.Me().String(), all)
	return err
}

func (s *Session) Answer(ctx context.Context, id string, ok bool, note string, always bool) error {
	if ok && always {
		a, err := s.app.DB.Approval(ctx, id)
		if err != nil {
			return err
		}
		// Only an approval that suffices alone: one of two must not decide for the other person.
		if state, err := approval.Weigh(a, s.app.Me(), true); err == nil && state == approval.Approved && !a.NeedsTwo() {
			s.remember(a)
		}
	}
	return s.engine.Answer(ctx, id, s.app.Me(), ok, note)
}

func (s *Session) Propose(ctx context.Context, id string) (approval.Always, error) {
	return s.app.Gate.Propose(ctx, id, s.app.Me())
}

func (s *Session) Keep(ctx context.Context, id string, rules []string) error {
	return s.app.Gate.Keep(ctx, id, s.app.Me(), rules)
}

// remember allows exactly what was asked for the rest of the session.
func (s *Session) remember(a approval.Approval) {
	b, err := s.app.Setup.Toolbox(s.thread, s.dir)
	if err != nil {
		return
	}
	t, args, err := b.Tools.Resolve(a.Call.Name, a.Call.Args)
	if err != nil {
		return
	}
	asked := s.app.asked(s.dir, s.Choice.Snapshot().Terms, t, args)
	s.Choice.Allow(asked...)
}

func (s *Session) Watch(ctx context.Context, after int64) iter.Seq2[repl.Item, error] {
	return func(yield func(repl.Item, error) bool) {
		for item, err := range s.engine.Watch(ctx, s.thread, after) {
			if !yield(repl.Item{Event: item.Event, Live: item.Live}, err) {
				return
			}
		}
	}
}

func (s *Session) Approval(ctx context.Context, id string) (approval.Approval, error) {
	return s.app.DB.Approval(ctx, id)
}

func (s *Session) Label(name string, args []byte) string {
	b, err := s.app.Setup.Toolbox(s.thread, s.dir)
	if err != nil {
		return name
	}
	return b.Label(name, args)
}

// nameTime limits the database lookup of a name; without it the key is shown.
const nameTime = time.Second

// NameOf implements repl.Namer.
func (s *Session) NameOf(key string) string {
	ctx, cancel := context.WithTimeout(context.Background(), nameTime)
	defer cancel()
	return s.app.Service.NameOf(ctx, key)
}

func (s *Session) Info() repl.Info {
	now := s.Choice.Snapshot()
	bot, err := s.app.Settings.Bot(s.thread.Agent())
	if err != nil {
		bot = s.app.Shared
	}
	models, err := s.app.Models.For(bot.Vendors)
	if err != nil {
		models = s.app.Models
	}
	name, err := models.Name("", cmp.Or(now.Model, bot.ContinuationModel))
	if err != nil {
		name = cmp.Or(now.Model, bot.ContinuationModel)
	}
	window := cmp.Or(bot.CompactionContextWindow, models.Window(name))
	return repl.Info{Agent: s.thread.Agent(), Model: name, Mode: now.Mode, ID: s.ID(), Dir: s.dir, Window: window,
		Profile: cmp.Or(now.Profile, bot.Permissions), Sandbox: s.app.Isolation.Describe(now.Sandbox, bot, cmp.Or(now.Profile, bot.Permissions))}
}

// Remarks are messages for the person that are not part of the conversation.
func (s *Session) Remarks() <-chan notice.Notice { return s.remarks }

// Close completes the mirrors.
func (s *Session) Close() error {
	if s.deaf != nil {
		s.deaf()
	}
	return s.mirror.close(s)
}
