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

func (f *fake) note(by operation.Caller, order string, args ...any) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if by.Principal.ID == "" {
		return operation.Errorf(operation.Failed, "an order without a caller")
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

func session(id string) operations.Session {
	return operations.Session{ID: id, Thread: "web:ada:" + id, Agent: "helper", CreatedAt: at, MovedAt: at, Status: "idle", Seq: 7, Cost: 1_500_000_000}
}

func approval(id string) operations.Approval {
	return operations.Approval{ID: id, Session: "s1", CallID: "c1", Tool: "bash", State: "pending", AskedAt: at}
}

func one[T any](item T, err error) (operation.List[T], error) {
	return operation.List[T]{Items: []T{item}, Next: "2026|x"}, err
}

func (f *fake) CreateSession(_ context.Context, by operation.Caller, in operations.NewSession) (operations.Session, error) {
	return session("s1"), f.note(by, "CreateSession", in)
}
func (f *fake) ListSessions(_ context.Context, by operation.Caller, q operations.SessionQuery) (operation.List[operations.Session], error) {
	return one(session("s1"), f.note(by, "ListSessions", q))
}
func (f *fake) GetSession(_ context.Context, by operation.Caller, id string) (operations.Session, error) {
	return session(id), f.note(by, "GetSession", id)
}
func (f *fake) Say(_ context.Context, by operation.Caller, id string, in command.Words) (operations.Said, error) {
	return operations.Said{Seq: 8}, f.note(by, "Say", id, in)
}
func (f *fake) Steer(_ context.Context, by operation.Caller, id string, in command.Words) (operations.Said, error) {
	return operations.Said{Seq: 9}, f.note(by, "Steer", id, in)
}
func (f *fake) Abort(_ context.Context, by operation.Caller, id string, all bool) (bool, error) {
	return true, f.note(by, "Abort", id, all)
}
func (f *fake) ResumeSession(_ context.Context, by operation.Caller, id string, in command.Resume) (operations.Session, error) {
	return session(id), f.note(by, "ResumeSession", id, in)
}
func (f *fake) Fork(_ context.Context, by operation.Caller, id string, atSeq int64) (operations.Session, error) {
	return session("s2"), f.note(by, "Fork", id, atSeq)
}
func (f *fake) Watch(_ context.Context, by operation.Caller, id string, after int64) iter.Seq2[feed.Item, error] {
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
func (f *fake) Events(_ context.Context, by operation.Caller, id string, q command.Span) (operation.List[operations.RawEvent], error) {
	return one(operations.RawEvent{Seq: 1, At: at, Body: json.RawMessage(`{}`)}, f.note(by, "Events", id, q))
}
func (f *fake) Messages(_ context.Context, by operation.Caller, id string, q command.Span) (operation.List[feed.Item], error) {
	return one[feed.Item](feed.Completed{Head: feed.Head{Type: feed.TypeCompleted, Seq: 3}}, f.note(by, "Messages", id, q))
}
func (f *fake) Requests(_ context.Context, by operation.Caller, id string, q command.Span) (operation.List[operations.Request], error) {
	return one(operations.Request{Seq: 1}, f.note(by, "Requests", id, q))
}
func (f *fake) Export(_ context.Context, by operation.Caller, id string, as operations.Format, to io.Writer) error {
	if err := f.note(by, "Export", id, as); err != nil {
		return err
	}
	_, err := io.WriteString(to, "all of it\n")
	return errors.Join(err, f.late)
}
func (f *fake) Replay(_ context.Context, by operation.Caller, id string) iter.Seq2[operations.Replayed, error] {
	return func(yield func(operations.Replayed, error) bool) {
		if err := f.note(by, "Replay", id); err != nil {
			yield(operations.Replayed{}, err)
			return
		}
		if yield(operations.Replayed{Seq: 3, Same: true}, nil) && yield(operations.Replayed{Seq: 5, Why: "no head"}, nil) && f.late != nil {
			yield(operations.Replayed{}, f.late)
		}
	}
}
func (f *fake) Attach(_ context.Context, by operation.Caller, id, name string, body io.Reader) (operations.Attachment, error) {
	data, err := io.ReadAll(body)
	if err != nil {
		return operations.Attachment{}, operation.Errorf(operation.Invalid, "%w", err)
	}
	return operations.Attachment{ID: "a1", Name: name, Size: int64(len(data))}, f.note(by, "Attach", id, name, string(data[:min(len(data), 20)]))
}
func (f *fake) Blob(_ context.Context, by operation.Caller, id, hash string) (operation.File, error) {
	media := "text/html"
	if hash == "picture" {
		media = "image/png"
	}
	return operation.File{ReadCloser: io.NopCloser(strings.NewReader("bytes")), MediaType: media, Size: 5}, f.note(by, "Blob", id, hash)
}
func (f *fake) Search(_ context.Context, by operation.Caller, q operations.SearchQuery) (operation.List[operations.Hit], error) {
	return one(operations.Hit{Session: "s1"}, f.note(by, "Search", q))
}
func (f *fake) Approvals(_ context.Context, by operation.Caller, q operations.ApprovalQuery) (operation.List[operations.Approval], error) {
	return operation.List[operations.Approval]{Items: []operations.Approval{approval("p1")}}, f.note(by, "Approvals", q)
}
func (f *fake) Answer(_ context.Context, by operation.Caller, id string, in command.Verdict) (operations.Approval, error) {
	return approval(id), f.note(by, "Answer", id, in)
}
func (f *fake) ListAgents(_ context.Context, by operation.Caller) (operation.List[operations.Agent], error) {
	return one(operations.Agent{Name: "helper"}, f.note(by, "ListAgents"))
}
func (f *fake) GetAgent(_ context.Context, by operation.Caller, name string) (operations.AgentDetail, error) {
	return operations.AgentDetail{Agent: operations.Agent{Name: name}}, f.note(by, "GetAgent", name)
}
func (f *fake) CreateAgent(_ context.Context, by operation.Caller, in operations.NewAgent) (operations.Agent, error) {
	return operations.Agent{Name: in.Name}, f.note(by, "CreateAgent", in)
}
func (f *fake) ConfigureAgent(_ context.Context, by operation.Caller, name, key, value string) (operations.Agent, error) {
	return operations.Agent{Name: name}, f.note(by, "ConfigureAgent", name, key, value)
}
func (f *fake) DestroyAgent(_ context.Context, by operation.Caller, name string, keepFiles bool) error {
	return f.note(by, "DestroyAgent", name, keepFiles)
}
func (f *fake) AgentFile(_ context.Context, by operation.Caller, name, path string) (operations.Entry, error) {
	return operations.Entry{Path: path, Entries: []operations.Entry{{Path: "a"}}}, f.note(by, "AgentFile", name, path)
}
func (f *fake) Costs(_ context.Context, by operation.Caller, q operations.CostQuery) (operations.Costs, error) {
	return operations.Costs{By: q.By}, f.note(by, "Costs", q)
}
func (f *fake) Audit(_ context.Context, by operation.Caller, q operations.AuditQuery) (operation.List[operations.AuditLine], error) {
	return one(operations.AuditLine{Seq: 1}, f.note(by, "Audit", q))
}
func (f *fake) VerifyAudit(_ context.Context, by operation.Caller, since string) (operations.AuditCheck, error) {
	return operations.AuditCheck{OK: true}, f.note(by, "VerifyAudit", since)
}
func (f *fake) ListTokens(_ context.Context, by operation.Caller) (operation.List[operations.Token], error) {
	return one(operations.Token{ID: "t1"}, f.note(by, "ListTokens"))
}
func (f *fake) CreateToken(_ context.Context, by operation.Caller, in command.NewToken) (operations.Token, error) {
	return operations.Token{ID: "t1", Name: in.Name, Scopes: in.Scopes, Text: "shown-once"}, f.note(by, "CreateToken", in)
}
func (f *fake) RevokeToken(_ context.Context, by operation.Caller, id string) error {
	return f.note(by, "RevokeToken", id)
}
func (f *fake) Models(_ context.Context, by operation.Caller) (operation.List[operations.Model], error) {
	return one(operations.Model{Name: "demo/guide"}, f.note(by, "Models"))
}
func (f *fake) Settings(_ context.Context, by operation.Caller) (operation.List[operations.Setting], error) {
	return one(operations.Setting{Key: "model"}, f.note(by, "Settings"))
}
func (f *fake) SetSetting(_ context.Context, by operation.Caller, key, value string) (operations.Setting, error) {
	return operations.Setting{Key: key, Value: value}, f.note(by, "SetSetting", key, value)
}
func (f *fake) Overview(_ context.Context, by operation.Caller) (operations.Overview, error) {
	return operations.Overview{Running: []operations.Session{session("s1")}}, f.note(by, "Overview")
}
func (f *fake) Health(_ context.Context, by operation.Caller) (operation.List[operations.Check], error) {
	return one(operations.Check{Name: "key", State: "ok"}, f.note(by, "Health"))
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
func ask(h http.Handler, scopes []operation.Scope, method, target, body string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	if len(scopes) > 0 {
		r = r.WithContext(operation.WithCaller(r.Context(), operation.Caller{Principal: chat.Principal{Kind: chat.TokenHolder, ID: "t1"}, Scopes: scopes}))
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

var admin = []operation.Scope{operation.Admin}

func (f *fake) ProposeRules(_ context.Context, by operation.Caller, in operations.ApprovalRef) (operations.RuleProposal, error) {
	return operations.RuleProposal{ID: in.ID}, f.note(by, "ProposeRules", in)
}

func (f *fake) ListRules(_ context.Context, by operation.Caller, _ operation.None) (operation.List[operations.KeptRule], error) {
	return operation.List[operations.KeptRule]{Items: []operations.KeptRule{{ID: "r1"}}}, f.note(by, "ListRules")
}

func (f *fake) RemoveRules(_ context.Context, by operation.Caller, in operations.RuleRefs) (operation.List[operations.KeptRule], error) {
	return operation.List[operations.KeptRule]{}, f.note(by, "RemoveRules", in)
}
