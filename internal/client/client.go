// Package client runs operations on a Chorus server: each becomes the HTTP request that its definition describes, and a
// session's activity comes back as its event stream.
//
// It promises:
//   - code that gets a Client as an executor need not know that it is one: errors are
//     *operation.Error of the same kinds, with the server's own message;
//   - a watch survives lost connections and restarts of the server: each event is delivered once,
//     in order, without gaps;
//   - every call ends: with its context, with its own time limit, or with the server's answer;
//     no answer may exceed its size limit;
//   - the token goes to its server and nowhere else: redirects are not followed.
package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"chorus/internal/operation"
)

// Options configures a client.
type Options struct {
	URL   string // http://127.0.0.1:8420
	Token string
	// Timeout limits a call; 0: 60 s. It does not apply to uploads and watches.
	Timeout time.Duration
	// GiveUpAfter is how long a watch waits for an unreachable server; 0: two minutes.
	GiveUpAfter time.Duration
	// Silence is how long a stream may send nothing, not even a keepalive; 0: 45 s.
	Silence time.Duration
	// FirstWait is the first pause before a watch reconnects. It doubles each time. 0: 250 ms.
	FirstWait time.Duration
	// Away is called when a watch loses its server (true) and when it has it again (false). It may be nil.
	Away func(bool)
}

// Client is a server as an executor. It may be used from any goroutine. The token identifies the caller; callers passed
// to its methods are ignored.
type Client struct {
	o    Options
	base *url.URL
	http *http.Client
}

var _ operation.Executor = (*Client)(nil)

// Size limits of answers.
const (
	maxAnswer  = 64 << 20
	maxProblem = 1 << 20
)

// New creates a client. It sends nothing yet.
func New(o Options) (*Client, error) {
	base, err := ParseURL(o.URL)
	if err != nil {
		return nil, err
	}
	if strings.ContainsFunc(o.Token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, errors.New("the token is not valid: it contains spaces or characters that cannot be sent")
	}
	o.Timeout = positive(o.Timeout, time.Minute)
	o.GiveUpAfter = positive(o.GiveUpAfter, 2*time.Minute)
	o.Silence = positive(o.Silence, 45*time.Second)
	o.FirstWait = positive(o.FirstWait, 250*time.Millisecond)
	if o.Away == nil {
		o.Away = func(bool) {}
	}
	transport := &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 15 * time.Second}).DialContext,
		ForceAttemptHTTP2:   true,
		TLSHandshakeTimeout: 10 * time.Second,
		IdleConnTimeout:     time.Minute,
	}
	return &Client{o: o, base: base, http: &http.Client{Transport: transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}, nil
}

func positive(d, otherwise time.Duration) time.Duration {
	if d > 0 {
		return d
	}
	return otherwise
}

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// ParseURL parses the address of a server. Without a scheme it uses http for this machine and https for others.
func ParseURL(text string) (*url.URL, error) {
	text = strings.TrimSuffix(strings.TrimSpace(text), "/")
	if text != "" && !strings.Contains(text, ":/") {
		host, _, err := net.SplitHostPort(text)
		if err != nil {
			host = text
		}
		if Loopback(host) {
			text = "http://" + text
		} else {
			text = "https://" + text
		}
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%q is not the address of a server; write one like http://127.0.0.1:8420", text)
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("the address of a server must be http(s)://host:port; give the token in CHORUS_TOKEN or with --token-file")
	}
	return u, nil
}

// Loopback reports whether a host is this machine.
func Loopback(host string) bool {
	host = strings.Trim(host, "[]")
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

// send sends a request and returns the response if it succeeded. The caller closes it.
func (c *Client) send(r *http.Request) (*http.Response, error) {
	res, err := c.http.Do(r)
	if err != nil {
		return nil, c.unreached(r.Context(), err)
	}
	if res.StatusCode >= 200 && res.StatusCode < 300 {
		return res, nil
	}
	defer res.Body.Close()
	return nil, c.problem(res)
}

// unreached explains why there was no response.
func (c *Client) unreached(ctx context.Context, err error) error {
	switch {
	case errors.Is(ctx.Err(), context.Canceled):
		return ctx.Err()
	case errors.Is(err, context.DeadlineExceeded) || errors.Is(ctx.Err(), context.DeadlineExceeded):
		return &operation.Error{Kind: operation.Unavailable, Message: fmt.Sprintf("the server at %s did not answer in time", c.base.Host), Err: err}
	}
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err
	}
	return &operation.Error{Kind: operation.Unavailable, Err: err,
		Message: fmt.Sprintf("no answer from %s: %v; is `chorus serve` running there?", c.base.Host, err)}
}
