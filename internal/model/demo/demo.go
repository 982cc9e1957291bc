package demo

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"sync"

	"chorus/internal/chat"
	"chorus/internal/digest"
	"chorus/internal/model"
	"chorus/internal/pattern"
	"chorus/internal/untrusted"
)

// Provider answers as demo/echo, demo/guide or demo/script.
type Provider struct {
	mu     sync.Mutex
	failed map[string]int // how often "fail … once" has failed, by request and line
}

var _ model.Model = (*Provider)(nil)

// New returns a provider without memory.
func New() *Provider { return &Provider{failed: map[string]int{}} }

// Models lists the three models; it cannot fail.
func (p *Provider) Models(context.Context) ([]string, error) {
	return []string{"echo", "guide", "script"}, nil
}

// toolNames maps a request's tools to the names of their parameters.
type toolNames map[string][]string

// Prepare writes the request as readable JSON, from which Stream works.
func (p *Provider) Prepare(r model.Request) (model.Prepared, error) {
	switch r.Model {
	case "echo", "guide", "script":
	default:
		return model.Prepared{}, &model.Error{
			Kind: model.BadRequest, Provider: "demo", Model: r.Model,
			Message: "there is no such demo model; use demo/echo, demo/guide or demo/script",
		}
	}
	var body bytes.Buffer
	fmt.Fprintf(&body, `{"model":%q`, r.Model)
	if r.Head != nil {
		tools, err := r.Head.Encoded("demo", encodeTools)
		if err != nil {
			return model.Prepared{}, badRequest(r.Model, err)
		}
		body.WriteString(`,"tools":`)
		body.Write(tools)
	}
	body.WriteString(`,"messages":[`)
	for i, m := range r.Messages {
		wire, err := m.Encoded("demo", func(m *model.Message) (model.Wire, error) {
			data, err := m.Fragment()
			return model.Wire{Bytes: data}, err
		})
		if err != nil {
			return model.Prepared{}, badRequest(r.Model, err)
		}
		if i > 0 {
			body.WriteByte(',')
		}
		body.Write(wire.Bytes)
	}
	body.WriteString("]}")
	return model.Prepared{Model: r.Model, Body: body.Bytes(), Estimate: model.Tokens(body.Len()), Prefill: r.Prefill}, nil
}

func badRequest(name string, err error) *model.Error {
	return &model.Error{Kind: model.BadRequest, Provider: "demo", Model: name, Message: err.Error(), Err: err}
}

func encodeTools(h *model.Head) ([]byte, error) {
	names := toolNames{}
	for _, t := range h.Tools {
		var schema struct {
			Properties map[string]json.RawMessage `json:"properties"`
		}
		if len(t.Schema) > 0 {
			if err := json.Unmarshal(t.Schema, &schema); err != nil {
				return nil, fmt.Errorf("schema of tool %s: %w", t.Name, err)
			}
		}
		names[t.Name] = []string{}
		for p := range schema.Properties {
			names[t.Name] = append(names[t.Name], p)
		}
	}
	for _, p := range names {
		slices.Sort(p)
	}
	return json.Marshal(names)
}

// talk is a prepared request, decoded as far as the demo models need it.
type talk struct {
	Tools    toolNames `json:"tools"`
	Messages []turn    `json:"messages"`
}

type turn struct {
	Role   model.Role  `json:"role"`
	Blocks chat.Blocks `json:"blocks"`
}

// said returns what a person wrote in this turn, or "" for results and answers.
func (t turn) said() string {
	if t.Role != model.User {
		return ""
	}
	text := t.Blocks.Text()
	if at := speaker().FindAllStringIndex(text, -1); at != nil { // the last one in a turn of several messages
		text = text[at[len(at)-1][1]:]
	}
	return text
}

// speaker matches how a dispatcher's messages begin.
var speaker = pattern.Lazy(`(?m)^\[from [^\]\n]*\]: `)

// result returns the text of the tool results in this turn, and whether there are any.
func (t turn) result() (text string, failed, ok bool) {
	var out []string
	for _, b := range t.Blocks {
		if r, is := b.(chat.ToolResult); is {
			said := r.Blocks.Text()
			if _, inner, framed := untrusted.Open(said); framed {
				said = inner
			}
			out, ok, failed = append(out, said), true, failed || r.Failed
		}
	}
	return strings.Join(out, "\n"), failed, ok
}

func (t turn) resultText() string {
	text, _, _ := t.result()
	return text
}

