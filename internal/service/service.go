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

// Handler carries out the operations. Identity, scope and input were checked by the executor; what of sessions and
// costs a caller may see is looked at here.
type Handler struct {
	app    *Service
	Engine *engine.Engine
	guest  bool // it runs no threads and lets none be run here
	last   examination
	shown  shown

	mu     sync.Mutex
	names  map[string]chat.ThreadID // by what people call a session; threads never change their name
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

// streams is what a Service keeps for those who follow sessions.
type streams struct {
	first   sync.Once
	once    sync.Once
	handler *Handler
	began   time.Time

	mu      sync.Mutex
	told    map[chat.ThreadID]bool // terminal threads to which something was said here
	drained context.Context        // ends when the server stops
	drain   context.CancelFunc
}

// Handler carries operations out on this home. The engine runs every thread from then
// on, except those of terminals: these only once something was said to them here.
func (service *Service) Handler() *Handler {
	s := &service.Serving
	s.begin()
	s.once.Do(func() {
		s.handler = &Handler{app: service, names: map[string]chat.ThreadID{}}
		s.handler.Engine = service.Engine(service.serves)
	})
	return s.handler
}

// begin makes what streams and prompts need.
func (s *streams) begin() {
	s.first.Do(func() {
		s.mu.Lock() // an engine that a terminal began may ask already
		defer s.mu.Unlock()
		s.began, s.told = time.Now(), map[chat.ThreadID]bool{}
		s.drained, s.drain = context.WithCancel(context.Background())
	})
}

// serves reports whether a thread is to be run by the server.
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

// Began is when this process began to carry out operations.
func (o *Handler) Began() time.Time { return o.app.Serving.began }

// StopStreams ends every stream.
func (s *Service) StopStreams() { s.Serving.close() }

func (s *streams) close() {
	s.begin()
	s.drain()
}

// ServedBy marks what was said over HTTP, among the terms of a prompt.
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

// ToError is what the executor makes of every error: one for people: what is wrong with what they asked for,
// without secrets.
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
		err = files // its sentence says what to do; what was being done is in the log
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

// noSession is the answer for one that is not there and for one that is somebody else's.
func noSession(id string) error {
	return operation.Errorf(operation.NotFound, "there is no session %.80q", id)
}

// maxNames bounds what is remembered of names; they are looked up again.
const maxNames = 10000

// findDeleted is Find for sessions that were deleted as well.
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

// Find is a session that the caller sees. One that was deleted is not there, word for word.
func (o *Handler) Find(ctx context.Context, by operation.Caller, id string) (journal.Thread, error) {
	row, err := o.findDeleted(ctx, by, id)
	if err == nil && row.Gone() {
		return journal.Thread{}, noSession(id)
	}
	return row, err
}

// thread finds the whole name of a session.
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
	// The beginning of an id is for people at a terminal; here it would be a guess.
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

// LocalCaller is the person at this terminal, who may everything.
func (s *Service) LocalCaller() operation.Caller {
	return operation.Caller{Principal: s.Me(), Scopes: []operation.Scope{operation.Admin}}
}

// NameOf is what people call somebody of whom only the key was kept.
func (o *Handler) NameOf(ctx context.Context, key string) string { return o.app.NameOf(ctx, key) }

// NameOf is what people call somebody, by their key.
func (s *Service) NameOf(ctx context.Context, key string) string {
	return s.Names(ctx)(chat.PrincipalOf(key))
}

// Names gives what people call somebody: by the name that was kept with what they did, else by that of their token, or by what they were
// called on their platform when they last did something. Each is looked up once.
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

// lookUpName is "" where nobody knows: then the id is shown.
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

// BareToolbox are the tools of no thread: for their labels, and for lists of them.
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

// Record writes down who changed what.
func (o *Handler) Record(ctx context.Context, by operation.Caller, agent, action, detail string) error {
	hide := o.app.Logs.Redactor()
	return o.app.DB.Audit(ctx, approval.Audit{Agent: agent, Principal: by.Principal, Action: hide.Text(action), Decision: gate.Changed, Detail: hide.Text(detail)})
}
