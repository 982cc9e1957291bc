// Package acp is Chorus as an agent for editors: the Agent Client Protocol on a pair of pipes.
//
// It promises that an editor is shown what the journal holds, each piece once and in order, live pieces only earlier; that
// an approval of the gate is answered by what the person in the editor chose, and by nothing else; that a prompt is
// answered only when everything of its run was sent; and that a session can be loaded again after this process died,
// and goes on with what it was doing.
package acp

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"log/slog"
	"sync"

	sdk "github.com/coder/acp-go-sdk"

	"chorus/internal/transport/repl"
)

// Session is one conversation as an editor sees it.
type Session interface {
	repl.Session
	ID() string
	// Head is the number of the last event there was when it was opened.
	Head() int64
	// Attach has a file go with the next prompt.
	Attach(ctx context.Context, name string, file io.Reader) error
	// GoOn takes up what was cut off, if anything was.
	GoOn()
	// Modes are what can be chosen, and which one holds. None: nothing can be.
	Modes() (all []Choice, now string)
	// SetMode chooses one for what is said from now on.
	SetMode(ctx context.Context, id string) error
	Close() error
}

// Choice is one entry of a list that a person chooses from.
type Choice struct{ ID, Name, About string }

// Server is an MCP server that the editor wants the agent to use.
type Server struct {
	Name         string
	Type         string // stdio, http or sse
	Command      string
	Args         []string
	Env, Headers map[string]string
	URL          string
}

// Listed is one session of a list.
type Listed struct {
	ID, Title, Dir string
	MovedAt        string // RFC 3339
}

// ErrNoSession is the error of Open for an id that nothing has.
type ErrNoSession struct{ ID string }

func (e *ErrNoSession) Error() string { return "there is no session " + e.ID }

// AuthError is the error of whoever needs the person to sign in first. Its text says how.
type AuthError struct{ Text string }

func (e *AuthError) Error() string { return e.Text }

// Authenticator is a host that the person must be known to. A Host may be one.
type Authenticator interface {
	// AuthMethods are the ways to sign in.
	AuthMethods() []Choice
	// Authenticate signs in by one of them; the error says what is missing.
	Authenticate(ctx context.Context, method string) error
}

// Host has the sessions. Its methods are called from many goroutines.
type Host interface {
	// Open makes a session in dir, or takes up the one with the id. refused are sentences about what of the servers is not used.
	Open(ctx context.Context, dir, id string, servers []Server) (s Session, refused []string, err error)
	// List gives sessions, the last active first; dir narrows it to a folder.
	List(ctx context.Context, dir, cursor string) (list []Listed, next string, err error)
	// Models are what a session can be answered by. It must not take long.
	Models(ctx context.Context) []Choice
}

// Options say who we are.
type Options struct {
	Version string
	Log     *slog.Logger // of the protocol's own troubles; nil: nobody hears
}

// Serve speaks with one editor until it leaves or ctx ends. Nothing else may be written to out.
func Serve(ctx context.Context, host Host, in io.Reader, out io.Writer, o Options) error {
	ctx, cancel := context.WithCancel(ctx)
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	a := &agent{ctx: ctx, host: host, version: o.Version, out: &output{to: out}, sessions: map[string]*session{}, log: o.Log}
	ready := make(chan struct{})
	a.conn = sdk.NewAgentSideConnection(a, a.out, &input{from: in, ready: ready})
	a.conn.SetLogger(o.Log)
	close(ready)
	select {
	case <-a.conn.Done():
	case <-ctx.Done():
	}
	cancel()
	return a.close()
}

// input holds the first message back until everything is in place: the connection begins to read while it is made.
type input struct {
	from  io.Reader
	ready <-chan struct{}
}

func (i *input) Read(p []byte) (int, error) {
	<-i.ready
	return i.from.Read(p)
}

// output writes the protocol, and lets others wait until the answer to a request was written: an editor knows a session only then.
type output struct {
	to io.Writer

	mu    sync.Mutex
	after map[string]func() // by session
}

// whenAnswered calls then once a response about the session was written.
func (o *output) whenAnswered(session string, then func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.after == nil {
		o.after = map[string]func(){}
	}
	o.after[session] = then
}

// Write gets one message at a time, whole.
func (o *output) Write(line []byte) (int, error) {
	n, err := o.to.Write(line)
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.after) == 0 || !bytes.Contains(line, []byte(`"result":`)) {
		return n, err
	}
	for session, then := range o.after {
		if bytes.Contains(line, []byte(`"sessionId":"`+session+`"`)) {
			delete(o.after, session)
			go then()
		}
	}
	return n, err
}
