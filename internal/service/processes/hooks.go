package processes

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"chorus/internal/background"
	"chorus/internal/background/watch"
	"chorus/internal/operation"
	"chorus/internal/operations"
)

// PreviewHooks implements the operation of that name.
func (o *Handler) PreviewHooks(ctx context.Context, by operation.Caller, in operations.HookWords) (out operation.List[operations.ProcessHook], err error) {
	rules, err := grammar(in.Instructions)
	if errors.Is(err, background.ErrNotUnderstood) && in.ID != "" {
		var p background.Process
		if p, err = o.ownProcess(ctx, by, in.ID); err == nil {
			rules, err = o.readByModel(ctx, by, p, in.Instructions)
		}
	} else if err != nil {
		err = operation.InvalidField("instructions", "%s", err)
	}
	for _, r := range rules {
		out.Items = append(out.Items, showHook(background.Hook{Rule: r}))
	}
	return out, err
}

func grammar(instructions string) ([]background.Rule, error) {
	rules, err := background.Compile(instructions)
	if err == nil && len(rules) == 0 {
		err = errors.New("say what should happen when")
	}
	return rules, err
}

// HookProcess implements the operation of that name. What a model read applies only once it was shown.
func (o *Handler) HookProcess(ctx context.Context, by operation.Caller, in operations.NewProcessHooks) (operations.Process, error) {
	p, err := o.ownProcess(ctx, by, in.ID)
	if err != nil {
		return operations.Process{}, err
	}
	rules, err := o.hooksFor(ctx, by, p, in)
	if err != nil {
		return operations.Process{}, err
	}
	if p, err = o.Watcher.AddHooks(ctx, p.ID, rules); err != nil {
		if errors.Is(err, watch.ErrHooks) {
			err = operation.Errorf(operation.Conflict, "%s", err)
		}
		return operations.Process{}, err
	}
	return o.showProcess(p), nil
}

func (o *Handler) hooksFor(ctx context.Context, by operation.Caller, p background.Process, in operations.NewProcessHooks) ([]background.Rule, error) {
	if in.Hooks != "" {
		rules, err := background.Spelled(in.Hooks)
		if err != nil {
			return nil, operation.InvalidField("hooks", "%s", err)
		}
		return rules, nil
	}
	rules, err := grammar(in.Instructions)
	switch {
	case err == nil:
		return rules, nil
	case !errors.Is(err, background.ErrNotUnderstood):
		return nil, operation.InvalidField("instructions", "%s", err)
	}
	if rules, shown := o.Shown.get(hooksKey(by, p, in.Instructions), o.app.Now()); shown {
		return rules, nil
	}
	if rules, err = o.readByModel(ctx, by, p, in.Instructions); err != nil {
		return nil, err
	}
	var said []string
	for _, r := range rules {
		said = append(said, "- "+r.String())
	}
	return nil, operation.Errorf(operation.Conflict, "nothing applies yet: a model understood this as\n%s\nif that is right, confirm it: chorus process hook %s --hooks '%s'",
		strings.Join(said, "\n"), p.ID, strings.ReplaceAll(background.Spell(rules), "'", `'\''`))
}

// ownProcess finds a process whose hooks the caller may change.
func (o *Handler) ownProcess(ctx context.Context, by operation.Caller, id string) (background.Process, error) {
	p, err := o.findProcess(ctx, by, id)
	if err == nil && !ownsProcess(by, p) {
		err = operation.Errorf(operation.Forbidden, "process %s belongs to %s: its hooks run with their rights and their money", p.ID, p.Owner.Person().Label())
	}
	return p, err
}

// readByModel has the model of the process's agent read instructions, and remembers the result for a while: whoever
// confirms gets what they were shown.
func (o *Handler) readByModel(ctx context.Context, by operation.Caller, p background.Process, words string) ([]background.Rule, error) {
	if !by.May(operation.Chat) {
		return nil, operation.Errorf(operation.Forbidden, "%s", "the grammar does not understand that, and only people who may talk to agents can have a model read it")
	}
	key := hooksKey(by, p, words)
	if rules, shown := o.Shown.get(key, o.app.Now()); shown {
		return rules, nil // shown again, for example on a reload
	}
	row, err := o.app.DB.Thread(ctx, p.Thread)
	if err != nil {
		return nil, err
	}
	rules, err := o.app.Setup.CompileHooks(ctx, row, by.Acting().Person(), words)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, operation.InvalidField("instructions", "%s", err)
	}
	o.Shown.put(key, rules, o.app.Now())
	return rules, nil
}

func hooksKey(by operation.Caller, p background.Process, words string) string {
	return by.Principal.String() + "\x00" + p.ID + "\x00" + words
}

// ShownHooks stores what a model made of instructions, until the person who saw it confirms.
type ShownHooks struct {
	mu  sync.Mutex
	all map[string]shownHook
}

type shownHook struct {
	rules []background.Rule
	at    time.Time
}

const (
	shownFor      = 15 * time.Minute
	maxShownHooks = 200
)

func (s *ShownHooks) put(key string, rules []background.Rule, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for old, one := range s.all {
		if now.Sub(one.at) > shownFor {
			delete(s.all, old)
		}
	}
	if s.all == nil || len(s.all) >= maxShownHooks {
		s.all = map[string]shownHook{}
	}
	s.all[key] = shownHook{rules, now}
}

// get returns what was shown.
func (s *ShownHooks) get(key string, now time.Time) ([]background.Rule, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	one, ok := s.all[key]
	return one.rules, ok && now.Sub(one.at) <= shownFor
}
