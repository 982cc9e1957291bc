package service

import (
	"context"

	"chorus/internal/chat"
	"chorus/internal/gate"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/tool"
	"chorus/internal/tool/operate"
)

// OperationTools returns the operations that agents may use. With all, it includes those that change agents and
// settings. These could widen the agent's own rights, so they are only for runs without limits, and for built-in agents,
// whose tools are chosen with that in mind.
func (s *Service) OperationTools(all bool, thread chat.ThreadID) []tool.Tool {
	scopes := []operation.Scope{operation.Read, operation.Chat}
	if all {
		scopes = operation.Scopes()
	}
	return operate.Tools(operate.Options{Executor: s.GuestOperations(), Operations: operations.All(), Scopes: scopes,
		Caller: func(ctx context.Context) operation.Caller {
			by := CallerOf(tool.CallFrom(ctx).Senders, scopes, s.RunsHome)
			by.Session = thread
			return by
		}})
}

// CallerOf returns on whose authority a call runs: the one person whose messages the run has taken. With several people
// nobody's rights would be right, and the operation refuses an unknown caller. Only the person at the terminal, and
// those on a platform who run this Chorus, have more than reading and chatting, and only through their own messages.
func CallerOf(senders []chat.Principal, scopes []operation.Scope, runsHome func(chat.Principal) bool) operation.Caller {
	if len(senders) == 0 {
		return operation.Caller{}
	}
	for _, other := range senders[1:] {
		if !other.Same(senders[0]) {
			return operation.Caller{}
		}
	}
	who, direct := senders[0], true
	for who.For != nil {
		if len(who.And) > 0 {
			return operation.Caller{}
		}
		who, direct = *who.For, false
	}
	if !direct || who.Kind != chat.LocalUser && !(who.Kind.OnPlatform() && runsHome(who)) {
		scopes = []operation.Scope{operation.Read, operation.Chat}
	}
	return operation.Caller{Principal: who, Scopes: scopes, Through: &senders[0]}
}

// RunsHome reports whether somebody may do what the owner of the home may: give any rights to anybody. On a platform
// this depends on their id, not on roles: a role of that name can be created on any server that the bot is invited to.
func (s *Service) RunsHome(who chat.Principal) bool {
	who.Roles = nil
	return s.Gate.MayGive(gate.Everything, who) == nil
}

// ClientTool makes tools of operations for MCP clients: they run as the caller in their context.
func ClientTool(to operation.Executor) func(d *operation.Definition, name string) tool.Tool {
	o := operate.Options{Executor: to, Caller: func(ctx context.Context) operation.Caller {
		by, _ := operation.CallerOf(ctx)
		return by
	}}
	return func(d *operation.Definition, name string) tool.Tool { return operate.New(o, d, name) }
}
