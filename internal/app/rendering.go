package app

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"chorus/internal/model"
	"chorus/internal/model/anthropic"
	"chorus/internal/model/bedrock"
	"chorus/internal/model/completions"
	"chorus/internal/model/google"
	"chorus/internal/model/ollama"
	"chorus/internal/model/openai"
	"chorus/internal/participants"
	"chorus/internal/suggest"
	"chorus/internal/usage"
)

// rendered are the providers whose requests can be shown without a key: each made with
// a placeholder, since nothing is sent.
var rendered = []struct {
	name  string
	model string // when the request names none
	stops int    // how many stop sequences it takes; 0: any number
	make  func() model.Model
}{
	{"anthropic", "claude-sonnet-4-5", 0, func() model.Model { return anthropic.New(anthropic.Options{APIKey: placeholder}) }},
	{"bedrock", "anthropic.claude-sonnet-4-5", 0, func() model.Model {
		return bedrock.New(bedrock.Options{APIKey: placeholder, Region: "us-east-1", Getenv: func(string) string { return "" }})
	}},
	{"completions", "davinci-002", 4, func() model.Model { return completions.New(completions.Options{APIKey: placeholder}) }},
	{"google", "gemini-2.5-flash", 5, func() model.Model { return google.New(google.Options{APIKey: placeholder}) }},
	{"ollama", "llama3.2", 0, func() model.Model { return ollama.New(ollama.Options{}) }},
	{"openai", "gpt-5-mini", 4, func() model.Model { return openai.New(openai.Options{APIKey: placeholder}) }},
	{"openrouter", "anthropic/claude-sonnet-4.5", 4, func() model.Model {
		return openai.New(openai.Options{Name: "openrouter", APIKey: placeholder, Router: &openai.Router{Title: "Chorus", Prefill: true}})
	}},
}

const placeholder = "no-key-needed"

// Rendering is what a request is rendered with; empty fields are the request's own.
type Rendering struct {
	Mode     string
	Provider string
}

// Render gives the body that would be sent for a participant-based request. It sends
// nothing and reads nothing but data.
func Render(data []byte, o Rendering) ([]byte, error) {
	doc, err := participants.ParseDocument(data)
	if err != nil {
		return nil, err
	}
	bot, err := doc.Bot()
	if err != nil {
		return nil, err
	}
	mode := doc.Config.Mode
	if o.Mode != "" {
		mode = participants.Mode(o.Mode)
	}
	switch mode {
	case "":
		mode = participants.Prefill
	case participants.Prefill, participants.Chat:
	default:
		return nil, &usage.Error{Err: fmt.Errorf("unknown mode %q; there are prefill and chat", mode)}
	}
	name := o.Provider
	if name == "" {
		name = providerOf(doc.Config.Model)
	}
	at := provides(name)
	if at < 0 {
		return nil, unknownProvider(name)
	}
	p := rendered[at]
	r, err := doc.Request()
	if err != nil {
		return nil, err
	}
	if r.Model = strings.TrimPrefix(r.Model, p.name+"/"); r.Model == "" {
		r.Model = p.model
	}
	entry, _ := model.Lookup(p.name, r.Model)
	style := participants.Style{Mode: mode, Bot: bot, StopLimit: p.stops}
	prepared, err := style.Wrap(p.make(), entry).Prepare(r)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := json.Indent(&out, prepared.Body, "", "  "); err != nil {
		return nil, fmt.Errorf("the request for %s is no JSON: %w", p.name, err)
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}

// providerOf is whose a model is: the one before the slash, else the first that knows it.
func providerOf(name string) string {
	if p, _, ok := strings.Cut(name, "/"); ok && provides(p) >= 0 {
		return p
	}
	for _, p := range rendered {
		if _, known := model.Lookup(p.name, name); known {
			return p.name
		}
	}
	return rendered[0].name
}

func provides(name string) int {
	for i, p := range rendered {
		if p.name == name {
			return i
		}
	}
	return -1
}

func unknownProvider(name string) error {
	var names []string
	for _, p := range rendered {
		names = append(names, p.name)
	}
	hint := ""
	if best := suggest.Best(name, names); best != "" {
		hint = fmt.Sprintf("did you mean %s? ", best)
	}
	return &usage.Error{Err: fmt.Errorf("unknown provider %q; %sthere are %s", name, hint, strings.Join(names, ", "))}
}
