package llmsim

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"chorus/internal/model"
	"chorus/internal/model/catalog"
)

// The two wire formats of Bedrock: Anthropic's body and events in AWS's frames, and
// Converse.
const (
	Bedrock  API = "bedrock"
	Converse API = "converse"
)

func (s *Server) bedrockRoutes() {
	s.mux.HandleFunc("POST /model/{id}/invoke-with-response-stream", func(w http.ResponseWriter, r *http.Request) { s.bedrockAnswer(w, r, Bedrock, true) })
	s.mux.HandleFunc("POST /model/{id}/converse-stream", func(w http.ResponseWriter, r *http.Request) { s.bedrockAnswer(w, r, Converse, true) })
	s.mux.HandleFunc("POST /model/{id}/converse", func(w http.ResponseWriter, r *http.Request) { s.bedrockAnswer(w, r, Converse, false) })
	s.mux.HandleFunc("GET /foundation-models", s.bedrockModels)
	s.mux.HandleFunc("GET /inference-profiles", s.bedrockProfiles)
}

// onAWS reports whether a format is one of Bedrock's.
func onAWS(api API) bool { return api == Bedrock || api == Converse }

// awsInvalid is AWS's answer to an invalid request.
func awsInvalid(format string, args ...any) *refusal {
	return &refusal{code: 400, kind: "ValidationException", message: fmt.Sprintf(format, args...)}
}

// awsUsual are AWS's default messages for a status.
func awsUsual(code int) (kind, message string) {
	switch code {
	case 400:
		return "ValidationException", "The request is invalid."
	case 401:
		return "UnrecognizedClientException", "The security token included in the request is invalid."
	case 403:
		return "AccessDeniedException", "You don't have access to the model with the specified model ID."
	case 404:
		return "ResourceNotFoundException", "Could not resolve the foundation model from the provided model identifier."
	case 408:
		return "ModelTimeoutException", "Model has timed out in processing the request. Try your request again."
	case 424:
		return "ModelErrorException", "The request failed due to an error while processing the model."
	case 429:
		return "ThrottlingException", "Too many requests, please wait before trying again."
	case 500:
		return "InternalServerException", "The system encountered an unexpected error during processing. Try your request again."
	case 503:
		return "ServiceUnavailableException", "Bedrock is unable to process your request."
	default:
		return "", http.StatusText(code)
	}
}

// bedrockAnswer answers one of the operations of a model.
func (s *Server) bedrockAnswer(w http.ResponseWriter, r *http.Request, api API, stream bool) {
	req, e := s.bedrockRequest(w, r, api, stream)
	req = s.record(req)
	w.Header().Set("X-Amzn-Requestid", fmt.Sprintf("sim-%06d", req.N))
	if e != nil {
		s.reject(w, api, req, e)
		return
	}
	turn := s.next(req)
	if s.failed(w, api, req, turn) {
		return
	}
	usage := s.usage(req, turn)
	switch {
	case !stream:
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(encode(converseWhole(req, turn, usage)))
		s.settle(req.N, Answered)
	case api == Bedrock:
		s.stream(w, r, req.N, api, turn, chunkFrames(anthropicFrames(req, turn, usage)))
	default:
		s.stream(w, r, req.N, api, turn, converseFrames(req, turn, usage))
	}
}

// bedrockRequest parses and validates a request. The Request is as complete as possible, even if it is refused.
func (s *Server) bedrockRequest(w http.ResponseWriter, r *http.Request, api API, stream bool) (Request, *refusal) {
	req := Request{API: api, Header: r.Header, Model: r.PathValue("id"), Stream: stream}
	data, e := read(w, r)
	if e != nil {
		return req, e
	}
	if !s.opts.Lenient {
		req.Body = data
	}
	if e := s.awsKey(r, data); e != nil {
		return req, e
	}
	claude := strings.Contains(req.Model, "anthropic.")
	switch {
	case api == Bedrock && !claude:
		e = awsInvalid("Malformed input request: the body is not one of the model's.")
	case api == Bedrock:
		e = s.bedrockClaude(&req, data)
	default:
		e = s.converseRequest(&req, data)
	}
	if e != nil && !s.opts.Lenient {
		return req, e
	}
	if !s.offered(req.Model) {
		return req, &refusal{code: 404, kind: "ResourceNotFoundException", message: "The provided model identifier is invalid: " + req.Model}
	}
	if n := model.Tokens(len(data)); s.opts.Window > 0 && n > s.opts.Window {
		return req, awsInvalid("Input is too long for requested model.")
	}
	return req, nil
}

// bedrockClaude validates a body against Anthropic's rules, and two rules of Bedrock.
func (s *Server) bedrockClaude(req *Request, data []byte) *refusal {
	var body struct {
		anthropicBody
		Version string   `json:"anthropic_version"`
		Beta    []string `json:"anthropic_beta"`
	}
	unknown, err := decodeStrict(data, &body)
	switch {
	case err != nil:
		return awsInvalid("Malformed input request, please reformat your input and try again. (%v)", err)
	case body.Model != "":
		unknown = "model"
	case body.Stream:
		unknown = "stream"
	}
	if unknown != "" {
		return awsInvalid("Malformed input request: #: extraneous key [%s] is not permitted, please reformat your input and try again.", unknown)
	}
	if body.Version != "bedrock-2023-05-31" {
		return awsInvalid("Malformed input request: #: required key [anthropic_version] not found, please reformat your input and try again.")
	}
	req.Stop = body.StopSequences
	if body.MaxTokens != nil {
		req.MaxTokens = *body.MaxTokens
	}
	_, body.Model, _ = strings.Cut(req.Model, "anthropic.")
	check := &anthropicCheck{req: req, body: &body.anthropicBody, lenient: s.opts.Lenient}
	if e := check.all(); e != nil {
		e.kind = "ValidationException" // the message stays Anthropic's
		return e
	}
	return nil
}

