package wire

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// Events parses a stream of server-sent events. It skips comments, and
// drops an event that the stream's end cut off.
type Events struct {
	// Type is the name of the newest event, often "". Data is its content, valid until the next call of Next.
	Type string
	Data []byte

	r    *bufio.Reader
	long []byte
	err  error
}

// eventBuffer holds most lines completely.
const eventBuffer = 4 << 10

// NewEvents reads events from r.
func NewEvents(r io.Reader) *Events { return &Events{r: bufio.NewReaderSize(r, eventBuffer)} }

// Err returns why the events ended; nil if the stream simply ended.
func (e *Events) Err() error {
	if errors.Is(e.err, io.EOF) {
		return nil
	}
	return e.err
}

// Next goes to the next event that has data.
func (e *Events) Next() bool {
	e.Type, e.Data = "", e.Data[:0]
	some := false
	for {
		line, ok := e.line()
		if !ok {
			return false
		}
		if len(line) == 0 {
			if some {
				return true
			}
			e.Type = ""
			continue
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(name) {
		case "event":
			e.Type = string(value)
		case "data":
			if some {
				e.Data = append(e.Data, '\n')
			}
			some = true
			e.Data = append(e.Data, value...)
		}
	}
}

// line returns the next line without its line ending, valid until the next call. It returns false
// if the stream is over; anything after the last line ending is dropped.
func (e *Events) line() ([]byte, bool) {
	line, err := e.r.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		e.long = e.long[:0]
		for errors.Is(err, bufio.ErrBufferFull) {
			e.long = append(e.long, line...)
			line, err = e.r.ReadSlice('\n')
		}
		e.long = append(e.long, line...)
		line = e.long
	}
	if err != nil {
		e.err = err
		return nil, false
	}
	line = line[:len(line)-1]
	return bytes.TrimPrefix(bytes.TrimSuffix(line, []byte("\r")), []byte("\uFEFF")), true
}
