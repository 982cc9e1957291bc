package api_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"chorus/internal/chat"
	"chorus/internal/feed"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/transport/http/api"
)

func TestMain(m *testing.M) {
	flag.Parse()
	// There are hundreds of operations, of few kinds; -rapid.checks=1000 looks longer at each.
	if checks := flag.Lookup("rapid.checks"); checks.Value.String() == checks.DefValue {
		if err := flag.Set("rapid.checks", "25"); err != nil {
			panic(err)
		}
	}
	goleak.VerifyTestMain(m)
}

var at = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// fake answers every operation with something whole, and notes what was asked for.
type fake struct {
	mu      sync.Mutex
	asked   []string
	failing error // what every operation answers, if any
	late    error // what exports and replays end with, once they have begun
}

var _ operation.Executor = (*fake)(nil)

func (f *fake) note(by operation.Caller, d *operation.Definition, in any) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if by.Principal.ID == "" {
		return operation.Errorf(operation.Failed, "an operation without a caller")
	}
	if err := d.Validate(in); err != nil {
		return err
	}
	f.asked = append(f.asked, d.Name+fmt.Sprintf("%+v", in))
	return f.failing
}

// fail sets what operations answer from now on.
func (f *fake) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.failing = err
}

// last is what was asked for last.
func (f *fake) last() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.asked) == 0 {
		return ""
	}
	return f.asked[len(f.asked)-1]
}

func session(id string) operations.Session {
	return operations.Session{ID: id, Thread: "web:ada:" + id, Agent: "helper", CreatedAt: at, MovedAt: at, Status: "idle", Seq: 7, Cost: 1_500_000_000}
}

func approval(id string) operations.Approval {
	return operations.Approval{ID: id, Session: "s1", CallID: "c1", Tool: "bash", State: "pending", AskedAt: at}
}

func one[T any](item T) operation.List[T] { return operation.List[T]{Items: []T{item}, Next: "2026|x"} }

// Execute implements operation.Executor.
func (f *fake) Execute(_ context.Context, by operation.Caller, d *operation.Definition, in any) (any, error) {
	switch in := in.(type) {
	case operations.NewAttachment:
		data, err := io.ReadAll(in.File)
		if err != nil {
			return nil, operation.Errorf(operation.Invalid, "%w", err)
		}
		name := cmp.Or(in.Name, in.File.Name)
		in.Name = name + " " + strings.ToValidUTF8(string(data[:min(len(data), 20)]), "")
		return operations.Attachment{ID: "a1", Name: name, Size: int64(len(data))}, f.note(by, d, in)
	case operations.BlobRef:
		media := "text/html"
		if in.Hash == "picture" {
			media = "image/png"
		}
		return operation.File{ReadCloser: io.NopCloser(strings.NewReader("bytes")), MediaType: media, Size: 5, Hash: in.Hash}, f.note(by, d, in)
	case operations.ExportRequest:
		media, suffix := cmp.Or(in.Format, operations.Markdown).MediaType()
		return operation.File{Name: in.ID + suffix, MediaType: media + "; charset=utf-8", ReadCloser: operation.Generated(func(to io.Writer) error {
			_, err := io.WriteString(to, "all of it\n")
			return errors.Join(err, f.late)
		})}, f.note(by, d, in)
	}
	if d.Shape == operation.Downloaded {
		return operation.File{Name: "file", MediaType: "text/plain", ReadCloser: io.NopCloser(strings.NewReader("bytes"))}, f.note(by, d, in)
	}
	return answerTo(d, in), f.note(by, d, in)
}

