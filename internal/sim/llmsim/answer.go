package llmsim

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"chorus/internal/model/catalog"
)

// maxBody is Anthropic's limit on a request.
const maxBody = 32 << 20

// refusal is an HTTP error in a provider's format.
type refusal struct {
	code    int
	kind    string // Anthropic's or OpenAI's type, Google's status
	message string
	errCode string // OpenAI's code, Google's reason
}

// body is the error in the provider's format.
func (e *refusal) body(api API) []byte {
	switch api {
	case Google:
		return googleError(e, "")
	case Ollama:
		return encode(map[string]any{"error": e.message})
	case Bedrock, Converse:
		return encode(map[string]any{"message": e.message})
	case OpenRouter:
		return routerError(e)
	case Anthropic:
		return encode(map[string]any{
			"type": "error", "error": map[string]any{"type": e.kind, "message": e.message}, "request_id": "req_sim",
		})
	}
	var code any
	if e.errCode != "" {
		code = e.errCode
	}
	return encode(map[string]any{"error": map[string]any{"message": e.message, "type": e.kind, "param": nil, "code": code}})
}

// usual are the providers' default messages for a status.
func usual(api API, code int) (kind, message string) {
	switch api {
	case Google:
		return googleUsual(code)
	case Ollama:
		return "", ollamaUsual(code)
	case Bedrock, Converse:
		return awsUsual(code)
	case Anthropic:
		switch code {
		case 400:
			return "invalid_request_error", "the request is invalid"
		case 401:
			return "authentication_error", "invalid x-api-key"
		case 403:
			return "permission_error", "Your API key does not have permission to use the specified resource."
		case 404:
			return "not_found_error", "The requested resource could not be found."
		case 413:
			return "request_too_large", "Request exceeds the maximum allowed number of bytes."
		case 429:
			return "rate_limit_error", "This request would exceed your account's rate limit. Please try again later."
		case 529:
			return "overloaded_error", "Overloaded"
		default:
			return "api_error", "Internal server error"
		}
	}
	switch {
	case code == 401:
		return "invalid_request_error", "Incorrect API key provided."
	case code == 429:
		return "requests", "Rate limit reached for requests."
	case code >= 500:
		return "server_error", "The server had an error while processing your request."
	default:
		return "invalid_request_error", "The request is invalid."
	}
}

// refuse answers with an error.
func (s *Server) refuse(w http.ResponseWriter, api API, e *refusal) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("request-id", "req_sim")
	if onAWS(api) && e.kind != "" {
		w.Header().Set("X-Amzn-Errortype", e.kind)
	}
	w.WriteHeader(e.code)
	_, _ = w.Write(e.body(api)) // the client may be gone
}

// speak answers requests of one format.
func (s *Server) speak(
	api API, request func(http.ResponseWriter, *http.Request) (Request, *refusal),
	whole func(Request, Turn, Usage) obj, frames func(Request, Turn, Usage) []frame,
) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		req, e := request(w, r)
		req = s.record(req)
		if e != nil {
			s.reject(w, api, req, e)
			return
		}
		turn := s.next(req)
		if s.failed(w, api, req, turn) {
			return
		}
		usage := s.usage(req, turn)
		if !req.Stream {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(encode(whole(req, turn, usage)))
			s.settle(req.N, Answered)
			return
		}
		s.stream(w, r, req.N, api, turn, frames(req, turn, usage))
	}
}

// measurable answers requests of a format that is used in benchmarks, then as Bench says.
func (s *Server) measurable(api API, answer http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if s.benched() {
			s.bench(w, r, api)
			return
		}
		answer(w, r)
	}
}

// reject answers an invalid request.
func (s *Server) reject(w http.ResponseWriter, api API, req Request, e *refusal) {
	s.settle(req.N, Rejected)
	s.refuse(w, api, e)
}

// failed answers a request whose turn is a scripted status; false: it is another turn.
func (s *Server) failed(w http.ResponseWriter, api API, req Request, turn Turn) bool {
	if turn.Fault == nil || turn.Fault.Kind != Status {
		return false
	}
	s.settle(req.N, Rejected)
	s.refuseFault(w, api, turn.Fault)
	return true
}

