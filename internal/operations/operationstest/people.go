package operationstest

import (
	"errors"
	"strings"

	"chorus/internal/feed"
	"chorus/internal/operation"
	"chorus/internal/operations"
)

// others: what is not Bo's is not there for Bo, whatever he tries.
func others(s *story) {
	s.opens(s.Dir)
	id := s.new(s.Ada, operations.NewSession{}).ID
	s.say(s.Ada, id, "!say a word that only ada knows: xylophone")
	svc := s.As(s.Bo)
	_, err := operations.GetSession.Call(s.ctx, svc, s.Bo, operations.SessionRef{ID: id})
	s.wants(operation.NotFound, err)
	unknown := err.Error()
	_, err = operations.GetSession.Call(s.ctx, svc, s.Bo, operations.SessionRef{ID: strings.Repeat("0", len(id))})
	s.equal("a hint that it is there", strings.ReplaceAll(err.Error(), strings.Repeat("0", len(id)), id), unknown)
	var taken strings.Builder
	tries := map[string]func() error{
		"say":      try(s, svc, s.Bo, operations.Say, operations.Message{ID: id, Message: "hi"}),
		"steer":    try(s, svc, s.Bo, operations.Steer, operations.SteerMessage{ID: id, Message: "hi"}),
		"abort":    try(s, svc, s.Bo, operations.Abort, operations.AbortRequest{ID: id, All: true}),
		"fork":     try(s, svc, s.Bo, operations.Fork, operations.ForkRequest{ID: id, AtSeq: 1}),
		"resume":   try(s, svc, s.Bo, operations.ResumeSession, operations.ResumeRequest{ID: id, WorkspacePath: s.Dir}),
		"events":   try(s, svc, s.Bo, operations.Events, operations.EventQuery{ID: id}),
		"messages": try(s, svc, s.Bo, operations.Messages, operations.EventRange{ID: id}),
		"requests": try(s, svc, s.Bo, operations.Requests, operations.EventRange{ID: id}),
		"export": func() error {
			return export(s.ctx, svc, s.Bo, operations.ExportRequest{ID: id, Format: operations.Markdown}, &taken)
		},
		"replay": func() error {
			for _, err := range ReplayedRequests(operations.Replay.Follow(s.ctx, svc, s.Bo, operations.SessionRef{ID: id})) {
				return err
			}
			return nil
		},
		"blob":   try(s, svc, s.Bo, operations.Blob, operations.BlobRef{ID: id, Hash: strings.Repeat("a", 64)}),
		"audit":  try(s, svc, s.Bo, operations.ListAudit, operations.AuditQuery{Session: id}),
		"asked":  try(s, svc, s.Bo, operations.ListApprovals, operations.ApprovalQuery{Session: id}),
		"attach": try(s, svc, s.Bo, operations.Attach, operations.NewAttachment{ID: id, File: operation.Upload("x", strings.NewReader("x"))}),
		"watch": func() error {
			for _, err := range operations.Watch.Follow(s.ctx, svc, s.Bo, operations.WatchRequest{ID: id}) {
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
	list, err := operations.ListSessions.Call(s.ctx, svc, s.Bo, operations.SessionQuery{})
	s.ok(err)
	s.equal("sessions of Bo", len(list.Items), 0)
	hits, err := operations.Search.Call(s.ctx, svc, s.Bo, operations.SearchQuery{Text: "xylophone"})
	s.ok(err)
	s.equal("found by Bo", len(hits.Items), 0)
	seen, err := operations.GetSession.Call(s.ctx, s.As(s.Admin), s.Admin, operations.SessionRef{ID: id})
	s.ok(err)
	s.equal("seen by the admin", seen.ID, id)
	_, err = operations.ListAudit.Call(s.ctx, s.As(s.Bo), s.Bo, operations.AuditQuery{})
	s.wants(operation.Forbidden, err)
}

// try is a call of which only the error counts.
func try[In, Out any](s *story, to operation.Executor, by operation.Caller, op operation.Operation[In, Out], in In) func() error {
	return func() error {
		_, err := op.Call(s.ctx, to, by, in)
		return err
	}
}

// scopes: a token opens what it names and nothing else.
func scopes(s *story) {
	svc, by := s.As(s.Reader), s.Reader
	id := s.new(s.Ada, operations.NewSession{}).ID
	for name, try := range map[string]func() error{
		"create":        try(s, svc, by, operations.CreateSession, operations.NewSession{}),
		"say":           try(s, svc, by, operations.Say, operations.Message{ID: id, Message: "hi"}),
		"answer":        try(s, svc, by, operations.AnswerApproval, operations.Answer{ID: "x"}),
		"create agent":  try(s, svc, by, operations.CreateAgent, operations.NewAgent{Name: "helper"}),
		"destroy agent": try(s, svc, by, operations.DestroyAgent, operations.DestroyAgentRequest{Name: "helper"}),
		"set":           try(s, svc, by, operations.SetSetting, operations.SettingValue{Key: "maxTokens", Value: "5"}),
		"verify":        try(s, svc, by, operations.VerifyAudit, operations.VerifyRequest{}),
		"tokens":        try(s, svc, by, operations.ListTokens, operation.None{}),
		"make a token":  try(s, svc, by, operations.CreateToken, operations.NewToken{Name: "x", Scopes: []operation.Scope{operation.Read}}),
	} {
		if err := try(); operation.KindOf(err) != operation.Forbidden {
			s.Errorf("%s: %v", name, err)
		}
	}
	_, err := operations.ListSessions.Call(s.ctx, svc, by, operations.SessionQuery{})
	s.ok(err)
	_, err = operations.CreateToken.Call(s.ctx, s.As(s.Admin), s.Admin, operations.NewToken{Name: "x", Scopes: []operation.Scope{operation.Read}, ExpiresIn: "soon"})
	s.wants(operation.Invalid, err)
}

// asks begins a run that stands still at a question.
func (s *story) asks(by operation.Caller, id, command_ string) operations.Approval {
	s.Helper()
	_, err := operations.Say.Call(s.ctx, s.As(by), by, operations.Message{ID: id, Message: `!call bash {"command":"` + command_ + `"}` + "\n!end\n!say after: {{last}}"})
	s.ok(err)
	s.until(by, id, 0, isType(feed.TypeApprovalRequired))
	list, err := operations.ListApprovals.Call(s.ctx, s.As(by), by, operations.ApprovalQuery{Session: id})
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
	now, err := operations.GetSession.Call(s.ctx, s.As(s.Ada), s.Ada, operations.SessionRef{ID: made.ID})
	s.ok(err)
	s.equal("status", now.Status, "waiting")
	_, err = operations.AnswerApproval.Call(s.ctx, s.As(s.Bo), s.Bo, operations.Answer{ID: q.ID, Approved: true})
	s.wants(operation.NotFound, err)
	_, err = operations.AnswerApproval.Call(s.ctx, s.As(s.Ada), s.Ada, operations.Answer{ID: "nothing-like-it", Approved: true})
	s.wants(operation.NotFound, err)
	_, err = operations.AnswerCall.Call(s.ctx, s.As(s.Ada), s.Ada, operations.CallAnswer{ID: made.ID, CallID: "nothing-like-it", Approved: true})
	s.wants(operation.NotFound, err)
	got, err := operations.AnswerApproval.Call(s.ctx, s.As(s.Ada), s.Ada, operations.Answer{ID: q.CallID, Approved: true, Note: "fine"})
	s.ok(err)
	s.equal("state", got.State, "approved")
	s.equal("note", got.Note, "fine")
	seen := s.until(s.Ada, made.ID, 0, func(it feed.Item) bool { return it.Header().Type.Terminal() })
	s.equal("results", len(only[feed.ToolResult](seen)), 1)
	s.equal("outcome", only[feed.ToolResult](seen)[0].Outcome, "ran")
	_, err = operations.AnswerApproval.Call(s.ctx, s.As(s.Ada), s.Ada, operations.Answer{ID: q.ID, Approved: false})
	s.wants(operation.Conflict, err)
	if wrong, ok := errors.AsType[*operation.Error](err); !ok || wrong.About == nil {
		s.Errorf("%v does not say how it was answered", err)
	}
	done, err := operations.ListApprovals.Call(s.ctx, s.As(s.Ada), s.Ada, operations.ApprovalQuery{Session: made.ID, State: "approved"})
	s.ok(err)
	s.equal("approved", len(done.Items), 1)
	open, err := operations.ListApprovals.Call(s.ctx, s.As(s.Admin), s.Admin, operations.ApprovalQuery{})
	s.ok(err)
	s.equal("open", len(open.Items), 0)
	lines, err := operations.ListAudit.Call(s.ctx, s.As(s.Ada), s.Ada, operations.AuditQuery{Session: made.ID})
	s.ok(err)
	if len(lines.Items) == 0 || lines.Items[len(lines.Items)-1].Session != made.ID {
		s.Errorf("the audit log does not say why it was allowed: %+v", lines.Items)
	}
}

func refusal(s *story) {
	id := s.new(s.Ada, operations.NewSession{Permissions: "standard"}).ID
	q := s.asks(s.Ada, id, "touch never")
	_, err := operations.AnswerCall.Call(s.ctx, s.As(s.Ada), s.Ada, operations.CallAnswer{ID: q.Session, CallID: q.CallID, Note: "not today"})
	s.ok(err)
	seen := s.until(s.Ada, id, 0, func(it feed.Item) bool { return it.Header().Type.Terminal() })
	s.equal("outcome", only[feed.ToolResult](seen)[0].Outcome, "denied")
	if text := s.answer(seen); !strings.Contains(text, "not today") {
		s.Errorf("the model was not told why: %q", text)
	}
}
