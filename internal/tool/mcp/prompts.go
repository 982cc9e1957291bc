package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Prompt is a text that a server offers and that people ask for: /server:name ARGUMENTS.
type Prompt struct {
	Server    string
	Name      string
	About     string
	Arguments []PromptArgument
}

// PromptArgument is an argument of a prompt.
type PromptArgument struct {
	Name     string
	About    string
	Required bool
}

// String returns how to ask for the prompt.
func (p Prompt) String() string {
	out := "/" + p.Server + ":" + p.Name
	for _, a := range p.Arguments {
		if a.Required {
			out += " " + strings.ToUpper(a.Name)
		} else {
			out += " [" + strings.ToUpper(a.Name) + "]"
		}
	}
	return out
}

const (
	mostPrompts   = 200     // of one server
	largestPrompt = 100_000 // characters of an expanded prompt
)

// Prompts lists the prompts of the servers, sorted by how they are asked
// for. It leaves out servers that do not answer.
func (h *Hub) Prompts(ctx context.Context) (out []Prompt) {
	h.Start()
	h.settle(ctx)
	lists := make([][]Prompt, len(h.servers))
	var group sync.WaitGroup
	for i, s := range h.servers {
		group.Go(func() { lists[i], _ = s.prompts(ctx) })
	}
	group.Wait()
	out = slices.Concat(lists...)
	slices.SortFunc(out, func(a, b Prompt) int { return cmp.Or(cmp.Compare(a.Server, b.Server), cmp.Compare(a.Name, b.Name)) })
	return out
}

func (s *server) prompts(ctx context.Context) (out []Prompt, _ error) {
	failed, err := s.do(ctx, func(ctx context.Context, l *live) error {
		if caps := l.session.InitializeResult().Capabilities; caps == nil || caps.Prompts == nil {
			return nil
		}
		return pages(func(cursor string) (string, error) {
			res, err := l.session.ListPrompts(ctx, &sdk.ListPromptsParams{Cursor: cursor})
			if err != nil {
				return "", err
			}
			for _, p := range res.Prompts {
				if p == nil || p.Name == "" || len(out) == mostPrompts {
					continue
				}
				one := Prompt{Server: s.key, Name: p.Name, About: printable(cmp.Or(p.Description, p.Title), 300)}
				for _, a := range p.Arguments {
					if a != nil {
						one.Arguments = append(one.Arguments, PromptArgument{a.Name, printable(a.Description, 200), a.Required})
					}
				}
				out = append(out, one)
			}
			return res.NextCursor, nil
		})
	})
	if err == nil && failed != "" {
		err = errors.New(failed)
	}
	return out, err
}

// Has reports whether a name means one of the servers.
func (h *Hub) Has(server string) bool { return h.server(server) != nil }

// Prompt fetches a server's prompt, filled in with what a person wrote
// after its name. An error is for that person.
func (h *Hub) Prompt(ctx context.Context, server, name, words string) (string, error) {
	h.Start()
	s := h.server(server)
	if s == nil {
		return "", fmt.Errorf("there is no MCP server %s", printable(server, 60))
	}
	known, err := s.prompts(ctx)
	if err != nil {
		return "", err
	}
	i := slices.IndexFunc(known, func(p Prompt) bool { return strings.EqualFold(p.Name, name) })
	if i < 0 {
		var names []string
		for _, p := range known {
			names = append(names, p.String())
		}
		return "", fmt.Errorf("the MCP server %s has no prompt %s; it has: %s", s.Name, printable(name, 60), cmp.Or(strings.Join(names, ", "), "none"))
	}
	args, err := known[i].fill(words)
	if err != nil {
		return "", err
	}
	var res *sdk.GetPromptResult
	failed, err := s.do(ctx, func(ctx context.Context, l *live) (err error) {
		res, err = l.session.GetPrompt(ctx, &sdk.GetPromptParams{Name: known[i].Name, Arguments: args})
		return err
	})
	switch {
	case err != nil:
		return "", err
	case failed != "":
		return "", errors.New(failed)
	}
	return promptText(res), nil
}

// promptText returns a prompt's messages as one text.
func promptText(res *sdk.GetPromptResult) string {
	var a answer
	for _, m := range res.Messages {
		if m == nil {
			continue
		}
		if m.Role == "assistant" {
			a.say("(as an answer)")
		}
		a.call(&sdk.CallToolResult{Content: []sdk.Content{m.Content}})
	}
	if len(a.images) > 0 {
		a.say("(%d pictures, which are left out)", len(a.images))
	}
	return multiline(strings.Join(a.text, "\n"), largestPrompt)
}

// fill assigns words to arguments: NAME=VALUE by name, the others in order. The last argument gets the rest.
func (p Prompt) fill(words string) (map[string]string, error) {
	out := map[string]string{}
	var plain []string
	for _, word := range splitWords(words) {
		name, value, ok := strings.Cut(word, "=")
		if i := slices.IndexFunc(p.Arguments, func(a PromptArgument) bool { return a.Name == name }); ok && i >= 0 {
			out[name] = value
			continue
		}
		plain = append(plain, word)
	}
	open := slices.DeleteFunc(slices.Clone(p.Arguments), func(a PromptArgument) bool { _, given := out[a.Name]; return given })
	for i, a := range open {
		switch {
		case len(plain) == 0 && a.Required:
			return nil, fmt.Errorf("%s is missing: %s", a.Name, p)
		case len(plain) == 0:
		case i == len(open)-1:
			out[a.Name], plain = strings.Join(plain, " "), nil
		default:
			out[a.Name], plain = plain[0], plain[1:]
		}
	}
	if len(plain) > 0 {
		return nil, fmt.Errorf("%q is too much: %s", strings.Join(plain, " "), p)
	}
	return out, nil
}

// splitWords splits at spaces, except within double quotes.
func splitWords(text string) (out []string) {
	var word strings.Builder
	quoted, begun := false, false
	for _, r := range text {
		switch {
		case r == '"':
			quoted, begun = !quoted, true
		case !quoted && (r == ' ' || r == '\n' || r == '\t'):
			if begun {
				out = append(out, word.String())
			}
			word.Reset()
			begun = false
		default:
			word.WriteRune(r)
			begun = true
		}
	}
	if begun {
		out = append(out, word.String())
	}
	return out
}
