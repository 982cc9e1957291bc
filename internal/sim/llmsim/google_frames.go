package llmsim

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"chorus/internal/model"
)

// googleStops are Google's stop reasons.
var googleStops = map[string]string{
	"end": "STOP", "tools": "STOP", "length": "MAX_TOKENS", "stop_sequence": "STOP", "refusal": "SAFETY", "pause": "STOP",
}

// signedBySim is the prefix of every signature of the simulator.
const signedBySim = "signed by llmsim "

// googleSignature signs an answer: its thinking or, for models that always sign, its calls.
func googleSignature(req Request, turn Turn) string {
	said := turn.output() > 0 && strings.HasPrefix(req.Model, "gemini-3")
	if turn.Thinking == "" && turn.Signature == "" && !said {
		return ""
	}
	return base64.StdEncoding.EncodeToString([]byte(signedBySim + turn.signature()))
}

func googleUsage(turn Turn, u Usage) obj {
	prompt := u.Input + u.CacheRead + u.CacheWrite
	thoughts := min(model.Tokens(len(turn.Thinking)), u.Output)
	out := obj{"promptTokenCount": prompt, "candidatesTokenCount": u.Output - thoughts, "totalTokenCount": prompt + u.Output}
	if thoughts > 0 {
		out["thoughtsTokenCount"] = thoughts
	}
	if u.CacheRead > 0 {
		out["cachedContentTokenCount"] = u.CacheRead
	}
	return out
}

// googleChunk is one answer, or one piece of it.
func googleChunk(req Request, turn Turn, usage Usage, parts []obj, finish string) obj {
	candidate := obj{"content": obj{"role": "model", "parts": parts}, "index": 0}
	if finish != "" {
		candidate["finishReason"] = finish
	}
	chunk := obj{
		"candidates": []obj{candidate}, "modelVersion": req.Model, "responseId": fmt.Sprintf("sim-%06d", req.N),
	}
	if !turn.NoUsage {
		chunk["usageMetadata"] = googleUsage(turn, usage)
	}
	return chunk
}

// googleCalls returns the calls as parts, each complete; a call that is cut off is left out.
func googleCalls(turn Turn, sign string) []obj {
	var parts []obj
	for _, c := range turn.Calls {
		args := json.RawMessage(cmp.Or(c.args(), "{}"))
		if !json.Valid(args) || args[0] != '{' {
			continue
		}
		call := obj{"name": c.Name, "args": args}
		if c.ID != "" {
			call["id"] = c.ID
		}
		part := obj{"functionCall": call}
		if sign != "" && len(parts) == 0 {
			part["thoughtSignature"] = sign
		}
		parts = append(parts, part)
	}
	return parts
}

// googleWhole is the answer without streaming.
func googleWhole(req Request, turn Turn, usage Usage) obj {
	parts := []obj{}
	if turn.Thinking != "" && req.thoughts {
		parts = append(parts, obj{"text": turn.Thinking, "thought": true})
	}
	if text := turn.text() + turn.Refusal; text != "" {
		parts = append(parts, obj{"text": text})
	}
	calls := googleCalls(turn, googleSignature(req, turn))
	return googleChunk(req, turn, usage, append(parts, calls...), googleFinish(turn))
}

func googleFinish(turn Turn) string {
	if turn.Refusal != "" {
		return "SAFETY"
	}
	return googleStops[turn.stop()]
}

// googleFrames is the answer as a stream: text in pieces, each call in its own frame, and a last one with the reason.
// The signature is on the first call, or on an empty text at the end.
func googleFrames(req Request, turn Turn, usage Usage) []frame {
	var frames []frame
	add := func(finish string, part obj) {
		u := usage
		if finish == "" {
			u.Output = 0 // counted along the way; only the last number is right
		}
		frames = append(frames, frame{data: encode(googleChunk(req, turn, u, []obj{part}, finish))})
	}
	if req.thoughts {
		for _, p := range pieces(turn.Thinking, turn.Chunk) {
			add("", obj{"text": p, "thought": true})
		}
	}
	for _, p := range pieces(turn.text()+turn.Refusal, turn.Chunk) {
		add("", obj{"text": p})
	}
	sign := googleSignature(req, turn)
	calls := googleCalls(turn, sign)
	for _, part := range calls {
		add("", part)
	}
	last := obj{"text": ""}
	if sign != "" && len(calls) == 0 {
		last["thoughtSignature"] = sign
	}
	add(googleFinish(turn), last)
	return frames
}

