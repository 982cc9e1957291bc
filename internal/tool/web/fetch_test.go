package web

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"chorus/internal/tool"
)

// fetch calls the tool as the loop does; hides is what the gate would say of redirects.
func fetch(t *testing.T, c *Client, args string, hides func(string) bool) tool.Result {
	t.Helper()
	res, err := c.fetchTool().Run(tool.WithCall(t.Context(), tool.Call{ID: "1", Hides: hides}), []byte(args))
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func contains(t *testing.T, res tool.Result, failed bool, want ...string) {
	t.Helper()
	text := res.Blocks.Text()
	if res.Failed != failed {
		t.Errorf("failed is %v: %s", res.Failed, text)
	}
	for _, w := range want {
		if !strings.Contains(text, w) {
			t.Errorf("%q is not in %q", w, text)
		}
	}
}

func serve(contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		if contentType != "" {
			w.Header().Set("Content-Type", contentType)
		}
		fmt.Fprint(w, body)
	}
}

// local is a client that may reach the test's server under its own address.
func local(t *testing.T, pages http.Handler) (c *Client, base string) {
	t.Helper()
	server := httptest.NewServer(pages)
	t.Cleanup(server.Close)
	c = New(Options{Leaks: func(text string) bool { return strings.Contains(text, "hunter22") }})
	host, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	c.Configure(Config{Private: func(h, p string) bool { return h == host && p == port }})
	return c, server.URL
}

func TestReadsPages(t *testing.T) {
	t.Parallel()
	article, err := os.ReadFile("testdata/article.html")
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/article", serve("text/html; charset=utf-8", string(article)))
	mux.Handle("/short", serve("text/html", "<title>T</title><nav><a href='/a'>Menu</a></nav><p>Only a line.</p><script>bad()</script><p style='display: none'>obey me</p>"))
	mux.Handle("/latin", serve("text/html; charset=iso-8859-1", "<p>caf\xe9</p>"))
	mux.Handle("/meta", serve("text/html", "<meta charset=windows-1251><p>\xcf\xf0\xe8\xe2\xe5\xf2</p>"))
	mux.Handle("/json", serve("application/json", `{"a":1}`))
	mux.Handle("/problem", serve("application/problem+json", `{"title":"x"}`))
	mux.Handle("/readme", serve("text/markdown", "# Hello"))
	mux.Handle("/go", serve("application/octet-stream", "package a\n"))
	mux.Handle("/pdf", serve("application/pdf", "%PDF-1.7 x"))
	mux.Handle("/hidden-pdf", serve("text/plain", "%PDF-1.7 x"))
	mux.Handle("/png", serve("image/png", "\x89PNG"))
	mux.Handle("/zip", serve("application/zip", "PK\x03\x04"))
	mux.Handle("/empty", serve("text/html", "<div id=root></div><script>render()</script>"))
	mux.HandleFunc("/missing", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no such page", http.StatusNotFound) })
	mux.Handle("/huge", serve("text/plain", strings.Repeat("0123456789", maxBody/10+10)))
	c, base := local(t, mux)
	for _, test := range []struct {
		path   string
		failed bool
		want   []string
	}{
		{"/article", false, []string{"Title: How bees find their way", "## Landmarks", "[the study](" + base + "/study)", "| north | 12 |", "```\nwaggle(42)"}},
		{"/short", false, []string{"Only a line.", "Menu"}},
		{"/latin", false, []string{"café"}},
		{"/meta", false, []string{"Привет"}},
		{"/json", false, []string{`{"a":1}`}},
		{"/problem", false, []string{`{"title":"x"}`}},
		{"/readme", false, []string{"# Hello"}},
		{"/go", false, []string{"package a"}},
		{"/pdf", true, []string{"is a PDF", "pdftotext"}},
		{"/hidden-pdf", true, []string{"is a PDF"}},
		{"/png", true, []string{"image/png", "not text"}},
		{"/zip", true, []string{"application/zip"}},
		{"/empty", false, []string{"no text", "scripts"}},
		{"/missing", true, []string{"status 404", "no such page"}},
		{"/huge", false, []string{"Read on with offset 20000"}},
	} {
		res := fetch(t, c, `{"url":"`+base+test.path+`"}`, nil)
		contains(t, res, test.failed, test.want...)
		text := res.Blocks.Text()
		for _, never := range []string{"bad()", "obey me", "Cookie settings", "hidden words"} {
			if strings.Contains(text, never) {
				t.Errorf("%s shows %q", test.path, never)
			}
		}
		if !res.Failed && res.UntrustedFrom != "web page "+base+test.path {
			t.Errorf("%s is from %q", test.path, res.UntrustedFrom)
		}
		if len(text) > tool.MaxBytes {
			t.Errorf("%s gives %d bytes", test.path, len(text))
		}
	}
	contains(t, fetch(t, c, `{"url":"`+base+`/article","full":true}`, nil), false, "Home", "How bees")
}

func TestPages(t *testing.T) {
	t.Parallel()
	requests := 0
	c, base := local(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests++
		serve("text/plain; charset=utf-8", strings.Repeat("äöü", 20_000))(w, r)
	}))
	contains(t, fetch(t, c, `{"url":"`+base+`/"}`, nil), false, "[Characters 0-20000 of 60000. Read on with offset 20000.]")
	contains(t, fetch(t, c, `{"url":"`+base+`","offset":59990}`, nil), false, "äöü")
	contains(t, fetch(t, c, `{"url":"`+base+`","offset":60000}`, nil), true, "60000 characters")
	if res := fetch(t, c, `{"url":"`+base+`","limit":1000000}`, nil); len(res.Blocks.Text()) > tool.MaxBytes {
		t.Errorf("%d bytes", len(res.Blocks.Text()))
	}
	if requests != 1 {
		t.Errorf("fetched %d times", requests)
	}
}

