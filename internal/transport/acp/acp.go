// Package acp makes Chorus an agent for editors: it speaks the Agent Client Protocol on a pair of pipes.
//
// It promises that an editor shows what the journal contains, each piece once and in order, with live pieces only as a
// preview; that an approval is answered only by the choice of the person in the editor; that a prompt is answered only
// once everything of its run was sent; and that a session can be loaded again after this process died, and continues its
// work.
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
	// Head is the number of the last event when it was opened.
	Head() int64
	// Attach adds a file to the next prompt.
	Attach(ctx context.Context, name string, file io.Reader) error
	// GoOn continues interrupted work, if there is any.
	GoOn()
	// Modes returns the available modes and the current one. It may return none.
	Modes() (all []Choice, now string)
	// SetMode sets the mode for future prompts.
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

// ErrNoSession is the error of Open for an unknown id.
type ErrNoSession struct{ ID string }

func (e *ErrNoSession) Error() string { return "there is no session " + e.ID }

// AuthError says that the person must sign in first, and how.
type AuthError struct{ Text string }

func (e *AuthError) Error() string { return e.Text }

// Authenticator is a host that requires sign-in. A Host may implement it.
type Authenticator interface {
	// AuthMethods returns the ways to sign in.
	AuthMethods() []Choice
	// Authenticate signs in with one of them; the error says what is missing.
	Authenticate(ctx context.Context, method string) error
}

// Host provides sessions. Its methods are called from many goroutines.
type Host interface {
	// Open creates a session in dir, or opens the one with the id. refused describes which of the servers are not used.
	Open(ctx context.Context, dir, id string, servers []Server) (s Session, refused []string, err error)
	// List lists sessions, last active first; dir limits it to a folder.
	List(ctx context.Context, dir, cursor string) (list []Listed, next string, err error)
	// Models returns the available models. It must be fast.
	Models(ctx context.Context) []Choice
}

// Options describe this program.
type Options struct {
	Version string
	Log     *slog.Logger // for errors of the protocol itself; nil: they are dropped
}

// Serve serves one editor until it disconnects or ctx ends. Nothing else may write to out.
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

// input holds the first message back until everything is ready, because the connection starts reading while it is created.
type input struct {
	from  io.Reader
	ready <-chan struct{}
}

func (i *input) Read(p []byte) (int, error) {
	<-i.ready
	return i.from.Read(p)
}

// output writes the protocol, and lets others wait until the answer to a request was written: only then does an editor know a session.
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

// Write gets one complete message at a time.
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
