package format

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"chorus/internal/chat"
	"chorus/internal/digest"
	"chorus/internal/model/wire"
)

// event is one event of a Responses stream, with the fields that are used.
type event struct {
	Type     string    `json:"type"`
	Output   int       `json:"output_index"`
	Summary  int       `json:"summary_index"`
	Delta    text      `json:"delta"`
	Item     item      `json:"item"`
	Response *response `json:"response"`

	// Of an error.
	Code    text            `json:"code"`
	Message text            `json:"message"`
	Error   json.RawMessage `json:"error"`
}

// item is one item of the model's output.
type item struct {
	Type      text `json:"type"`
	ID        text `json:"id"`
	CallID    text `json:"call_id"`
	Name      text `json:"name"`
	Arguments text `json:"arguments"`
	Encrypted text `json:"encrypted_content"`
	Content   []struct {
		Type    text `json:"type"`
		Text    text `json:"text"`
		Refusal text `json:"refusal"`
	} `json:"content"`
	Summary []struct {
		Text text `json:"text"`
	} `json:"summary"`
}

type response struct {
	ID         string `json:"id"`
	Status     string `json:"status"`
	Incomplete *struct {
		Reason string `json:"reason"`
	} `json:"incomplete_details"`
	Error *struct {
		Code    text `json:"code"`
		Message text `json:"message"`
	} `json:"error"`
	Usage *struct {
		Input   int `json:"input_tokens"`
		Output  int `json:"output_tokens"` // includes reasoning
		Details struct {
			Cached  int `json:"cached_tokens"`
			Written int `json:"cache_write_tokens"`
		} `json:"input_tokens_details"`
	} `json:"usage"`
}

// responsesAnswer is an answer of the Responses API.
type responsesAnswer struct {
	answer
	byIndex map[int]*part
	summary map[*part]int // the paragraph that a summary is in
}

// Responses reads an answer of the Responses API. It is complete at its last
// event, which says how it ended; there is no [DONE].
func (s Stream) Responses(body io.Reader) {
	a := responsesAnswer{answer: s.answer(), byIndex: map[int]*part{}, summary: map[*part]int{}}
	events := wire.NewEvents(body)
	for events.Next() {
		data := bytes.TrimSpace(events.Data)
		if len(data) == 0 || bytes.HasPrefix(data, []byte("[DONE]")) {
			continue // some intermediate servers end every stream with it
		}
		var ev event
		if err := json.Unmarshal(data, &ev); err != nil {
			if !a.Yield(wire.Unreadable(data), nil) {
				return
			}
			continue
		}
		ev.Type = cmp.Or(ev.Type, events.Type)
		if ev.Response != nil && a.id == "" {
			a.id = ev.Response.ID
		}
		switch ev.Type {
		case "error", "response.failed":
			a.fail(a.Side.Event(ev.report(data)))
			return
		case "response.completed", "response.incomplete", "response.done":
			a.close(ev.Response)
			return
		}
		if len(ev.Error) > 0 && string(ev.Error) != "null" {
			a.fail(a.Side.Event(Report(data)))
			return
		}
		if !a.take(ev) {
			return
		}
	}
	a.end(events.Err())
}

// report returns what an error event says: about the answer, at its top, or inside.
func (ev event) report(data []byte) wire.Report {
	code, message := string(ev.Code), string(ev.Message)
	if ev.Response != nil && ev.Response.Error != nil {
		code, message = string(ev.Response.Error.Code), string(ev.Response.Error.Message)
	}
	if code == "" && message == "" {
		if len(ev.Error) > 0 && string(ev.Error) != "null" {
			return Report(data)
		}
		message = "the answer failed, and no reason was given"
	}
	switch code {
	case "invalid_prompt", "invalid_image", "invalid_image_format", "invalid_base64_image", "image_too_large", "empty_image_file":
		return wire.Report{Type: "invalid_request_error", Code: code, Message: message}
	}
	return wire.Report{Type: code, Code: code, Message: message}
}

// take handles one event. It returns false if nobody listens any more.
// It skips events that only repeat the deltas.
func (a *responsesAnswer) take(ev event) bool {
	switch ev.Type {
	case "response.output_item.added":
		return a.open(ev.Output, ev.Item) != nil
	case "response.output_text.delta":
		p := a.part(ev.Output, saying)
		return p != nil && a.say(p, string(ev.Delta))
	case "response.refusal.delta":
		a.refused = true
		p := a.part(ev.Output, saying)
		return p != nil && a.say(p, string(ev.Delta))
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		return a.reason(ev)
	case "response.function_call_arguments.delta":
		p := a.part(ev.Output, calling)
		return p != nil && (ev.Delta == "" || a.args(p, string(ev.Delta)))
	case "response.output_item.done":
		return a.finishItem(ev)
	}
	return true
}

