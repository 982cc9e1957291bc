package web

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Provider is one configured search provider.
type Provider struct {
	Name string
	Type string // one of Types; "" derives it from the name
	Key  string
	URL  string // "": the provider's own
}

// Types returns the kinds of providers, in the order in which they
// are tried if only the environment names them.
func Types() []string { return []string{"brave", "tavily", "exa", "kagi", "searxng"} }

// Variables returns the environment variables that hold a provider's key, or for searxng its address.
func Variables(kind string) []string {
	switch kind {
	case "brave":
		return []string{"BRAVE_API_KEY", "BRAVE_SEARCH_API_KEY"}
	case "searxng":
		return []string{"SEARXNG_URL"}
	}
	return []string{strings.ToUpper(kind) + "_API_KEY"}
}

// FromEnvironment returns the providers that the usual variables name.
func FromEnvironment(env func(string) string) []Provider {
	var out []Provider
	for _, kind := range Types() {
		for _, name := range Variables(kind) {
			value := strings.TrimSpace(env(name))
			if value == "" {
				continue
			}
			p := Provider{Name: kind, Type: kind, Key: value}
			if kind == "searxng" {
				p.Key, p.URL = "", value
			}
			out = append(out, p)
			break
		}
	}
	return out
}

// wire says how to talk to one kind of provider.
type wire struct {
	request func(context.Context, Provider, searchIn) (*http.Request, error)
	results func(data []byte) ([]result, error)
	hint    string // what a refusal often means besides a wrong key
}

var wires = map[string]wire{
	"brave":   {request: braveRequest, results: braveResults},
	"tavily":  {request: tavilyRequest, results: tavilyResults},
	"exa":     {request: exaRequest, results: exaResults},
	"kagi":    {request: kagiRequest, results: kagiResults},
	"searxng": {request: searxngRequest, results: searxngResults, hint: "its settings.yml must name json under search.formats"},
}

// refusal returns what an answer without results means.
func (w wire) refusal(status int, data []byte) error {
	why := said(data)
	switch {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		why = "it refuses the request; " + cmp.Or(w.hint, "check its key") + closed(why)
	case status == http.StatusTooManyRequests || status == 432 || status == 433: // Tavily has its own codes for used-up plans
		why = "its limit of requests is reached" + closed(why)
	default:
		why = fmt.Sprintf("it answered with status %d", status) + closed(why)
	}
	return errors.New(why)
}

// closed returns a reason in brackets, or nothing.
func closed(why string) string {
	if why == "" {
		return ""
	}
	return " (" + why + ")"
}

func get(ctx context.Context, base, path string, query url.Values) (*http.Request, error) {
	u, err := url.Parse(base)
	if err != nil {
		return nil, fmt.Errorf("its url is not an address: %w", err)
	}
	if path != "" {
		u = u.JoinPath(path)
	}
	u.RawQuery = query.Encode()
	return http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
}

