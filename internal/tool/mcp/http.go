package mcp

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// roundTripper carries the requests to one server: it adds the server's own headers,
// only for the server's own host, and bounds what comes back.
type roundTripper struct {
	base    *http.Transport
	home    *url.URL
	headers map[string]string
	status  atomic.Int32 // of the last answer to a POST, when it was a refusal
}

func newRoundTripper(s Server) (*roundTripper, error) {
	home, err := url.Parse(s.URL)
	if err != nil {
		return nil, &configError{errors.New("its url cannot be read")}
	}
	return &roundTripper{base: http.DefaultTransport.(*http.Transport).Clone(), home: home, headers: s.Headers}, nil
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
	if req.URL.Host == c.home.Host && req.URL.Scheme == c.home.Scheme {
		for name, value := range c.headers {
			req.Header.Set(name, value)
		}
	}
	resp, err := c.base.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if req.Method == http.MethodPost {
		status := 0
		if resp.StatusCode >= 400 {
			status = resp.StatusCode
		}
		c.status.Store(int32(status))
	}
	// Event streams are bounded event by event.
	if !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		resp.Body = &bounded{ReadCloser: resp.Body, left: largestMessage}
	}
	return resp, nil
}

// old says whether the refusal looks like that of a server which knows only SSE.
func (c *roundTripper) old() bool {
	switch status := c.status.Load(); status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired, http.StatusTooManyRequests:
		return false
	default:
		return status >= 400 && status < 500
	}
}

// refused is what to do about the last refusal, or nil.
func (c *roundTripper) refused() error {
	switch status := c.status.Load(); status {
	case http.StatusUnauthorized, http.StatusForbidden:
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

// bounded is a body that fails, rather than ends, where it becomes too large.
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
