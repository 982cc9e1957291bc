package command

import (
	"context"
	"io"
	"iter"

	"chorus/internal/feed"
	"chorus/internal/operation"
	"chorus/internal/operations"
)

// Over is an executor as a Service.
func Over(e operation.Executor) Service { return service{e} }

type service struct{ e operation.Executor }

var _ Service = service{}

func (s service) CreateSession(ctx context.Context, by Caller, in NewSession) (Session, error) {
	made, err := operations.CreateSession.Call(ctx, s.e, by, in)
	return made.Session, err
}

func (s service) ListSessions(ctx context.Context, by Caller, q SessionQuery) (List[Session], error) {
	return operations.ListSessions.Call(ctx, s.e, by, q)
}

func (s service) GetSession(ctx context.Context, by Caller, id string) (Session, error) {
	return operations.GetSession.Call(ctx, s.e, by, operations.SessionRef{ID: id})
}

func (s service) Say(ctx context.Context, by Caller, id string, in Words) (Said, error) {
	return operations.Say.Call(ctx, s.e, by, operations.Message{ID: id, Message: in.Message, Attachments: in.Attachments, Key: in.Key})
}

func (s service) Steer(ctx context.Context, by Caller, id string, in Words) (Said, error) {
	return operations.Steer.Call(ctx, s.e, by, operations.SteerMessage{ID: id, Message: in.Message, Attachments: in.Attachments, Mode: in.Mode, Key: in.Key})
}

func (s service) Abort(ctx context.Context, by Caller, id string, all bool) (bool, error) {
	done, err := operations.Abort.Call(ctx, s.e, by, operations.AbortRequest{ID: id, All: all})
	return done.Aborted, err
}

func (s service) ResumeSession(ctx context.Context, by Caller, id string, in Resume) (Session, error) {
	made, err := operations.ResumeSession.Call(ctx, s.e, by, operations.ResumeRequest{ID: id, WorkspacePath: in.WorkspacePath, Provider: in.Provider, Model: in.Model, Mode: in.Mode})
	return made.Session, err
}

func (s service) Fork(ctx context.Context, by Caller, id string, atSeq int64) (Session, error) {
	made, err := operations.Fork.Call(ctx, s.e, by, operations.ForkRequest{ID: id, AtSeq: atSeq})
	return made.Session, err
}

func (s service) Watch(ctx context.Context, by Caller, id string, after int64) iter.Seq2[feed.Item, error] {
	return operations.Watch.Follow(ctx, s.e, by, operations.WatchRequest{ID: id, After: after})
}

func eventRange(id string, q Span) operations.EventRange {
	return operations.EventRange{ID: id, After: q.After, Before: q.Before, Limit: q.Limit}
}

func (s service) Events(ctx context.Context, by Caller, id string, q Span) (List[RawEvent], error) {
	return operations.Events.Call(ctx, s.e, by, eventRange(id, q))
}

func (s service) Messages(ctx context.Context, by Caller, id string, q Span) (List[feed.Item], error) {
	return operations.Messages.Call(ctx, s.e, by, eventRange(id, q))
}

func (s service) Requests(ctx context.Context, by Caller, id string, q Span) (List[Request], error) {
	return operations.Requests.Call(ctx, s.e, by, eventRange(id, q))
}

func (s service) Export(ctx context.Context, by Caller, id string, as Format, to io.Writer) error {
	file, err := operations.Export.Call(ctx, s.e, by, operations.ExportRequest{ID: id, Format: as})
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = io.Copy(to, file)
	return err
}

func (s service) Replay(ctx context.Context, by Caller, id string) iter.Seq2[Replayed, error] {
	return operations.ReplayedRequests(operations.Replay.Follow(ctx, s.e, by, operations.SessionRef{ID: id}))
}

func (s service) Attach(ctx context.Context, by Caller, id, name string, body io.Reader) (Attachment, error) {
	return operations.Attach.Call(ctx, s.e, by, operations.NewAttachment{ID: id, Name: name, File: operation.Upload(name, body)})
}

func (s service) Blob(ctx context.Context, by Caller, id, hash string) (File, error) {
	return operations.Blob.Call(ctx, s.e, by, operations.BlobRef{ID: id, Hash: hash})
}

