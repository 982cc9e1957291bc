package remote

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"chorus/internal/approval"
	"chorus/internal/chat"
	"chorus/internal/feed"
	"chorus/internal/operation"
	"chorus/internal/operations"
)

// far is a server that asks two questions, one after the other.
type far struct {
	operations.Sessions
	operations.History
	operations.Approvals
	operations.Rules
	operations.Commands
	operations.SessionDeleting
	answers []string
	kept    []string
	looked  int
	created []operations.NewSession
	deleted int
	ran     []string
	lost    int  // how many answers about created sessions are lost
	old     bool // it knows nothing of sessions that do not exist
}

func (f *far) CreateSession(_ context.Context, _ operation.Caller, in operations.NewSession) (operations.CreatedSession, error) {
	f.created = append(f.created, in)
	if f.lost > 0 {
		f.lost--
		return operations.CreatedSession{}, errLost
	}
	out := operations.CreatedSession{SessionID: "one", Session: operations.Session{ID: "one", Agent: "helper", Model: in.Model, Mode: in.Mode}}
	if in.Message != "" {
		out.Seq = 1
	}
	return out, nil
}

func (f *far) PreviewSession(_ context.Context, _ operation.Caller, in operations.NewSession) (operations.Session, error) {
	if f.old {
		return operations.Session{}, operation.Errorf(operation.Invalid, "it supports GET, PATCH, DELETE")
	}
	return operations.Session{Agent: "helper", Model: cmp.Or(in.Model, "usual"), Mode: in.Mode}, nil
}

func (f *far) RunFirst(_ context.Context, _ operation.Caller, in operations.FirstCommand) (operations.FirstAnswer, error) {
	out := operations.FirstAnswer{Session: operations.Session{Agent: "helper", Model: cmp.Or(in.Model, "usual"), Mode: in.Mode}}
	name, rest, _ := strings.Cut(in.Line, " ")
	switch name {
	case "/mode":
		out.Session.Mode = rest
	case "/model":
		out.Session.Model = rest
	default:
		out.Begin = true
	}
	return out, nil
}

func (f *far) RunCommand(_ context.Context, _ operation.Caller, in operations.CommandLine) (operations.CommandAnswer, error) {
	if in.ID != "one" {
		return operations.CommandAnswer{}, operation.Errorf(operation.NotFound, "no session %s", in.ID)
	}
	f.ran = append(f.ran, in.Line)
	return operations.CommandAnswer{}, nil
}

func (f *far) GetSession(context.Context, operation.Caller, operations.SessionRef) (operations.Session, error) {
	return operations.Session{ID: "one", Agent: "helper"}, nil
}

func (f *far) DeleteSession(context.Context, operation.Caller, operations.SessionDeletion) (operations.DeletedSession, error) {
	f.deleted++
	return operations.DeletedSession{}, nil
}

func (f *far) Watch(context.Context, operation.Caller, operations.WatchRequest) iter.Seq2[feed.Item, error] {
	return func(yield func(feed.Item, error) bool) {
		for i, id := range []string{"q1", "q2"} {
			head := feed.Head{Type: feed.TypeApprovalRequired, SessionID: "one", Seq: int64(i + 1), At: time.Unix(0, 0)}
			if !yield(feed.ApprovalRequired{Head: head, ApprovalID: id, CallID: "c", Tool: "bash", Actions: []string{"tool:bash:ls"}}, nil) {
				return
			}
		}
	}
}

func (f *far) ListApprovals(context.Context, operation.Caller, operations.ApprovalQuery) (operation.List[operations.Approval], error) {
	return operation.List[operations.Approval]{Items: []operations.Approval{{ID: "q1", Actions: []string{"tool:bash:ls"}, State: "pending", AskedBy: "local:ada"}}}, nil
}

func (f *far) AnswerApproval(_ context.Context, _ operation.Caller, in operations.Answer) (operations.Approval, error) {
	f.answers, f.kept = append(f.answers, in.ID), append(f.kept, in.Always...)
	return operations.Approval{}, nil
}

func (f *far) Say(context.Context, operation.Caller, operations.Message) (operations.Said, error) {
	return operations.Said{}, operation.Errorf(operation.Busy, "too many wait")
}