// refuseFault answers with a scripted status.
func (s *Server) refuseFault(w http.ResponseWriter, api API, f *Fault) {
	e := &refusal{code: f.Code, kind: f.Type, message: f.Message, errCode: f.ErrCode}
	kind, message := usual(api, f.Code)
	if e.kind == "" {
		e.kind = kind
	}
	if e.message == "" {
		e.message = message
	}
	if f.RetryAfter != "" {
		w.Header().Set("Retry-After", f.RetryAfter)
	}
	if f.RetryAfterMS > 0 {
		w.Header().Set("Retry-After-Ms", strconv.Itoa(f.RetryAfterMS))
	}
	if f.Body != "" {
		w.WriteHeader(f.Code)
		_, _ = io.WriteString(w, f.Body)
		return
	}
	s.refuse(w, api, e)
}

// read reads the whole body.
func read(w http.ResponseWriter, r *http.Request) ([]byte, *refusal) {
	var buf bytes.Buffer
	if r.ContentLength > 0 && r.ContentLength <= maxBody {
		buf.Grow(int(r.ContentLength) + bytes.MinRead)
	}
	if _, err := buf.ReadFrom(http.MaxBytesReader(w, r.Body, maxBody)); err != nil {
		var big *http.MaxBytesError
		if errors.As(err, &big) {
			return nil, &refusal{code: 413, kind: "request_too_large", message: "Request exceeds the maximum size"}
		}
		return nil, &refusal{code: 400, kind: "invalid_request_error", message: "could not read the request: " + err.Error()}
	}
	return buf.Bytes(), nil
}

// known reports whether a key is accepted.
func (s *Server) known(key string) bool {
	return len(s.opts.Keys) == 0 && key != "" || slices.Contains(s.opts.Keys, key)
}

// offered reports whether a model exists.
func (s *Server) offered(name string) bool {
	return len(s.opts.Models) == 0 || slices.Contains(s.opts.Models, name)
}

