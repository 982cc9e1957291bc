package llmsim

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"chorus/internal/model"
	"chorus/internal/model/catalog"
)

func (s *Server) googleRoutes() {
	s.mux.HandleFunc("POST /v1beta/models/{call}", s.googleGenerate)
	s.mux.HandleFunc("GET /v1beta/models", s.googleModels)
}

// googleBody is a request to generateContent or streamGenerateContent.
type googleBody struct {
	Contents          []json.RawMessage `json:"contents"`
	SystemInstruction json.RawMessage   `json:"systemInstruction"`
	Tools             []json.RawMessage `json:"tools"`
	ToolConfig        json.RawMessage   `json:"toolConfig"`
	GenerationConfig  googleConfig      `json:"generationConfig"`
	SafetySettings    json.RawMessage   `json:"safetySettings"`
	CachedContent     string            `json:"cachedContent"`
}

type googleConfig struct {
	MaxOutputTokens  *int            `json:"maxOutputTokens"`
	Temperature      *float64        `json:"temperature"`
	TopP             *float64        `json:"topP"`
	TopK             *int            `json:"topK"`
	StopSequences    []string        `json:"stopSequences"`
	CandidateCount   *int            `json:"candidateCount"`
	ResponseMimeType string          `json:"responseMimeType"`
	ResponseSchema   json.RawMessage `json:"responseSchema"`
	Seed             *int            `json:"seed"`
	ThinkingConfig   *googleThinking `json:"thinkingConfig"`
}

type googleThinking struct {
	IncludeThoughts bool   `json:"includeThoughts"`
	ThinkingBudget  *int   `json:"thinkingBudget"`
	ThinkingLevel   string `json:"thinkingLevel"`
}

type googleContent struct {
	Role  string       `json:"role"`
	Parts []googlePart `json:"parts"`
}

type googlePart struct {
	Text             *string         `json:"text"`
	Thought          bool            `json:"thought"`
	ThoughtSignature string          `json:"thoughtSignature"`
	InlineData       *googleBlob     `json:"inlineData"`
	FunctionCall     *googleCall     `json:"functionCall"`
	FunctionResponse *googleResponse `json:"functionResponse"`
}

type googleBlob struct {
	MimeType string `json:"mimeType"`
	Data     string `json:"data"`
}

type googleCall struct {
	ID   string          `json:"id"`
	Name string          `json:"name"`
	Args json.RawMessage `json:"args"`
}

type googleResponse struct {
	ID       string                     `json:"id"`
	Name     string                     `json:"name"`
	Response map[string]json.RawMessage `json:"response"`
}

// unfit is Google's answer to an invalid request.
func unfit(format string, args ...any) *refusal {
	return &refusal{code: 400, kind: "INVALID_ARGUMENT", message: fmt.Sprintf(format, args...)}
}

func (s *Server) googleKey(r *http.Request) *refusal {
	key := r.Header.Get("x-goog-api-key")
	if key == "" {
		key = r.URL.Query().Get("key")
	}
	switch {
	case key == "" && s.opts.NoKey, s.known(key):
		return nil
	case key == "":
		return &refusal{code: 403, kind: "PERMISSION_DENIED", message: "Method doesn't allow unregistered callers (callers without established identity). Please use API Key or other form of API consumer identity to call this API."}
	default: // not a 401, as elsewhere
		return &refusal{code: 400, kind: "INVALID_ARGUMENT", errCode: "API_KEY_INVALID", message: "API key not valid. Please pass a valid API key."}
	}
}

// googleGenerate answers POST /v1beta/models/NAME:streamGenerateContent, and
// :generateContent.
func (s *Server) googleGenerate(w http.ResponseWriter, r *http.Request) {
	name, method, _ := strings.Cut(r.PathValue("call"), ":")
	if method != "streamGenerateContent" && method != "generateContent" {
		http.NotFound(w, r)
		return
	}
	req, e := s.googleRequest(w, r, name)
	req.Stream = method == "streamGenerateContent"
	req = s.record(req)
	if e != nil {
		s.reject(w, Google, req, e)
		return
	}
	turn := s.turnFor(req)
	if turn.Fault != nil && turn.Fault.Kind == Status {
		s.settle(req.N, Rejected)
		s.googleFault(w, turn.Fault)
		return
	}
	usage := s.usage(req, turn)
	switch {
	case !req.Stream:
		w.Header().Set("Content-Type", "application/json; charset=UTF-8")
		_, _ = w.Write(encode(googleWhole(req, turn, usage)))
	case r.URL.Query().Get("alt") != "sse": // then the stream is one long list
		w.Header().Set("Content-Type", "application/json; charset=UTF-8")
		_, _ = w.Write(encode([]obj{googleWhole(req, turn, usage)}))
	default:
		s.stream(w, r, req.N, Google, turn, googleFrames(req, turn, usage))
		return
	}
	s.settle(req.N, Answered)
}

