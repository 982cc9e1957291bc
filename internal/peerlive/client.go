package peerlive

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"sync"
	"time"

	"chorus/internal/await"
	"chorus/internal/chat"
	"chorus/internal/peernotify"
	"chorus/internal/tcpdial"
)

// Client follows threads that other nodes run. All fields but Carrier are required.
type Client struct {
	// Secret is shared by the nodes on the same database.
	Secret string
	// OwnerOf returns the other node that runs a thread, or false if there is none.
	OwnerOf func(ctx context.Context, thread chat.ThreadID) (Node, bool)
	// Carrier carries messages of other nodes, where available; nil if there is none.
	Carrier Carrier
	HTTP    *http.Client
	Log     *slog.Logger
}

// Node says how to reach a node.
type Node struct {
	ID      string // for messages
	Address string // for HTTP; "" if it has none
}

// NewHTTP returns the client with which nodes reach each other: directly, and
// with a limit on every wait except for the next piece.
func NewHTTP() *http.Client {
	return &http.Client{
		Transport:     &http.Transport{DialContext: tcpdial.Dialer{}.DialContext, TLSHandshakeTimeout: stepTimeout, ResponseHeaderTimeout: stepTimeout, IdleConnTimeout: time.Minute, MaxIdleConnsPerHost: 4},
		CheckRedirect: func(*http.Request, []*http.Request) error { return errors.New("a node does not redirect") },
	}
}

const (
	stepTimeout = 5 * time.Second
	// silence is how long a stream may be silent, without even a sign of life.
	silence = 3 * alive
)

// lookEvery is how often a streaming node checks where the thread is, while events arrive.
const lookEvery = time.Second

// errMoved means that the thread is no longer with the streaming node.
var errMoved = errors.New("the thread is with another node")

// errNotThere means that the node does not, or no longer, run the thread.
var errNotThere = errors.New("the node does not run the thread")

// Follow publishes the pieces of a thread from whichever node runs it, until
// ctx ends, and nil when no node runs it any more. look receives a value when
// the thread may have started to run somewhere.
func (c *Client) Follow(ctx context.Context, thread chat.ThreadID, look <-chan struct{}, publish func(chat.Live)) {
	var pause peernotify.Backoff
	var seen published
	for {
		retry := (<-chan time.Time)(nil)
		if from, ok := c.owner(ctx, thread); ok {
			came, looked, err := c.streamWhile(ctx, from, thread, look, func(piece chat.Live) {
				if piece = seen.unpublished(piece); piece != nil {
					publish(piece)
				}
			})
			if came {
				pause = peernotify.Backoff{}
			}
			if err != nil && !errors.Is(err, errMoved) && !errors.Is(err, errNotThere) && ctx.Err() == nil {
				c.Log.Debug("live text of another node does not come; its answer will, from the journal", "component", "live", "event", "live_lost", "thread", thread, "error", err)
				retry = time.After(pause.Next())
			} else {
				publish(nil)
				seen = published{}
			}
			if errors.Is(err, errMoved) || retry == nil && looked {
				continue
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

// streamWhile streams while the thread is with that node, since it may move to another
// while the stream stays open. looked says that look received a value meanwhile, which
// may concern something after the end of the stream.
func (c *Client) streamWhile(ctx context.Context, from Node, thread chat.ThreadID, look <-chan struct{}, publish func(chat.Live)) (came, looked bool, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var watching sync.WaitGroup
	watching.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-look:
				looked = true
			}
			if now, ok := c.owner(ctx, thread); !ok || now != from {
				cancel(errMoved)
				return
			}
			await.For(ctx, lookEvery)
		}
	})
	came, err = c.stream(ctx, from, thread, publish)
	cancel(nil)
	watching.Wait()
	if cause := context.Cause(ctx); errors.Is(cause, errMoved) {
		err = cause
	}
	return came, looked, err
}

func (c *Client) owner(ctx context.Context, thread chat.ThreadID) (Node, bool) {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()
	return c.OwnerOf(ctx, thread)
}

// stream publishes what one node sends until that ends: by messages, or over HTTP if
// those do not arrive. came says whether something arrived.
func (c *Client) stream(ctx context.Context, from Node, thread chat.ThreadID, publish func(chat.Live)) (came bool, err error) {
	if c.Carrier != nil && c.Carrier.Reachable() && from.ID != "" {
		came, err = c.overMessages(ctx, from, thread, publish)
		if !errors.Is(err, errCarrier) || ctx.Err() != nil {
			return came, err
		}
		c.Log.Debug("live text of another node takes the other way", "component", "live", "event", "live_over_http", "thread", thread)
	}
	if from.Address == "" {
		return came, cmp.Or(err, errNotThere)
	}
	more, err := c.overHTTP(ctx, from.Address, thread, publish)
	return came || more, err
}

// overHTTP publishes what one node sends over HTTP until that ends.
func (c *Client) overHTTP(ctx context.Context, address string, thread chat.ThreadID, publish func(chat.Live)) (came bool, err error) {
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
		l, err := decode(lines.Bytes())
		switch {
		case err != nil:
			return came, fmt.Errorf("the node sends what is no piece: %w", err)
		case l.End:
			return came, nil
		case l.piece() != nil:
			came = true
			publish(l.piece())
		}
	}
	return came, cmp.Or(lines.Err(), io.ErrUnexpectedEOF)
}
