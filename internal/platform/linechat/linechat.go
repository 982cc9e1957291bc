// Package linechat is a chat platform in a few hundred lines: a server on a socket that
// people use with a terminal (Server), and its implementation of package platform (Client). It
// is the example of the guide "Add a platform" and not part of the program.
//
// It promises to post text and files, to edit and delete them, and to read earlier
// messages. It has no reactions, buttons or commands: the connector works without them.
package linechat

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"chorus/internal/await"
	"chorus/internal/outbox"
	"chorus/internal/platform"
	"chorus/internal/room"
	"chorus/internal/room/mark"
	"chorus/internal/room/mention"
)

// Name is the first part of the ids of its threads.
const Name = "linechat"

// guild contains all channels of a server; there is only one.
const guild = "chat"

// Client is one bot account on a server.
type Client struct {
	platform.Numbers // ids count up across the whole server
	Address          string
	User, Token      string
	FirstBackoff     time.Duration // before the second attempt to connect; doubled up to maxBackoff
	Log              *slog.Logger

	mu       sync.Mutex
	conn     net.Conn // nil: not connected
	seq      int64
	requests map[int64]chan Line // requests that wait for their answer
	channels map[string]room.Channel
}

const (
	firstBackoff = time.Second
	maxBackoff   = 32 * time.Second
	dialTime     = 10 * time.Second
)

var (
	_ platform.Platform   = (*Client)(nil)
	_ platform.History    = (*Client)(nil)
	_ platform.Downloads  = (*Client)(nil)
	_ platform.Reconnects = (*Client)(nil)
)

// Name implements platform.Platform.
func (*Client) Name() string { return Name }

// Caps implements platform.Platform. The server remembers a nonce as long as the message exists.
func (*Client) Caps() platform.Caps {
	return platform.Caps{Label: "the line chat", MaxText: maxText, Nonce: time.Hour, Edits: true}
}

// errToken is an error that reconnecting cannot fix.
var errToken = errors.New("the server does not accept the bot's token")

// Run implements platform.Platform.
func (c *Client) Run(ctx context.Context, to platform.Sink) error {
	wait := cmp.Or(c.FirstBackoff, firstBackoff)
	for ctx.Err() == nil {
		began := time.Now()
		err := c.connection(ctx, to)
		if errors.Is(err, errToken) {
			return err
		}
		if time.Since(began) > maxBackoff {
			wait = cmp.Or(c.FirstBackoff, firstBackoff) // that connection was good
		}
		if c.Log != nil && ctx.Err() == nil {
			c.Log.Warn("the connection ended; connecting again", "event", "disconnected", "error", err, "wait", wait)
		}
		await.For(ctx, wait)
		wait = min(2*wait, maxBackoff)
	}
	return nil
}

// connection runs one connection from start to end.
func (c *Client) connection(ctx context.Context, to platform.Sink) error {
	dialer := net.Dialer{Timeout: dialTime}
	conn, err := dialer.DialContext(ctx, "tcp", c.Address)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })() // a read ignores ctx
	defer conn.Close()
	in := json.NewDecoder(bufio.NewReader(conn))
	var hello Line
	if err := errors.Join(write(conn, Line{Seq: 1, Do: "hello", From: c.User, Token: c.Token}), in.Decode(&hello)); err != nil {
		return err
	}
	if hello.Error != "" {
		return errToken
	}
	list := platform.Listed{Complete: true}
	c.mu.Lock()
	c.conn, c.seq, c.requests, c.channels = conn, 1, map[int64]chan Line{}, map[string]room.Channel{}
	for _, l := range hello.List {
		in := room.Channel{Guild: guild, ID: l.Channel, Name: l.Channel, HomeName: l.Channel}
		c.channels[in.ID] = in
		list.Channels = append(list.Channels, platform.Listing{Channel: in, Newest: l.ID})
	}
	c.mu.Unlock()
	defer c.disconnected()
	to.Take(platform.Connected{Self: room.Author{ID: c.User, Name: c.User, Bot: true}})
	to.Take(list)
	for {
		var l Line
		if err := in.Decode(&l); err != nil {
			return err
		}
		c.take(l, to)
	}
}

