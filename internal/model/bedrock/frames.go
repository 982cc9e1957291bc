package bedrock

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"

	"chorus/internal/model"
	"chorus/internal/model/wire"
)

// frames reads the vendor's binary event stream.
type frames struct {
	in  *bufio.Reader
	dec *eventstream.Decoder
	buf []byte
}

func newFrames(r io.Reader) *frames {
	return &frames{in: bufio.NewReaderSize(r, 16<<10), dec: eventstream.NewDecoder(), buf: make([]byte, 0, 4<<10)}
}

// frame is one message of the stream: an event or an exception.
type frame struct {
	event     string // the event's type; "": it is an exception
	exception string // the exception's name; "": it is an event
	payload   []byte // valid until the next frame
}

// errBroken is the error for a frame with a wrong checksum or length.
var errBroken = errors.New("the answer is garbled: a frame is broken")

// next returns the next frame, or io.EOF if the stream ended between two frames or inside one.
func (f *frames) next() (frame, error) {
	msg, err := f.dec.Decode(f.in, f.buf)
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return frame{}, io.EOF
	case err != nil:
		return frame{}, errors.Join(errBroken, err)
	}
	if cap(msg.Payload) > cap(f.buf) {
		f.buf = msg.Payload[:0]
	}
	text := func(name string) string {
		if v, ok := msg.Headers.Get(name).(eventstream.StringValue); ok {
			return string(v)
		}
		return ""
	}
	out := frame{payload: msg.Payload}
	switch text(":message-type") {
	case "event":
		out.event = text(":event-type")
	case "exception":
		out.exception = firstSet(text(":exception-type"), "exception")
	case "error":
		out.exception = firstSet(text(":error-code"), "error")
		if message := text(":error-message"); message != "" {
			out.payload = wire.AppendString([]byte(`{"message":`), message)
			out.payload = append(out.payload, '}')
		}
	}
	return out, nil
}

// failure returns the error for an exception in the middle of a stream.
func (f frame) failure(side wire.Side) *model.Error {
	var said struct {
		Message  string `json:"message"`
		Original string `json:"originalMessage"`
		Status   int    `json:"originalStatusCode"`
	}
	if json.Unmarshal(f.payload, &said) != nil {
		said.Message = string(f.payload)
	}
	e := side.Event(wire.Report{Type: f.exception, Message: firstSet(said.Message, said.Original)})
	// Without a known name or a telling message it counts as overloaded, which is retried.
	if kind := kindOf(f.exception, e.Message); kind != "" && (e.Kind == model.Overloaded || kind == model.TooLong) {
		e.Kind = kind
	}
	return e
}
