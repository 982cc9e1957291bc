package operationstest

import (
	"strings"

	"chorus/internal/feed"
	"chorus/internal/operation"
	"chorus/internal/operations"
)

// saveContext saves what the agent sees.
func (s *story) saveContext(by operation.Caller, in operations.NewContext) operations.SavedContext {
	s.Helper()
	saved, err := operations.SaveContext.Call(s.ctx, s.As(by), by, in)
	s.ok(err)
	return saved
}

func contexts(s *story) {
	id := s.new(s.Ada, operations.NewSession{}).ID
	_, err := operations.SaveContext.Call(s.ctx, s.As(s.Ada), s.Ada, operations.NewContext{ID: id})
	s.wants(operation.NotFound, err) // nothing was said
	s.say(s.Ada, id, "!say first answer")
	saved := s.saveContext(s.Ada, operations.NewContext{ID: id, Description: "before the change", Key: "one"})
	if saved.Messages != 2 || saved.Description != "before the change" || saved.Summary == "" || saved.SavedAt.IsZero() || saved.By != s.Ada.Principal.String() || saved.Automatic {
		s.Fatalf("saved %+v", saved)
	}
	s.equal("the same key saves the same", s.saveContext(s.Ada, operations.NewContext{ID: id, Description: "before the change", Key: "one"}), saved)
	s.say(s.Ada, id, "!say second answer")
	later := s.saveContext(s.Ada, operations.NewContext{ID: id})
	s.equal("messages of the second", later.Messages, 4)

	list := func(by operation.Caller, id string) []operations.SavedContext {
		s.Helper()
		list, err := operations.ListContexts.Call(s.ctx, s.As(by), by, operations.SessionRef{ID: id})
		s.ok(err)
		return list.Items
	}
	if all := list(s.Ada, id); len(all) != 2 || all[0].ID != later.ID || all[1].ID != saved.ID {
		s.Errorf("the list is %+v", all)
	}
	_, err = operations.GetContext.Call(s.ctx, s.As(s.Reader), s.Reader, operations.ContextRef{ID: id, Context: later.ID})
	s.wants(operation.NotFound, err)
	one, err := operations.GetContext.Call(s.ctx, s.As(s.Ada), s.Ada, operations.ContextRef{ID: id, Context: later.ID})
	s.ok(err)
	s.equal("one alone", one, later)

	// The same conversation goes back, another one of hers continues from it.
	restore := func(by operation.Caller, id, context string) (operations.RestoredContext, error) {
		return operations.RestoreContext.Call(s.ctx, s.As(by), by, operations.ContextRef{ID: id, Context: context})
	}
	got, err := restore(s.Ada, id, strings.ToUpper(saved.ID[:12]))
	s.ok(err)
	s.equal("what is restored", got.ID, saved.ID)
	s.equal("messages in sight again", got.Restored, 2)
	s.equal("messages in sight", s.saveContext(s.Ada, operations.NewContext{ID: id}).Messages, 2)
	other := s.new(s.Ada, operations.NewSession{}).ID
	s.say(s.Ada, other, "!say something else\n!end\n!say at length")
	got, err = restore(s.Ada, other, later.ID)
	s.ok(err)
	s.equal("messages in sight of the other", got.Restored, 4)
	s.equal("answer after it", s.answer(s.say(s.Ada, other, "!say goes on")), "goes on")

	// Nobody else has a part in it, and nothing changes below a run.
	for _, by := range []operation.Caller{s.Bo, s.Reader} {
		_, err := restore(by, id, saved.ID)
		if kind := operation.KindOf(err); kind != operation.NotFound && kind != operation.Forbidden {
			s.Errorf("somebody else restores: %v", err)
		}
	}
	bos := s.new(s.Bo, operations.NewSession{}).ID
	s.say(s.Bo, bos, "!say hello")
	s.equal("contexts in sight of others", len(list(s.Bo, bos)), 0)
	_, err = restore(s.Bo, bos, saved.ID)
	s.wants(operation.NotFound, err)
	for _, wrong := range []string{"none", "", "%", strings.Repeat("x", 65)} {
		if _, err = restore(s.Ada, id, wrong); err == nil {
			s.Errorf("a context %q was restored", wrong)
		}
	}
	admins := s.saveContext(s.Admin, operations.NewContext{ID: id})
	said, err := operations.Say.Call(s.ctx, s.As(s.Ada), s.Ada, operations.Message{ID: id, Message: "!wait"})
	s.ok(err)
	s.until(s.Ada, id, said.Seq-1, isType(feed.TypeRunStarted))
	_, err = restore(s.Ada, id, saved.ID)
	s.wants(operation.Conflict, err)
	_, err = operations.Abort.Call(s.ctx, s.As(s.Ada), s.Ada, operations.AbortRequest{ID: id})
	s.ok(err)
	s.until(s.Ada, id, said.Seq-1, func(it feed.Item) bool { return it.Header().Type.Terminal() })

	// What an administrator saved is theirs to delete, what Ada saved hers.
	remove := func(by operation.Caller, context string) error {
		_, err := operations.DeleteContext.Call(s.ctx, s.As(by), by, operations.ContextRef{ID: id, Context: context})
		return err
	}
	s.wants(operation.Forbidden, remove(s.Ada, admins.ID))
	s.ok(remove(s.Ada, saved.ID))
	s.ok(remove(s.Admin, later.ID))
	s.wants(operation.NotFound, remove(s.Ada, saved.ID))
	for _, left := range list(s.Ada, id) {
		if left.ID == saved.ID || left.ID == later.ID {
			s.Errorf("%s is still there", left.ID)
		}
	}
}