// take handles one line from the server: it passes an answer to the waiting request, and an event to
// the connector. Neither blocks.
func (c *Client) take(l Line, to platform.Sink) {
	switch l.Event {
	case "said":
		to.Take(platform.Said{Message: c.message(l)})
	case "edited":
		to.Take(platform.Edited{Message: c.message(l)})
	case "deleted":
		to.Take(platform.Deleted{Channel: l.Channel, IDs: []string{l.ID}})
	default:
		c.mu.Lock()
		defer c.mu.Unlock()
		if answer := c.requests[l.Seq]; answer != nil {
			answer <- l // it has a buffer of one
			delete(c.requests, l.Seq)
		}
	}
}

// disconnected ends all waiting requests: nobody knows what happened to them.
func (c *Client) disconnected() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, answer := range c.requests {
		close(answer)
	}
	c.conn, c.requests = nil, nil
}

// Reconnect implements platform.Reconnects.
func (c *Client) Reconnect() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn != nil {
		_ = c.conn.Close() // Run notices, and reconnects
	}
}

// message converts a message to neutral terms.
func (c *Client) message(l Line) room.Message {
	in, _ := c.Known(l.Channel)
	m := room.Message{ID: l.ID, In: in, Author: author(l), Text: l.Text, ReplyTo: l.Reply, At: l.At, Edited: l.Edited, Own: l.From == c.User}
	if m.Own {
		m.Nonce = l.Nonce
	}
	if strings.Contains(l.Text, "@"+c.User) {
		m.Mentions = []string{c.User}
	}
	if l.File != "" {
		m.Files = []room.File{{Name: l.File, Size: int64(l.Size), URL: fileURL + l.ID}}
	}
	return m
}

func author(l Line) room.Author {
	return room.Author{ID: l.From, Name: l.From, Bot: l.Bot, Member: true}
}

// request asks the server. An error without a reason means that the outcome is unknown.
func (c *Client) request(ctx context.Context, r Line) (Line, error) {
	answer := make(chan Line, 1)
	c.mu.Lock()
	if c.conn == nil {
		c.mu.Unlock()
		return Line{}, &outbox.Trouble{Why: outbox.Temporary, Err: errors.New("not connected")}
	}
	c.seq++
	r.Seq = c.seq
	c.requests[r.Seq] = answer
	err := write(c.conn, r)
	c.mu.Unlock()
	if err != nil {
		return Line{}, err
	}
	select {
	case l, ok := <-answer:
		if !ok {
			return Line{}, errors.New("the connection ended before the answer came")
		}
		return l, trouble(l)
	case <-ctx.Done():
		c.mu.Lock()
		delete(c.requests, r.Seq)
		c.mu.Unlock()
		return Line{}, ctx.Err()
	}
}

// trouble converts an error to the terms of the outbox.
func trouble(l Line) error {
	switch l.Error {
	case "":
		return nil
	case limited:
		return &outbox.RateLimited{After: time.Duration(l.Wait) * time.Millisecond}
	case failed:
		return &outbox.Trouble{Why: outbox.Temporary, Err: errors.New("the server failed")}
	default: // the other codes are the outbox's own
		return &outbox.Trouble{Why: outbox.Why(l.Error), Err: fmt.Errorf("the server says %q", l.Error), Said: l.Error}
	}
}

// post converts a post for the server: marks are rewritten for people at a terminal.
func post(call outbox.Call, do string) (Line, error) {
	p, err := platform.ReadPost(call.Body)
	l := Line{Do: do, ID: call.ID, Channel: call.Lane.Channel, Nonce: call.Nonce, Reply: p.ReplyTo, Text: mark.Respell(p.Text, spelling)}
	if p.File != "" {
		l.File, l.Data = strings.Map(fileRune, p.File), call.File
	}
	return l, err
}

var spelling = mark.Spelling{
	Person:  func(id string) string { return "@" + id },
	Channel: func(id string) string { return "#" + id },
	Time:    func(t time.Time, _ bool) string { return t.UTC().Format("2006-01-02 15:04 UTC") },
	Small:   func(text string) string { return text },
}

// fileRune removes characters that would let a name point elsewhere.
func fileRune(r rune) rune {
	if r < ' ' || strings.ContainsRune(`"\/`, r) {
		return '_'
	}
	return r
}

// Create implements outbox.Platform. For a known nonce the server returns the message that
// was created with it.
func (c *Client) Create(ctx context.Context, call outbox.Call) (string, error) {
	r, err := post(call, "say")
	if err != nil {
		return "", err
	}
	a, err := c.request(ctx, r)
	return a.ID, err
}

// Edit implements outbox.Platform.
func (c *Client) Edit(ctx context.Context, call outbox.Call) error {
	r, err := post(call, "edit")
	if err == nil {
		_, err = c.request(ctx, r)
	}
	return err
}

