package compat

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"chorus/internal/feed"
)

// answer collects a completion, or sends it piece by piece.
type answer struct {
	w         http.ResponseWriter
	control   *http.ResponseController
	heartbeat time.Duration
	stream    bool
	usage     bool // at the end of a stream
	id        string
	model     string
	created   int64

	whole strings.Builder
	begun bool // something was written
	gone  bool // nobody reads
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
	Index   int     `json:"index"`
	Message *spoken `json:"message,omitempty"`
	Delta   *spoken `json:"delta,omitempty"`
	Finish  *string `json:"finish_reason"`
}

type spoken struct {
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

func (a *answer) made(object string, choices ...choice) completion {
	if choices == nil {
		choices = []choice{}
	}
	return completion{ID: a.id, Object: object, Created: a.created, Model: a.model, Choices: choices}
}

// text takes the next piece.
func (a *answer) text(piece string) {
	if !a.stream {
		a.whole.WriteString(piece)
		return
	}
	a.chunk(choice{Delta: &spoken{Content: &piece}})
}

func (a *answer) chunk(c choice) {
	a.begin()
	a.send(a.made("chat.completion.chunk", c))
}

// begin opens the stream: until then there may still be an error with a status.
func (a *answer) begin() {
	if a.begun {
		return
	}
	a.begun = true
	h := a.w.Header()
	h.Set("Content-Type", "text/event-stream; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
	a.w.WriteHeader(http.StatusOK)
	empty := ""
	a.send(a.made("chat.completion.chunk", choice{Delta: &spoken{Role: "assistant", Content: &empty}}))
}

func (a *answer) send(v any) {
	data, err := json.Marshal(v)
	if err != nil { // only text and numbers
		a.gone = true
		return
	}
	a.raw("data: " + string(data) + "\n\n")
}

func (a *answer) raw(text string) {
	_ = a.control.SetWriteDeadline(time.Now().Add(patience)) // not every writer can, and then there is none
	_, err := a.w.Write([]byte(text))
	if err == nil {
		err = a.control.Flush()
	}
	a.gone = a.gone || err != nil
}

// beat shows that something still goes on.
func (a *answer) beat() {
	if a.stream {
		a.begin()
		a.raw(": working\n\n")
	}
}

// finish ends the answer. An error comes here only where a stream has begun.
func (a *answer) finish(end turn, err error) {
	if !a.stream {
		text := a.whole.String()
		out := a.made("chat.completion", choice{Message: &spoken{Role: "assistant", Content: &text}, Finish: &end.finish})
		out.Usage = usageOf(end.usage)
		_ = a.control.SetWriteDeadline(time.Now().Add(patience))
		write(a.w, http.StatusOK, out)
		return
	}
	if err != nil {
		_, what := explain(err)
		a.send(map[string]wrong{"error": what})
		return
	}
	a.chunk(choice{Delta: &spoken{}, Finish: &end.finish})
	if a.usage {
		last := a.made("chat.completion.chunk")
		last.Usage = usageOf(end.usage)
		a.send(last)
	}
	a.raw("data: [DONE]\n\n")
}
