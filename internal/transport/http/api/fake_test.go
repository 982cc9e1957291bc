package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"chorus/internal/chat"
	"chorus/internal/command"
	"chorus/internal/feed"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/transport/http/api"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var at = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// fake answers every order with something whole, and notes what was ordered.
type fake struct {
	mu      sync.Mutex
	orders  []string
	failing error // what every order answers, if any
	late    error // what exports and replays end with, once they have begun
}

var _ command.Service = (*fake)(nil)

func (f *fake) note(by command.Caller, order string, args ...any) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if by.Principal.ID == "" {
		return command.Errorf(command.Failed, "an order without a caller")
	}
	f.orders = append(f.orders, order+fmt.Sprintf("%+v", args))
	return f.failing
}

// fail sets what orders answer from now on.
func (f *fake) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failing = err
}

// last is the order that came last.
func (f *fake) last() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.orders) == 0 {
		return ""
	}
	return f.orders[len(f.orders)-1]
}

func session(id string) command.Session {
	return command.Session{ID: id, Thread: "web:ada:" + id, Agent: "helper", CreatedAt: at, MovedAt: at, Status: "idle", Seq: 7, Cost: 1_500_000_000}
}

func approval(id string) command.Approval {
	return command.Approval{ID: id, Session: "s1", CallID: "c1", Tool: "bash", State: "pending", AskedAt: at}
}

func one[T any](item T, err error) (command.List[T], error) {
	return command.List[T]{Items: []T{item}, Next: "2026|x"}, err
}

