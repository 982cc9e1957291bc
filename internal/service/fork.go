package service

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"chorus/internal/chat"
	"chorus/internal/engine"
	"chorus/internal/id"
	"chorus/internal/journal"
	"chorus/internal/mirror/session"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/plainfile"
	"chorus/internal/settings"
	"chorus/internal/transcript"
)

// Fork implements the operation of that name.
func (o *Handler) Fork(ctx context.Context, by operation.Caller, in operations.ForkRequest) (operations.CreatedSession, error) {
	row, err := o.Find(ctx, by, in.ID)
	if err != nil {
		return operations.CreatedSession{}, err
	}
	if err := o.MayWork(by, row); err != nil {
		return operations.CreatedSession{}, err
	}
	if o.guest && in.Message == "" { // at a terminal, a fork stays in the same place as the thread
		thread, err := o.app.ForkThread(ctx, row, in.AtSeq)
		if err != nil {
			return operations.CreatedSession{}, err
		}
		return o.created(ctx, by, string(thread))
	}
	made, err := o.Standing(ctx, row.ID)
	if err != nil {
		return operations.CreatedSession{}, err
	}
	name := id.New()
	if in.Key != "" {
		name = id.Of("fork", by.Principal.String(), string(row.ID), strconv.FormatInt(in.AtSeq, 10), in.Key)
	}
	thread, err := chat.NewThreadID("web", by.Principal.OwnPlace(), name, row.Agent)
	if err != nil {
		return operations.CreatedSession{}, err
	}
	if in.Key != "" {
		if _, err := o.app.DB.Thread(ctx, thread); !errors.Is(err, journal.ErrUnknown) {
			if err != nil {
				return operations.CreatedSession{}, err
			}
			return o.created(ctx, by, name) // the same request again
		}
	}
	// The folder is not copied: both work in the same files from here on.
	c, err := o.app.forking(ctx, row, thread, by.Principal, in.AtSeq, made.Terms)
	if err == nil {
		err = o.write(ctx, by, c, in.Message, made.Terms)
	}
	if err != nil {
		return operations.CreatedSession{}, err
	}
	return o.created(ctx, by, name)
}

// write creates a thread with its first message, if any, in one commit.
func (o *Handler) write(ctx context.Context, by operation.Caller, c journal.Commit, message string, terms chat.Terms) error {
	if strings.TrimSpace(message) == "" {
		_, err := o.app.DB.Commit(ctx, c)
		return err
	}
	if err := o.MayWork(by, *c.Create); err != nil { // as with every later message: the folder may be a link that leads elsewhere
		return err
	}
	bot, err := o.app.Settings.BotFor(journal.Thread{ID: c.Thread, Agent: c.Thread.Agent(), Place: c.Thread.Place(), Dir: c.Create.Dir})
	if err != nil {
		return err
	}
	blocks, err := o.words(ctx, *c.Create, operations.SteerMessage{Message: message}, bot)
	if err != nil {
		return err
	}
	if !o.guest {
		terms.By = ServedBy
	}
	o.runHere(c.Thread)
	first := chat.Event{Thread: c.Thread, Who: by.Principal.String(), Platform: platform, PlatformID: c.Thread.Thread() + "/first", Body: chat.Received{From: from(by.Principal), Principal: by.Acting(),
		Blocks: blocks, Intake: cmp.Or(chat.Intake(bot.Intake), chat.Queue), Prompt: true, Terms: terms}}
	c.Events = append(c.Events, first)
	_, err = o.Engine.Arrive(ctx, journal.Arrival{Platform: platform, What: "message", PlatformID: first.PlatformID, Commits: []journal.Commit{c}})
	return err
}

// ForkThread creates a new thread in the same place with the history of the old one up to an event; 0: up to its end.
func (s *Service) ForkThread(ctx context.Context, row journal.Thread, atSeq int64) (chat.ThreadID, error) {
	transport, place, _, agent := row.ID.Parts()
	thread, err := chat.NewThreadID(transport, place, id.New(), agent)
	if err != nil {
		return "", err
	}
	var made Standing
	text, err := s.DB.Setting(ctx, threadScope, string(row.ID))
	if err == nil {
		err = json.Unmarshal([]byte(text), &made)
	}
	if err != nil && !errors.Is(err, journal.ErrUnknown) {
		return "", err
	}
	return thread, s.Fork(ctx, row, thread, row.Owner, atSeq, made.Terms)
}

// Fork writes the new thread: its origin and its history, in one commit. The history has complete pairs only: an answer
// whose calls were not done by then is left out.
func (s *Service) Fork(ctx context.Context, row journal.Thread, thread chat.ThreadID, owner chat.Principal, atSeq int64, terms chat.Terms) error {
	c, err := s.forking(ctx, row, thread, owner, atSeq, terms)
	if err != nil {
		return err
	}
	_, err = s.DB.Commit(ctx, c)
	return err
}

