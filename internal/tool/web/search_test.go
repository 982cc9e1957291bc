package web

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"chorus/internal/tool"
)

// providersOf is a server that answers as each of the providers does, to requests that are as theirs must be.
func providersOf(t *testing.T) *httptest.Server {
	t.Helper()
	mux := http.NewServeMux()
	body := func(r *http.Request) map[string]any {
		var out map[string]any
		data, _ := io.ReadAll(r.Body)
		if err := json.Unmarshal(data, &out); err != nil || r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%s: %v %s", r.URL, err, data)
		}
		return out
	}
	mux.HandleFunc("GET /res/v1/web/search", func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		if r.Header.Get("X-Subscription-Token") != "bravekey" {
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, `{"type":"ErrorResponse","error":{"id":"1","status":422,"code":"SUBSCRIPTION_TOKEN_INVALID","detail":"The provided subscription token is invalid."}}`)
			return
		}
		if q.Get("q") != "bees & sun" || q.Get("count") != "3" || q.Get("freshness") != "pw" {
			t.Errorf("brave is asked %s", r.URL)
		}
		fmt.Fprint(w, `{"type":"search","web":{"type":"search","results":[{"title":"Bees &amp; <strong>sun</strong>","url":"https://a.example/1","description":"How <strong>bees</strong> fly","page_age":"2026-02-03T04:05:06","language":"en"}]}}`)
	})
	mux.HandleFunc("POST /tavily", func(w http.ResponseWriter, r *http.Request) {
		if b := body(r); r.Header.Get("Authorization") != "Bearer tvly-key" || b["query"] != "bees & sun" || b["max_results"] != 3.0 || b["time_range"] != "week" {
			t.Errorf("tavily is asked %v", b)
		}
		fmt.Fprint(w, `{"query":"bees","follow_up_questions":null,"answer":null,"images":[],"results":[{"url":"https://a.example/2","title":"Bees","content":"In the hive","score":0.99,"raw_content":null}],"response_time":1.2}`)
	})
	mux.HandleFunc("POST /exa", func(w http.ResponseWriter, r *http.Request) {
		b := body(r)
		if since, _ := b["startPublishedDate"].(string); r.Header.Get("x-api-key") != "exakey" || b["numResults"] != 3.0 || !strings.HasSuffix(since, "Z") {
			t.Errorf("exa is asked %v", b)
		}
		fmt.Fprint(w, `{"requestId":"r","resolvedSearchType":"neural","results":[{"id":"x","title":"Bees","url":"https://a.example/3","publishedDate":"2026-01-02T00:00:00.000Z","author":null,"highlights":["the sun","the comb"],"highlightScores":[0.5,0.4]}]}`)
	})
	mux.HandleFunc("GET /api/v0/search", func(w http.ResponseWriter, r *http.Request) {
		if q := r.URL.Query(); r.Header.Get("Authorization") != "Bot kagikey" || !strings.HasPrefix(q.Get("q"), "bees & sun after:20") || q.Get("limit") != "3" {
			t.Errorf("kagi is asked %s", r.URL)
		}
		fmt.Fprint(w, `{"meta":{"id":"m","node":"us","ms":3},"data":[{"t":0,"rank":1,"url":"https://a.example/4","title":"Bees","snippet":"<b>dance</b>","published":"2025-05-06T00:00:00Z"},{"t":1,"list":["bee dance"]}]}`)
	})
	mux.HandleFunc("GET /searx/search", func(w http.ResponseWriter, r *http.Request) {
		if q := r.URL.Query(); q.Get("format") != "json" || q.Get("q") != "bees & sun" || q.Get("time_range") != "week" {
			t.Errorf("searxng is asked %s", r.URL)
		}
		fmt.Fprint(w, `{"query":"bees","number_of_results":0,"results":[{"url":"https://a.example/5","title":"Bees","content":"Comb","engine":"x","publishedDate":null}],"answers":[],"suggestions":[],"unresponsive_engines":[]}`)
	})
	mux.HandleFunc("GET /html/search", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) })
	mux.HandleFunc("/limited", func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusTooManyRequests)
		fmt.Fprint(w, `{"detail":{"error":"Your request has been blocked due to excessive requests."}}`)
	})
	mux.HandleFunc("/odd", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `<html>`) })
	mux.HandleFunc("/elsewhere", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/tavily", http.StatusTemporaryRedirect)
	})
	mux.HandleFunc("/none", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, `{"results":[]}`) })
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server
}

