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

	"chorus/internal/tool/mcp/serverconfig"
)

// settled is the newest protocol version that begins with a greeting both sides
// know. The one after it begins with a question that older servers may leave
// unanswered, so it is only tried where this one is refused.
const settled = "2025-11-25"

// live is one connection to a server, from greeting to death.
type live struct {
	srv     *server
	ctx     context.Context // done when the connection is to end
	cancel  context.CancelCauseFunc
	proc    *process      // nil over HTTP
	pipe    *pipe         // nil over HTTP
	courier *roundTripper // nil for a process
	session *sdk.ClientSession
	gone    chan struct{} // closed when the session is over
	lost    atomic.Bool   // a call found the process's pipes closed, which comes before gone
	changed chan struct{} // rings when the server says that its tools are others now
	unknown bool          // the server does not know our greeting

	tokens  atomic.Int64
	mu      sync.Mutex
	watched map[string]func(string)  // progress by token
	calls   []*pending               // what is under way, the oldest first
	tasks   map[string]chan struct{} // tasks that are waited for, by id
	pages   map[string]func()        // pages that a person was asked to open, by the question's id

	taskNews int64 // how often the server said something of a task
}

var errSlow = errors.New("it did not answer in time")

// dial starts the server and greets it. Whatever was begun has ended when it fails.
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
		return nil, err // what the first way met says more
	}
	return l, nil
}

// try is one way to reach the server. The connection that it returns beside an
// error is closed.
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

// close ends the connection, and the process with all it started.
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

// explain adds to an error what is known of its cause, without secrets.
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

// lastWords is how a process ended, if it did, and the end of what it complained.
func (l *live) lastWords(over bool) string {
	text := ""
	if over { // the end of its output and its death are one event: give the second a moment
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

// roots are where the server shall work: the workspace, and the folders that a person's own configuration names among its
// arguments. Some servers work nowhere else than in what they are told here.
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

// probeEvery is how often a server on the network is looked at while a call waits for it, and probeTime how long that
// may take: together less than the five seconds in which a dead one is to be noticed.
const (
	probeEvery = 2 * time.Second
	probeTime  = 2 * time.Second
)

// probe ends a call when its server on the network is dead. One that is only slow to answer is not: some do one thing at a
// time.
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
		_ = l.session.Close() // so that it is started again; it is dead already
		return
	}
}

var errEnded = errors.New("the connection ended")

// wakeUp wakes whoever reads the channel, which holds one value.
func wakeUp(wake chan<- struct{}) {
	select {
	case wake <- struct{}{}:
	default:
	}
}

var _ http.RoundTripper = (*roundTripper)(nil)