// forking is the commit that makes a fork.
func (s *Service) forking(ctx context.Context, row journal.Thread, thread chat.ThreadID, owner chat.Principal, atSeq int64, terms chat.Terms) (journal.Commit, error) {
	atSeq = cmp.Or(atSeq, row.Next-1)
	if atSeq < 1 || atSeq >= row.Next {
		return journal.Commit{}, operation.InvalidField("atSeq", "session %s has the events 1 to %d; there is no %d to fork from", row.ID.Thread(), row.Next-1, atSeq)
	}
	lines, err := s.LinesUpTo(ctx, row.ID, atSeq)
	if err != nil {
		return journal.Commit{}, err
	}
	data, err := json.Marshal(lines)
	if err != nil {
		return journal.Commit{}, err
	}
	o := &Handler{app: s}
	if err := o.putStanding(ctx, thread, Standing{Terms: terms, Forked: row.ID}); err != nil {
		return journal.Commit{}, err
	}
	blob := chat.NewBlob(data)
	event := func(body chat.Body) chat.Event {
		return chat.Event{Thread: thread, Who: owner.String(), Platform: "local", PlatformID: id.New(), Body: body}
	}
	events := []chat.Event{event(chat.Forked{From: row.ID, AtSeq: atSeq})}
	if len(lines) > 0 {
		events = append(events, event(chat.Imported{Source: "fork of " + row.ID.Thread(), Blob: blob.Hash, Count: len(lines)}))
	}
	made := journal.Thread{ID: thread, Owner: owner, Dir: row.Dir, Title: strings.TrimSpace(row.Title + " (fork)")}
	return journal.Commit{Thread: thread, Create: &made, Blobs: []chat.Blob{blob}, Events: events}, nil
}

// LinesUpTo folds a thread up to an event and returns its conversation.
func (s *Service) LinesUpTo(ctx context.Context, thread chat.ThreadID, atSeq int64) ([]chat.Line, error) {
	log, err := s.LogAt(ctx, thread, atSeq)
	if err != nil {
		return nil, err
	}
	return log.Lines()
}

// LogAt returns a thread's log after atSeq events: from its snapshot if that is earlier, else from the beginning.
func (s *Service) LogAt(ctx context.Context, thread chat.ThreadID, atSeq int64) (*transcript.Log, error) {
	log, err := engine.Load(ctx, s.DB, thread)
	if err != nil {
		return nil, err
	}
	if log.Seq() > atSeq {
		log = transcript.New(func(hash string) ([]byte, error) { return s.DB.Blob(context.WithoutCancel(ctx), hash) })
	}
	if log.Seq() == atSeq {
		return log, nil
	}
	for ev, err := range s.DB.AllEvents(ctx, thread, log.Seq()) {
		if err != nil {
			return nil, err
		}
		if err := log.Apply(ev); err != nil {
			return nil, err
		}
		if ev.Seq == atSeq {
			break
		}
	}
	return log, nil
}

// ResumeSession implements the operation of that name.
func (o *Handler) ResumeSession(ctx context.Context, by operation.Caller, in operations.ResumeRequest) (operations.CreatedSession, error) {
	row, err := o.Find(ctx, by, in.ID)
	switch {
	case err == nil:
		return o.goOn(ctx, by, row, in)
	case operation.KindOf(err) != operation.NotFound:
		return operations.CreatedSession{}, err
	}
	made, err := o.takeUp(ctx, by, in)
	if err != nil {
		return operations.CreatedSession{}, err
	}
	return o.created(ctx, by, made)
}

// goOn resumes a session of this home: with another model, or with less of its window.
func (o *Handler) goOn(ctx context.Context, by operation.Caller, row journal.Thread, in operations.ResumeRequest) (operations.CreatedSession, error) {
	id := row.ID.Thread()
	if err := o.MayWork(by, row); err != nil {
		return operations.CreatedSession{}, err
	}
	if in.WorkspacePath != "" && !sameFolder(in.WorkspacePath, row.Dir) {
		return operations.CreatedSession{}, operation.Errorf(operation.Invalid, "session %s works in %s; leave workspacePath out, or name that", id, row.Dir)
	}
	if row.Status.On() {
		return operations.CreatedSession{}, operation.Errorf(operation.Conflict, "session %s is live; talk to it, or stop its run first", id)
	}
	made, err := o.Standing(ctx, row.ID)
	if err != nil {
		return operations.CreatedSession{}, err
	}
	if in.Provider != "" || in.Model != "" {
		terms, _, err := o.plan(by, operations.NewSession{Agent: row.Agent, Provider: in.Provider, Model: in.Model}, row.ID)
		if err != nil {
			return operations.CreatedSession{}, err
		}
		made.Terms.Model = terms.Model
		if err := o.putStanding(ctx, row.ID, made); err != nil {
			return operations.CreatedSession{}, err
		}
	}
	n, cut := resumed(in.Mode)
	if cut {
		err := o.Engine.Trim(ctx, row.ID, n)
		if errors.Is(err, engine.ErrBusy) {
			return operations.CreatedSession{}, operation.Errorf(operation.Conflict, "session %s is live; talk to it, or stop its run first", id)
		}
		if err != nil {
			return operations.CreatedSession{}, err
		}
	}
	return o.created(ctx, by, id)
}