// Delete implements outbox.Platform.
func (c *Client) Delete(ctx context.Context, call outbox.Call) error {
	_, err := c.request(ctx, Line{Do: "delete", ID: call.ID, Channel: call.Lane.Channel})
	return err
}

// React implements outbox.Platform. Nobody calls it: Caps reports no reactions.
func (*Client) React(context.Context, outbox.Call) error {
	return &outbox.Trouble{Why: outbox.Invalid, Err: errors.New("there are no reactions")}
}

// Unreact implements outbox.Platform.
func (c *Client) Unreact(ctx context.Context, call outbox.Call) error { return c.React(ctx, call) }

// Find implements outbox.Platform.
func (c *Client) Find(ctx context.Context, p outbox.Probe) (string, outbox.Verdict, error) {
	a, err := c.request(ctx, Line{Do: "find", Nonce: p.Nonce, Channel: p.Lane.Channel})
	switch {
	case err != nil:
		return "", outbox.Unknown, err
	case a.ID == "":
		return "", outbox.Absent, nil
	default:
		return a.ID, outbox.Present, nil
	}
}

// Answers implements outbox.Platform.
func (c *Client) Answers(ctx context.Context) bool {
	_, err := c.request(ctx, Line{Do: "who", From: c.User})
	return err == nil
}

// Known implements platform.Platform.
func (c *Client) Known(id string) (room.Channel, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	in, ok := c.channels[id]
	return in, ok
}

// Channel implements platform.Platform. The server lists all of its channels in its hello.
func (c *Client) Channel(_ context.Context, id string) (room.Channel, error) {
	if in, ok := c.Known(id); ok {
		return in, nil
	}
	return room.Channel{}, &outbox.Trouble{Why: outbox.Nowhere, Err: fmt.Errorf("there is no channel %q", id)}
}

// Member implements platform.Platform. There are no roles.
func (c *Client) Member(ctx context.Context, _ string, who room.Author) (room.Author, error) {
	a, err := c.request(ctx, Line{Do: "who", From: who.ID})
	if err != nil || !a.More {
		return who, err
	}
	return author(a), nil
}

// Directory implements platform.Platform.
func (c *Client) Directory(string) mention.Directory {
	var d mention.Directory
	c.mu.Lock()
	defer c.mu.Unlock()
	for id := range c.channels {
		d.Channels = append(d.Channels, mention.Named{ID: id, Name: id})
	}
	slices.SortFunc(d.Channels, func(a, b mention.Named) int { return strings.Compare(a.Name, b.Name) })
	return d
}

// ReadAfter implements platform.History.
func (c *Client) ReadAfter(ctx context.Context, channel, after string) ([]room.Message, bool, error) {
	return c.read(ctx, Line{Channel: channel, After: cmp.Or(after, "0"), Limit: maxPage})
}

// ReadBefore implements platform.History.
func (c *Client) ReadBefore(ctx context.Context, channel, before string, limit int) ([]room.Message, bool, error) {
	return c.read(ctx, Line{Channel: channel, Before: before, Limit: limit})
}

// Message implements platform.History.
func (c *Client) Message(ctx context.Context, channel, id string) (room.Message, error) {
	list, _, err := c.read(ctx, Line{Channel: channel, ID: id, Limit: 1})
	if err == nil && len(list) == 0 {
		err = trouble(Line{Error: gone})
	}
	if err != nil {
		return room.Message{}, err
	}
	return list[0], nil
}

func (c *Client) read(ctx context.Context, r Line) ([]room.Message, bool, error) {
	r.Do = "read"
	a, err := c.request(ctx, r)
	out := make([]room.Message, len(a.List))
	for i, l := range a.List {
		out[i] = c.message(l)
	}
	return out, a.More, err
}

// fileURL is the prefix of file addresses, which only this package understands.
const fileURL = "linechat:"

// Download implements platform.Downloads.
func (c *Client) Download(ctx context.Context, url string, limit int64) ([]byte, error) {
	id, ours := strings.CutPrefix(url, fileURL)
	if !ours {
		return nil, platform.Refusal("it is not on this server")
	}
	a, err := c.request(ctx, Line{Do: "fetch", ID: id})
	switch {
	case platform.Is(err, outbox.Gone):
		return nil, platform.ErrStale
	case err == nil && int64(len(a.Data)) > limit:
		return nil, platform.ErrTooLarge
	}
	return a.Data, err
}
