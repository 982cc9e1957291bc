package commandtest

import (
	"errors"
	"strings"

	"chorus/internal/command"
	"chorus/internal/feed"
	"chorus/internal/operation"
	"chorus/internal/operations"
)

// others: what is not Bo's is not there for Bo, by whatever door he tries.
func others(s *story) {
	id := s.new(s.Ada, operations.NewSession{}).ID
	s.say(s.Ada, id, "!say a word that only ada knows: xylophone")
	svc := s.As(s.Bo)
	_, err := svc.GetSession(s.ctx, s.Bo, id)
	s.wants(operation.NotFound, err)
	unknown := err.Error()
	_, err = svc.GetSession(s.ctx, s.Bo, strings.Repeat("0", len(id)))
	s.equal("a hint that it is there", strings.ReplaceAll(err.Error(), strings.Repeat("0", len(id)), id), unknown)
	var taken strings.Builder
	tries := map[string]func() error{
		"say":   func() error { _, err := svc.Say(s.ctx, s.Bo, id, command.Words{Message: "hi"}); return err },
		"steer": func() error { _, err := svc.Steer(s.ctx, s.Bo, id, command.Words{Message: "hi"}); return err },
		"abort": func() error { _, err := svc.Abort(s.ctx, s.Bo, id, true); return err },
		"fork":  func() error { _, err := svc.Fork(s.ctx, s.Bo, id, 1); return err },
		"resume": func() error {
			_, err := svc.ResumeSession(s.ctx, s.Bo, id, command.Resume{WorkspacePath: s.Dir})
			return err
		},
		"events":   func() error { _, err := svc.Events(s.ctx, s.Bo, id, command.Span{}); return err },
		"messages": func() error { _, err := svc.Messages(s.ctx, s.Bo, id, command.Span{}); return err },
		"requests": func() error { _, err := svc.Requests(s.ctx, s.Bo, id, command.Span{}); return err },
		"export":   func() error { return svc.Export(s.ctx, s.Bo, id, operations.Markdown, &taken) },
		"replay": func() error {
			for _, err := range svc.Replay(s.ctx, s.Bo, id) {
				return err
			}
			return nil
		},
		"blob":  func() error { _, err := svc.Blob(s.ctx, s.Bo, id, strings.Repeat("a", 64)); return err },
		"audit": func() error { _, err := svc.Audit(s.ctx, s.Bo, operations.AuditQuery{Session: id}); return err },
		"asked": func() error { _, err := svc.Approvals(s.ctx, s.Bo, operations.ApprovalQuery{Session: id}); return err },
		"attach": func() error {
			_, err := svc.Attach(s.ctx, s.Bo, id, "x", strings.NewReader("x"))
			return err
		},
		"watch": func() error {
			for _, err := range svc.Watch(s.ctx, s.Bo, id, 0) {
				return err
			}
			return nil
		},
	}
	for name, try := range tries {
		if err := try(); operation.KindOf(err) != operation.NotFound {
			s.Errorf("%s: %v", name, err)
		}
	}
	s.equal("what Bo took along", taken.String(), "")
	list, err := svc.ListSessions(s.ctx, s.Bo, operations.SessionQuery{})
	s.ok(err)
	s.equal("sessions of Bo", len(list.Items), 0)
	hits, err := svc.Search(s.ctx, s.Bo, operations.SearchQuery{Text: "xylophone"})
	s.ok(err)
	s.equal("found by Bo", len(hits.Items), 0)
	seen, err := s.As(s.Admin).GetSession(s.ctx, s.Admin, id)
	s.ok(err)
	s.equal("seen by the admin", seen.ID, id)
	_, err = s.As(s.Bo).Audit(s.ctx, s.Bo, operations.AuditQuery{})
	s.wants(operation.Forbidden, err)
}

// scopes: a token opens what it names and nothing else.
func scopes(s *story) {
	svc, by := s.As(s.Reader), s.Reader
	id := s.new(s.Ada, operations.NewSession{}).ID
	for name, try := range map[string]func() error{
		"create":        func() error { _, err := svc.CreateSession(s.ctx, by, operations.NewSession{}); return err },
		"say":           func() error { _, err := svc.Say(s.ctx, by, id, command.Words{Message: "hi"}); return err },
		"answer":        func() error { _, err := svc.Answer(s.ctx, by, "x", command.Verdict{}); return err },
		"create agent":  func() error { _, err := svc.CreateAgent(s.ctx, by, operations.NewAgent{Name: "helper"}); return err },
		"destroy agent": func() error { return svc.DestroyAgent(s.ctx, by, "helper", true) },
		"set":           func() error { _, err := svc.SetSetting(s.ctx, by, "maxTokens", "5"); return err },
		"verify":        func() error { _, err := svc.VerifyAudit(s.ctx, by, ""); return err },
		"tokens":        func() error { _, err := svc.ListTokens(s.ctx, by); return err },
		"make a token": func() error {
			_, err := svc.CreateToken(s.ctx, by, command.NewToken{Name: "x", Scopes: []operation.Scope{operation.Read}})
			return err
		},
	} {
		if err := try(); operation.KindOf(err) != operation.Forbidden {
			s.Errorf("%s: %v", name, err)
		}
	}
	_, err := svc.ListSessions(s.ctx, by, operations.SessionQuery{})
	s.ok(err)
}