// ClearSession implements the operation of that name.
func (o *Handler) ClearSession(ctx context.Context, by operation.Caller, in operations.SessionRef) (operations.ClearedSession, error) {
	row, err := o.Find(ctx, by, in.ID)
	if err != nil {
		return operations.ClearedSession{}, err
	}
	if err := o.MayWork(by, row); err != nil {
		return operations.ClearedSession{}, err
	}
	n, err := o.Engine.Clear(ctx, row.ID, by.Principal.String())
	if errors.Is(err, engine.ErrBusy) {
		return operations.ClearedSession{}, operation.Errorf(operation.Conflict, "session %s is live; stop its run first", row.ID.Thread())
	}
	return operations.ClearedSession{Messages: n}, err
}

// sameFolder reports whether two paths lead to the same folder.
func sameFolder(a, b string) bool {
	if filepath.Clean(a) == filepath.Clean(b) {
		return true
	}
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(one, other)
}

// resumed reports whether a mode leaves something out, and how many prompts it keeps.
func resumed(mode string) (prompts int, cut bool) {
	if mode == "" || mode == "full" {
		return 0, false
	}
	_, _ = fmt.Sscanf(mode, "last-%d", &prompts) // summary: none
	return prompts, true
}

// takeUp creates a session from a file that a coding agent has left in a repository.
func (o *Handler) takeUp(ctx context.Context, by operation.Caller, in operations.ResumeRequest) (string, error) {
	name := in.ID
	if in.WorkspacePath == "" {
		return "", noSession(name)
	}
	path, err := session.Path(in.WorkspacePath, name)
	if err != nil {
		return "", noSession(name)
	}
	own, err := chat.NewThreadID("web", by.Principal.OwnPlace(), id.New(), chat.DefaultAgent)
	if err != nil {
		return "", err
	}
	terms, dir, err := o.plan(by, operations.NewSession{WorkspacePath: in.WorkspacePath, Provider: in.Provider, Model: in.Model}, own)
	if err != nil {
		return "", err
	}
	log, err := readSession(dir, filepath.Join(session.Folder, filepath.Base(path)))
	if errors.Is(err, fs.ErrNotExist) {
		return "", operation.Errorf(operation.NotFound, "there is no log of a session %.80q in %s", name, dir)
	}
	if err != nil {
		return "", err
	}
	if found, err := o.app.DB.ThreadsNamed(ctx, name); err != nil || len(found) > 0 || !settings.PlainID(name) {
		name = id.New() // the name is taken by somebody else here
	}
	thread, err := chat.NewThreadID("web", by.Principal.OwnPlace(), name, chat.DefaultAgent)
	if err != nil {
		return "", err
	}
	lines := session.Resume(log.Lines(), cmp.Or(in.Mode, "full"), nil)
	data, err := json.Marshal(lines)
	if err != nil {
		return "", err
	}
	blob := chat.NewBlob(data)
	if err := o.putStanding(ctx, thread, Standing{Terms: terms}); err != nil {
		return "", err
	}
	row := journal.Thread{ID: thread, Owner: by.Principal, Dir: dir}
	_, err = o.app.DB.Commit(ctx, journal.Commit{Thread: thread, Create: &row, Blobs: []chat.Blob{blob},
		Events: []chat.Event{{Thread: thread, Who: by.Principal.String(), Platform: "local", PlatformID: id.New(),
			Body: chat.Imported{Source: filepath.Base(path), Blob: blob.Hash, Count: len(lines)}}}})
	return name, err
}

// maxSessionFile is more than a model could ever read of one.
const maxSessionFile = 64 << 20

// readSession reads a log in a workspace, and follows no link out of it.
func readSession(dir, path string) (session.Log, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return session.Log{}, err
	}
	defer root.Close()
	if _, err := root.Stat(path); err != nil {
		return session.Log{}, fs.ErrNotExist
	}
	f, info, err := plainfile.OpenIn(root, path)
	if errors.Is(err, plainfile.ErrNotPlain) {
		return session.Log{}, fs.ErrNotExist
	}
	if err != nil {
		return session.Log{}, err
	}
	defer f.Close()
	if info.Size() > maxSessionFile {
		return session.Log{}, operation.Errorf(operation.TooLarge, "the session file is larger than %d MB", maxSessionFile>>20)
	}
	return session.Read(f, nil)
}
