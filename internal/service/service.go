package service

import (
	"context"
	"errors"
	"sync"
	"time"

	"chorus/internal/agents"
	"chorus/internal/approval"
	"chorus/internal/chat"
	"chorus/internal/database"
	"chorus/internal/engine"
	"chorus/internal/gate"
	"chorus/internal/journal"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/overrides"
	"chorus/internal/runsetup"
	"chorus/internal/service/tokens"
	"chorus/internal/settings"
	"chorus/internal/usage"
)

// Handler implements the operations. The executor has checked identity, scope and input; the handler checks which
// sessions and costs a caller may see.
type Handler struct {
	app    *Service
	Engine *engine.Engine
	guest  bool // it neither runs threads nor lets others run them here
	last   examination
	shown  shown

	mu     sync.Mutex
	names  map[string]chat.ThreadID // by session id; threads never change their name
	labels *runsetup.Toolbox        // of no thread: for labels and lists of tools
}

var (
	_ operations.Sessions  = (*Handler)(nil)
	_ operations.History   = (*Handler)(nil)
	_ operations.Approvals = (*Handler)(nil)
	_ operations.Rules     = (*Handler)(nil)
	_ operations.Records   = (*Handler)(nil)
	_ operations.System    = (*Handler)(nil)
)

// streams is the state for clients that follow sessions.
type streams struct {
	first   sync.Once
	once    sync.Once
	handler *Handler
	began   time.Time

	mu      sync.Mutex
	told    map[chat.ThreadID]bool // terminal threads that got a message here
	drained context.Context        // ends when the server stops
	drain   context.CancelFunc
}

// Handler returns a handler for this home. From then on the engine runs every thread, except those of terminals: these
// only once they got a message here.
func (service *Service) Handler() *Handler {
	s := &service.Serving
	s.begin()
	s.once.Do(func() {
		s.handler = &Handler{app: service, names: map[string]chat.ThreadID{}}
		s.handler.Engine = service.Engine(service.serves)
	})
	return s.handler
}

// begin creates what streams and prompts need.
func (s *streams) begin() {
	s.first.Do(func() {
		s.mu.Lock() // an engine started by a terminal may already ask
		defer s.mu.Unlock()
		s.began, s.told = time.Now(), map[chat.ThreadID]bool{}
		s.drained, s.drain = context.WithCancel(context.Background())
	})
}

// serves reports whether the server should run a thread.
func (s *Service) serves(thread chat.ThreadID) bool {
	return thread.Transport() != "cli" || s.Serving.hasTold(thread)
}

func (s *streams) hasTold(thread chat.ThreadID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.told[thread]
}

// Stopping ends when the server stops.
func (o *Handler) Stopping() context.Context { return o.app.Serving.drained }

// Began is when this process started to serve operations.
func (o *Handler) Began() time.Time { return o.app.Serving.began }

// StopStreams ends every stream.
func (s *Service) StopStreams() { s.Serving.close() }

func (s *streams) close() {
	s.begin()
	s.drain()
}

// ServedBy marks messages that came over HTTP, in the terms of a prompt.
const ServedBy = "server"

// runHere lets this process run a terminal's thread, and ask people about it.
func (o *Handler) runHere(thread chat.ThreadID) {
	if thread.Transport() != "cli" || o.guest {
		return
	}
	o.app.Overrides.For(thread).Set(func(c *overrides.Values) { c.CanAsk = true })
	s := &o.app.Serving
	s.mu.Lock()
	defer s.mu.Unlock()
	s.told[thread] = true
}

// ToError turns every error into one for people: what is wrong with their request, without secrets.
func (o *Handler) ToError(err error) error {
	var ours *operation.Error
	var mistake *usage.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &ours):
		return ours
	}
	kind := operation.Failed
	var files *database.Problem
	switch {
	case errors.As(err, &files) && !errors.Is(err, database.ErrBlob):
		kind = operation.Unavailable
		if files.What == database.ErrFull {
			kind = operation.NoSpace
		}
		err = files // its sentence says what to do; the operation is in the log
	case errors.As(err, &mistake), errors.Is(err, agents.ErrName):
		kind = operation.Invalid
	case errors.Is(err, journal.ErrUnknown), errors.Is(err, agents.ErrUnknown):
		kind = operation.NotFound
	case errors.Is(err, journal.ErrSettled), errors.Is(err, engine.ErrBusy), errors.Is(err, agents.ErrExists):
		kind = operation.Conflict
	case errors.Is(err, approval.ErrMayNot):
		kind = operation.Forbidden
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		kind = operation.Unavailable
	}
	return &operation.Error{Kind: kind, Message: o.app.Logs.Redactor().Text(err.Error()), Err: err}
}