// googleStatuses are the names of the statuses.
var googleStatuses = map[int]string{
	400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND", 409: "ABORTED",
	429: "RESOURCE_EXHAUSTED", 499: "CANCELLED", 500: "INTERNAL", 503: "UNAVAILABLE", 504: "DEADLINE_EXCEEDED",
}

func googleUsual(code int) (kind, message string) {
	if kind = googleStatuses[code]; kind == "" {
		kind = "UNKNOWN"
	}
	switch {
	case code == 400:
		message = "Request contains an invalid argument."
	case code == 401:
		message = "Request had invalid authentication credentials. Expected OAuth 2 access token, login cookie or other valid authentication credential."
	case code == 403:
		message = "Your project has been denied access. Please contact support."
	case code == 404:
		message = "models/unknown is not found for API version v1beta, or is not supported for generateContent."
	case code == 429:
		message = "Resource has been exhausted (e.g. check quota)."
	case code == 500:
		message = "An internal error has occurred. Please retry or report in https://developers.generativeai.google/guide/troubleshooting"
	case code >= 500:
		kind, message = "UNAVAILABLE", "The model is overloaded. Please try again later."
	default:
		message = "The request cannot be served."
	}
	return kind, message
}

// googleError is the body of an error; retry is how long to wait, as a duration.
func googleError(e *refusal, retry string) []byte {
	details := []obj{}
	if e.errCode != "" {
		details = append(details, obj{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": e.errCode, "domain": "googleapis.com"})
	}
	if retry != "" {
		details = append(details, obj{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": retry})
	}
	body := obj{"code": e.code, "message": e.message, "status": e.kind}
	if len(details) > 0 {
		body["details"] = details
	}
	return encode(obj{"error": body})
}

// googleFault answers with a scripted status. The time to wait is in the body; a header is only used for what is not a duration.
func (s *Server) googleFault(w http.ResponseWriter, f *Fault) {
	retry, header := "", *f
	if seconds, err := strconv.ParseFloat(f.RetryAfter, 64); err == nil && seconds >= 0 && seconds < 1e6 {
		retry, header.RetryAfter = f.RetryAfter+"s", ""
	}
	if f.RetryAfterMS > 0 {
		retry = strconv.FormatFloat(float64(f.RetryAfterMS)/1000, 'f', -1, 64) + "s"
		header.RetryAfter, header.RetryAfterMS = "", 0
	}
	if retry == "" || f.Body != "" {
		s.refuseFault(w, Google, &header)
		return
	}
	kind, message := googleUsual(f.Code)
	e := &refusal{code: f.Code, kind: cmp.Or(f.Type, kind), message: cmp.Or(f.Message, message), errCode: f.ErrCode}
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	w.WriteHeader(f.Code)
	_, _ = w.Write(googleError(e, retry))
}

// googleErrorFrame is an error in the stream. Scripts name it in Anthropic's or Google's terms.
func googleErrorFrame(f *Fault) frame {
	code := map[string]int{
		"rate_limit_error": 429, "invalid_request_error": 400, "authentication_error": 401, "permission_error": 403, "api_error": 500,
	}[f.Type]
	for n, status := range googleStatuses {
		if f.Type == status {
			code = n
		}
	}
	if code == 0 {
		code = 503
	}
	kind, message := googleUsual(code)
	return frame{data: googleError(&refusal{code: code, kind: kind, message: cmp.Or(f.Message, message), errCode: f.ErrCode}, "")}
}
