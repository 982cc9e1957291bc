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

// Rest makes calls to a provider that takes JSON.
type Rest struct {
	Client *http.Client
	Header http.Header // of every request; a body's type is set without it, and who asks
	Side   Side
	// Refused reads an HTTP error; nil: Side.Status does.
	Refused func(status int, header http.Header, body []byte) *model.Error
}

// Post sends a body of JSON; the answer's body is under watch and ends with the call.
func (r Rest) Post(call *Call, url string, body []byte) (*http.Response, *model.Error) {
	return r.send(call, http.MethodPost, url, body)
}

// Get reads an answer that is one JSON value. what says in an error what it was.
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
	// What cannot be read of a reason is not worth losing the status for.
	reason, _ := io.ReadAll(io.LimitReader(res.Body, maxReport))
	if call.Context().Err() != nil {
		return nil, r.Side.Network(call.Cause(nil))
	}
	if r.Refused != nil {
		return nil, r.Refused(res.StatusCode, res.Header, reason)
	}
	return nil, r.Side.Status(res.StatusCode, res.Header, reason)
}

// endTime is how long the end of a stream is waited for when the answer is whole:
// a last count of tokens may still come, a connection left open by mistake not.
const endTime = 5 * time.Second

// Ending says that the answer is whole and only the stream's end is missing, where
// a stream has no other mark of it. What then fails is no failure of the answer.
func (c *Call) Ending() {
	c.pause = min(endTime, c.idle)
	c.timer.Reset(c.pause)
}

// Lines reads a stream line by line. What is left when it breaks off comes as a
// last line; Err then says why.
func Lines(r io.Reader) *bufio.Scanner {
	s := bufio.NewScanner(r)
	s.Buffer(make([]byte, 0, 32<<10), maxAnswer)
	return s
}

// CallID names the n-th call of the answer to a request, where the provider does
// not. The same request gives the same names, another one others.
func CallID(body []byte, n int) string {
	h := fnv.New64a()
	_, _ = h.Write(body) // a hash never fails
	return fmt.Sprintf("call_%016x_%d", h.Sum64(), n)
}