// asks begins a run that stands still at a question.
func (s *story) asks(by operation.Caller, id, command_ string) operations.Approval {
	s.Helper()
	_, err := s.As(by).Say(s.ctx, by, id, command.Words{Message: `!call bash {"command":"` + command_ + `"}` + "\n!end\n!say after: {{last}}"})
	s.ok(err)
	s.until(by, id, 0, isType(feed.TypeApprovalRequired))
	list, err := s.As(by).Approvals(s.ctx, by, operations.ApprovalQuery{Session: id})
	s.ok(err)
	if len(list.Items) != 1 {
		s.Fatalf("%d questions", len(list.Items))
	}
	return list.Items[0]
}

func approvals(s *story) {
	made := s.new(s.Ada, operations.NewSession{Permissions: "standard"})
	q := s.asks(s.Ada, made.ID, "touch made-by-yes")
	s.equal("state", q.State, "pending")
	s.equal("session", q.Session, made.ID)
	s.equal("asked by", q.AskedBy, s.Ada.Principal.String())
	s.equal("Ada may answer", q.MayAnswer, true)
	if !strings.Contains(q.ArgsJSON, "made-by-yes") || len(q.Actions) == 0 || q.Deadline.IsZero() {
		s.Errorf("%+v", q)
	}
	now, err := s.As(s.Ada).GetSession(s.ctx, s.Ada, made.ID)
	s.ok(err)
	s.equal("status", now.Status, "waiting")
	_, err = s.As(s.Bo).Answer(s.ctx, s.Bo, q.ID, command.Verdict{Approved: true})
	s.wants(operation.NotFound, err)
	_, err = s.As(s.Ada).Answer(s.ctx, s.Ada, "nothing-like-it", command.Verdict{Approved: true})
	s.wants(operation.NotFound, err)
	got, err := s.As(s.Ada).Answer(s.ctx, s.Ada, q.CallID, command.Verdict{Approved: true, Note: "fine"})
	s.ok(err)
	s.equal("state", got.State, "approved")
	s.equal("note", got.Note, "fine")
	seen := s.until(s.Ada, made.ID, 0, func(it feed.Item) bool { return it.Header().Type.Terminal() })
	s.equal("results", len(only[feed.ToolResult](seen)), 1)
	s.equal("outcome", only[feed.ToolResult](seen)[0].Outcome, "ran")
	_, err = s.As(s.Ada).Answer(s.ctx, s.Ada, q.ID, command.Verdict{Approved: false})
	s.wants(operation.Conflict, err)
	var wrong *operation.Error
	if !errors.As(err, &wrong) || wrong.About == nil {
		s.Errorf("%v does not say how it was answered", err)
	}
	done, err := s.As(s.Ada).Approvals(s.ctx, s.Ada, operations.ApprovalQuery{Session: made.ID, State: "approved"})
	s.ok(err)
	s.equal("approved", len(done.Items), 1)
	open, err := s.As(s.Admin).Approvals(s.ctx, s.Admin, operations.ApprovalQuery{})
	s.ok(err)
	s.equal("open", len(open.Items), 0)
	lines, err := s.As(s.Ada).Audit(s.ctx, s.Ada, operations.AuditQuery{Session: made.ID})
	s.ok(err)
	if len(lines.Items) == 0 || lines.Items[len(lines.Items)-1].Session != made.ID {
		s.Errorf("the audit log does not say why it was allowed: %+v", lines.Items)
	}
}

func refusal(s *story) {
	id := s.new(s.Ada, operations.NewSession{Permissions: "standard"}).ID
	q := s.asks(s.Ada, id, "touch never")
	_, err := s.As(s.Ada).Answer(s.ctx, s.Ada, q.ID, command.Verdict{Note: "not today"})
	s.ok(err)
	seen := s.until(s.Ada, id, 0, func(it feed.Item) bool { return it.Header().Type.Terminal() })
	s.equal("outcome", only[feed.ToolResult](seen)[0].Outcome, "denied")
	if text := s.answer(seen); !strings.Contains(text, "not today") {
		s.Errorf("the model was not told why: %q", text)
	}
}
