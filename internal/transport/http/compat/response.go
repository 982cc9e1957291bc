package compat

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"chorus/internal/feed"
)

// response collects a completion, or streams it.
type response struct {
	w         http.ResponseWriter
	control   *http.ResponseController
	heartbeat time.Duration
	stream    bool
	usage     bool // send usage at the end of a stream
	id        string
	model     string
	created   int64

	collected    strings.Builder
	started      bool // something was written
	disconnected bool // a write failed
}

type completion struct {
	ID      string   `json:"id"`
	Object  string   `json:"object"`
	Created int64    `json:"created"`
	Model   string   `json:"model"`
	Choices []choice `json:"choices"`
	Usage   *usage   `json:"usage,omitempty"`
}

type choice struct {
	Index   int              `json:"index"`
	Message *responseMessage `json:"message,omitempty"`
	Delta   *responseMessage `json:"delta,omitempty"`
	Finish  *string          `json:"finish_reason"`
}

type responseMessage struct {
	Role    string  `json:"role,omitempty"`
	Content *string `json:"content,omitempty"`
}

type usage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Total      int `json:"total_tokens"`
	Details    struct {
		Cached int `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
}

func usageOf(u feed.Usage) *usage {
	out := &usage{Prompt: u.InputTokens + u.CacheReadTokens + u.CacheWriteTokens, Completion: u.OutputTokens}
	out.Total = out.Prompt + out.Completion
	out.Details.Cached = u.CacheReadTokens
	return out
}

func (a *response) completion(object string, choices ...choice) completion {
	if choices == nil {
		choices = []choice{}
	}
	return completion{ID: a.id, Object: object, Created: a.created, Model: a.model, Choices: choices}
}

// text adds a piece of the answer.
func (a *response) text(piece string) {
	if !a.stream {
		a.collected.WriteString(piece)
		return
	}
	a.chunk(choice{Delta: &responseMessage{Content: &piece}})
}

func (a *response) chunk(c choice) {
	a.start()
	a.send(a.completion("chat.completion.chunk", c))
}

// start sends the headers of a stream. Before that an error can still have a status.
func (a *response) start() {
	if a.started {
		return
	}
	a.started = true
	h := a.w.Header()
	h.Set("Content-Type", "text/event-stream; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
	a.w.WriteHeader(http.StatusOK)
	empty := ""
	a.send(a.completion("chat.completion.chunk", choice{Delta: &responseMessage{Role: "assistant", Content: &empty}}))
}

func (a *response) send(v any) {
	data, err := json.Marshal(v)
	if err != nil { // cannot happen: text and numbers only
		a.disconnected = true
		return
	}
	a.raw("data: " + string(data) + "\n\n")
}

func (a *response) raw(text string) {
	_ = a.control.SetWriteDeadline(time.Now().Add(writeTimeout)) // writers that cannot set one have none
	_, err := a.w.Write([]byte(text))
	if err == nil {
		err = a.control.Flush()
	}
	a.disconnected = a.disconnected || err != nil
}

// sendHeartbeat keeps an idle stream open.
func (a *response) sendHeartbeat() {
	if a.stream {
		a.start()
		a.raw(": working\n\n")
	}
}

// finish ends the response. err is set only after a stream has started.
func (a *response) finish(end outcome, err error) {
	if !a.stream {
		text := a.collected.String()
		out := a.completion("chat.completion", choice{Message: &responseMessage{Role: "assistant", Content: &text}, Finish: &end.finish})
		out.Usage = usageOf(end.usage)
		_ = a.control.SetWriteDeadline(time.Now().Add(writeTimeout))
		writeJSON(a.w, http.StatusOK, out)
		return
	}
	if err != nil {
		_, what := toAPIError(err)
		a.send(map[string]apiError{"error": what})
		return
	}
	a.chunk(choice{Delta: &responseMessage{}, Finish: &end.finish})
	if a.usage {
		last := a.completion("chat.completion.chunk")
		last.Usage = usageOf(end.usage)
		a.send(last)
	}
	a.raw("data: [DONE]\n\n")
}
