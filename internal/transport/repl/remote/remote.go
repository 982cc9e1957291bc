// Package remote lets the terminal hold a conversation that runs on a server: a
// repl.Session on an operation.Executor.
//
// It promises that the terminal shows what a terminal on the server would show, using
// only the server's events, and that it reads and runs nothing on this machine for the
// conversation.
package remote

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"iter"
	"reflect"
	"slices"
	"sync"
	"time"

	"chorus/internal/approval"
	"chorus/internal/chat"
	"chorus/internal/feed"
	"chorus/internal/id"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/transport/repl"
)

// Session is one conversation on a server. A new one is created there by the first words, or by what else needs it: a
// file, or a command about it. Until then it has no id.
type Session struct {
	service operation.Executor
	by      operation.Caller

	creating sync.Mutex // held while the session is created
	key      string     // of the last try to create it, and what that was
	tried    operations.NewSession
	exists   chan struct{} // closed once it exists

	mu       sync.Mutex
	planned  operations.NewSession // what it is created with
	now      operations.Session    // before it exists: what it would be
	used     bool
	made     bool              // by this terminal
	attached []string          // references of files for the next prompt
	yes      bool              // approve everything
	always   map[string]bool   // actions that are allowed until this terminal closes
	labels   map[string]string // what calls do, in the server's words
	names    map[string]string // names of people who answered approvals, by their keys
}

var _ repl.Session = (*Session)(nil)

// Options say which conversation it is, and how its approvals are answered.
type Options struct {
	New operations.NewSession
	// AtOnce creates the session before anything is said, for those who name it by its id.
	AtOnce bool
	// ID opens an existing session; Resume says how much of it to use and with which model.
	ID     string
	Resume operations.ResumeRequest
	Yes    bool
}

// Open opens a session, or prepares a new one: the server says at once if it cannot be.
func Open(ctx context.Context, service operation.Executor, by operation.Caller, o Options) (*Session, error) {
	s := &Session{service: service, by: by, yes: o.Yes, always: map[string]bool{}, labels: map[string]string{}, names: map[string]string{}, used: o.ID != "",
		planned: o.New, exists: make(chan struct{})}
	if o.ID == "" {
		return s, s.prepare(ctx, o.AtOnce)
	}
	close(s.exists)
	var err error
	if s.now, err = operations.GetSession.Call(ctx, service, by, operations.SessionRef{ID: o.ID}); err != nil {
		return nil, err
	}
	if o.Resume.Mode != "" || o.Resume.Model != "" || o.Resume.Provider != "" {
		o.Resume.ID, o.Resume.WorkspacePath = s.now.ID, s.now.WorkspacePath
		made, rerr := operations.ResumeSession.Call(ctx, service, by, o.Resume)
		s.now, err = made.Session, rerr
	}
	return s, err
}

// prepare asks what a new session would be. An older server cannot say, and creates it instead.
func (s *Session) prepare(ctx context.Context, atOnce bool) error {
	if !atOnce {
		now, err := operations.PreviewSession.Call(ctx, s.service, s.by, s.planned)
		if kind := operation.KindOf(err); kind != operation.Invalid && kind != operation.NotFound {
			s.now = now
			return err
		}
	}
	_, err := s.create(ctx, "")
	return err
}

// create creates the session unless it exists. With a message, both are created together, and seq is the message's
// number; 0: the session existed already.
func (s *Session) create(ctx context.Context, message string) (seq int64, err error) {
	s.creating.Lock()
	defer s.creating.Unlock()
	s.mu.Lock()
	in, there := s.planned, s.now.ID != ""
	s.mu.Unlock()
	if there {
		return 0, nil
	}
	in.Message = message
	if s.key == "" || !reflect.DeepEqual(in, s.tried) { // the same again is the same try, whose answer was lost
		s.key, s.tried = id.New(), in
	}
	in.Key = s.key
	made, err := operations.CreateSession.Call(ctx, s.service, s.by, in)
	if err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now, s.made, s.used = made.Session, true, made.Seq > 0
	close(s.exists)
	return made.Seq, nil
}

func (s *Session) session() operations.Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

// ID is the session's short id; "": it does not exist yet.
func (s *Session) ID() string { return s.session().ID }

// Start is the number of the last event.
func (s *Session) Start() int64 { return s.session().Seq }

// Used reports whether the session contains any message.
func (s *Session) Used() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used
}

// discardTime is how long leaving waits for the server.
const discardTime = 3 * time.Second

// Discard removes a session that was created for this terminal and never used: a command or a file had needed it.
func (s *Session) Discard(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), discardTime)
	defer cancel()
	s.mu.Lock()
	unused := s.made && !s.used
	s.mu.Unlock()
	if !unused {
		return nil
	}
	if now, err := s.refresh(ctx); err != nil || now.Seq > 0 || now.Queue > 0 { // others may have found it
		return err
	}
	_, err := operations.DeleteSession.Call(ctx, s.service, s.by, operations.SessionDeletion{ID: s.ID(), Now: true})
	return err
}