func (f *fake) CreateSession(_ context.Context, by command.Caller, in command.NewSession) (command.Session, error) {
	return session("s1"), f.note(by, "CreateSession", in)
}
func (f *fake) ListSessions(_ context.Context, by command.Caller, q command.SessionQuery) (command.List[command.Session], error) {
	return one(session("s1"), f.note(by, "ListSessions", q))
}
func (f *fake) GetSession(_ context.Context, by command.Caller, id string) (command.Session, error) {
	return session(id), f.note(by, "GetSession", id)
}
func (f *fake) Say(_ context.Context, by command.Caller, id string, in command.Words) (command.Said, error) {
	return command.Said{Seq: 8}, f.note(by, "Say", id, in)
}
func (f *fake) Steer(_ context.Context, by command.Caller, id string, in command.Words) (command.Said, error) {
	return command.Said{Seq: 9}, f.note(by, "Steer", id, in)
}
func (f *fake) Abort(_ context.Context, by command.Caller, id string, all bool) (bool, error) {
	return true, f.note(by, "Abort", id, all)
}
func (f *fake) ResumeSession(_ context.Context, by command.Caller, id string, in command.Resume) (command.Session, error) {
	return session(id), f.note(by, "ResumeSession", id, in)
}
func (f *fake) Fork(_ context.Context, by command.Caller, id string, atSeq int64) (command.Session, error) {
	return session("s2"), f.note(by, "Fork", id, atSeq)
}
func (f *fake) Watch(_ context.Context, by command.Caller, id string, after int64) iter.Seq2[feed.Item, error] {
	return func(yield func(feed.Item, error) bool) {
		if err := f.note(by, "Watch", id, after); err != nil {
			yield(nil, err)
			return
		}
		for seq := after + 1; seq <= 9; seq++ {
			ev := chat.Event{Thread: "web:ada:s1@helper", Seq: seq, At: at, Body: chat.RunEnded{Run: "r", Reason: chat.EndDone}}
			for _, item := range feed.Translate(ev, feed.Options{}) {
				if !yield(item, nil) {
					return
				}
			}
		}
	}
}
func (f *fake) Events(_ context.Context, by command.Caller, id string, q command.Span) (command.List[command.RawEvent], error) {
	return one(command.RawEvent{Seq: 1, At: at, Body: json.RawMessage(`{}`)}, f.note(by, "Events", id, q))
}
func (f *fake) Messages(_ context.Context, by command.Caller, id string, q command.Span) (command.List[feed.Item], error) {
	return one[feed.Item](feed.Completed{Head: feed.Head{Type: feed.TypeCompleted, Seq: 3}}, f.note(by, "Messages", id, q))
}
func (f *fake) Requests(_ context.Context, by command.Caller, id string, q command.Span) (command.List[command.Request], error) {
	return one(command.Request{Seq: 1}, f.note(by, "Requests", id, q))
}
func (f *fake) Export(_ context.Context, by command.Caller, id string, as command.Format, to io.Writer) error {
	if err := f.note(by, "Export", id, as); err != nil {
		return err
	}
	_, err := io.WriteString(to, "all of it\n")
	return errors.Join(err, f.late)
}
func (f *fake) Replay(_ context.Context, by command.Caller, id string) iter.Seq2[command.Replayed, error] {
	return func(yield func(command.Replayed, error) bool) {
		if err := f.note(by, "Replay", id); err != nil {
			yield(command.Replayed{}, err)
			return
		}
		if yield(command.Replayed{Seq: 3, Same: true}, nil) && yield(command.Replayed{Seq: 5, Why: "no head"}, nil) && f.late != nil {
			yield(command.Replayed{}, f.late)
		}
	}
}
func (f *fake) Attach(_ context.Context, by command.Caller, id, name string, body io.Reader) (command.Attachment, error) {
	data, err := io.ReadAll(body)
	if err != nil {
		return command.Attachment{}, command.Errorf(command.Invalid, "%w", err)
	}
	return command.Attachment{ID: "a1", Name: name, Size: int64(len(data))}, f.note(by, "Attach", id, name, string(data[:min(len(data), 20)]))
}
func (f *fake) Blob(_ context.Context, by command.Caller, id, hash string) (command.File, error) {
	media := "text/html"
	if hash == "picture" {
		media = "image/png"
	}
	return command.File{ReadCloser: io.NopCloser(strings.NewReader("bytes")), MediaType: media, Size: 5}, f.note(by, "Blob", id, hash)
}
func (f *fake) Search(_ context.Context, by command.Caller, q command.SearchQuery) (command.List[command.Hit], error) {
	return one(command.Hit{Session: "s1"}, f.note(by, "Search", q))
}
func (f *fake) Approvals(_ context.Context, by command.Caller, q command.ApprovalQuery) (command.List[command.Approval], error) {
	return command.List[command.Approval]{Items: []command.Approval{approval("p1")}}, f.note(by, "Approvals", q)
}
func (f *fake) Answer(_ context.Context, by command.Caller, id string, in command.Verdict) (command.Approval, error) {
	return approval(id), f.note(by, "Answer", id, in)
}
func (f *fake) ListAgents(_ context.Context, by command.Caller) (command.List[command.Agent], error) {
	return one(command.Agent{Name: "helper"}, f.note(by, "ListAgents"))
}
func (f *fake) GetAgent(_ context.Context, by command.Caller, name string) (command.AgentDetail, error) {
	return command.AgentDetail{Agent: command.Agent{Name: name}}, f.note(by, "GetAgent", name)
}
func (f *fake) CreateAgent(_ context.Context, by command.Caller, in command.NewAgent) (command.Agent, error) {
	return command.Agent{Name: in.Name}, f.note(by, "CreateAgent", in)
}
func (f *fake) ConfigureAgent(_ context.Context, by command.Caller, name, key, value string) (command.Agent, error) {
	return command.Agent{Name: name}, f.note(by, "ConfigureAgent", name, key, value)
}
func (f *fake) DestroyAgent(_ context.Context, by command.Caller, name string, keepFiles bool) error {
	return f.note(by, "DestroyAgent", name, keepFiles)
}
func (f *fake) AgentFile(_ context.Context, by command.Caller, name, path string) (command.Entry, error) {
	return command.Entry{Path: path, Entries: []command.Entry{{Path: "a"}}}, f.note(by, "AgentFile", name, path)
}
func (f *fake) Costs(_ context.Context, by command.Caller, q command.CostQuery) (command.Costs, error) {
	return command.Costs{By: q.By}, f.note(by, "Costs", q)
}
func (f *fake) Audit(_ context.Context, by command.Caller, q command.AuditQuery) (command.List[command.AuditLine], error) {
	return one(command.AuditLine{Seq: 1}, f.note(by, "Audit", q))
}
func (f *fake) VerifyAudit(_ context.Context, by command.Caller, since string) (command.AuditCheck, error) {
	return command.AuditCheck{OK: true}, f.note(by, "VerifyAudit", since)
}
func (f *fake) ListTokens(_ context.Context, by command.Caller) (command.List[command.Token], error) {
	return one(command.Token{ID: "t1"}, f.note(by, "ListTokens"))
}
func (f *fake) CreateToken(_ context.Context, by command.Caller, in command.NewToken) (command.Token, error) {
	return command.Token{ID: "t1", Name: in.Name, Scopes: in.Scopes, Text: "shown-once"}, f.note(by, "CreateToken", in)
}
func (f *fake) RevokeToken(_ context.Context, by command.Caller, id string) error {
	return f.note(by, "RevokeToken", id)
}
func (f *fake) Models(_ context.Context, by command.Caller) (command.List[command.Model], error) {
	return one(command.Model{Name: "demo/guide"}, f.note(by, "Models"))
}
func (f *fake) Settings(_ context.Context, by command.Caller) (command.List[command.Setting], error) {
	return one(command.Setting{Key: "model"}, f.note(by, "Settings"))
}
func (f *fake) SetSetting(_ context.Context, by command.Caller, key, value string) (command.Setting, error) {
	return command.Setting{Key: key, Value: value}, f.note(by, "SetSetting", key, value)
}
func (f *fake) Overview(_ context.Context, by command.Caller) (command.Overview, error) {
	return command.Overview{Running: []command.Session{session("s1")}}, f.note(by, "Overview")
}
func (f *fake) Health(_ context.Context, by command.Caller) (command.List[command.Check], error) {
	return one(command.Check{Name: "key", State: "ok"}, f.note(by, "Health"))
}

