package mcp

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	// largestMessage limits one message in either direction. A picture
	// of five megabytes fits in it as base64.
	largestMessage = 10 << 20
	// mostNoise is how many consecutive lines that are no messages a server may write. Many servers
	// print a greeting; one that prints nothing else speaks another protocol.
	mostNoise = 1000
	// longestWrite ends a server that does not read, if no caller's deadline does.
	longestWrite = 30 * time.Second
)

// pipe is the connection to a process: one JSON-RPC message per line. Unlike the SDK's, it skips lines that
// are no messages, survives a message that is too large, and never writes for longer than its caller waits.
type pipe struct {
	in    *os.File
	out   *os.File
	lines *bufio.Reader
	queue []jsonrpc.Message // the rest of a batch
	noise int
	turn  chan struct{} // held while writing
	limit time.Duration // of one write
	// taskChanged receives what the SDK does not know: that a task has changed its state. It may be nil.
	taskChanged func(params json.RawMessage)

	once sync.Once
	mu   sync.Mutex
	why  error // why it was given up
}

var (
	_ sdk.Transport  = (*pipe)(nil)
	_ sdk.Connection = (*pipe)(nil)
)

func newPipe(p *process) *pipe {
	return &pipe{in: p.in, out: p.out, lines: bufio.NewReaderSize(p.out, 64<<10), turn: make(chan struct{}, 1), limit: longestWrite}
}

func (p *pipe) Connect(context.Context) (sdk.Connection, error) { return p, nil }

func (p *pipe) SessionID() string { return "" }

func (p *pipe) Close() error {
	p.once.Do(func() {
		_ = p.in.Close()
		_ = p.out.Close()
	})
	return nil
}

// giveUp closes the pipe and remembers why.
func (p *pipe) giveUp(why error) {
	p.mu.Lock()
	p.why = cmp.Or(p.why, why)
	p.mu.Unlock()
	_ = p.Close()
}

func (p *pipe) failure() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.why
}

func (p *pipe) Read(context.Context) (jsonrpc.Message, error) {
	for {
		if len(p.queue) > 0 {
			msg := p.queue[0]
			p.queue = p.queue[1:]
			if req, ok := msg.(*jsonrpc.Request); ok && req.Method == methodTaskStatus && p.taskChanged != nil {
				p.taskChanged(req.Params)
				continue
			}
			if req, ok := msg.(*jsonrpc.Request); ok && req.IsCall() {
				// A server that asks questions must read the answers: read no
				// more questions than we can answer.
				p.turn <- struct{}{}
				<-p.turn
			}
			return msg, nil
		}
		line, whole, err := p.line()
		if msgs := p.decode(line, whole); len(msgs) > 0 {
			p.queue, p.noise = msgs, 0
			continue
		}
		if err == nil && p.noise > mostNoise {
			err = fmt.Errorf("it prints something other than MCP messages, most recently: %s", printable(string(line), 200))
		}
		if err == nil && !whole {
			err = fmt.Errorf("it sent a message of more than %d MB", largestMessage>>20)
		}
		if err != nil {
			if !errors.Is(err, io.EOF) && !errors.Is(err, os.ErrClosed) {
				p.giveUp(err)
			}
			return nil, err
		}
	}
}

// line reads the next line. Of a line that is too long it keeps both ends, where the number of the call is.
func (p *pipe) line() (line []byte, whole bool, err error) {
	const ends = 512
	var tail []byte
	for {
		part, err := p.lines.ReadSlice('\n')
		if room := largestMessage - len(line); tail == nil && len(part) <= room {
			line = append(line, part...)
		} else {
			tail = append(tail, part...)
			tail = tail[max(0, len(tail)-ends):]
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if tail != nil {
			return append(line[:ends:ends], tail...), false, err
		}
		return line, true, err
	}
}

// decode returns the messages of a line; none for noise.
func (p *pipe) decode(line []byte, whole bool) []jsonrpc.Message {
	if line = bytes.TrimSpace(line); len(line) == 0 {
		return nil
	}
	if !whole {
		return tooLarge(line)
	}
	raws := []json.RawMessage{line}
	if line[0] == '[' { // older servers answer in batches
		if raws = nil; json.Unmarshal(line, &raws) != nil {
			p.noise++
			return nil
		}
	}
	var out []jsonrpc.Message
	for _, raw := range raws {
		if len(raw) == 0 || raw[0] != '{' {
			continue
		}
		if msg, err := jsonrpc.DecodeMessage(raw); err == nil {
			out = append(out, msg)
		}
	}
	if len(out) == 0 {
		p.noise++
	}
	return out
}

// callNumbers find the number of the call at the beginning or the end of an
// answer. They are compiled on first use, which is rare.
var callNumbers = sync.OnceValue(func() []*regexp.Regexp {
	return []*regexp.Regexp{
		regexp.MustCompile(`^\{(?:"jsonrpc":\s*"2\.0",\s*)?"id":\s*(\d{1,15}),`),
		regexp.MustCompile(`"id":\s*(\d{1,15})\s*(?:,\s*"jsonrpc":\s*"2\.0"\s*)?\}$`),
	}
})

// tooLarge answers the call whose result was too large, so that only that call fails.
func tooLarge(ends []byte) []jsonrpc.Message {
	for _, find := range callNumbers() {
		found := find.FindSubmatch(ends)
		if found == nil {
			continue
		}
		number, err := strconv.ParseFloat(string(found[1]), 64)
		if err != nil {
			continue
		}
		id, err := jsonrpc.MakeID(number)
		if err != nil {
			continue
		}
		return []jsonrpc.Message{&jsonrpc.Response{ID: id, Error: errTooLarge}}
	}
	return nil
}

var errTooLarge = &jsonrpc.Error{Code: jsonrpc.CodeInternalError,
	Message: fmt.Sprintf("its answer is larger than %d MB; ask for less at once", largestMessage>>20)}

func (p *pipe) Write(caller context.Context, msg jsonrpc.Message) error {
	data, err := jsonrpc.EncodeMessage(realName(msg))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(caller, p.limit)
	defer cancel()
	select {
	case p.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { <-p.turn }()
	if err := caller.Err(); err != nil {
		return err
	}
	n, err := p.write(ctx, append(data, '\n'))
	switch {
	case err == nil:
		return nil
	case n == 0 && caller.Err() != nil:
		return caller.Err() // nothing was written, so the next write may succeed
	case ctx.Err() != nil:
		p.giveUp(errors.New("it does not read its input"))
	}
	return err
}

// write writes until ctx is done: a server that does not read leaves its pipe full.
func (p *pipe) write(ctx context.Context, data []byte) (int, error) {
	expired := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(expired)
		_ = p.in.SetWriteDeadline(time.Unix(1, 0))
	})
	n, err := p.in.Write(data)
	if !stop() {
		<-expired
		_ = p.in.SetWriteDeadline(time.Time{})
	}
	return n, err
}
