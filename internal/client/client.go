// Package client carries operations out on a Chorus server: each is the HTTP request that its definition
// says, and what a session does comes back as its event stream.
//
// It promises:
//   - whoever is handed a Client as an executor need not know that it is one: errors are *operation.Error
//     of the same kinds, with the server's own sentence;
//   - a watch survives cut connections and restarts of the server: each event comes once, in
//     order, without a gap;
//   - every call ends: with its context, with its own time limit, or with the server's answer;
//     and no answer takes more room than its limit;
//   - the token goes to the server it is for and nowhere else: redirects are not followed.
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

// Options are what a client is made of.
type Options struct {
	URL   string // http://127.0.0.1:8420
	Token string
	// Timeout is how long a call may take; 0: 60 s. Uploads and watches are not calls.
	Timeout time.Duration
	// GiveUpAfter is how long a watch waits for a server that is gone; 0: two minutes.
	GiveUpAfter time.Duration
	// Silence is how long a stream may say nothing, not even that it is still there; 0: 45 s.
	Silence time.Duration
	// FirstWait is what a watch waits before it comes back; it doubles each time. 0: 250 ms.
	FirstWait time.Duration
	// Away hears when a watch cannot come back to its server at once (true), and when it has (false); nil: nobody does.
	Away func(bool)
}

// Client is a server as an executor. It may be used from any goroutine. The token says who the
// caller is: callers that are named to it are not looked at.
type Client struct {
	o    Options
	base *url.URL
	http *http.Client
}

var _ operation.Executor = (*Client)(nil)

// What an answer may be at most.
const (
	maxAnswer  = 64 << 20
	maxProblem = 1 << 20
)

// New makes a client. Nothing is sent yet.
func New(o Options) (*Client, error) {
	base, err := ParseURL(o.URL)
	if err != nil {
		return nil, err
	}
	if strings.ContainsFunc(o.Token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, errors.New("the token is no token: it holds blanks or characters that cannot be sent")
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

// Close lets go of connections that nobody uses.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// ParseURL reads the address of a server; a missing scheme is http on this machine and
// https elsewhere.
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
		return nil, fmt.Errorf("%q is no address of a server; say for example http://127.0.0.1:8420", text)
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("the address of a server is only http(s)://host:port; the token is given in CHORUS_TOKEN or with --token-file")
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

// send sends a request and gives the answer if it is a good one; the caller closes it.
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

// unreached says why there was no answer.
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