// turnFor is next, for formats without a cheap way to benchmark.
func (s *Server) turnFor(req Request) Turn {
	s.mu.Lock()
	bench := s.opts.Bench
	s.mu.Unlock()
	if bench == nil {
		return s.next(req)
	}
	n := 0
	for _, m := range req.Messages {
		if m.Role == "assistant" {
			n++
		}
	}
	return bench.turn(n)
}

// googleRequest parses and validates a request.
func (s *Server) googleRequest(w http.ResponseWriter, r *http.Request, name string) (Request, *refusal) {
	req := Request{API: Google, Header: r.Header, Model: name}
	data, e := read(w, r)
	if e != nil {
		return req, &refusal{code: e.code, kind: "INVALID_ARGUMENT", message: "Request payload size exceeds the limit: 20971520 bytes."}
	}
	if !s.opts.Lenient {
		req.Body = data
	}
	if e := s.googleKey(r); e != nil {
		return req, e
	}
	var body googleBody
	unknown, err := decodeStrict(data, &body)
	if err != nil {
		return req, unfit("Invalid JSON payload received. %v", err)
	}
	if unknown != "" {
		return req, unfit("Invalid JSON payload received. Unknown name %q: Cannot find field.", unknown)
	}
	check := &googleCheck{req: &req, body: &body, lenient: s.opts.Lenient}
	if e := check.all(); e != nil && !s.opts.Lenient {
		return req, e
	}
	if !s.offered(name) {
		return req, &refusal{code: 404, kind: "NOT_FOUND", message: "models/" + name + " is not found for API version v1beta, or is not supported for generateContent. Call ListModels to see the list of available models and their supported methods."}
	}
	if n := model.Tokens(len(data)); s.opts.Window > 0 && n > s.opts.Window {
		return req, unfit("The input token count (%d) exceeds the maximum number of tokens allowed (%d).", n, s.opts.Window)
	}
	return req, nil
}

// googleModels answers GET /v1beta/models, page by page.
func (s *Server) googleModels(w http.ResponseWriter, r *http.Request) {
	if e := s.googleKey(r); e != nil {
		s.refuse(w, Google, e)
		return
	}
	all := s.listed(Google)
	size, begin := 50, 0
	if n, err := strconv.Atoi(r.URL.Query().Get("pageSize")); err == nil && n > 0 {
		size = min(n, 1000)
	}
	if token := r.URL.Query().Get("pageToken"); token != "" {
		if _, err := fmt.Sscanf(token, "page-%d", &begin); err != nil || begin < 0 || begin > len(all) {
			s.refuse(w, Google, unfit("Invalid page token."))
			return
		}
	}
	end := min(begin+size, len(all))
	list := []obj{}
	for _, name := range all[begin:end] {
		list = append(list, obj{
			"name": "models/" + name, "displayName": name, "inputTokenLimit": 1 << 20, "outputTokenLimit": 1 << 16,
			"supportedGenerationMethods": []string{"generateContent", "countTokens"},
		})
	}
	answer := obj{"models": list}
	if end < len(all) {
		answer["nextPageToken"] = "page-" + url.QueryEscape(strconv.Itoa(end))
	}
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	_, _ = w.Write(encode(answer))
}

// listed returns the models of a provider: the given ones, or those of the catalog.
func (s *Server) listed(api API) []string {
	if len(s.opts.Models) > 0 {
		return s.opts.Models
	}
	var names []string
	for _, entry := range catalog.All() {
		if entry.Provider == string(api) {
			names = append(names, entry.Model)
		}
	}
	return names
}