// Unfinished is the number of the event before the active run; false: no run is active.
func (s *Session) Unfinished() (int64, bool) {
	now := s.session()
	if now.Status != "running" && now.Status != "interrupted" && now.Status != "waiting" && now.Queue == 0 {
		return now.Seq, false
	}
	if len(now.Runs) > 0 && now.Runs[0].Outcome == "" {
		return max(0, now.Runs[0].Seq-1), true
	}
	return now.Seq, true
}

// Attach attaches a file to the next prompt. It creates the session, because the server keeps files in one.
func (s *Session) Attach(ctx context.Context, name string, file io.Reader) error {
	if _, err := s.create(ctx, ""); err != nil {
		return fmt.Errorf("attach %s: %w", name, err)
	}
	stored, err := operations.Attach.Call(ctx, s.service, s.by, operations.NewAttachment{ID: s.ID(), Name: name, File: operation.File{Name: name, ReadCloser: io.NopCloser(file)}})
	if err != nil {
		return fmt.Errorf("attach %s: %w", name, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.attached = append(s.attached, stored.ID)
	return nil
}

func (s *Session) Send(ctx context.Context, text string) (repl.Receipt, error) {
	seq, err := s.create(ctx, text)
	if err != nil || seq > 0 {
		return repl.Receipt{Seq: seq}, err
	}
	s.mu.Lock()
	attached := s.attached
	s.mu.Unlock()
	said, err := operations.Say.Call(ctx, s.service, s.by, operations.Message{ID: s.ID(), Message: text, Attachments: attached})
	if operation.KindOf(err) == operation.Busy {
		return repl.Receipt{Refused: err.Error()}, nil
	}
	if err == nil {
		s.mu.Lock()
		s.used, s.attached = true, nil
		s.mu.Unlock()
	}
	return repl.Receipt{Seq: said.Seq, Position: said.Position}, err
}

func (s *Session) Steer(ctx context.Context, text string, mode chat.Intake) (bool, error) {
	seq, err := s.create(ctx, text)
	if err != nil || seq > 0 {
		return true, err
	}
	said, err := operations.Steer.Call(ctx, s.service, s.by, operations.SteerMessage{ID: s.ID(), Message: text, Mode: mode})
	if err == nil {
		s.mu.Lock()
		s.used = true
		s.mu.Unlock()
	}
	return said.AsPrompt, err
}

func (s *Session) Abort(ctx context.Context, all bool) error {
	if s.ID() == "" {
		return nil // nothing runs
	}
	_, err := operations.Abort.Call(ctx, s.service, s.by, operations.AbortRequest{ID: s.ID(), All: all})
	return err
}

// Answer implements repl.Session. Always lasts as long as this terminal: the same
// call is answered again without asking.
func (s *Session) Answer(ctx context.Context, id string, ok bool, note string, always bool) error {
	if ok && always {
		if a, err := s.find(ctx, id); err == nil {
			s.mu.Lock()
			for _, action := range a.Actions {
				s.always[action] = true
			}
			s.mu.Unlock()
		}
	}
	_, err := operations.AnswerApproval.Call(ctx, s.service, s.by, operations.Answer{ID: id, Approved: ok, Note: note})
	return err
}

// Propose implements repl.Session.
func (s *Session) Propose(ctx context.Context, id string) (approval.Always, error) {
	offer, err := operations.ProposeRules.Call(ctx, s.service, s.by, operations.ApprovalRef{ID: id})
	out := approval.Always{Where: offer.Where, Never: offer.Never}
	for _, step := range offer.Rules {
		out.Steps = append(out.Steps, approval.Step(step))
	}
	return out, err
}

// Keep implements repl.Session: the server keeps the rules, for the person whose token this terminal uses.
func (s *Session) Keep(ctx context.Context, id string, rules []string) error {
	_, err := operations.AnswerApproval.Call(ctx, s.service, s.by, operations.Answer{ID: id, Approved: true, Always: rules})
	return err
}

// Watch implements repl.Session. It waits until the session exists. Calls that this terminal has already allowed are
// answered before they are shown.
func (s *Session) Watch(ctx context.Context, after int64) iter.Seq2[repl.Item, error] {
	return func(yield func(repl.Item, error) bool) {
		select {
		case <-s.exists:
		case <-ctx.Done():
			return
		}
		var group []feed.Item
		for item, err := range operations.Watch.Follow(ctx, s.service, s.by, operations.WatchRequest{ID: s.ID(), After: after}) {
			if err != nil {
				yield(repl.Item{}, err)
				return
			}
			s.note(ctx, item)
			group = append(group, item)
			if item.Header().More {
				continue
			}
			out, err := shown(group)
			group = nil
			if !yield(out, err) || err != nil {
				return
			}
		}
	}
}

// maxLabels limits how many calls, and how many people, are remembered.
const maxLabels = 1000

// nameTime limits the wait for a name; without it the key is shown.
const nameTime = 2 * time.Second

// learnName looks up, once, the name of somebody who answered an approval.
func (s *Session) learnName(ctx context.Context, key, approvalID string) {
	s.mu.Lock()
	_, known := s.names[key]
	if !known && len(s.names) < maxLabels {
		s.names[key] = ""
	}
	s.mu.Unlock()
	if known || key == "" || chat.PrincipalOf(key).Kind == chat.LocalUser {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, nameTime)
	defer cancel()
	if a, err := operations.GetApproval.Call(ctx, s.service, s.by, operations.ApprovalRef{ID: approvalID}); err == nil && a.AnsweredBy == key {
		s.mu.Lock()
		s.names[key] = a.AnsweredByName
		s.mu.Unlock()
	}
}

// NameOf implements repl.Namer.
func (s *Session) NameOf(key string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return cmp.Or(s.names[key], chat.PrincipalOf(key).Label())
}

func (s *Session) note(ctx context.Context, item feed.Item) {
	switch it := item.(type) {
	case feed.ToolCall:
		s.mu.Lock()
		if len(s.labels) >= maxLabels {
			clear(s.labels)
		}
		s.labels[it.Tool+"\x00"+it.ArgsJSON] = it.Label
		s.mu.Unlock()
	case feed.ApprovalResolved:
		s.learnName(ctx, it.By, it.ApprovalID)
	case feed.ApprovalRequired:
		s.mu.Lock()
		known := s.yes || len(it.Actions) > 0 && !slices.ContainsFunc(it.Actions, func(a string) bool { return !s.always[a] })
		s.mu.Unlock()
		if known && !approval.IsQuestion(it.Actions) {
			// If it was answered meanwhile, or may not be answered here, the approval shows it.
			_, _ = operations.AnswerApproval.Call(ctx, s.service, s.by, operations.Answer{ID: it.ApprovalID, Approved: true, Note: "allowed beforehand"})
		}
	}
}

func (s *Session) Label(name string, args []byte) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return cmp.Or(s.labels[name+"\x00"+string(args)], name)
}

func (s *Session) Info() repl.Info {
	now := s.session()
	return repl.Info{Agent: now.Agent, Model: joined(now.Provider, now.Model), Profile: now.Permissions, Mode: now.Mode, ID: now.ID,
		Dir: now.WorkspacePath, Sandbox: cmp.Or(now.RunsIn, now.Sandbox), Window: now.Window}
}

// find searches the session's approvals, the open ones first.
func (s *Session) find(ctx context.Context, id string) (operations.Approval, error) {
	for _, state := range []string{"pending", "all"} {
		q := operations.ApprovalQuery{Session: s.ID(), State: state}
		for {
			list, err := operations.ListApprovals.Call(ctx, s.service, s.by, q)
			if err != nil {
				return operations.Approval{}, err
			}
			for _, a := range list.Items {
				if a.ID == id {
					return a, nil
				}
			}
			if q.Cursor = list.Next; q.Cursor == "" {
				break
			}
		}
	}
	return operations.Approval{}, fmt.Errorf("the server has no approval %s", id)
}

func (s *Session) Approval(ctx context.Context, id string) (approval.Approval, error) {
	a, err := s.find(ctx, id)
	if err != nil {
		return approval.Approval{}, err
	}
	return Approval(a), nil
}

// Approval converts an approval for the terminal.
func Approval(a operations.Approval) approval.Approval {
	out := approval.Approval{ID: a.ID, Run: a.Run, Call: chat.ToolUse{ID: a.CallID, Name: a.Tool, Args: arguments(a.ArgsJSON)}, Actions: a.Actions, Dir: a.Dir,
		Bound: a.Bound, Preview: a.Preview, Assessment: chat.Assessment{Risk: a.Risk, RiskWhy: a.RiskWhy, Parts: a.Parts}, Rule: a.Rule, Reason: a.Reason, Again: a.Again, Fields: a.Fields, AskedBy: chat.PrincipalOf(a.AskedBy), Payer: chat.PrincipalOf(a.Payer),
		AskedAt: a.AskedAt, Deadline: a.Deadline, Who: a.Who, State: approval.State(a.State), AnsweredBy: a.AnsweredBy, AnsweredAt: a.AnsweredAt, Note: a.Note}
	var err error
	if out.Thread, err = chat.ParseThreadID(a.Thread); err != nil { // from a server that does not send it
		out.Thread, _ = chat.NewThreadID("web", "server", a.Session, a.Agent)
	}
	for _, v := range a.Votes {
		out.Votes = append(out.Votes, approval.Vote{By: chat.PrincipalOf(v.By), OK: v.OK, Note: v.Note, At: v.At})
	}
	return out
}