func search(t *testing.T, args string, providers ...Provider) tool.Result {
	t.Helper()
	c := New(Options{Leaks: func(text string) bool { return strings.Contains(text, "hunter22") }})
	c.Configure(Config{Providers: providers})
	res, err := c.searchTool().Run(t.Context(), []byte(args))
	if err != nil {
		t.Fatal(err)
	}
	return res
}

const bees = `{"query":" bees  & sun ","count":3,"freshness":"week"}`

func TestProviders(t *testing.T) {
	t.Parallel()
	at := providersOf(t).URL
	for _, test := range []struct {
		provider Provider
		want     string
	}{
		{Provider{Name: "brave", Key: "bravekey", URL: at + "/res/v1/web/search"}, "1. Bees & sun\n   https://a.example/1\n   (2026-02-03) How bees fly"},
		{Provider{Name: "mine", Type: "tavily", Key: "tvly-key", URL: at + "/tavily"}, "1. Bees\n   https://a.example/2\n   In the hive"},
		{Provider{Name: "exa", Key: "exakey", URL: at + "/exa"}, "1. Bees\n   https://a.example/3\n   (2026-01-02) the sun … the comb"},
		{Provider{Name: "kagi", Key: "kagikey", URL: at + "/api/v0/search"}, "1. Bees\n   https://a.example/4\n   (2025-05-06) dance"},
		{Provider{Name: "searxng", URL: at + "/searx"}, "1. Bees\n   https://a.example/5\n   Comb"},
		{Provider{Name: "searxng", URL: at + "/searx/"}, "1. Bees\n   https://a.example/5\n   Comb"},
	} {
		res := search(t, bees, test.provider)
		if got := res.Blocks.Text(); got != test.want || res.Failed {
			t.Errorf("%s gives %q, want %q", test.provider.Name, got, test.want)
		}
		if res.UntrustedFrom != "search results of "+test.provider.Name {
			t.Errorf("from %q", res.UntrustedFrom)
		}
	}
}

func TestProvidersThatFail(t *testing.T) {
	t.Parallel()
	at := providersOf(t).URL
	wrong := Provider{Name: "brave", Key: "wrong-key-of-brave", URL: at + "/res/v1/web/search"}
	good := Provider{Name: "searxng", URL: at + "/searx"}
	contains(t, search(t, bees, wrong, good), false, "https://a.example/5")
	for _, test := range []struct {
		provider Provider
		want     string
	}{
		{wrong, "brave: it refuses the request; check its key (The provided subscription token is invalid.)"},
		{Provider{Name: "searxng", URL: at + "/html"}, "settings.yml must name json"},
		{Provider{Name: "tavily", URL: at + "/limited"}, "its limit of requests is reached (Your request has been blocked"},
		{Provider{Name: "exa", URL: at + "/odd"}, "its answer cannot be read"},
		{Provider{Name: "tavily", Key: "tvly-key", URL: at + "/elsewhere"}, "it redirects; set its final address as url"},
		{Provider{Name: "tavily", URL: "http://127.0.0.1:1/"}, "could not be fetched"},
		{Provider{Name: "other"}, "not a kind of search provider"},
	} {
		res := search(t, bees, test.provider)
		contains(t, res, true, test.want)
		if strings.Contains(res.Blocks.Text(), "wrong-key") {
			t.Error("the key is told")
		}
	}
	contains(t, search(t, bees, Provider{Name: "tavily", URL: at + "/none"}), false, "Nothing was found")
	contains(t, search(t, bees), true, "BRAVE_API_KEY", "searchProviders")
	contains(t, search(t, `{"query":" "}`, good), true, "Give words")
	contains(t, search(t, `{"query":"hunter22"}`, good), true, "secret")
}

func TestFromEnvironment(t *testing.T) {
	t.Parallel()
	env := map[string]string{"SEARXNG_URL": "http://s", "BRAVE_SEARCH_API_KEY": " b\n", "KAGI_API_KEY": "k"}
	got := fmt.Sprint(FromEnvironment(func(name string) string { return env[name] }))
	if want := "[{brave brave b } {kagi kagi k } {searxng searxng  http://s}]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