// open begins an item's part. It returns nil if nobody listens. Items that
// we did not request get a part that nobody sees.
func (a *responsesAnswer) open(index int, it item) *part {
	p := &part{order: index}
	switch it.Type {
	case "function_call":
		p.kind, p.id, p.name = calling, string(it.CallID), string(it.Name)
		if p.id == "" {
			p.id = fmt.Sprintf("call_%s_%d", a.id, a.calls+1)
		}
	case "reasoning":
		p.kind = thinking
	}
	a.byIndex[index] = a.add(p)
	if p.kind == calling && !a.args(p, "") {
		return nil
	}
	return p
}

// part returns the part at an index, and begins one that was not announced.
func (a *responsesAnswer) part(index int, kind partKind) *part {
	if p := a.byIndex[index]; p != nil && p.kind == kind {
		return p
	}
	return a.open(index, item{Type: map[partKind]text{saying: "message", thinking: "reasoning", calling: "function_call"}[kind]})
}

// reason adds to a summary and separates its paragraphs.
func (a *responsesAnswer) reason(ev event) bool {
	p := a.part(ev.Output, thinking)
	if ev.Delta == "" {
		return true
	}
	if a.summary[p] != ev.Summary && p.text.Len() > 0 && !a.think(p, "\n\n") {
		return false
	}
	a.summary[p] = ev.Summary
	return a.think(p, string(ev.Delta))
}

// finishItem takes what did not come before from a finished item: reasoning as it must be
// sent back, and everything from servers that do not stream the item.
func (a *responsesAnswer) finishItem(ev event) bool {
	it := ev.Item
	switch it.Type {
	case "reasoning":
		p := a.part(ev.Output, thinking)
		if it.Encrypted != "" {
			p.sealed = joinReasoning(string(it.ID), string(it.Encrypted))
		}
		for i, s := range it.Summary {
			if p.text.Len() > 0 && a.summary[p] >= i {
				continue
			}
			if !a.reason(event{Output: ev.Output, Summary: i, Delta: s.Text}) {
				return false
			}
		}
	case "function_call":
		p := a.byIndex[ev.Output]
		if p == nil || p.kind != calling {
			if p = a.open(ev.Output, it); p == nil {
				return false
			}
		}
		if p.text.Len() == 0 && it.Arguments != "" {
			return a.args(p, string(it.Arguments))
		}
	case "message":
		p := a.part(ev.Output, saying)
		if p.text.Len() > 0 {
			return true
		}
		for _, c := range it.Content {
			a.refused = a.refused || c.Refusal != ""
			if !a.say(p, string(c.Text+c.Refusal)) {
				return false
			}
		}
	}
	return true
}

// joinReasoning returns a reasoning item as it is stored: its id must be sent back with its content.
func joinReasoning(id, encrypted string) string {
	if id == "" || strings.Contains(id, ":") {
		return ResponsesTag + encrypted
	}
	return ResponsesTag + id + ":" + encrypted
}

// CutReasoning splits a stored reasoning item, given without its tag, into id and content. An
// item that was stored without an id gets one that is always the same.
func CutReasoning(kept string) (id, encrypted string) {
	if id, encrypted, ok := strings.Cut(kept, ":"); ok {
		return id, encrypted
	}
	return "rs_" + digest.Of(kept)[:32], kept
}

// close handles the last event. The parts are in the model's order.
func (a *responsesAnswer) close(r *response) {
	a.finish = "stop"
	if r != nil {
		if u := r.Usage; u != nil {
			a.usage = chat.Usage{Output: max(u.Output, 0), CacheRead: max(u.Details.Cached, 0), CacheWrite: max(u.Details.Written, 0)}
			a.usage.Input = max(u.Input-a.usage.CacheRead-a.usage.CacheWrite, 0)
		}
		if r.Status == "incomplete" || r.Incomplete != nil {
			a.finish = "length"
			if r.Incomplete != nil && r.Incomplete.Reason == "content_filter" {
				a.finish = "content_filter"
			}
		}
	}
	slices.SortStableFunc(a.parts, func(x, y *part) int { return cmp.Compare(x.order, y.order) })
	a.whole()
}