// bedrockModels answers GET /foundation-models.
func (s *Server) bedrockModels(w http.ResponseWriter, r *http.Request) {
	if e := s.awsKey(r, nil); e != nil {
		s.refuse(w, Bedrock, e)
		return
	}
	list := []obj{}
	for _, name := range s.bedrockNames() {
		inference := []string{"ON_DEMAND"}
		if strings.HasPrefix(name, "anthropic.") {
			inference = []string{"INFERENCE_PROFILE"}
		}
		list = append(list, obj{
			"modelId": name, "modelName": name, "responseStreamingSupported": true, "inferenceTypesSupported": inference,
			"outputModalities": []string{"TEXT"}, "modelLifecycle": obj{"status": "ACTIVE"},
		})
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(encode(obj{"modelSummaries": list}))
}

// bedrockProfiles answers GET /inference-profiles, in pages of ten.
func (s *Server) bedrockProfiles(w http.ResponseWriter, r *http.Request) {
	if e := s.awsKey(r, nil); e != nil {
		s.refuse(w, Bedrock, e)
		return
	}
	var names []string
	for _, name := range s.bedrockNames() {
		if strings.HasPrefix(name, "anthropic.") {
			names = append(names, "us."+name)
		}
	}
	from := 0
	_, _ = fmt.Sscan(r.URL.Query().Get("nextToken"), &from) // without one it is the first page
	to := min(from+10, len(names))
	answer := obj{}
	if to < len(names) {
		answer["nextToken"] = fmt.Sprint(to)
	}
	list := []obj{}
	for _, name := range names[min(from, to):to] {
		list = append(list, obj{"inferenceProfileId": name, "status": "ACTIVE", "type": "SYSTEM_DEFINED"})
	}
	answer["inferenceProfileSummaries"] = list
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(encode(answer))
}

func (s *Server) bedrockNames() []string {
	if len(s.opts.Models) > 0 {
		return s.opts.Models
	}
	var names []string
	for _, e := range catalog.All() {
		if e.Provider == "bedrock" {
			names = append(names, e.Model)
		}
	}
	return names
}

// converseBody is a request to Converse. Blocks are checked one by one.
type converseBody struct {
	Messages []struct {
		Role    string          `json:"role"`
		Content []converseBlock `json:"content"`
	} `json:"messages"`
	System    []converseBlock `json:"system"`
	Inference *struct {
		MaxTokens   *int     `json:"maxTokens"`
		Temperature *float64 `json:"temperature"`
		TopP        *float64 `json:"topP"`
		Stop        []string `json:"stopSequences"`
	} `json:"inferenceConfig"`
	Tools *struct {
		Tools  []converseTool  `json:"tools"`
		Choice json.RawMessage `json:"toolChoice"`
	} `json:"toolConfig"`
	Additional map[string]json.RawMessage `json:"additionalModelRequestFields"`
}

type converseTool struct {
	Spec *struct {
		Name        string  `json:"name"`
		Description *string `json:"description"`
		Schema      struct {
			JSON json.RawMessage `json:"json"`
		} `json:"inputSchema"`
	} `json:"toolSpec"`
	Point *conversePoint `json:"cachePoint"`
}

type conversePoint struct {
	Type string `json:"type"`
}

// converseBlock is a block with the bytes it came in.
type converseBlock struct {
	raw   []byte
	Text  *string `json:"text"`
	Image *struct {
		Format string `json:"format"`
		Source struct {
			Bytes []byte `json:"bytes"`
		} `json:"source"`
	} `json:"image"`
	ToolUse *struct {
		ID    string          `json:"toolUseId"`
		Name  string          `json:"name"`
		Input json.RawMessage `json:"input"`
	} `json:"toolUse"`
	ToolResult *struct {
		ID      string          `json:"toolUseId"`
		Content []converseBlock `json:"content"`
		Status  string          `json:"status"`
	} `json:"toolResult"`
	Reasoning *struct {
		Text *struct {
			Text      string `json:"text"`
			Signature string `json:"signature"`
		} `json:"reasoningText"`
		Redacted string `json:"redactedContent"`
	} `json:"reasoningContent"`
	Point *conversePoint `json:"cachePoint"`
}

// UnmarshalJSON keeps the bytes for the prefix cache, and is strict where a nested decoder would not be.
func (b *converseBlock) UnmarshalJSON(data []byte) error {
	type plain converseBlock
	unknown, err := decodeStrict(data, (*plain)(b))
	if err != nil {
		return err
	}
	if unknown != "" {
		return fmt.Errorf("json: unknown field %q", unknown)
	}
	b.raw = append([]byte(nil), data...)
	return nil
}
