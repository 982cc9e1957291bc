package operation

import (
	"context"
	"iter"
	"maps"
	"reflect"
	"sync"
)

// Noun is a kind of thing that inputs name: a field with the tag noun:"agent" names an agent.
type Noun struct {
	// Find returns an error if the caller has nothing of this name; what they may not see does not exist for them. nil: the
	// handlers check it themselves.
	Find func(ctx context.Context, by Caller, name string) error
	// Suggest returns names with a prefix that the caller may see. nil: use the operation "noun.list".
	Suggest func(ctx context.Context, by Caller, prefix string) ([]string, error)
}

// Namer is a handler that knows kinds of things that inputs name.
type Namer interface{ Nouns() map[string]Noun }

// Local runs operations in this process.
type Local struct {
	o     LocalOptions
	cache sync.Map // reflect.Type of an interface: the handler that implements it
}

// LocalOptions configures a Local.
type LocalOptions struct {
	// Handlers run the operations: for each, the first one that implements its interface. A handler that is a Namer also provides nouns.
	Handlers []any
	Nouns    map[string]Noun
	// Operations are searched for lists of names to suggest; nil: nouns must suggest names themselves.
	Operations *Set
	// Error turns every error of a handler into one for people; nil: handlers return *Error themselves.
	Error func(error) error
}

var _ Executor = (*Local)(nil)

// NewLocal makes an executor of handlers.
func NewLocal(o LocalOptions) *Local {
	l := &Local{o: o}
	l.o.Nouns = map[string]Noun{}
	maps.Copy(l.o.Nouns, o.Nouns)
	for _, h := range o.Handlers {
		if n, ok := h.(Namer); ok {
			maps.Copy(l.o.Nouns, n.Nouns())
		}
	}
	l.o.Handlers = append([]any{(*suggester)(l)}, o.Handlers...)
	return l
}

// handler finds the handler of an operation.
func (l *Local) handler(d *Definition) (any, error) {
	if known, ok := l.cache.Load(d.Handler); ok {
		return known, nil
	}
	for _, h := range l.o.Handlers {
		if reflect.TypeOf(h).Implements(d.Handler) {
			l.cache.Store(d.Handler, h)
			return h, nil
		}
	}
	return nil, Errorf(Failed, "nobody here carries out %s: no handler implements %s", d.Name, d.Handler)
}

// enter checks every operation first: who asks, whether they may, whether the input is valid, and whether what it names exists for them.
func (l *Local) enter(ctx context.Context, by Caller, d *Definition, in any) error {
	if d.Scope != "" {
		if by.Principal.ID == "" {
			return Errorf(Unsigned, "you are not signed in; sign in, or send a token")
		}
		if !by.May(d.Scope) {
			return Errorf(Forbidden, "this needs a token with the scope %s; `chorus token create --scopes %s` makes one", d.Scope, d.Scope)
		}
	}
	if err := d.Validate(in); err != nil {
		return err
	}
	for _, f := range d.Fields() {
		noun, ok := l.o.Nouns[f.Noun]
		if !ok || noun.Find == nil || !f.Required || f.Type.Kind() != reflect.String {
			continue
		}
		if err := noun.Find(ctx, by, reflect.ValueOf(in).FieldByIndex(f.Index).String()); err != nil {
			return err
		}
	}
	return nil
}

// Execute implements Executor.
func (l *Local) Execute(ctx context.Context, by Caller, d *Definition, in any) (out any, err error) {
	if d.run == nil {
		return nil, Errorf(Failed, "operation %s is a stream", d.Name)
	}
	if err := l.enter(ctx, by, d, in); err != nil {
		return nil, err
	}
	handler, err := l.handler(d)
	if err != nil {
		return nil, err
	}
	out, err = d.run(ctx, handler, by, in)
	return out, l.forPeople(err)
}

func (l *Local) forPeople(err error) error {
	if err == nil || l.o.Error == nil {
		return err
	}
	return l.o.Error(err)
}

// Follow implements Executor.
func (l *Local) Follow(ctx context.Context, by Caller, d *Definition, in any) iter.Seq2[any, error] {
	return func(yield func(any, error) bool) {
		handler, err := l.handler(d)
		if err == nil {
			err = l.enter(ctx, by, d, in)
		}
		if err == nil && d.follow == nil {
			err = Errorf(Failed, "operation %s is not a stream", d.Name)
		}
		if err != nil {
			yield(nil, err)
			return
		}
		for item, err := range d.follow(ctx, handler, by, in) {
			if !yield(item, l.forPeople(err)) {
				return
			}
		}
	}
}
