package web

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"strings"

	"chorus/internal/pattern"
	"chorus/internal/tool"
)

//go:embed web_search.md
var searchProse string

// Limits of a search.
const (
	usualResults = 8
	mostResults  = 20
	maxExcerpt   = 500     // characters of one result
	maxAnswer    = 2 << 20 // bytes of a provider's answer
)

// HowToConfigure says what to do if no provider is configured.
const HowToConfigure = "no search provider is configured; set BRAVE_API_KEY, TAVILY_API_KEY, EXA_API_KEY, KAGI_API_KEY or SEARXNG_URL, or searchProviders in the configuration"

type searchIn struct {
	Query     string `json:"query" jsonschema:"what to look for"`
	Count     int    `json:"count,omitempty" jsonschema:"results; 8 if left out, at most 20"`
	Freshness string `json:"freshness,omitempty" jsonschema:"only pages of the last day, week, month or year"`
}

// result is one page that was found.
type result struct{ title, url, excerpt, date string }

func (c *Client) searchTool() tool.Tool {
	return tool.New(tool.Func[searchIn]{
		Name: SearchName, Description: searchProse, Risk: tool.Medium, ReadOnly: true,
		Enum:    map[string][]string{"freshness": {"day", "week", "month", "year"}},
		Aliases: []tool.Alias{tool.Also("websearch"), tool.Also("search_web")},
		Access: func(in searchIn) []tool.Access {
			return []tool.Access{{Tool: SearchName, Detail: strings.Join(strings.Fields(in.Query), " ")}}
		},
		Label: func(in searchIn) string { return "search the web for " + strings.Join(strings.Fields(in.Query), " ") },
		Run:   c.runSearch,
	})
}

func (c *Client) runSearch(ctx context.Context, in searchIn) (tool.Result, error) {
	in.Query = strings.Join(strings.Fields(in.Query), " ")
	providers := c.config.Load().Providers
	switch {
	case in.Query == "":
		return tool.Fail("Give words to look for."), nil
	case len(providers) == 0:
		return tool.Fail("The web cannot be searched: " + HowToConfigure + "."), nil
	case c.leaks(in.Query):
		return tool.Fail("The query has a secret of this machine in it, which must not be sent to a search provider. Leave it out."), nil
	}
	if in.Count = min(in.Count, mostResults); in.Count <= 0 {
		in.Count = usualResults
	}
	var problems []string
	for _, p := range providers {
		found, err := c.ask(ctx, p, in)
		if ctx.Err() != nil {
			return tool.Result{}, ctx.Err()
		}
		if err != nil {
			problems = append(problems, p.Name+": "+err.Error())
			continue
		}
		if len(found) == 0 {
			return tool.OK("Nothing was found by " + p.Name + ". Try other or fewer words."), nil
		}
		return tool.From("search results of "+p.Name, list(found[:min(len(found), in.Count)])), nil
	}
	return tool.Fail("The search failed. " + strings.Join(problems, "; ") + "."), nil
}

// ask sends the query to one provider.
func (c *Client) ask(ctx context.Context, p Provider, in searchIn) ([]result, error) {
	ctx, cancel := context.WithTimeout(ctx, searchTime)
	defer cancel()
	wire, ok := wires[cmp.Or(p.Type, p.Name)]
	if !ok {
		return nil, fmt.Errorf("%q is not a kind of search provider", cmp.Or(p.Type, p.Name))
	}
	req, err := wire.request(ctx, p, in)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "Chorus")
	resp, err := c.search.Do(req)
	if err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			return nil, fmt.Errorf("no answer within %v", searchTime)
		}
		return nil, errors.New(strings.TrimPrefix(unreachable(req.URL, err).Error(), req.URL.String()+" "))
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("its answer broke off: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		return nil, wire.refusal(resp.StatusCode, data)
	}
	found, err := wire.results(data)
	if err != nil {
		return nil, fmt.Errorf("its answer cannot be read: %w", err)
	}
	return found, nil
}

// list formats what was found, for the model.
func list(found []result) string {
	var b strings.Builder
	for i, r := range found {
		fmt.Fprintf(&b, "%d. %s\n   %s\n", i+1, cmp.Or(plain(r.title), "(no title)"), r.url)
		excerpt := plain(r.excerpt)
		if runes := []rune(excerpt); len(runes) > maxExcerpt {
			excerpt = string(runes[:maxExcerpt]) + "…"
		}
		if r.date != "" {
			excerpt = strings.TrimSpace("(" + r.date + ") " + excerpt)
		}
		if excerpt != "" {
			fmt.Fprintf(&b, "   %s\n", excerpt)
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}

var tags = pattern.Lazy(`</?[a-zA-Z][^<>]*>`)

// plain returns one line without the marks that providers put around matches.
func plain(text string) string {
	return strings.Join(strings.Fields(html.UnescapeString(tags().ReplaceAllString(text, ""))), " ")
}

// said returns the reason that an answer gives for a refusal, in one of the common formats, or "".
func said(data []byte) string {
	var answer map[string]json.RawMessage
	if json.Unmarshal(data, &answer) != nil {
		return ""
	}
	for _, key := range []string{"message", "detail", "error", "msg"} {
		var text string
		var object struct {
			Message string `json:"message"`
			Detail  string `json:"detail"`
			Error   string `json:"error"`
			Msg     string `json:"msg"`
		}
		var many []struct {
			Msg string `json:"msg"`
		}
		switch {
		case json.Unmarshal(answer[key], &text) == nil && text != "":
		case json.Unmarshal(answer[key], &object) == nil:
			text = cmp.Or(object.Message, object.Detail, object.Error, object.Msg)
		case json.Unmarshal(answer[key], &many) == nil && len(many) > 0:
			text = many[0].Msg
		}
		if text = plain(text); text != "" {
			return string([]rune(text)[:min(len([]rune(text)), 200)])
		}
	}
	return ""
}
