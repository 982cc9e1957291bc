package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

// roundTripper sends the requests to one server. It adds the server's own headers, only
// for the server's own host, and limits the size of responses.
type roundTripper struct {
	base    *http.Transport
	home    *url.URL
	headers map[string]string
	token   func(ctx context.Context, refused string) (string, error) // token of a login; nil: there are no logins
	name    string
	status  atomic.Int32 // status of the last response to a POST, if it was a refusal
	scope   atomic.Value // a string: the scope that a login lacks, according to the last refusal
}

func newRoundTripper(s Server, logins *Logins) (*roundTripper, error) {
	home, err := url.Parse(s.URL)
	if err != nil {
		return nil, &configError{errors.New("its url cannot be read")}
	}
	c := &roundTripper{base: http.DefaultTransport.(*http.Transport).Clone(), home: home, headers: s.Headers, name: s.Name}
	if logins != nil && !slices.ContainsFunc(slices.Collect(maps.Keys(s.Headers)), func(name string) bool { return strings.EqualFold(name, "Authorization") }) {
		c.token = func(ctx context.Context, refused string) (string, error) { return logins.token(ctx, s, refused) }
	}
	return c, nil
}

func (c *roundTripper) client() *http.Client {
	return &http.Client{Transport: c, CheckRedirect: func(req *http.Request, via []*http.Request) error {
		switch {
		case len(via) >= 5:
			return errors.New("it redirects without end")
		case via[0].URL.Scheme == "https" && req.URL.Scheme != "https":
			return errors.New("it redirects to an address without encryption")
		}
		return nil
	}}
}

func (c *roundTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	if err := realBody(req); err != nil {
		return nil, err
	}
	if req.URL.Host == c.home.Host && req.URL.Scheme == c.home.Scheme {
		for name, value := range c.headers {
			req.Header.Set(name, value)
		}
	}
	resp, err := c.send(req)
	if err != nil {
		return nil, err
	}
	if req.Method == http.MethodPost {
		status := 0
		if resp.StatusCode >= 400 {
			status = resp.StatusCode
		}
		if status == http.StatusForbidden {
			c.scope.Store(lackingScope(resp.Header))
		}
		c.status.Store(int32(status))
	}
	// Event streams are limited per event.
	if !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		resp.Body = &bounded{ReadCloser: resp.Body, left: largestMessage}
	}
	return resp, nil
}

// send adds a login's token, only for the server's own host, and once renews a token that the server refuses.
func (c *roundTripper) send(req *http.Request) (*http.Response, error) {
	if c.token == nil || req.URL.Host != c.home.Host || req.URL.Scheme != c.home.Scheme {
		return c.base.RoundTrip(req)
	}
	token, err := c.token(req.Context(), "")
	if err != nil || token == "" {
		if err != nil {
			return nil, err
		}
		return c.base.RoundTrip(req)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := c.base.RoundTrip(req)
	if err != nil || resp.StatusCode != http.StatusUnauthorized || req.GetBody == nil && req.Body != nil {
		return resp, err
	}
	fresh, ferr := c.token(req.Context(), token)
	if ferr != nil || fresh == "" {
		return resp, nil // its refusal gives the reason
	}
	again := req.Clone(req.Context())
	if req.GetBody != nil {
		if again.Body, err = req.GetBody(); err != nil {
			return resp, nil
		}
	}
	_ = resp.Body.Close()
	again.Header.Set("Authorization", "Bearer "+fresh)
	return c.base.RoundTrip(again)
}

// lackingScope returns the scope that a refusal says a login needs, or "".
func lackingScope(header http.Header) string {
	challenges, err := oauthex.ParseWWWAuthenticate(header["Www-Authenticate"])
	if err != nil {
		return ""
	}
	for _, c := range challenges {
		scope := c.Params["scope"]
		plain := strings.IndexFunc(scope, func(r rune) bool { return r < ' ' || r > '~' || r == '\'' || r == '"' || r == '\\' }) < 0
		if c.Params["error"] == "insufficient_scope" && plain && len(scope) < 500 {
			return scope
		}
	}
	return ""
}

// old reports whether the refusal looks like that of a server that only supports SSE.
func (c *roundTripper) old() bool {
	switch status := c.status.Load(); status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired, http.StatusTooManyRequests:
		return false
	default:
		return status >= 400 && status < 500
	}
}

// refused returns an error that says what to do about the last refusal, or nil.
func (c *roundTripper) refused() error {
	switch status := c.status.Load(); status {
	case http.StatusUnauthorized, http.StatusForbidden:
		if scope, _ := c.scope.Load().(string); status == http.StatusForbidden && scope != "" && c.token != nil {
			return &configError{fmt.Errorf("its login lacks a permission: log in again with chorus mcp login %s --scope '%s'", c.name, scope)}
		}
		if c.token != nil {
			return &configError{fmt.Errorf("it requires a login (HTTP %d): log in with chorus mcp login %s, or name a header in its configuration", status, c.name)}
		}
		return &configError{fmt.Errorf("it refuses the credentials (HTTP %d): check the headers in its configuration", status)}
	case 0:
		return nil
	default:
		return fmt.Errorf("it answered HTTP %d", status)
	}
}

func (c *roundTripper) streamable() sdk.Transport {
	return &sdk.StreamableClientTransport{Endpoint: c.home.String(), HTTPClient: c.client(), MaxEventSize: largestMessage}
}

func (c *roundTripper) sse() sdk.Transport {
	return &sdk.SSEClientTransport{Endpoint: c.home.String(), HTTPClient: c.client(), MaxEventSize: largestMessage}
}

// bounded is a body that fails, rather than ends, when it becomes too large.
type bounded struct {
	io.ReadCloser
	left int64
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, fmt.Errorf("the answer is larger than %d MB", largestMessage>>20)
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}
