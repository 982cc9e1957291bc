//lint:file-ignore SA1019 roots and sampling are deprecated in newer versions of the protocol, and servers use them

package mcp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"chorus/internal/await"
	"chorus/internal/tool/mcp/serverconfig"
)

// settled is the newest protocol version that begins with a greeting both sides know. The next version begins
// with a question that older servers may leave unanswered, so it is only tried if this one is refused.
const settled = "2025-11-25"

// live is one connection to a server, from greeting to end.
type live struct {
	srv     *server
	ctx     context.Context // done when the connection must end
	cancel  context.CancelCauseFunc
	proc    *process      // nil over HTTP
	pipe    *pipe         // nil over HTTP
	courier *roundTripper // nil for a process
	session *sdk.ClientSession
	gone    chan struct{} // closed when the session is over
	lost    atomic.Bool   // a call found the process's pipes closed, which happens before gone
	changed chan struct{} // receives a value when the server says that its tools have changed
	unknown bool          // the server does not know our greeting

	tokens  atomic.Int64
	mu      sync.Mutex
	watched map[string]func(string)  // progress by token
	calls   []*pending               // calls in progress, oldest first
	tasks   map[string]chan struct{} // tasks that are waited for, by id
	pages   map[string]func()        // pages that a person was asked to open, by the question's id

	taskNews int64 // number of unrequested messages about tasks
}

var errSlow = errors.New("it did not answer in time")

// dial starts the server and greets it. If it fails, everything it began has ended.
func (s *server) dial(ctx context.Context) (*live, error) {
	way := s.Type
	if way == "" && s.Command != "" {
		way = serverconfig.Stdio
	}
	l, err := s.try(ctx, way, settled)
	if err == nil {
		return l, nil
	}
	var second error = err
	switch {
	case ctx.Err() != nil:
	case way == "" && l.courier != nil && l.courier.old():
		l, second = s.try(ctx, serverconfig.SSE, settled)
	case l.unknown:
		l, second = s.try(ctx, way, "")
	}
	if second != nil {
		return nil, err // the error of the first way says more
	}
	return l, nil
}

// try tries one way to reach the server. If it returns a connection with an error, the connection is closed.
func (s *server) try(ctx context.Context, way, version string) (*live, error) {
	l := &live{srv: s, gone: make(chan struct{}), changed: make(chan struct{}, 1), watched: map[string]func(string){}, tasks: map[string]chan struct{}{}, pages: map[string]func(){}}
	l.ctx, l.cancel = context.WithCancelCause(ctx)
	err := l.connect(way, version)
	if err == nil {
		return l, nil
	}
	l.unknown = isCode(err, jsonrpc.CodeMethodNotFound) || isCode(err, sdk.CodeUnsupportedProtocolVersion)
	if errors.Is(context.Cause(l.ctx), errSlow) {
		err = fmt.Errorf("it did not answer within %s", s.StartTimeout)
	}
	err = l.explain(err)
	l.close()
	return l, err
}

func (l *live) connect(way, version string) error {
	transport, err := l.transport(way)
	if err != nil {
		close(l.gone)
		return err
	}
	// The connection lives in this context, so the deadline must not stay in it.
	slow := time.AfterFunc(l.srv.StartTimeout, func() { l.cancel(errSlow) })
	defer slow.Stop()
	client := sdk.NewClient(&sdk.Implementation{Name: "chorus", Version: l.srv.hub.opt.Version}, &sdk.ClientOptions{
		Capabilities: &sdk.ClientCapabilities{RootsV2: &sdk.RootCapabilities{},
			Elicitation: &sdk.ElicitationCapabilities{Form: &sdk.FormElicitationCapabilities{}, URL: &sdk.URLElicitationCapabilities{}}, Sampling: &sdk.SamplingCapabilities{}},
		MultiRoundTrip:         &sdk.MultiRoundTripOptions{Disabled: true},
		ElicitationHandler:     l.elicit,
		CreateMessageHandler:   l.sample,
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) { wakeUp(l.changed) },
		ElicitationCompleteHandler: func(_ context.Context, r *sdk.ElicitationCompleteNotificationRequest) {
			if r.Params != nil {
				l.pageDone(r.Params.ElicitationID)
			}
		},
		ResourceUpdatedHandler: func(_ context.Context, r *sdk.ResourceUpdatedNotificationRequest) {
			if r.Params != nil {
				l.srv.resourceChanged(r.Params.URI)
			}
		},
		ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) { l.progress(r.Params) },
	})
	client.AddRoots(l.srv.roots()...)
	if err := addMethods(client); err != nil {
		close(l.gone)
		return err
	}
	session, err := client.Connect(l.ctx, transport, &sdk.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		close(l.gone)
		return err
	}
	l.session = session
	go func() {
		defer close(l.gone)
		_ = session.Wait()
	}()
	if confirm := l.srv.hub.opt.Confirm; confirm != nil && way == serverconfig.Stdio {
		if err := confirm(l.srv.Server); err != nil {
			return &configError{err}
		}
	}
	return nil
}