// open begins a session on the server.
func (f *far) open(t *testing.T, o Options) *Session {
	t.Helper()
	s, err := Open(t.Context(), operation.NewLocal(operation.LocalOptions{Handlers: []any{f}}),
		operation.Caller{Principal: chat.Principal{Kind: chat.TokenHolder, ID: "t1"}, Scopes: operation.Scopes()}, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestQuestions(t *testing.T) {
	t.Parallel()
	for _, yes := range []bool{true, false} {
		server := &far{}
		s := server.open(t, Options{Yes: yes, AtOnce: true})
		for item, err := range s.Watch(t.Context(), 0) {
			if err != nil || item.Event == nil {
				t.Fatalf("%+v, %v", item, err)
			}
			if !yes && item.Event.Seq == 1 {
				if err := s.Answer(t.Context(), "q1", true, "", true); err != nil { // and whatever is like it
					t.Fatal(err)
				}
			}
		}
		if len(server.answers) != 2 || server.answers[0] != "q1" || server.answers[1] != "q2" {
			t.Errorf("yes %v: answered %v", yes, server.answers)
		}
		q, err := s.Approval(t.Context(), "q1")
		if err != nil || q.State != approval.Open || q.AskedBy.String() != "local:ada" {
			t.Errorf("%+v, %v", q, err)
		}
		if _, err := s.Approval(t.Context(), "unknown"); err == nil {
			t.Error("there is a question that nobody asked")
		}
	}
}

func (f *far) ProposeRules(_ context.Context, _ operation.Caller, in operations.ApprovalRef) (operations.RuleProposal, error) {
	if in.ID != "q1" {
		return operations.RuleProposal{ID: in.ID, Never: "nobody can tell what it does"}, nil
	}
	return operations.RuleProposal{ID: in.ID, Where: "for you", Rules: []operations.RuleStep{{Rules: []string{"tool:bash:ls"}, Means: "exactly this"}}}, nil
}

func (f *far) GetApproval(_ context.Context, _ operation.Caller, in operations.ApprovalRef) (operations.Approval, error) {
	f.looked++
	return operations.Approval{ID: in.ID, AnsweredBy: "token:t7", AnsweredByName: "Ada's phone (token)"}, nil
}

// Whoever answers elsewhere is named as people call them; the server is asked once for each.
func TestWhoAnsweredHasAName(t *testing.T) {
	t.Parallel()
	server := &far{}
	s := server.open(t, Options{})
	for range 2 {
		s.note(t.Context(), feed.ApprovalResolved{ApprovalID: "q1", By: "token:t7", Approved: true})
	}
	s.note(t.Context(), feed.ApprovalResolved{ApprovalID: "q1", By: "local:ada", Approved: true})
	if got := s.NameOf("token:t7"); got != "Ada's phone (token)" || s.NameOf("local:ada") != "ada" || server.looked != 1 {
		t.Errorf("%q, %q, asked %d times", got, s.NameOf("local:ada"), server.looked)
	}
}

// What is always allowed is proposed and kept by the server.
func TestRulesAreKeptOnTheServer(t *testing.T) {
	t.Parallel()
	server := &far{}
	s := server.open(t, Options{})
	offer, err := s.Propose(t.Context(), "q1")
	if err != nil || offer.Where != "for you" || len(offer.Steps) != 1 || offer.Steps[0].Means != "exactly this" {
		t.Fatalf("%+v, %v", offer, err)
	}
	if err := s.Keep(t.Context(), "q1", offer.Steps[0].Rules); err != nil || !slices.Equal(server.answers, []string{"q1"}) || !slices.Equal(server.kept, offer.Steps[0].Rules) {
		t.Errorf("answered %v, kept %v: %v", server.answers, server.kept, err)
	}
	if offer, err = s.Propose(t.Context(), "q2"); err != nil || offer.Never == "" || len(offer.Steps) > 0 {
		t.Errorf("%+v, %v", offer, err)
	}
}

// A session is created by the first words, with what was chosen before them.
func TestTheFirstWordsCreateTheSession(t *testing.T) {
	t.Parallel()
	for name, say := range map[string]func(s *Session) (int64, error){
		"sent": func(s *Session) (int64, error) {
			got, err := s.Send(t.Context(), "hello")
			return got.Seq, err
		},
		"steered": func(s *Session) (int64, error) {
			asPrompt, err := s.Steer(t.Context(), "hello", chat.Inject)
			if !asPrompt {
				t.Error("steered: nothing was running")
			}
			return 1, err
		},
	} {
		server := &far{}
		s := server.open(t, Options{New: operations.NewSession{Agent: "helper", Permissions: "locked", Model: "first"}})
		for _, line := range []string{"/mode plan", "/model second", "/mode review"} {
			if _, err := s.Command(t.Context(), line); err != nil {
				t.Fatal(name, line, err)
			}
		}
		if err := s.Abort(t.Context(), true); err != nil {
			t.Error(err)
		}
		if len(server.created) > 0 || s.ID() != "" || s.Used() || s.Info().Mode != "review" || s.Info().Model != "second" {
			t.Fatalf("%s: created %+v, %+v", name, server.created, s.Info())
		}
		seq, err := say(s)
		want := []operations.NewSession{{Agent: "helper", Permissions: "locked", Model: "second", Mode: "review", Message: "hello", Key: s.key}}
		if err != nil || seq != 1 || !reflect.DeepEqual(server.created, want) || s.ID() != "one" || !s.Used() {
			t.Errorf("%s: created %+v, number %d, %v", name, server.created, seq, err)
		}
		if err := s.Discard(t.Context()); err != nil || server.deleted > 0 {
			t.Errorf("%s: deleted %d times, %v", name, server.deleted, err)
		}
	}
}

// errLost is what a terminal hears when the connection ends.
var errLost = errors.New("the connection ended")

// If the answer to the first words is lost, the same words again are the same session; others are another one, and so are the same ones in another mode.
func TestTheFirstWordsAreSentAgain(t *testing.T) {
	t.Parallel()
	server := &far{lost: 3}
	s := server.open(t, Options{})
	for i, text := range []string{"hello", "hello", "another", "another"} {
		if i == 3 {
			if _, err := s.Command(t.Context(), "/mode plan"); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := s.Send(t.Context(), text); (i < 3) != errors.Is(err, errLost) {
			t.Errorf("%d: %v", i, err)
		}
	}
	keys := func(i, j int) bool {
		return server.created[i].Key != "" && server.created[i].Key == server.created[j].Key
	}
	if len(server.created) != 4 || !keys(0, 1) || keys(1, 2) || keys(2, 3) {
		t.Errorf("%+v", server.created)
	}
}

// What needs the session creates it once, and it is removed again if nothing is said.
func TestACommandCreatesTheSession(t *testing.T) {
	t.Parallel()
	for _, server := range []*far{{}, {old: true}} {
		s := server.open(t, Options{New: operations.NewSession{Model: "first"}})
		for _, line := range []string{"/notes", "/mode plan"} {
			if _, err := s.Command(t.Context(), line); err != nil {
				t.Fatal(line, err)
			}
		}
		if len(server.created) != 1 || server.created[0].Model != "first" || !slices.Equal(server.ran, []string{"/notes", "/mode plan"}) {
			t.Errorf("created %+v, ran %v", server.created, server.ran)
		}
		if err := s.Discard(t.Context()); err != nil || server.deleted != 1 {
			t.Errorf("deleted %d times, %v", server.deleted, err)
		}
	}
	s := new(far).open(t, Options{})
	if err := s.Discard(t.Context()); err != nil {
		t.Error(err)
	}
}

// Whoever watches a session that does not exist sees it from its first event on.
func TestWatchWaitsForTheSession(t *testing.T) {
	t.Parallel()
	s := new(far).open(t, Options{})
	seen := make(chan int64)
	go func() {
		defer close(seen)
		for item := range s.Watch(t.Context(), 0) {
			seen <- item.Event.Seq
		}
	}()
	select {
	case seq := <-seen:
		t.Fatalf("saw %d of a session that does not exist", seq)
	default:
	}
	if _, err := s.Send(t.Context(), "hello"); err != nil {
		t.Fatal(err)
	}
	if first, second := <-seen, <-seen; first != 1 || second != 2 {
		t.Errorf("saw %d and %d", first, second)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for item, err := range new(far).open(t, Options{}).Watch(ctx, 0) {
		t.Errorf("%+v, %v", item, err)
	}
}

func TestRefusedWords(t *testing.T) {
	t.Parallel()
	s := new(far).open(t, Options{AtOnce: true})
	got, err := s.Send(t.Context(), "hi")
	if err != nil || got.Refused != "too many wait" || s.Used() {
		t.Errorf("%+v, %v", got, err)
	}
}