// noSession is the error for a session that does not exist or belongs to somebody else.
func noSession(id string) error {
	return operation.Errorf(operation.NotFound, "there is no session %.80q", id)
}

// maxNames limits the cache of names; they are looked up again.
const maxNames = 10000

// findDeleted is like Find, but includes deleted sessions.
func (o *Handler) findDeleted(ctx context.Context, by operation.Caller, id string) (journal.Thread, error) {
	thread, err := o.thread(ctx, id)
	if err != nil {
		return journal.Thread{}, err
	}
	row, err := o.app.DB.Thread(ctx, thread)
	switch {
	case errors.Is(err, journal.ErrUnknown):
		return row, noSession(id)
	case err != nil:
		return row, o.ToError(err)
	case !by.Sees(row.ID, row.Owner):
		return row, noSession(id)
	}
	return row, nil
}

// Find returns a session that the caller sees. A deleted session gives exactly the same error as a missing one.
func (o *Handler) Find(ctx context.Context, by operation.Caller, id string) (journal.Thread, error) {
	row, err := o.findDeleted(ctx, by, id)
	if err == nil && row.Gone() {
		return journal.Thread{}, noSession(id)
	}
	return row, err
}

// thread returns the full name of a session.
func (o *Handler) thread(ctx context.Context, id string) (chat.ThreadID, error) {
	if whole, err := chat.ParseThreadID(id); err == nil {
		return whole, nil
	}
	if !settings.PlainID(id) {
		return "", noSession(id)
	}
	o.mu.Lock()
	known, ok := o.names[id]
	o.mu.Unlock()
	if ok {
		return known, nil
	}
	found, err := o.app.DB.ThreadsNamed(ctx, id)
	if err != nil {
		return "", o.ToError(err)
	}
	// Id prefixes are for people at a terminal; here they would be guesses.
	if len(found) != 1 || found[0].ID.Thread() != id {
		return "", noSession(id)
	}
	o.remember(id, found[0].ID)
	return found[0].ID, nil
}

func (o *Handler) remember(id string, thread chat.ThreadID) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.names) >= maxNames {
		clear(o.names)
	}
	o.names[id] = thread
}

// Tokens are the API tokens of this home.
func (s *Service) Tokens() *tokens.Tokens {
	return tokens.New(tokens.Options{DB: s.DB, Home: s.Home, Log: s.Log, Copies: s.Settings.Copies, Owner: s.LocalCaller})
}

// LocalCaller is the person at this terminal, who may do everything.
func (s *Service) LocalCaller() operation.Caller {
	return operation.Caller{Principal: s.Me(), Scopes: []operation.Scope{operation.Admin}}
}

// NameOf returns somebody's name, by their key.
func (o *Handler) NameOf(ctx context.Context, key string) string { return o.app.NameOf(ctx, key) }

// NameOf returns somebody's name, by their key.
func (s *Service) NameOf(ctx context.Context, key string) string {
	return s.Names(ctx)(chat.PrincipalOf(key))
}

// Names returns somebody's name: the one stored with their action, else that of their token, or the last one on their
// platform. Each is looked up once.
func (s *Service) Names(ctx context.Context) func(chat.Principal) string {
	known := map[string]string{}
	return func(who chat.Principal) string {
		if who.Name == "" && (who.Kind == chat.TokenHolder || who.Kind.OnPlatform()) {
			name, looked := known[who.String()]
			if !looked {
				name = s.lookUpName(ctx, who)
				known[who.String()] = name
			}
			who.Name = name
		}
		return who.Label()
	}
}

// lookUpName returns "" if nobody knows the name: then the id is shown.
func (s *Service) lookUpName(ctx context.Context, who chat.Principal) string {
	if who.Kind == chat.TokenHolder {
		token, err := s.DB.TokenByID(ctx, who.ID)
		if err != nil {
			return ""
		}
		return token.Name
	}
	name, err := s.DB.PrincipalName(ctx, who.String())
	if err != nil {
		return ""
	}
	return name
}

// BareToolbox returns tools without a thread: for labels and lists of tools.
func (o *Handler) BareToolbox() (*runsetup.Toolbox, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.labels != nil {
		return o.labels, nil
	}
	made, err := o.app.Setup.NewToolbox("cli:chorus:labels", o.app.Home.Dir())
	if err == nil {
		o.labels = made
	}
	return made, err
}

// Record writes to the audit log who changed what.
func (o *Handler) Record(ctx context.Context, by operation.Caller, agent, action, detail string) error {
	hide := o.app.Logs.Redactor()
	return o.app.DB.Audit(ctx, approval.Audit{Agent: agent, Principal: by.Principal, Action: hide.Text(action), Decision: gate.Changed, Detail: hide.Text(detail)})
}