// models lists the models in the caller's format.
func (s *Server) models(w http.ResponseWriter, r *http.Request) {
	api := OpenAI
	var e *refusal
	if r.Header.Get("anthropic-version") != "" || r.Header.Get("x-api-key") != "" {
		api = Anthropic
		e = s.anthropicKey(r)
	} else {
		e = s.openaiKey(r)
	}
	if e != nil {
		s.refuse(w, api, e)
		return
	}
	names := s.opts.Models
	if len(names) == 0 {
		for _, entry := range catalog.All() {
			if entry.Provider == string(api) {
				names = append(names, entry.Model)
			}
		}
	}
	data := []map[string]any{}
	for _, name := range names {
		if api == Anthropic {
			data = append(data, map[string]any{"type": "model", "id": name, "display_name": name, "created_at": "2025-01-01T00:00:00Z"})
		} else {
			data = append(data, map[string]any{"object": "model", "id": name, "created": created, "owned_by": "sim"})
		}
	}
	answer := map[string]any{"object": "list", "data": data}
	if api == Anthropic {
		answer = map[string]any{"data": data, "has_more": false, "first_id": nil, "last_id": nil}
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(encode(answer))
}

// simRequests shows the requests so far.
func (s *Server) simRequests(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(encode(s.Requests()))
}

// simScript loads a script that replaces the current one; with ?add=true it is added.
func (s *Server) simScript(w http.ResponseWriter, r *http.Request) {
	data, e := read(w, r)
	if e != nil {
		http.Error(w, e.message, e.code)
		return
	}
	script, err := ParseScript(data)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.load(script, r.URL.Query().Get("add") != "true")
	w.WriteHeader(http.StatusNoContent)
}

// created replaces every timestamp, so that answers are always the same.
const created = 1_700_000_000

// encode is JSON without HTML escaping. Its input can always be encoded.
func encode(v any) []byte {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic("llmsim: " + err.Error())
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n"))
}

// decodeStrict parses JSON and reports an unknown field.
func decodeStrict(data []byte, v any) (unknown string, err error) {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	err = dec.Decode(v)
	if err != nil {
		if _, field, ok := strings.Cut(err.Error(), "json: unknown field "); ok {
			return strings.Trim(field, `"`), nil
		}
		return "", err
	}
	return "", nil
}

// frame is one event of a stream.
type frame struct {
	event string // "": none is named
	data  []byte
	line  bool   // a plain line, not a server-sent event
	raw   []byte // the frame as sent, for binary formats
}

func (f frame) appendTo(buf []byte) []byte {
	if f.raw != nil {
		return append(buf, f.raw...)
	}
	if f.line {
		return append(append(buf, f.data...), '\n')
	}
	if f.event != "" {
		buf = append(append(append(buf, "event: "...), f.event...), '\n')
	}
	buf = append(append(buf, "data: "...), f.data...)
	return append(buf, "\n\n"...)
}

// broken is a frame that is not JSON, and errorFrame one that reports an error.
var broken = frame{event: "content_block_delta", data: []byte(`{"type":"content_block_delta","index":0,"delta":{"type":"te`)}

func errorFrame(api API, f *Fault) frame {
	switch api {
	case Google:
		return googleErrorFrame(f)
	case Ollama:
		return ollamaErrorFrame(f)
	case Bedrock, Converse:
		return awsException(f)
	case Responses:
		return responsesErrorFrame(f)
	case OpenRouter:
		return routerErrorFrame(f)
	}
	kind, message := f.Type, f.Message
	if kind == "" {
		kind = "overloaded_error"
		if api == OpenAI || api == Completions {
			kind = "server_error"
		}
	}
	if message == "" {
		message = "Overloaded"
	}
	e := &refusal{kind: kind, message: message, errCode: f.ErrCode}
	if api == Anthropic {
		return frame{event: "error", data: e.body(api)}
	}
	return frame{data: e.body(api)}
}

// stream plays frames with the turn's delays and faults. It returns how the request ended, and does not return from a cut.
func (s *Server) stream(w http.ResponseWriter, r *http.Request, n int, api API, turn Turn, frames []frame) {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	if api == Ollama {
		w.Header().Set("Content-Type", "application/x-ndjson")
	}
	if onAWS(api) {
		w.Header().Set("Content-Type", "application/vnd.amazon.eventstream")
	}
	w.Header().Set("Cache-Control", "no-cache")
	w.Header().Set("request-id", "req_sim")
	w.WriteHeader(http.StatusOK)
	out := &writer{w: w, r: r, s: s, ctl: http.NewResponseController(w), turn: turn}
	fault := turn.Fault
	for i, f := range frames {
		if fault != nil && i == min(fault.After, len(frames)-1) {
			switch fault.Kind {
			case StreamError:
				out.frame(errorFrame(api, fault))
				s.settle(n, Answered)
				out.flush()
				return
			case Cut:
				whole := f.appendTo(nil)
				out.write(whole[:len(whole)/2])
				out.flush()
				s.settle(n, Answered)
				panic(http.ErrAbortHandler) // the server closes the connection, as scripted
			case EOF:
				out.flush()
				s.settle(n, Answered)
				return
			case Malformed:
				bad := frame{event: broken.event, data: broken.data, line: f.line}
				if f.raw != nil {
					bad = spoiled(f)
				}
				out.frame(bad)
			case Stall:
				out.flush()
				select {
				case <-r.Context().Done():
					s.settle(n, Gone)
				case <-s.quit:
					s.settle(n, Answered)
				}
				return
			}
		}
		if !out.frame(f) {
			s.settle(n, Gone)
			return
		}
	}
	out.flush()
	if r.Context().Err() != nil {
		s.settle(n, Gone)
		return
	}
	s.settle(n, Answered)
}

// writer writes frames at the turn's pace.
type writer struct {
	w    http.ResponseWriter
	r    *http.Request
	s    *Server
	ctl  *http.ResponseController
	turn Turn
	buf  []byte
}

// frame writes one frame; false: the client is gone or the server stops.
func (o *writer) frame(f frame) bool {
	if o.turn.Delay > 0 {
		timer := time.NewTimer(o.turn.Delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-o.r.Context().Done():
			return false
		case <-o.s.quit:
			return false
		}
	}
	o.buf = f.appendTo(o.buf[:0])
	if o.turn.PacketSize <= 0 {
		return o.write(o.buf) && (o.turn.Delay == 0 || o.flush())
	}
	for rest := o.buf; len(rest) > 0; {
		n := min(o.turn.PacketSize, len(rest))
		if !o.write(rest[:n]) || !o.flush() {
			return false
		}
		rest = rest[n:]
	}
	return true
}

func (o *writer) write(b []byte) bool { _, err := o.w.Write(b); return err == nil }
func (o *writer) flush() bool         { return o.ctl.Flush() == nil }
