package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"time"

	"chorus/internal/command"
)

// Export implements command.Sessions. What comes is written on at once, however long it is;
// where the connection is cut, to has a part of it.
func (c *Client) Export(ctx context.Context, _ command.Caller, id string, as command.Format, to io.Writer) error {
	in, err := c.pieces(ctx, order{method: http.MethodGet, path: []string{"api", "sessions", id, "export"}, query: values("format", string(as))})
	if err != nil {
		return err
	}
	defer in.Close()
	_, err = io.Copy(to, in)
	return err
}

// replayLine is one line of a replay.
type replayLine struct {
	Request *command.Replayed `json:"request"`
	End     *struct {
		Error string `json:"error"`
		Kind  string `json:"kind"`
	} `json:"end"`
}

// Replay implements command.Sessions. Requests come as the server rebuilds them.
func (c *Client) Replay(ctx context.Context, _ command.Caller, id string) iter.Seq2[command.Replayed, error] {
	return func(yield func(command.Replayed, error) bool) {
		in, err := c.pieces(ctx, order{method: http.MethodGet, path: []string{"api", "sessions", id, "replay"}})
		if err != nil {
			yield(command.Replayed{}, err)
			return
		}
		defer in.Close()
		for lines := bufio.NewReader(in); ; {
			line, err := in.replayed(lines)
			switch {
			case err != nil:
				yield(command.Replayed{}, err)
				return
			case line.Request != nil:
				if !yield(*line.Request, nil) {
					return
				}
			case line.End != nil && line.End.Error != "":
				yield(command.Replayed{}, &command.Error{Kind: named(line.End.Kind, command.Failed), Message: line.End.Error})
				return
			case line.End != nil:
				return
			}
		}
	}
}

// pieces is an answer that is read as it comes. No piece may take longer than the
// client bears silence; what is done with a piece may.
type pieces struct {
	client *Client
	ctx    context.Context // the caller's
	body   io.ReadCloser
	cancel context.CancelFunc
	timer  *time.Timer
}

// pieces sends a request whose answer is read piece by piece; it must be closed.
func (c *Client) pieces(ctx context.Context, o order) (*pieces, error) {
	within, cancel := context.WithCancel(ctx)
	p := &pieces{client: c, ctx: ctx, cancel: cancel, timer: time.AfterFunc(c.o.Silence, cancel)}
	res, err := c.send(within, o)
	stopped := p.timer.Stop()
	switch {
	case err == nil:
		p.body = res.Body
		return p, nil
	case !stopped && ctx.Err() == nil:
		err = p.silent()
	}
	cancel()
	return nil, err
}

func (p *pieces) silent() error {
	return command.Errorf(command.Unavailable, "%s said nothing for %s; try again when it has less to do", p.client.base.Host, p.client.o.Silence)
}

// Read implements io.Reader. Its errors are for people.
func (p *pieces) Read(into []byte) (int, error) {
	p.timer.Reset(p.client.o.Silence)
	n, err := p.body.Read(into)
	stopped := p.timer.Stop()
	switch {
	case err == nil, errors.Is(err, io.EOF):
		return n, err
	case p.ctx.Err() != nil:
		return n, p.ctx.Err()
	case !stopped:
		return n, p.silent()
	}
	return n, &command.Error{Kind: command.Unavailable, Err: err,
		Message: fmt.Sprintf("%s broke off before the end, what came is not whole: ask again (%v)", p.client.base.Host, err)}
}

// Close implements io.Closer.
func (p *pieces) Close() error {
	defer p.cancel()
	p.timer.Stop()
	return p.body.Close()
}

// replayed reads the next line of a replay. There is one: the last is no end of a file
// but says that it is.
func (p *pieces) replayed(lines *bufio.Reader) (line replayLine, err error) {
	data, err := readLine(lines)
	if err == nil {
		if err = json.Unmarshal(data, &line); err == nil {
			return line, nil
		}
		return line, command.Errorf(command.Failed, "%s answered something that is not for us; is it a Chorus server? (%w)", p.client.base.Host, err)
	}
	var ours *command.Error
	switch {
	case p.ctx.Err() != nil:
		return line, p.ctx.Err()
	case errors.As(err, &ours):
		return line, ours
	}
	return line, &command.Error{Kind: command.Unavailable, Err: err, Message: fmt.Sprintf("%s broke off before the end; ask again (%v)", p.client.base.Host, err)}
}