// Stream answers.
func (p *Provider) Stream(ctx context.Context, prep model.Prepared) iter.Seq2[model.Chunk, error] {
	return func(yield func(model.Chunk, error) bool) {
		var t talk
		if err := json.Unmarshal(prep.Body, &t); err != nil {
			yield(nil, badRequest(prep.Model, fmt.Errorf("read the request: %w", err)))
			return
		}
		play := &player{
			ctx: ctx, yield: yield, model: prep.Model, id: digest.Of(prep.Body)[:12],
			failing: p.fails, chunk: defaultChunk,
			usage: chat.Usage{Input: model.Tokens(len(prep.Body))},
		}
		play.run(t.answer(prep.Model, prep.Prefill))
	}
}

// fails counts a failure of this request at this line and reports whether it still has to fail.
func (p *Provider) fails(key string, times int) bool {
	if times == 0 {
		return true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.failed) > 4096 {
		clear(p.failed) // enough for a test suite; forgetting only causes one more failure
	}
	p.failed[key]++
	return p.failed[key] <= times
}

// last returns the text of the newest tool result.
func (t talk) last() string {
	for i := len(t.Messages) - 1; i >= 0; i-- {
		if text, _, ok := t.Messages[i].result(); ok {
			return text
		}
	}
	return ""
}

// answer returns the step to play.
func (t talk) answer(name, prefill string) []directive {
	if name != "echo" {
		if step, ok := t.scripted(name == "script"); ok {
			return step
		}
	}
	prompt := ""
	for i := len(t.Messages) - 1; i >= 0 && prompt == ""; i-- {
		prompt = strings.TrimSpace(t.Messages[i].said())
	}
	if name == "guide" {
		return t.guide(prompt)
	}
	prompt = cmp.Or(prompt, "(nothing was said)")
	if prefill != "" {
		prompt = strings.TrimPrefix(prompt, prefill)
	}
	return saying(prompt)
}

// scripted finds the newest script and the step whose turn it is.
func (t talk) scripted(whole bool) ([]directive, bool) {
	answers := 0
	plain := false // something was said after the script
	for i := len(t.Messages) - 1; i >= 0; i-- {
		m := t.Messages[i]
		if m.Role == model.Assistant {
			answers++
			continue
		}
		text := m.said()
		if text == "" {
			continue
		}
		s, err := findScript(text, whole)
		if err != nil {
			// Reported once; a later message is not answered with an old mistake.
			return saying(err.Error()), answers == 0
		}
		if s == nil {
			plain = plain || answers == 0
			continue
		}
		if step, ok := s.step(answers); ok {
			return t.filled(step, t.Messages[i+1:]), true
		}
		if plain {
			return nil, false
		}
		return saying("done"), true
	}
	return nil, false
}

// filled puts tool results where the script wants them. since is what came after it.
func (t talk) filled(step []directive, since []turn) []directive {
	out := slices.Clone(step)
	for i, d := range out {
		if d.verb == vSay {
			out[i].text = strings.ReplaceAll(d.text, "{{last}}", t.last())
		}
		if d.verb == vSay || d.verb == vCall {
			out[i].text = resultField().ReplaceAllStringFunc(out[i].text, func(wish string) string { return fieldOf(wish, since) })
		}
	}
	return out
}

// resultField matches a reference to a part of a result, such as {{result 1 items.0.id}}.
var resultField = pattern.Lazy(`\{\{result (\d{1,3}) ([A-Za-z0-9_.]+)\}\}`)

// fieldOf returns the part of a result that a script refers to. A
// reference to a missing part stays as written.
func fieldOf(wish string, since []turn) string {
	parts := resultField().FindStringSubmatch(wish)
	number, _ := strconv.Atoi(parts[1]) // the expression only matches digits
	var results []string
	for _, m := range since {
		for _, b := range m.Blocks {
			if r, ok := b.(chat.ToolResult); ok {
				results = append(results, turn{Blocks: chat.Blocks{r}}.resultText())
			}
		}
	}
	if number < 1 || number > len(results) {
		return wish
	}
	var v any
	if json.Unmarshal([]byte(results[number-1]), &v) != nil {
		return wish
	}
	for name := range strings.SplitSeq(parts[2], ".") {
		switch in := v.(type) {
		case map[string]any:
			v = in[name]
		case []any:
			at, err := strconv.Atoi(name)
			if err != nil || at >= len(in) {
				return wish
			}
			v = in[at]
		default:
			return wish
		}
	}
	if text, ok := v.(string); ok {
		return text
	}
	return wish
}
