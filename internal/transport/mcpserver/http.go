package mcpserver

import (
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"chorus/internal/operation"
)

const (
	// sessionTime is how long a session is kept after its last request. After that, its client gets an error and starts another one.
	sessionTime = time.Hour
	// writeTime is how long a client may take to read one piece of an answer.
	writeTime = 30 * time.Second
	// maxBody is the largest request: a message has at most a million characters.
	maxBody = 8 << 20
	// maxSessions limits the open sessions; each uses a little memory until it is ended or forgotten.
	maxSessions = 1000
	// callerField is the key of the caller in the SDK's token information.
	callerField = "caller"
)

// Handler serves streamable HTTP. The caller of each request must be in its context: the guard that checks tokens, hosts
// and origins runs before it. A browser's cookie is not enough, so that no page can speak MCP. Streams end when stopping
// is closed.
func (s *Server) Handler(stopping <-chan struct{}) http.Handler {
	next := streamable(func(r *http.Request) *sdk.Server {
		by, _ := operation.CallerOf(r.Context())
		return s.forScopes(by.Scopes)
	}, stopping)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && r.Header.Get("Mcp-Session-Id") == "" && s.sessions() >= maxSessions {
			http.Error(w, "there are too many MCP sessions; end some, or try again later", http.StatusServiceUnavailable)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// streamable is the transport, with a server chosen per request.
func streamable(server func(*http.Request) *sdk.Server, stopping <-chan struct{}) http.Handler {
	inner := sdk.NewStreamableHTTPHandler(server, &sdk.StreamableHTTPOptions{SessionTimeout: sessionTime, MaxRequestBodyBytes: maxBody,
		DisableLocalhostProtection: true,                         // the guard knows the names under which a proxy reaches us
		EventStore:                 sdk.NewMemoryEventStore(nil), // an answer can be fetched after its connection broke
	})
	// A session belongs to the holder of the token that opened it.
	verified := auth.RequireBearerToken(func(ctx context.Context, _ string, _ *http.Request) (*auth.TokenInfo, error) {
		by, ok := operation.CallerOf(ctx)
		if !ok {
			return nil, auth.ErrInvalidToken
		}
		return &auth.TokenInfo{UserID: by.Principal.String(), Extra: map[string]any{callerField: by}}, nil
	}, &auth.RequireBearerTokenOptions{AllowMissingExpiration: true})(inner)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		go func() {
			select {
			case <-stopping:
				cancel()
			case <-ctx.Done():
			}
		}()
		control := http.NewResponseController(w)
		_ = control.SetWriteDeadline(time.Time{}) // writers without deadlines have none to lift
		if r.Method == http.MethodPost {
			r.Body = &taskFieldBody{ReadCloser: &requestBody{ReadCloser: r.Body, control: control}}
		} else {
			_ = control.SetReadDeadline(time.Time{})
		}
		verified.ServeHTTP(&deadlineWriter{ResponseWriter: w, control: control}, r.WithContext(ctx))
	})
}

// requestBody lifts the read deadline once the request is read, because it would otherwise cut off a long answer.
type requestBody struct {
	io.ReadCloser
	control *http.ResponseController
}

func (b *requestBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if errors.Is(err, io.EOF) {
		_ = b.control.SetReadDeadline(time.Time{})
	}
	return n, err
}

// deadlineWriter lets an answer take any time to produce, and each piece of it writeTime to be read.
type deadlineWriter struct {
	http.ResponseWriter
	control *http.ResponseController
}

func (p *deadlineWriter) Write(data []byte) (int, error) {
	_ = p.control.SetWriteDeadline(time.Now().Add(writeTime))
	defer func() { _ = p.control.SetWriteDeadline(time.Time{}) }()
	return p.ResponseWriter.Write(data)
}

// Unwrap lets response controllers reach the connection.
func (p *deadlineWriter) Unwrap() http.ResponseWriter { return p.ResponseWriter }