// answerTo is what the fake says to an operation.
func answerTo(d *operation.Definition, in any) any {
	made := func(id string) operations.CreatedSession {
		return operations.CreatedSession{SessionID: id, Session: session(id)}
	}
	answers := map[*operation.Definition]any{
		operations.CreateSession.Definition: made("s1"), operations.ResumeSession.Definition: made("s1"), operations.Fork.Definition: made("s2"),
		operations.ListSessions.Definition: one(session("s1")), operations.GetSession.Definition: session("s1"),
		operations.Say.Definition: operations.Said{Seq: 8}, operations.Steer.Definition: operations.Said{Seq: 9}, operations.Abort.Definition: operations.Aborted{Aborted: true},
		operations.Events.Definition:   one(operations.RawEvent{Seq: 1, At: at, Body: json.RawMessage(`{}`)}),
		operations.Messages.Definition: one[feed.Item](feed.Completed{Head: feed.Head{Type: feed.TypeCompleted, Seq: 3}}),
		operations.Requests.Definition: one(operations.Request{Seq: 1}), operations.Search.Definition: one(operations.Hit{Session: "s1"}),
		operations.ListApprovals.Definition: one(approval("p1")), operations.AnswerApproval.Definition: approval("p1"),
		operations.ListAgents.Definition: one(operations.Agent{Name: "helper"}), operations.CreateAgent.Definition: operations.Agent{Name: "helper"},
		operations.GetAgent.Definition:  operations.AgentDetail{Agent: operations.Agent{Name: "helper"}},
		operations.AgentFile.Definition: operations.Entry{Path: "a/b", Entries: []operations.Entry{{Path: "a"}}},
		operations.GetCosts.Definition:  operations.Costs{By: "day"}, operations.ListAudit.Definition: one(operations.AuditLine{Seq: 1}),
		operations.VerifyAudit.Definition: operations.AuditCheck{OK: true}, operations.ListTokens.Definition: one(operations.Token{ID: "t1"}),
		operations.CreateToken.Definition: operations.Token{ID: "t1", Text: "shown-once"}, operations.ListModels.Definition: one(operations.Model{Name: "demo/guide"}),
		operations.GetOverview.Definition: operations.Overview{Running: []operations.Session{session("s1")}},
	}
	if out, ok := answers[d]; ok {
		return out
	}
	return reflect.Zero(d.Out).Interface()
}

// Follow implements operation.Executor.
func (f *fake) Follow(_ context.Context, by operation.Caller, d *operation.Definition, in any) iter.Seq2[any, error] {
	return func(yield func(any, error) bool) {
		if err := f.note(by, d, in); err != nil {
			yield(nil, err)
			return
		}
		switch in := in.(type) {
		case operations.WatchRequest:
			for seq := in.After + 1; seq <= 9; seq++ {
				ev := chat.Event{Thread: "web:ada:s1@helper", Seq: seq, At: at, Body: chat.RunEnded{Run: "r", Reason: chat.EndDone}}
				for _, item := range feed.Translate(ev, feed.Options{}) {
					if !yield(item, nil) {
						return
					}
				}
			}
		case operations.SessionRef: // a replay
			requests := func(yield func(operations.Replayed, error) bool) {
				if yield(operations.Replayed{Seq: 3, Same: true}, nil) && yield(operations.Replayed{Seq: 5, Why: "no head"}, nil) && f.late != nil {
					yield(operations.Replayed{}, f.late)
				}
			}
			for line, err := range operations.ReplayLines(requests) {
				if !yield(line, err) {
					return
				}
			}
		}
	}
}

// memoryFake is a rest.Memory that forgets with the test.
type memoryFake struct {
	mu   sync.Mutex
	kept map[string]kept
}

type kept struct {
	digest string
	status int
	body   []byte
}

func (s *memoryFake) RecallAnswer(_ context.Context, principal, key, route string) (string, int, []byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.kept[principal+key+route]
	return k.digest, k.status, k.body, nil
}

func (s *memoryFake) KeepAnswer(_ context.Context, principal, key, route, digest string, status int, body []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept == nil {
		s.kept = map[string]kept{}
	}
	s.kept[principal+key+route] = kept{digest, status, body}
	return nil
}

func newAPI(t testing.TB, executor operation.Executor) *api.API {
	t.Helper()
	a, err := api.New(api.Options{Executor: executor, Memory: &memoryFake{}, Log: slog.New(slog.DiscardHandler), Version: "test"})
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