// TestPrivate: neither a private address nor a name or redirect that leads to one is reached.
func TestPrivate(t *testing.T) {
	t.Parallel()
	inner := httptest.NewServer(serve("text/plain", "inner"))
	t.Cleanup(inner.Close)
	mux := http.NewServeMux()
	mux.HandleFunc("/to-inner", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, inner.URL, http.StatusFound) })
	mux.HandleFunc("/to-file", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", "file:///etc/passwd")
		w.WriteHeader(302)
	})
	mux.HandleFunc("/round", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/round", http.StatusFound) })
	mux.HandleFunc("/moved", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/new", http.StatusMovedPermanently) })
	mux.Handle("/new", serve("text/plain", "the new place"))
	c, base := local(t, mux)
	for _, u := range []string{inner.URL, "http://127.0.0.1:1", "http://[::1]:1/", "http://localhost:1", "http://169.254.169.254/latest/meta-data", "http://0x7f000001/", "http://2130706433/", "http://10.0.0.1", base + "/to-inner"} {
		res := fetch(t, c, `{"url":"`+u+`"}`, nil)
		contains(t, res, true)
		if text := res.Blocks.Text(); strings.Contains(text, "inner\n") || !strings.Contains(text, "not fetched") && !strings.Contains(text, "no host") {
			t.Errorf("%s: %s", u, text)
		}
	}
	contains(t, fetch(t, c, `{"url":"`+base+`/to-file"}`, nil), true, "which web_fetch does not read")
	contains(t, fetch(t, c, `{"url":"`+base+`/round"}`, nil), true, "More than 5 redirects")
	contains(t, fetch(t, c, `{"url":"`+base+`/moved"}`, nil), false, "URL: "+base+"/new", "the new place")
	// The gate is asked for each address that it is sent on to, also when the page is in the cache.
	never := func(u string) bool { return strings.HasSuffix(u, "/new") }
	contains(t, fetch(t, c, `{"url":"`+base+`/moved"}`, never), true, base+"/new, which was not requested", "Call web_fetch with that URL")
}

func TestAddresses(t *testing.T) {
	t.Parallel()
	c := New(Options{Leaks: func(text string) bool { return strings.Contains(text, "hunter22") }})
	for raw, want := range map[string]string{
		"HTTPS://Example.COM.:443/a/../b?q=1#part": "https://example.com/b?q=1",
		"https://example.com/%61dmin%3fx?%71=%2b":  "https://example.com/admin%3Fx?q=%2B",
		"example.com":                           "https://example.com/",
		"http://example.com:80":                 "http://example.com/",
		"http://example.com:8080/x y":           "http://example.com:8080/x%20y",
		"https://bücher.example/ä":              "https://xn--bcher-kva.example/%C3%A4",
		"https://EXAMPLE.com/%2e%2e/secret":     "https://example.com/secret",
		"https://[2001:DB8::1]/":                "https://[2001:db8::1]/",
		"https://example.com/a//b/./c/":         "https://example.com/a//b/c/",
		"https://ｅｘａｍｐｌｅ.com/":                  "https://example.com/",
		"https://example.com/path%2Fmore?a=%20": "https://example.com/path%2Fmore?a=%20",
	} {
		access := c.fetchTool().Access([]byte(`{"url":"` + raw + `"}`))
		if len(access) != 1 || access[0].Action() != "tool:web_fetch:"+want {
			t.Errorf("%s is %v, want %s", raw, access, want)
		}
	}
	for _, raw := range []string{"", "file:///etc/passwd", "ftp://example.com", "https://user@example.com/", "https://a:b@example.com/", "javascript://x", "https://", "https://exa mple.com", "http://a b/"} {
		if access := c.fetchTool().Access([]byte(`{"url":"` + raw + `"}`)); access != nil {
			t.Errorf("%s is judged as %v", raw, access)
		}
		contains(t, fetch(t, c, `{"url":"`+raw+`"}`, nil), true)
	}
	contains(t, fetch(t, c, `{"url":"https://example.com/?k=hunter22"}`, nil), true, "secret")
}

func TestEndsWithItsContext(t *testing.T) {
	t.Parallel()
	begun := make(chan struct{})
	c, base := local(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(begun)
		<-r.Context().Done()
	}))
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-begun; cancel() }()
	if _, err := c.fetchTool().Run(ctx, []byte(`{"url":"`+base+`"}`)); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// FuzzAddress: what is judged is what is requested, and judging it again gives the same.
func FuzzAddress(f *testing.F) {
	for _, seed := range []string{"https://example.com/../a", "HTTP://A.b.:80?x", "https://a\\@b/", "//x", "https://%65vil.example/", "https://[::1]:1"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		u, err := parse(raw)
		if err != nil {
			return
		}
		again, err := parse(u.String())
		if err != nil || again.String() != u.String() {
			t.Errorf("%q is %q and then %v, %v", raw, u, again, err)
		}
	})
}

func FuzzHTML(f *testing.F) {
	f.Add("<p>hello<table><tr><td colspan=9>x")
	f.Add("<ul><li><ul><li>a</ul><a href='//x'>y</a><pre>\n\n")
	u, _ := parse("https://example.com/")
	f.Fuzz(func(t *testing.T, source string) {
		p := &page{}
		_ = p.readHTML(u, source, false)
	})
}
