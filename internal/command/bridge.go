package command

import (
	"context"
	"io"
	"iter"

	"chorus/internal/feed"
	"chorus/internal/operation"
	"chorus/internal/operations"
)

// Handler lets a Service carry out the operations of the catalogue.
func Handler(s Service) any { return handler{s} }

// Local is a Service as an executor.
func Local(s Service) *operation.Local {
	return operation.NewLocal(operation.LocalOptions{Handlers: []any{Handler(s), s}})
}

type handler struct{ s Service }

var (
	_ operations.Sessions  = handler{}
	_ operations.History   = handler{}
	_ operations.Approvals = handler{}
	_ operations.Agents    = handler{}
	_ operations.Records   = handler{}
	_ operations.System    = handler{}
	_ operations.Tokens    = handler{}
)

func made(s Session, err error) (operations.CreatedSession, error) {
	return operations.CreatedSession{SessionID: s.ID, Session: s}, err
}

// taken turns words that were refused into an error.
func taken(said Said, err error) (Said, error) {
	if err == nil && said.Refused != "" {
		err = Errorf(Busy, "%s", said.Refused)
	}
	return said, err
}

func (h handler) CreateSession(ctx context.Context, by Caller, in NewSession) (operations.CreatedSession, error) {
	return made(h.s.CreateSession(ctx, by, in))
}

func (h handler) ListSessions(ctx context.Context, by Caller, in SessionQuery) (List[Session], error) {
	return h.s.ListSessions(ctx, by, in)
}

func (h handler) GetSession(ctx context.Context, by Caller, in operations.SessionRef) (Session, error) {
	return h.s.GetSession(ctx, by, in.ID)
}

func (h handler) Say(ctx context.Context, by Caller, in operations.Message) (Said, error) {
	return taken(h.s.Say(ctx, by, in.ID, Words{Message: in.Message, Attachments: in.Attachments, Key: in.Key}))
}

func (h handler) Steer(ctx context.Context, by Caller, in operations.SteerMessage) (Said, error) {
	return taken(h.s.Steer(ctx, by, in.ID, Words{Message: in.Message, Attachments: in.Attachments, Mode: in.Mode, Key: in.Key}))
}

func (h handler) Abort(ctx context.Context, by Caller, in operations.AbortRequest) (operations.Aborted, error) {
	aborted, err := h.s.Abort(ctx, by, in.ID, in.All)
	return operations.Aborted{Aborted: aborted}, err
}

func (h handler) ResumeSession(ctx context.Context, by Caller, in operations.ResumeRequest) (operations.CreatedSession, error) {
	return made(h.s.ResumeSession(ctx, by, in.ID, Resume{in.WorkspacePath, in.Provider, in.Model, in.Mode}))
}

func (h handler) Fork(ctx context.Context, by Caller, in operations.ForkRequest) (operations.CreatedSession, error) {
	return made(h.s.Fork(ctx, by, in.ID, in.AtSeq))
}

func (h handler) Attach(ctx context.Context, by Caller, in operations.NewAttachment) (Attachment, error) {
	name := in.Name
	if name == "" {
		name = in.File.Name
	}
	if name == "" {
		name = "file"
	}
	return h.s.Attach(ctx, by, in.ID, name, in.File)
}

func (h handler) Watch(ctx context.Context, by Caller, in operations.WatchRequest) iter.Seq2[feed.Item, error] {
	return h.s.Watch(ctx, by, in.ID, in.After)
}

func span(in operations.EventRange) Span { return Span{in.After, in.Before, in.Limit} }

func (h handler) Messages(ctx context.Context, by Caller, in operations.EventRange) (List[feed.Item], error) {
	return h.s.Messages(ctx, by, in.ID, span(in))
}

func (h handler) Events(ctx context.Context, by Caller, in operations.EventRange) (List[RawEvent], error) {
	return h.s.Events(ctx, by, in.ID, span(in))
}

func (h handler) Requests(ctx context.Context, by Caller, in operations.EventRange) (List[Request], error) {
	return h.s.Requests(ctx, by, in.ID, span(in))
}

func (h handler) Blob(ctx context.Context, by Caller, in operations.BlobRef) (File, error) {
	file, err := h.s.Blob(ctx, by, in.ID, in.Hash)
	file.Hash = in.Hash
	return file, err
}

func (h handler) Search(ctx context.Context, by Caller, in SearchQuery) (List[Hit], error) {
	return h.s.Search(ctx, by, in)
}

func (h handler) Export(ctx context.Context, by Caller, in operations.ExportRequest) (File, error) {
	if _, err := h.s.GetSession(ctx, by, in.ID); err != nil {
		return File{}, err
	}
	as := in.Format
	if as == "" {
		as = Markdown
	}
	media, suffix := as.MediaType()
	return File{Name: in.ID + suffix, MediaType: media + "; charset=utf-8", ReadCloser: operation.Generated(func(to io.Writer) error {
		return h.s.Export(ctx, by, in.ID, as, to)
	})}, nil
}

func (h handler) Replay(ctx context.Context, by Caller, in operations.SessionRef) iter.Seq2[operations.ReplayLine, error] {
	return operations.ReplayLines(h.s.Replay(ctx, by, in.ID))
}

