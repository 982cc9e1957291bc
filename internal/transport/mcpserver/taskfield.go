package mcpserver

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// taskKey is the metadata key of a request to run a call as a task. The SDK keeps metadata, but not the protocol's own field for it.
const taskKey = "chorus/task"

// moveTaskField moves the request to run a call as a task into the metadata. Other messages are unchanged.
func moveTaskField(message []byte) []byte {
	if !bytes.Contains(message, []byte(`"task"`)) || !bytes.Contains(message, []byte(`tools/call`)) {
		return message
	}
	var whole, params, meta map[string]json.RawMessage
	var method string
	if json.Unmarshal(message, &whole) != nil || json.Unmarshal(whole["method"], &method) != nil || method != "tools/call" || json.Unmarshal(whole["params"], &params) != nil {
		return message
	}
	wish, ok := params["task"]
	if !ok || params["_meta"] != nil && json.Unmarshal(params["_meta"], &meta) != nil {
		return message
	}
	if meta == nil {
		meta = map[string]json.RawMessage{}
	}
	meta[taskKey] = wish
	delete(params, "task")
	var err error
	if params["_meta"], err = json.Marshal(meta); err != nil {
		return message
	}
	if whole["params"], err = json.Marshal(params); err != nil {
		return message
	}
	if out, err := json.Marshal(whole); err == nil {
		return out
	}
	return message
}

// taskFieldBody is the body of a request, with the field moved when it is first read. One that is too large stays as it is: it is refused.
type taskFieldBody struct {
	io.ReadCloser
	moved io.Reader
}

func (b *taskFieldBody) Read(p []byte) (int, error) {
	if b.moved == nil {
		data, err := io.ReadAll(io.LimitReader(b.ReadCloser, maxBody+1))
		if err != nil {
			return 0, err
		}
		if len(data) <= maxBody {
			data = moveTaskField(data)
		}
		b.moved = io.MultiReader(bytes.NewReader(data), b.ReadCloser)
	}
	return b.moved.Read(p)
}

// liftedLines are the messages of a stream, one in a line. A line that is too long stays as it is: it is refused.
type liftedLines struct {
	io.Closer
	in   *bufio.Reader
	rest []byte
	err  error
}

func newLiftedLines(in io.ReadCloser) *liftedLines {
	return &liftedLines{Closer: in, in: bufio.NewReaderSize(in, 64<<10)}
}

func (l *liftedLines) Read(p []byte) (int, error) {
	if len(l.rest) == 0 && l.err == nil {
		l.rest, l.err = l.line()
	}
	if len(l.rest) == 0 {
		return 0, l.err
	}
	n := copy(p, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}

func (l *liftedLines) line() ([]byte, error) {
	var line []byte
	for {
		part, err := l.in.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull) && len(line) <= maxBody:
			continue
		case errors.Is(err, bufio.ErrBufferFull):
			return line, nil
		case err != nil || len(line) > maxBody:
			return line, err
		}
		return append(moveTaskField(bytes.TrimRight(line, "\r\n")), '\n'), nil
	}
}