// shelf is a rest.Memory that forgets with the test.
type shelf struct {
	mu   sync.Mutex
	kept map[string]kept
}

type kept struct {
	digest string
	status int
	body   []byte
}

func (s *shelf) RecallAnswer(_ context.Context, principal, key, route string) (string, int, []byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.kept[principal+key+route]
	return k.digest, k.status, k.body, nil
}

func (s *shelf) KeepAnswer(_ context.Context, principal, key, route, digest string, status int, body []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept == nil {
		s.kept = map[string]kept{}
	}
	s.kept[principal+key+route] = kept{digest, status, body}
	return nil
}

func newAPI(t testing.TB, service command.Service) *api.API {
	t.Helper()
	a, err := api.New(api.Options{Executor: command.Local(service), Memory: &shelf{}, Log: slog.New(slog.DiscardHandler), Version: "test"})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// ask sends a request as somebody with these scopes; none: as nobody.
func ask(h http.Handler, scopes []command.Scope, method, target, body string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	if len(scopes) > 0 {
		r = r.WithContext(command.WithCaller(r.Context(), command.Caller{Principal: chat.Principal{Kind: chat.TokenHolder, ID: "t1"}, Scopes: scopes}))
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

var admin = []command.Scope{command.Admin}

func (f *fake) ProposeRules(_ context.Context, by command.Caller, in operations.ApprovalRef) (operations.RuleProposal, error) {
	return operations.RuleProposal{ID: in.ID}, f.note(by, "ProposeRules", in)
}

func (f *fake) ListRules(_ context.Context, by command.Caller, _ operation.None) (operation.List[operations.KeptRule], error) {
	return operation.List[operations.KeptRule]{Items: []operations.KeptRule{{ID: "r1"}}}, f.note(by, "ListRules")
}

func (f *fake) RemoveRules(_ context.Context, by command.Caller, in operations.RuleRefs) (operation.List[operations.KeptRule], error) {
	return operation.List[operations.KeptRule]{}, f.note(by, "RemoveRules", in)
}
