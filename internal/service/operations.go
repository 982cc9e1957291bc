package service

import (
	"context"
	"strings"

	"chorus/internal/approval"
	"chorus/internal/chat"
	"chorus/internal/config"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/permit/always"
	"chorus/internal/service/savedcontext"
	"chorus/internal/service/shares"
)

// Operations implements every operation on this home, for a server: from then on the engine runs every thread, except
// those of terminals (see Service).
func (s *Service) Operations() *operation.Local { return s.Handler().Operations() }

// GuestOperations implements every operation on this home for a process that does one thing and ends. The process that
// runs the thread picks up what it writes; it runs none itself.
func (s *Service) GuestOperations() *operation.Local { return s.Guest().Operations() }

// Guest implements operations for a process that runs no threads except those it is explicitly told to.
func (s *Service) Guest() *Handler {
	s.Serving.begin()
	o := &Handler{app: s, names: map[string]chat.ThreadID{}, guest: true}
	o.Engine = s.Engine(nil)
	return o
}

// IsGuest reports whether a handler belongs to a process that runs no threads.
func (o *Handler) IsGuest() bool { return o.guest }

// Operations returns an executor of every operation with this handler.
func (o *Handler) Operations() *operation.Local {
	handlers := append([]any{o, o.app.Tokens(), o.Shares(), o.savedContexts()}, o.app.Others(o)...)
	return operation.NewLocal(operation.LocalOptions{Handlers: handlers, Operations: operations.All(), Error: o.ToError})
}

// Shares carry out the operations on links to sessions.
func (o *Handler) Shares() *shares.Handler {
	return shares.New(o.app.DB, o.app.Logs.Redactor, o, o.app.Shared.PublicURL)
}

// savedContexts implements the operations on saved contexts.
func (o *Handler) savedContexts() *savedcontext.Handler {
	return savedcontext.NewHandler(o.app.Contexts, o.Engine, o, o.app.Logs.Redactor)
}

// maxSuggested is how many sessions are suggested before anything is typed.
const maxSuggested = 50

// Nouns are the names in inputs, if they are not simply those of the list: sessions have unique prefixes, and not every
// setting can be set. Each operation checks itself that a named thing exists, when it reads it.
func (o *Handler) Nouns() map[string]operation.Noun {
	return map[string]operation.Noun{
		"session": {Suggest: o.sessionNames}, "approval": {Suggest: o.approvalNames},
		"setting": {Suggest: func(context.Context, operation.Caller, string) (names []string, _ error) {
			for _, k := range config.Keys() {
				if settable(k) {
					names = append(names, k.Path)
				}
			}
			return names, nil
		}},
	}
}

func (o *Handler) sessionNames(ctx context.Context, by operation.Caller, prefix string) (names []string, err error) {
	if prefix == "" {
		list, err := o.ListSessions(ctx, by, operations.SessionQuery{Limit: maxSuggested})
		for _, s := range list.Items {
			names = append(names, s.ID)
		}
		return names, err
	}
	rows, err := o.app.DB.ThreadsNamed(ctx, prefix)
	for _, row := range rows {
		if by.Sees(row.ID, row.Owner) && !row.Gone() {
			names = append(names, row.ID.Thread())
		}
	}
	return names, err
}

func (o *Handler) approvalNames(ctx context.Context, by operation.Caller, prefix string) (names []string, err error) {
	found, err := o.Engine.Approvals(ctx, approval.Filter{Prefix: strings.ToLower(prefix), Newest: true})
	for _, a := range found {
		if o.SeesThread(ctx, by, a.Thread) {
			names = append(names, a.ID)
		}
	}
	return names, err
}

// ProposeRules implements operations.Rules.
func (o *Handler) ProposeRules(ctx context.Context, by operation.Caller, in operations.ApprovalRef) (operations.RuleProposal, error) {
	a, err := o.findApproval(ctx, by, in.ID)
	if err != nil {
		return operations.RuleProposal{}, err
	}
	offer, err := o.app.Gate.Propose(ctx, a.ID, by.Principal)
	out := operations.RuleProposal{ID: a.ID, Where: offer.Where, Never: offer.Never, Rules: []operations.RuleStep{}}
	for _, s := range offer.Steps {
		out.Rules = append(out.Rules, operations.RuleStep(s))
	}
	return out, err
}

// ListRules implements operations.Rules.
func (o *Handler) ListRules(ctx context.Context, _ operation.Caller, _ operation.None) (operation.List[operations.KeptRule], error) {
	list, err := o.app.Gate.ListAllowed()
	return keptRules(list, o.app.Names(ctx)), err
}

// RemoveRules implements operations.Rules.
func (o *Handler) RemoveRules(ctx context.Context, _ operation.Caller, in operations.RuleRefs) (operation.List[operations.KeptRule], error) {
	gone, err := o.app.Gate.RemoveAllowed(ctx, in.IDs)
	return keptRules(gone, o.app.Names(ctx)), err
}

func keptRules(list []always.Entry, name func(chat.Principal) string) (out operation.List[operations.KeptRule]) {
	for _, k := range list {
		out.Items = append(out.Items, operations.KeptRule{ID: k.ID, By: k.By, ByName: name(chat.PrincipalOf(k.By)), Agent: k.Agent, Dir: k.Dir, Channel: k.Channel, At: k.At,
			Approval: k.Approval, Means: k.Means, Rules: k.Rules})
	}
	return out
}