func (s service) Search(ctx context.Context, by Caller, q SearchQuery) (List[Hit], error) {
	return operations.Search.Call(ctx, s.e, by, q)
}

func (s service) Approvals(ctx context.Context, by Caller, q ApprovalQuery) (List[Approval], error) {
	return operations.ListApprovals.Call(ctx, s.e, by, q)
}

func (s service) Answer(ctx context.Context, by Caller, id string, in Verdict) (Approval, error) {
	return operations.AnswerApproval.Call(ctx, s.e, by, operations.Answer{ID: id, Approved: in.Approved, Note: in.Note, Always: in.Always})
}

func (s service) ListAgents(ctx context.Context, by Caller) (List[Agent], error) {
	return operations.ListAgents.Call(ctx, s.e, by, operation.None{})
}

func (s service) GetAgent(ctx context.Context, by Caller, name string) (AgentDetail, error) {
	return operations.GetAgent.Call(ctx, s.e, by, operations.AgentRef{Name: name})
}

func (s service) CreateAgent(ctx context.Context, by Caller, in NewAgent) (Agent, error) {
	return operations.CreateAgent.Call(ctx, s.e, by, in)
}

func (s service) ConfigureAgent(ctx context.Context, by Caller, name, key, value string) (Agent, error) {
	return operations.ConfigureAgent.Call(ctx, s.e, by, operations.AgentSetting{Name: name, Key: key, Value: value})
}

func (s service) DestroyAgent(ctx context.Context, by Caller, name string, keepFiles bool) error {
	_, err := operations.DestroyAgent.Call(ctx, s.e, by, operations.DestroyAgentRequest{Name: name, KeepFiles: keepFiles})
	return err
}

func (s service) AgentFile(ctx context.Context, by Caller, name, path string) (Entry, error) {
	return operations.AgentFile.Call(ctx, s.e, by, operations.AgentFileRef{Name: name, Path: path})
}

func (s service) Costs(ctx context.Context, by Caller, q CostQuery) (Costs, error) {
	return operations.GetCosts.Call(ctx, s.e, by, q)
}

func (s service) Audit(ctx context.Context, by Caller, q AuditQuery) (List[AuditLine], error) {
	return operations.ListAudit.Call(ctx, s.e, by, q)
}

func (s service) VerifyAudit(ctx context.Context, by Caller, since string) (AuditCheck, error) {
	return operations.VerifyAudit.Call(ctx, s.e, by, operations.VerifyRequest{Since: since})
}

func (s service) ListTokens(ctx context.Context, by Caller) (List[Token], error) {
	return operations.ListTokens.Call(ctx, s.e, by, operation.None{})
}

func (s service) CreateToken(ctx context.Context, by Caller, in NewToken) (Token, error) {
	asked := operations.NewToken{Name: in.Name, Scopes: in.Scopes, Roles: in.Roles}
	if in.ExpiresIn > 0 {
		asked.ExpiresIn = in.ExpiresIn.String()
	}
	return operations.CreateToken.Call(ctx, s.e, by, asked)
}

func (s service) RevokeToken(ctx context.Context, by Caller, id string) error {
	_, err := operations.RevokeToken.Call(ctx, s.e, by, operations.TokenRef{ID: id})
	return err
}

func (s service) Models(ctx context.Context, by Caller) (List[Model], error) {
	return operations.ListModels.Call(ctx, s.e, by, operation.None{})
}

func (s service) Settings(ctx context.Context, by Caller) (List[Setting], error) {
	return operations.ListSettings.Call(ctx, s.e, by, operation.None{})
}

func (s service) SetSetting(ctx context.Context, by Caller, key, value string) (Setting, error) {
	return operations.SetSetting.Call(ctx, s.e, by, operations.SettingValue{Key: key, Value: value})
}

func (s service) Overview(ctx context.Context, by Caller) (Overview, error) {
	return operations.GetOverview.Call(ctx, s.e, by, operation.None{})
}

func (s service) Health(ctx context.Context, by Caller) (List[Check], error) {
	return operations.CheckHealth.Call(ctx, s.e, by, operation.None{})
}
