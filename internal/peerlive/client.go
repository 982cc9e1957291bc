package peerlive

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"chorus/internal/chat"
	"chorus/internal/peernotify"
)

// Client follows threads that other nodes run. All fields but Log are needed.
type Client struct {
	// Secret is what nodes on the same database share.
	Secret string
	// OwnerOf is where the node is reached that runs a thread, another one than this; false: none does.
	OwnerOf func(ctx context.Context, thread chat.ThreadID) (address string, ok bool)
	HTTP    *http.Client
	Log     *slog.Logger
}

// NewHTTP is what nodes reach each other with: directly, with an end to every wait but that for the next piece.
func NewHTTP() *http.Client {
	dialer := &net.Dialer{Timeout: stepTimeout, KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 5 * time.Second, Interval: 5 * time.Second, Count: 3}}
	return &http.Client{
		Transport:     &http.Transport{DialContext: dialer.DialContext, TLSHandshakeTimeout: stepTimeout, ResponseHeaderTimeout: stepTimeout, IdleConnTimeout: time.Minute, MaxIdleConnsPerHost: 4},
		CheckRedirect: func(*http.Request, []*http.Request) error { return errors.New("a node does not redirect") },
	}
}

const (
	stepTimeout = 5 * time.Second
	// silence is how long nothing may come, not even a sign of life.
	silence = 3 * alive
)

// lookEvery is how often a node that streams looks where the thread is, while events come.
const lookEvery = time.Second

// errMoved: the thread is no longer with the node that streams.
var errMoved = errors.New("the thread is with another node")

// errNotThere: the node does not run the thread, or no more.
var errNotThere = errors.New("the node does not run the thread")

// Follow publishes the pieces of a thread until ctx ends, from whichever node runs it, and nil when it has lost some.
// look has a value when the thread may have begun to run somewhere.
func (c *Client) Follow(ctx context.Context, thread chat.ThreadID, look <-chan struct{}, publish func(chat.Live)) {
	var pause peernotify.Backoff
	for {
		retry := (<-chan time.Time)(nil)
		if address, ok := c.owner(ctx, thread); ok {
			came, err := c.streamWhile(ctx, address, thread, look, publish)
			publish(nil)
			if came {
				pause = peernotify.Backoff{}
			}
			if errors.Is(err, errMoved) {
				continue
			}
			if err != nil && !errors.Is(err, errNotThere) && ctx.Err() == nil {
				c.Log.Debug("live text of another node does not come; its answer will, from the journal", "component", "live", "event", "live_lost", "thread", thread, "error", err)
				retry = time.After(pause.Next())
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-retry:
		case <-look:
		}
	}
}

// streamWhile streams while the thread is with that node: it may move to another while the stream stays open.
func (c *Client) streamWhile(ctx context.Context, address string, thread chat.ThreadID, look <-chan struct{}, publish func(chat.Live)) (came bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer cancel(nil)
	watching.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-look:
			}
			if now, ok := c.owner(ctx, thread); !ok || now != address {
				cancel(errMoved)
				return
			}
			select {
			case <-ctx.Done():
			case <-time.After(lookEvery):
			}
		}
	})
	came, err = c.stream(ctx, address, thread, publish)
	if cause := context.Cause(ctx); errors.Is(cause, errMoved) {
		err = cause
	}
	return came, err
}

func (c *Client) owner(ctx context.Context, thread chat.ThreadID) (string, bool) {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	return c.OwnerOf(ctx, thread)
}

// stream publishes what one node sends until that ends. came: something came.
func (c *Client) stream(ctx context.Context, address string, thread chat.ThreadID, publish func(chat.Live)) (came bool, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	quiet := time.AfterFunc(silence, cancel)
	defer quiet.Stop()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address+Path+"?thread="+url.QueryEscape(string(thread)), nil)
	if err != nil {
		return false, err
	}
	req.Header.Set("Authorization", sign(c.Secret, thread, time.Now()))
	resp, err := c.HTTP.Do(req)
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	switch resp.StatusCode {
	case http.StatusOK:
	case http.StatusNotFound:
		return false, errNotThere
	default:
		return false, fmt.Errorf("the node answers %s", resp.Status)
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		quiet.Reset(silence)
		piece, end, err := decode(lines.Bytes())
		switch {
		case err != nil:
			return came, fmt.Errorf("the node sends what is no piece: %w", err)
		case end:
			return came, nil
		case piece != nil:
			came = true
			publish(piece)
		}
	}
	return came, cmp.Or(lines.Err(), io.ErrUnexpectedEOF)
}