func post(ctx context.Context, address string, body any) (*http.Request, error) {
	data, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("its url is not an address: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	return req, nil
}

func braveRequest(ctx context.Context, p Provider, in searchIn) (*http.Request, error) {
	query := url.Values{"q": {in.Query}, "count": {strconv.Itoa(in.Count)}, "text_decorations": {"false"}}
	if in.Freshness != "" {
		query.Set("freshness", "p"+in.Freshness[:1]) // pd, pw, pm, py
	}
	req, err := get(ctx, cmp.Or(p.URL, "https://api.search.brave.com/res/v1/web/search"), "", query)
	if err == nil {
		req.Header.Set("X-Subscription-Token", p.Key)
	}
	return req, err
}

func braveResults(data []byte) ([]result, error) {
	var answer struct {
		Web struct {
			Results []struct {
				Title, URL, Description string
				PageAge                 string `json:"page_age"`
			}
		}
	}
	err := json.Unmarshal(data, &answer)
	var out []result
	for _, r := range answer.Web.Results {
		out = append(out, result{r.Title, r.URL, r.Description, day(r.PageAge)})
	}
	return out, err
}

func tavilyRequest(ctx context.Context, p Provider, in searchIn) (*http.Request, error) {
	body := map[string]any{"query": in.Query, "max_results": in.Count, "search_depth": "basic"}
	if in.Freshness != "" {
		body["time_range"] = in.Freshness
	}
	req, err := post(ctx, cmp.Or(p.URL, "https://api.tavily.com/search"), body)
	if err == nil {
		req.Header.Set("Authorization", "Bearer "+p.Key)
	}
	return req, err
}

func tavilyResults(data []byte) ([]result, error) {
	var answer struct {
		Results []struct {
			Title, URL, Content string
			Published           string `json:"published_date"`
		}
	}
	err := json.Unmarshal(data, &answer)
	var out []result
	for _, r := range answer.Results {
		out = append(out, result{r.Title, r.URL, r.Content, day(r.Published)})
	}
	return out, err
}

func exaRequest(ctx context.Context, p Provider, in searchIn) (*http.Request, error) {
	body := map[string]any{"query": in.Query, "numResults": in.Count, "contents": map[string]any{"highlights": true}}
	if days := slices.Index([]string{"day", "week", "month", "year"}, in.Freshness); days >= 0 {
		since := time.Now().AddDate(0, 0, -[]int{1, 7, 31, 366}[days])
		body["startPublishedDate"] = since.UTC().Format(time.RFC3339)
	}
	req, err := post(ctx, cmp.Or(p.URL, "https://api.exa.ai/search"), body)
	if err == nil {
		req.Header.Set("x-api-key", p.Key)
	}
	return req, err
}

func exaResults(data []byte) ([]result, error) {
	var answer struct {
		Results []struct {
			Title, URL, Text string
			Highlights       []string
			PublishedDate    string
		}
	}
	err := json.Unmarshal(data, &answer)
	var out []result
	for _, r := range answer.Results {
		out = append(out, result{r.Title, r.URL, cmp.Or(strings.Join(r.Highlights, " … "), r.Text), day(r.PublishedDate)})
	}
	return out, err
}

func kagiRequest(ctx context.Context, p Provider, in searchIn) (*http.Request, error) {
	// The API has no date filter, but its query language has one.
	if days := slices.Index([]string{"day", "week", "month", "year"}, in.Freshness); days >= 0 {
		in.Query += " after:" + time.Now().AddDate(0, 0, -[]int{1, 7, 31, 366}[days]).UTC().Format(time.DateOnly)
	}
	req, err := get(ctx, cmp.Or(p.URL, "https://kagi.com/api/v0/search"), "", url.Values{"q": {in.Query}, "limit": {strconv.Itoa(in.Count)}})
	if err == nil {
		req.Header.Set("Authorization", "Bot "+p.Key)
	}
	return req, err
}

func kagiResults(data []byte) ([]result, error) {
	var answer struct {
		Data []struct {
			T                              int // 0 is a result; others are related searches
			Title, URL, Snippet, Published string
		}
	}
	err := json.Unmarshal(data, &answer)
	var out []result
	for _, r := range answer.Data {
		if r.T == 0 && r.URL != "" {
			out = append(out, result{r.Title, r.URL, r.Snippet, day(r.Published)})
		}
	}
	return out, err
}

func searxngRequest(ctx context.Context, p Provider, in searchIn) (*http.Request, error) {
	query := url.Values{"q": {in.Query}, "format": {"json"}}
	if in.Freshness != "" {
		query.Set("time_range", in.Freshness)
	}
	req, err := get(ctx, p.URL, "search", query)
	if err == nil && p.Key != "" { // for an instance behind a proxy that requires it
		req.Header.Set("Authorization", "Bearer "+p.Key)
	}
	return req, err
}

func searxngResults(data []byte) ([]result, error) {
	var answer struct {
		Results []struct{ Title, URL, Content, PublishedDate string }
	}
	err := json.Unmarshal(data, &answer)
	var out []result
	for _, r := range answer.Results {
		out = append(out, result{r.Title, r.URL, r.Content, day(r.PublishedDate)})
	}
	return out, err
}

// day returns the day of a date as providers write it, or "".
func day(text string) string {
	if len(text) < len(time.DateOnly) {
		return ""
	}
	if at, err := time.Parse(time.DateOnly, text[:len(time.DateOnly)]); err == nil {
		return at.Format(time.DateOnly)
	}
	if at, err := time.Parse(time.RFC1123, text); err == nil {
		return at.Format(time.DateOnly)
	}
	return ""
}
