package mcp

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
)

// readRedirect reads what the authorization server makes a browser bring back: a code, or why there is none.
func readRedirect(q url.Values) (*auth.AuthorizationResult, error) {
	if q.Get("code") == "" {
		return nil, fmt.Errorf("the login was refused: %s", printable(cmp.Or(q.Get("error_description"), q.Get("error"), "no reason was given"), 300))
	}
	return &auth.AuthorizationResult{Code: q.Get("code"), State: q.Get("state"), Iss: q.Get("iss")}, nil
}

// redirect is where the browser returns to, only on this machine.
type redirect struct {
	url    string
	server *http.Server
	got    chan auth.AuthorizationResult
	failed chan error
}

func newRedirect() (*redirect, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &redirect{url: "http://" + listener.Addr().String() + "/callback", got: make(chan auth.AuthorizationResult, 1), failed: make(chan error, 1)}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /callback", r.callback)
	r.server = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = r.server.Serve(listener) }() // it ends with close
	return r, nil
}

func (r *redirect) callback(w http.ResponseWriter, req *http.Request) {
	result, err := readRedirect(req.URL.Query())
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	if err != nil {
		select {
		case r.failed <- err:
		default:
		}
		fmt.Fprintln(w, "Chorus was not let in. You can close this page.")
		return
	}
	select {
	case r.got <- *result:
	default: // the first one counts
	}
	fmt.Fprintln(w, "Chorus is logged in. You can close this page.")
}

func (r *redirect) wait(ctx context.Context) (*auth.AuthorizationResult, error) {
	select {
	case got := <-r.got:
		return &got, nil
	case err := <-r.failed:
		return nil, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (r *redirect) close() { _ = r.server.Close() }
