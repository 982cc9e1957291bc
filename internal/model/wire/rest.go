package wire

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"net/http"
	"time"

	"chorus/internal/model"
)

// Rest makes calls to a provider that uses JSON.
type Rest struct {
	Client *http.Client
	Header http.Header // of every request; Content-Type and User-Agent are set in addition
	Side   Side
	// Refused reads an HTTP error; nil: Side.Status does.
	Refused func(status int, header http.Header, body []byte) *model.Error
}

// Post sends a JSON body. The answer's body is watched and ends with the call.
func (r Rest) Post(call *Call, url string, body []byte) (*http.Response, *model.Error) {
	return r.send(call, http.MethodPost, url, body)
}

// Get reads an answer that is one JSON value. what names it in errors.
func (r Rest) Get(call *Call, url, what string, into any) *model.Error {
	res, failed := r.send(call, http.MethodGet, url, nil)
	if failed != nil {
		return failed
	}
	data, err := io.ReadAll(res.Body)
	if err == nil {
		err = json.Unmarshal(data, into)
	}
	if err != nil {
		return r.Side.Network(call.Cause(fmt.Errorf("read %s: %w", what, err)))
	}
	return nil
}

func (r Rest) send(call *Call, method, url string, body []byte) (*http.Response, *model.Error) {
	req, err := http.NewRequestWithContext(call.Context(), method, url, bytes.NewReader(body))
	if err != nil {
		return nil, r.Side.Bad("the address %q cannot be called: %v", url, err)
	}
	req.Header.Set("User-Agent", "Chorus")
	if method == http.MethodPost {
		req.Header.Set("Content-Type", "application/json")
	}
	maps.Copy(req.Header, r.Header)
	res, err := call.Send(req, r.Client.Do)
	if err != nil {
		return nil, r.Side.Network(call.Cause(err))
	}
	if res.StatusCode < 300 {
		return res, nil
	}
	// If the reason cannot be read, the status is still worth reporting.
	reason, _ := io.ReadAll(io.LimitReader(res.Body, maxReport))
	if call.Context().Err() != nil {
		return nil, r.Side.Network(call.Cause(nil))
	}
	if r.Refused != nil {
		return nil, r.Refused(res.StatusCode, res.Header, reason)
	}
	return nil, r.Side.Status(res.StatusCode, res.Header, reason)
}

// endTime is how long to wait for the end of a stream once the answer is complete: a last count of
// tokens may still come, but the connection may also have been left open by mistake.
const endTime = 5 * time.Second

// Ending marks the answer as complete except for the stream's end, if a stream has no other mark
// of it. A failure after that does not count as a failure of the answer.
func (c *Call) Ending() {
	c.pause = min(endTime, c.idle)
	c.timer.Reset(c.pause)
}

// Lines reads a stream line by line. If the stream breaks off, the rest
// comes as a last line, and Err then says why.
func Lines(r io.Reader) *bufio.Scanner {
	s := bufio.NewScanner(r)
	s.Buffer(make([]byte, 0, 32<<10), maxAnswer)
	return s
}

// CallID returns a name for the n-th call in the answer to a request, for providers that send
// none. The same request gives the same names, another request different ones.
func CallID(body []byte, n int) string {
	h := fnv.New64a()
	_, _ = h.Write(body) // a hash never fails
	return fmt.Sprintf("call_%016x_%d", h.Sum64(), n)
}
