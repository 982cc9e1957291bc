// Package command holds what people can order of Chorus, once for every door they
// come through: the web page, the HTTP API, a client at another machine's terminal.
//
// It is a contract. The program itself keeps it on its store, and the client
// keeps it over the wire, so whoever is handed a Service need not know where it is.
// It promises that every order names on whose authority it is given, that every list
// has an end, and that every error is an *Error that says what to do.
package command

import (
	"context"
	"io"
	"iter"

	"chorus/internal/feed"
)

// Service is everything that can be ordered.
type Service interface {
	Sessions
	Desk
	Agents
	Books
	Keys
	House
}

// Sessions are conversations.
type Sessions interface {
	CreateSession(ctx context.Context, by Caller, in NewSession) (Session, error)
	// ListSessions gives the ones that moved last first, and where the next page begins.
	ListSessions(ctx context.Context, by Caller, q SessionQuery) (List[Session], error)
	GetSession(ctx context.Context, by Caller, id string) (Session, error)
	// Say gives a prompt. With a Key it is taken once, however often it is sent.
	Say(ctx context.Context, by Caller, id string, in Words) (Said, error)
	// Steer gives words to the run that is on; where none is, they are a prompt.
	Steer(ctx context.Context, by Caller, id string, in Words) (Said, error)
	// Abort ends the run that is on; with all, what waits is refused too.
	Abort(ctx context.Context, by Caller, id string, all bool) (bool, error)
	ResumeSession(ctx context.Context, by Caller, id string, in Resume) (Session, error)
	Fork(ctx context.Context, by Caller, id string, atSeq int64) (Session, error)
	// Watch gives what there is after a number and then what comes, until ctx ends.
	Watch(ctx context.Context, by Caller, id string, after int64) iter.Seq2[feed.Item, error]
	// Events is the raw journal.
	Events(ctx context.Context, by Caller, id string, q Span) (List[RawEvent], error)
	// Messages is what was said and done, as a reader of the conversation sees it.
	Messages(ctx context.Context, by Caller, id string, q Span) (List[feed.Item], error)
	// Requests are the model calls of a session, with what was sent.
	Requests(ctx context.Context, by Caller, id string, q Span) (List[Request], error)
	// Export writes a whole session for somebody to keep, without secrets and as it is read:
	// where it fails, nothing or a part was written.
	Export(ctx context.Context, by Caller, id string, as Format, to io.Writer) error
	// Replay rebuilds every request from the journal and compares it with what was sent. An
	// error is the last thing it gives.
	Replay(ctx context.Context, by Caller, id string) iter.Seq2[Replayed, error]
	// Attach stores a file that a later message names.
	Attach(ctx context.Context, by Caller, id string, name string, body io.Reader) (Attachment, error)
	// Blob opens a picture or file that an event of the session names.
	Blob(ctx context.Context, by Caller, id string, hash string) (File, error)
	Search(ctx context.Context, by Caller, q SearchQuery) (List[Hit], error)
}

// Desk is where approvals are answered.
type Desk interface {
	Approvals(ctx context.Context, by Caller, q ApprovalQuery) (List[Approval], error)
	// Answer says yes or no, by the approval's id or the call's.
	Answer(ctx context.Context, by Caller, id string, in Verdict) (Approval, error)
}

// Agents are who answers.
type Agents interface {
	ListAgents(ctx context.Context, by Caller) (List[Agent], error)
	GetAgent(ctx context.Context, by Caller, name string) (AgentDetail, error)
	CreateAgent(ctx context.Context, by Caller, in NewAgent) (Agent, error)
	ConfigureAgent(ctx context.Context, by Caller, name, key, value string) (Agent, error)
	DestroyAgent(ctx context.Context, by Caller, name string, keepFiles bool) error
	// AgentFile reads a file or lists a directory of the agent's workspace.
	AgentFile(ctx context.Context, by Caller, name, path string) (Entry, error)
}

// Books are money and decisions.
type Books interface {
	Costs(ctx context.Context, by Caller, q CostQuery) (Costs, error)
	Audit(ctx context.Context, by Caller, q AuditQuery) (List[AuditLine], error)
	// VerifyAudit looks at the audit log from the line with a hash on; "": at all of it.
	VerifyAudit(ctx context.Context, by Caller, since string) (AuditCheck, error)
}

// Keys are the tokens of the API.
type Keys interface {
	ListTokens(ctx context.Context, by Caller) (List[Token], error)
	// CreateToken is the one time that the token's text is seen.
	CreateToken(ctx context.Context, by Caller, in NewToken) (Token, error)
	RevokeToken(ctx context.Context, by Caller, id string) error
}

// House is what holds for everybody.
type House interface {
	Models(ctx context.Context, by Caller) (List[Model], error)
	Settings(ctx context.Context, by Caller) (List[Setting], error)
	SetSetting(ctx context.Context, by Caller, key, value string) (Setting, error)
	Overview(ctx context.Context, by Caller) (Overview, error)
	// Health is what a newcomer lacks, and how to get it.
	Health(ctx context.Context, by Caller) (List[Check], error)
}