func (l *live) transport(way string) (sdk.Transport, error) {
	var err error
	if way == serverconfig.Stdio {
		if l.proc, err = startProcess(l.ctx, l.srv.Server, l.srv.dir(), l.srv.hub.opt); err != nil {
			return nil, err
		}
		l.pipe = newPipe(l.proc)
		l.pipe.taskChanged = l.taskChanged
		return l.pipe, nil
	}
	if l.courier, err = newRoundTripper(l.srv.Server, l.srv.hub.opt.Logins); err != nil {
		return nil, err
	}
	if way == serverconfig.SSE {
		return l.courier.sse(), nil
	}
	return l.courier.streamable(), nil
}

// close ends the connection, and the process with everything it started.
func (l *live) close() {
	l.cancel(errors.New("the connection was closed"))
	if l.proc != nil {
		l.proc.stop()
	}
	if l.session != nil {
		_ = l.session.Close()
	}
	<-l.gone
	if l.courier != nil {
		l.courier.base.CloseIdleConnections()
	}
}

// explain adds what is known about the cause to an error, without secrets.
func (l *live) explain(err error) error {
	why := err
	if l.courier != nil {
		if refused := l.courier.refused(); refused != nil {
			why = refused
		}
	}
	if l.pipe != nil {
		if gaveUp := l.pipe.failure(); gaveUp != nil {
			why = gaveUp
		}
	}
	var hopeless *configError
	isConfig := errors.As(why, &hopeless)
	text := printable(why.Error(), 400)
	if l.proc != nil {
		over := errors.Is(why, errEnded) || isClosed(why)
		if over {
			text = "it ended"
		}
		text += l.lastWords(over)
	}
	out := errors.New(l.srv.redact(text))
	if isConfig {
		return &configError{out}
	}
	return out
}

// lastWords says how a process ended, if it did, with the end of its error output.
func (l *live) lastWords(over bool) string {
	text := ""
	if over { // the end of its output and its exit are one event: wait a moment for the exit
		moment := time.NewTimer(time.Second)
		defer moment.Stop()
		select {
		case <-l.proc.dead:
			text = " (" + l.proc.how + ")"
			select {
			case <-l.proc.heard:
			case <-moment.C:
			}
		case <-moment.C:
		}
	}
	if last := l.proc.stderr.last(400); last != "" {
		text += "; its last words: " + last
	}
	return text
}

// roots are where the server should work: the workspace, and the folders among its arguments in a
// person's own configuration. Some servers work only in the roots they are told.
func (s *server) roots() []*sdk.Root {
	dirs := []string{s.hub.opt.Dir}
	for _, word := range s.Args {
		if info, err := os.Stat(word); err == nil && info.IsDir() && filepath.IsAbs(word) && !s.Workspace && !slices.Contains(dirs, word) {
			dirs = append(dirs, word)
		}
	}
	var out []*sdk.Root
	for _, dir := range dirs {
		if filepath.IsAbs(dir) {
			out = append(out, &sdk.Root{URI: (&url.URL{Scheme: "file", Path: filepath.ToSlash(dir)}).String(), Name: filepath.Base(dir)})
		}
	}
	return out
}

// probeEvery is how often a remote server is checked while a call waits for it, and probeTime how long a
// check may take. Together they take less than five seconds, in which a dead server must be noticed.
const (
	probeEvery = 2 * time.Second
	probeTime  = 2 * time.Second
)

// probe ends a call if its remote server is dead. A server that is merely
// slow is not dead: some do one thing at a time.
func (l *live) probe(ctx context.Context, end func(error)) {
	tick := time.NewTicker(probeEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		within, cancel := context.WithTimeout(ctx, probeTime)
		err := l.session.Ping(within, nil)
		late := within.Err() != nil
		cancel()
		var wire *jsonrpc.Error
		if err == nil || late || errors.As(err, &wire) {
			continue
		}
		l.lost.Store(true)
		end(errEnded)
		_ = l.session.Close() // it is dead already; this makes it start again
		return
	}
}

var errEnded = errors.New("the connection ended")

// wakeUp wakes whoever reads the channel, which holds one value.
func wakeUp(wake chan<- struct{}) { await.Notify(wake) }

var _ http.RoundTripper = (*roundTripper)(nil)
