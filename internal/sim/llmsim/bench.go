package llmsim

import (
	"bytes"
	"cmp"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// Bench is the script for benchmarks: a number of tool turns, then a final text. The turn is derived from the request
// itself, so that any number of clients can run at once without state here.
type Bench struct {
	Turns   int    `yaml:"turns"`
	Tool    string `yaml:"tool"`    // "": bash
	Command string `yaml:"command"` // the tool's "command" argument; "": true. {n} is the turn's number, for clients that stop at repeated calls
	Final   string `yaml:"final"`   // "": done
}

func (s *Server) benched() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.opts.Bench != nil
}

var bodies = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// assistant is how both formats write the role, in clients that write no spaces.
var assistant = []byte(`"role":"assistant"`)

// bench answers as cheaply as possible: one pass over the body, one write.
func (s *Server) bench(w http.ResponseWriter, r *http.Request, api API) {
	s.mu.Lock()
	b := *s.opts.Bench
	s.mu.Unlock()
	buf := bodies.Get().(*bytes.Buffer)
	defer bodies.Put(buf)
	buf.Reset()
	if _, err := buf.ReadFrom(http.MaxBytesReader(w, r.Body, maxBody)); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	body := buf.Bytes()
	key := benchKey{api: api, stream: bytes.Contains(body, []byte(`"stream":true`)), n: min(bytes.Count(body, assistant), b.Turns)}
	out := s.benchAnswer(key, b)
	w.Header().Set("Content-Type", "application/json")
	if key.stream {
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(out)))
	_, _ = w.Write(out) // a client that has gone is not measured
}

// benchKey is everything that an answer depends on.
type benchKey struct {
	api    API
	stream bool
	n      int
}

// benchAnswer is an answer, built once. Its usage does not count the body, because each answer would then differ.
func (s *Server) benchAnswer(key benchKey, b Bench) []byte {
	if out, ok := s.benchMade.Load(key); ok {
		return out.([]byte)
	}
	usage := Usage{Input: 1000, Output: 10}
	req := Request{N: key.n + 1, API: key.api, Model: "bench", Stream: key.stream, includeUsed: true}
	turn := b.turn(key.n)
	var out []byte
	switch {
	case !key.stream && key.api == Anthropic:
		out = encode(anthropicWhole(req, turn, usage))
	case !key.stream:
		out = encode(openaiWhole(req, turn, usage))
	default:
		frames := openaiFrames
		if key.api == Anthropic {
			frames = anthropicFrames
		}
		for _, f := range frames(req, turn, usage) {
			out = f.appendTo(out)
		}
	}
	s.benchMade.Store(key, out)
	return out
}

// turn is the n-th answer, from 0.
func (b Bench) turn(n int) Turn {
	if n >= b.Turns {
		return Turn{Text: cmp.Or(b.Final, "done")}
	}
	return Turn{
		Text: fmt.Sprintf("step %d", n+1),
		Calls: []Call{{
			ID: fmt.Sprintf("call_bench_%d", n+1), Name: cmp.Or(b.Tool, "bash"),
			Args: map[string]string{"command": strings.ReplaceAll(cmp.Or(b.Command, "true"), "{n}", strconv.Itoa(n+1))},
		}},
	}
}
