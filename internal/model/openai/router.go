package openai

import (
	"cmp"
	"strconv"
	"strings"

	"chorus/internal/chat"
	"chorus/internal/model"
	"chorus/internal/model/catalog"
	"chorus/internal/model/openai/format"
)

// Router describes what is different at OpenRouter: reasoning is requested and sent back in its own
// fields, cache marks go to Anthropic's models, and those may be prefilled.
type Router struct {
	// Referer and Title say on whose behalf requests are made; both may be empty.
	Referer, Title string
	// Prefill lets anthropic/* models be prefilled by an assistant message at the end.
	Prefill bool
}

const (
	routerName = "openrouter"
	// anthropics is the prefix of Anthropic's models there.
	anthropics = "anthropic/"
	mark       = `,"cache_control":{"type":"ephemeral"}`
	// maxMarks is how many cache marks Anthropic accepts in one request.
	maxMarks = 4
	// minBudget is the smallest thinking budget of Anthropic's models.
	minBudget = 1_024
)

func (r *Router) defaults(o Options) Options {
	o.Name = cmp.Or(o.Name, routerName)
	o.Catalog = cmp.Or(o.Catalog, routerName)
	o.BaseURL = cmp.Or(o.BaseURL, routerURL())
	return o
}

func routerURL() string { p, _ := catalog.Find(routerName); return p.BaseURL }

func (r *Router) headers() map[string]string {
	out := map[string]string{}
	if r != nil && r.Referer != "" {
		out["HTTP-Referer"] = r.Referer
	}
	if r != nil && r.Title != "" {
		out["X-Title"] = r.Title
	}
	return out
}

func (p *Provider) lookup(name string) (catalog.Entry, bool) {
	return catalog.Lookup(p.opts.Catalog, name)
}

// prefilled returns why a model cannot be prefilled here, or "".
func (p *Provider) prefilled(name string, entry catalog.Entry, known bool) string {
	switch r := p.opts.Router; {
	case r == nil:
		return "no model behind OpenAI's interfaces does"
	case !strings.HasPrefix(name, anthropics):
		return "OpenRouter passes one on only to " + anthropics + "* models"
	case !r.Prefill:
		return "it is not switched on for this vendor"
	case known && !entry.Prefill:
		return "its vendor refuses it"
	}
	return ""
}

// appendRouted writes the settings in OpenRouter's words. OpenRouter itself adapts them to the model, so
// little is omitted. But a budget has to leave room for the answer, and OpenRouter passes on what
// Anthropic rejects: two sampling settings at once, and any while it thinks.
func appendRouted(body *format.Body, s chat.Settings, entry catalog.Entry, known, anthropic bool, maxStop int) {
	limit, budget := s.MaxTokens, 0
	if s.ThinkingBudget > 0 && (entry.Thinking || !known) {
		budget = max(s.ThinkingBudget, minBudget)
		if known {
			budget = min(budget, entry.MaxOutput-1)
		}
		if limit > 0 && limit <= budget {
			limit += budget
		}
	}
	if limit > 0 {
		if known {
			limit = min(limit, entry.MaxOutput)
		}
		body.Int("max_tokens", limit)
	}
	body.Raw("usage", `{"include":true}`)
	thinks := budget > 0 && (limit == 0 || budget < limit)
	if thinks {
		body.Raw("reasoning", `{"max_tokens":`+strconv.Itoa(budget)+`}`)
	}
	switch {
	case entry.NoSampling, anthropic && thinks:
	case anthropic && s.Temperature != nil:
		body.Float("temperature", s.Temperature, 0, 1)
	default:
		body.Float("temperature", s.Temperature, 0, 2)
		body.Float("top_p", s.TopP, 0, 1)
	}
	if !entry.NoSampling && !anthropic {
		body.Float("presence_penalty", s.PresencePenalty, -2, 2)
		body.Float("frequency_penalty", s.FrequencyPenalty, -2, 2)
	}
	body.Stops("stop", s.Stop, maxStop)
}

// unthought reports whether the request continues calls that were made without thinking (by another
// model, or before it was enabled): Anthropic refuses to think in the middle of those.
func unthought(messages []*model.Message) bool {
	for i := len(messages) - 1; i >= 0; i-- {
		m := messages[i]
		switch {
		case m.Role == model.User && m.Blocks.Text() != "":
			return false
		case m.Role == model.Assistant:
			return len(m.Blocks.Calls()) > 0 && format.Details(m.Blocks) == nil
		}
	}
	return false
}