func (h handler) ListApprovals(ctx context.Context, by Caller, in ApprovalQuery) (List[Approval], error) {
	return h.s.Approvals(ctx, by, in)
}

func (h handler) GetApproval(ctx context.Context, by Caller, in operations.ApprovalRef) (Approval, error) {
	found, ok, err := h.findApproval(ctx, by, "", in.ID)
	if err == nil && !ok {
		err = Errorf(NotFound, "there is no approval %.80q", in.ID)
	}
	return found, err
}

func (h handler) AnswerApproval(ctx context.Context, by Caller, in operations.Answer) (Approval, error) {
	return h.s.Answer(ctx, by, in.ID, Verdict{in.Approved, in.Note, in.Always})
}

func (h handler) AnswerCall(ctx context.Context, by Caller, in operations.CallAnswer) (Approval, error) {
	found, ok, err := h.findApproval(ctx, by, in.ID, in.CallID)
	switch {
	case err != nil:
		return Approval{}, err
	case !ok:
		return Approval{}, Errorf(NotFound, "no approval was ever asked for a call %.80q of this session", in.CallID)
	}
	return h.s.Answer(ctx, by, found.ID, Verdict{Approved: in.Approved, Note: in.Note})
}

// findApproval finds a pending approval, else any, by its own id or the call's.
func (h handler) findApproval(ctx context.Context, by Caller, session, id string) (Approval, bool, error) {
	for _, state := range []string{"pending", "all"} {
		for q := (ApprovalQuery{Session: session, State: state, Limit: 200}); ; {
			page, err := h.s.Approvals(ctx, by, q)
			if err != nil {
				return Approval{}, false, err
			}
			for _, a := range page.Items {
				if a.CallID == id || a.ID == id {
					return a, true, nil
				}
			}
			if page.Next == "" || page.Next == q.Cursor {
				break
			}
			q.Cursor = page.Next
		}
	}
	return Approval{}, false, nil
}

func (h handler) ListAgents(ctx context.Context, by Caller, _ operation.None) (List[Agent], error) {
	return h.s.ListAgents(ctx, by)
}

func (h handler) GetAgent(ctx context.Context, by Caller, in operations.AgentRef) (AgentDetail, error) {
	return h.s.GetAgent(ctx, by, in.Name)
}

func (h handler) CreateAgent(ctx context.Context, by Caller, in NewAgent) (Agent, error) {
	return h.s.CreateAgent(ctx, by, in)
}

func (h handler) ConfigureAgent(ctx context.Context, by Caller, in operations.AgentSetting) (Agent, error) {
	return h.s.ConfigureAgent(ctx, by, in.Name, in.Key, in.Value)
}

func (h handler) DestroyAgent(ctx context.Context, by Caller, in operations.DestroyAgentRequest) (operation.None, error) {
	return operation.None{}, h.s.DestroyAgent(ctx, by, in.Name, in.KeepFiles)
}

func (h handler) AgentFile(ctx context.Context, by Caller, in operations.AgentFileRef) (Entry, error) {
	return h.s.AgentFile(ctx, by, in.Name, in.Path)
}

func (h handler) Costs(ctx context.Context, by Caller, in CostQuery) (Costs, error) {
	return h.s.Costs(ctx, by, in)
}

func (h handler) Audit(ctx context.Context, by Caller, in AuditQuery) (List[AuditLine], error) {
	return h.s.Audit(ctx, by, in)
}

func (h handler) VerifyAudit(ctx context.Context, by Caller, in operations.VerifyRequest) (AuditCheck, error) {
	return h.s.VerifyAudit(ctx, by, in.Since)
}

func (h handler) ListTokens(ctx context.Context, by Caller, _ operation.None) (List[Token], error) {
	return h.s.ListTokens(ctx, by)
}

func (h handler) CreateToken(ctx context.Context, by Caller, in operations.NewToken) (Token, error) {
	lifetime, err := in.Lifetime()
	if err != nil {
		return Token{}, err
	}
	return h.s.CreateToken(ctx, by, NewToken{Name: in.Name, Scopes: in.Scopes, Roles: in.Roles, ExpiresIn: lifetime})
}

func (h handler) RevokeToken(ctx context.Context, by Caller, in operations.TokenRef) (operation.None, error) {
	return operation.None{}, h.s.RevokeToken(ctx, by, in.ID)
}

func (h handler) Overview(ctx context.Context, by Caller, _ operation.None) (Overview, error) {
	return h.s.Overview(ctx, by)
}

func (h handler) Models(ctx context.Context, by Caller, _ operation.None) (List[Model], error) {
	return h.s.Models(ctx, by)
}

func (h handler) Settings(ctx context.Context, by Caller, _ operation.None) (List[Setting], error) {
	return h.s.Settings(ctx, by)
}

func (h handler) SetSetting(ctx context.Context, by Caller, in operations.SettingValue) (Setting, error) {
	return h.s.SetSetting(ctx, by, in.Key, in.Value)
}

func (h handler) Health(ctx context.Context, by Caller, _ operation.None) (List[Check], error) {
	return h.s.Health(ctx, by)
}
