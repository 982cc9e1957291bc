package guard

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"chorus/internal/operation"
	"chorus/internal/operations"
)

// memoryTokens is a TokenStore in memory: text to token.
type memoryTokens map[string]operations.Token

func (k memoryTokens) TokenByText(_ context.Context, text string) (operations.Token, error) {
	if t, ok := k[text]; ok {
		return t, nil
	}
	return operations.Token{}, operation.Errorf(operation.NotFound, "no such token")
}

func (k memoryTokens) TokenByID(_ context.Context, id string) (operations.Token, error) {
	for _, t := range k {
		if t.ID == id {
			return t, nil
		}
	}
	return operations.Token{}, operation.Errorf(operation.NotFound, "no such token")
}

// ended is what was signed out; it outlives a server as a database does.
type ended struct{ sync.Map }

type tokensOf struct {
	memoryTokens
	*ended
}

func (e *ended) EndSignIn(_ context.Context, nonce string, _ time.Duration) (bool, error) {
	_, again := e.LoadOrStore(nonce, true)
	return !again, nil
}

func (e *ended) SignInEnded(_ context.Context, nonce string) (bool, error) {
	_, ok := e.Load(nonce)
	return ok, nil
}

type brokenTokens struct{ tokensOf }

func (brokenTokens) TokenByText(context.Context, string) (operations.Token, error) {
	return operations.Token{}, fmt.Errorf("database on fire at /secret/path")
}

var testKey = []byte(strings.Repeat("k", keySize))

type server struct {
	t       *testing.T
	guard   *Guard
	handler http.Handler
	now     time.Time
	keys    memoryTokens
	ended   *ended
	streams chan struct{} // one has begun
}

func newServer(t *testing.T, change func(*Options)) *server {
	t.Helper()
	d := &server{t: t, now: time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC),
		keys: memoryTokens{"test-key": {ID: "one", Name: "laptop", Scopes: []operation.Scope{operation.Chat}}}}
	d.ended = &ended{}
	o := Options{Tokens: tokensOf{d.keys, d.ended}, Key: testKey, Now: func() time.Time { return d.now },
		Public: func(r *http.Request) bool { return r.URL.Path == "/healthz" || strings.HasPrefix(r.URL.Path, "/sign-") }}
	if change != nil {
		change(&o)
	}
	var err error
	if d.guard, err = New(o); err != nil {
		t.Fatal(err)
	}
	inside := http.NewServeMux()
	signIn := d.guard.SignIn(func(w http.ResponseWriter, _ *http.Request, status int, problem, next string) {
		w.WriteHeader(status)
		fmt.Fprintf(w, "form %q %q", problem, next)
	})
	inside.Handle("/sign-in", signIn)
	inside.Handle("/sign-out", signIn)
	inside.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		c, ok := operation.CallerOf(r.Context())
		fmt.Fprintf(w, "%v %s %v", ok, c.Principal, c.Scopes)
	})
	inside.HandleFunc("/stream", func(_ http.ResponseWriter, r *http.Request) {
		d.streams <- struct{}{}
		<-r.Context().Done()
	})
	d.streams = make(chan struct{})
	d.handler = d.guard.Wrap(inside)
	return d
}

func (d *server) do(method, path string, header map[string]string, body string) *http.Response {
	d.t.Helper()
	r := httptest.NewRequest(method, "http://127.0.0.1:8420"+path, strings.NewReader(body))
	r.Host = "127.0.0.1:8420"
	for k, v := range header {
		if k == "Host" {
			r.Host = v
			continue
		}
		r.Header.Set(k, v)
	}
	w := httptest.NewRecorder()
	d.handler.ServeHTTP(w, r)
	return w.Result()
}

func (d *server) status(want int, method, path string, header map[string]string) *http.Response {
	d.t.Helper()
	got := d.do(method, path, header, "")
	if got.StatusCode != want {
		body, _ := io.ReadAll(got.Body)
		d.t.Errorf("%s %s %v: %d, want %d: %s", method, path, header, got.StatusCode, want, body)
	}
	return got
}

const validHeader = "Bearer test-key"

func TestAuthentication(t *testing.T) {
	t.Parallel()
	d := newServer(t, nil)
	d.status(200, "GET", "/healthz", nil)
	d.status(401, "GET", "/api/sessions", nil)
	d.status(303, "GET", "/", map[string]string{"Accept": "text/html"})
	d.status(401, "POST", "/", map[string]string{"Accept": "text/html"})
	d.status(401, "GET", "/api/sessions", map[string]string{"Authorization": "Bearer wrong"})
	d.status(401, "GET", "/healthz", map[string]string{"Authorization": "Bearer wrong"})
	d.status(401, "GET", "/api/sessions", map[string]string{"Authorization": "Basic dGVzdC1rZXk="})
	got := d.status(200, "GET", "/api/sessions", map[string]string{"Authorization": validHeader})
	if body, _ := io.ReadAll(got.Body); string(body) != "true token:one [chat]" {
		t.Errorf("the caller is %s", body)
	}
}

// Every refusal is a problem document, and every response has the security headers.
func TestRefusalsAreProblemDocuments(t *testing.T) {
	t.Parallel()
	d := newServer(t, nil)
	got := d.status(401, "GET", "/api/x", nil)
	var problem struct {
		Status int
		Error  string
	}
	if err := json.NewDecoder(got.Body).Decode(&problem); err != nil || problem.Status != 401 || !strings.Contains(problem.Error, "chorus token create") {
		t.Errorf("%v %+v", err, problem)
	}
	if got.Header.Get("Content-Type") != "application/problem+json" || got.Header.Get("WWW-Authenticate") == "" {
		t.Errorf("headers %v", got.Header)
	}
	policy := got.Header.Get("Content-Security-Policy")
	if !strings.Contains(policy, "script-src 'self'") || strings.Contains(policy, "unsafe") {
		t.Errorf("policy %q", policy)
	}
}

// Internal errors are for the log, not for clients.
func TestInternalErrorsAreNotShown(t *testing.T) {
	t.Parallel()
	d := newServer(t, func(o *Options) { o.Tokens = brokenTokens{} })
	got := d.status(503, "GET", "/api/x", map[string]string{"Authorization": validHeader})
	if body, _ := io.ReadAll(got.Body); strings.Contains(string(body), "fire") {
		t.Errorf("the client was told %s", body)
	}
}

func TestHostsAndOrigins(t *testing.T) {
	t.Parallel()
	d := newServer(t, func(o *Options) { o.Hosts = []string{"chorus.example:8443", "inside.example"} })
	for host, want := range map[string]int{
		"127.0.0.1:8420": 200, "localhost:8420": 200, "[::1]:8420": 200, "LOCALHOST": 200, "a.localhost:1": 200, "localhost.": 200, "127.9.9.9": 200,
		"evil.example": 403, "127.0.0.1.evil.example": 403, "localhost.evil.example:8420": 403, "": 403, "0.0.0.0:8420": 403, "192.168.1.5:8420": 403,
		"chorus.example:8443": 200, "chorus.example": 403, "inside.example:99": 200, "evil.example:8443": 403,
	} {
		d.status(want, "GET", "/api/x", map[string]string{"Authorization": validHeader, "Host": host})
	}
	post := func(want int, header map[string]string) {
		t.Helper()
		header["Authorization"] = validHeader
		d.status(want, "POST", "/api/x", header)
	}
	post(200, map[string]string{})
	post(200, map[string]string{"Origin": "http://127.0.0.1:8420"})
	post(200, map[string]string{"Origin": "http://127.0.0.1:8420", "Sec-Fetch-Site": "same-origin"})
	post(403, map[string]string{"Origin": "http://evil.example"})
	post(403, map[string]string{"Origin": "http://localhost:3000"})
	post(403, map[string]string{"Origin": "null"})
	post(403, map[string]string{"Origin": "http://127.0.0.1:8420", "Sec-Fetch-Site": "cross-site"})
	post(403, map[string]string{"Sec-Fetch-Site": "same-site"})
	d.status(403, "GET", "/api/x", map[string]string{"Authorization": validHeader, "Origin": "https://evil.example"})
}

func cookieOf(t *testing.T, r *http.Response) *http.Cookie {
	t.Helper()
	for _, c := range r.Cookies() {
		if c.MaxAge > 0 {
			return c
		}
	}
	t.Fatalf("no cookie in %v", r.Header)
	return nil
}

func TestSignIn(t *testing.T) {
	t.Parallel()
	d := newServer(t, nil)
	form := map[string]string{"Content-Type": "application/x-www-form-urlencoded"}
	post := func(values url.Values) *http.Response { return d.do("POST", "/sign-in", form, values.Encode()) }
	if got := post(url.Values{"token": {"wrong"}}); got.StatusCode != 401 || len(got.Cookies()) > 0 {
		t.Errorf("a wrong token: %d %v", got.StatusCode, got.Cookies())
	}
	got := post(url.Values{"token": {" test-key\n"}, "next": {"/s/1?x=2"}})
	c := cookieOf(t, got)
	if got.StatusCode != 303 || got.Header.Get("Location") != "/s/1?x=2" || !c.HttpOnly || c.SameSite != http.SameSiteLaxMode || strings.Contains(c.Value, "test-key") {
		t.Errorf("%d %q %+v", got.StatusCode, got.Header.Get("Location"), c)
	}
	with := map[string]string{"Cookie": c.Name + "=" + c.Value}
	d.status(200, "GET", "/", with)
	d.status(403, "POST", "/", map[string]string{"Cookie": with["Cookie"], "Sec-Fetch-Site": "cross-site"})
	d.status(401, "GET", "/", map[string]string{"Cookie": c.Name + "=" + c.Value + "x"})
	if out := d.do("POST", "/sign-out", with, ""); len(out.Cookies()) != 1 || out.Cookies()[0].MaxAge >= 0 {
		t.Errorf("sign-out leaves %v", out.Cookies())
	}
	d.status(401, "GET", "/", with) // whoever has kept a copy
	c = cookieOf(t, post(url.Values{"token": {"test-key"}}))
	with = map[string]string{"Cookie": c.Name + "=" + c.Value}
	d.status(200, "GET", "/", with)
	d.now = d.now.Add(cookieLife + time.Minute)
	d.status(401, "GET", "/", with)
	d.now = d.now.Add(-time.Hour)
	d.status(200, "GET", "/", with)
	delete(d.keys, "test-key") // revoked
	d.status(401, "GET", "/", with)
}

// A stream that is open ends when its person signs out; those of other sign-ins go on.
func TestSignOutEndsStreams(t *testing.T) {
	t.Parallel()
	d := newServer(t, nil)
	sign := func() map[string]string {
		c := cookieOf(t, d.do("POST", "/sign-in", map[string]string{"Content-Type": "application/x-www-form-urlencoded"}, "token=test-key"))
		return map[string]string{"Cookie": c.Name + "=" + c.Value}
	}
	open := func(with map[string]string) <-chan struct{} {
		over := make(chan struct{})
		go func() {
			defer close(over)
			d.do("GET", "/stream", with, "")
		}()
		<-d.streams
		return over
	}
	here, elsewhere := sign(), sign()
	mine, another := open(here), open(elsewhere)
	d.status(303, "POST", "/sign-out", here)
	<-mine
	select {
	case <-another:
		t.Error("another sign-in's stream ended")
	default:
	}
	d.status(303, "POST", "/sign-out", elsewhere)
	<-another
	if len(d.guard.open.cancels) != 0 {
		t.Errorf("%d are still remembered", len(d.guard.open.cancels))
	}
}

func TestLinkWorksOnce(t *testing.T) {
	t.Parallel()
	d := newServer(t, nil)
	link := Link(testKey, "http://127.0.0.1:8420/", "one", d.now)
	path := strings.TrimPrefix(link, "http://127.0.0.1:8420")
	if got := d.status(303, "GET", path, nil); got.Header.Get("Location") != "/" {
		t.Errorf("it leads to %q", got.Header.Get("Location"))
	}
	d.status(401, "GET", path, nil)
	again := newServer(t, func(o *Options) { o.Tokens = tokensOf{d.keys, d.ended} })
	again.status(401, "GET", path, nil)
	old := strings.TrimPrefix(Link(testKey, "", "one", d.now.Add(-linkLife-time.Minute)), "")
	d.status(401, "GET", old, nil)
	d.status(401, "GET", Link(testKey, "", "somebody-else", d.now), nil)
	cookie := Sign(testKey, "cookie", "one", d.now.Add(time.Hour))
	d.status(401, "GET", "/sign-in?code="+cookie, nil)
	d.status(401, "GET", "/", map[string]string{"Cookie": "chorus=" + Sign(testKey, "link", "one", d.now.Add(time.Hour))})
}

// A client with a stale token locked out everybody at its address: only wrong tokens wait.
func TestThrottle(t *testing.T) {
	t.Parallel()
	d := newServer(t, nil)
	wrong := map[string]string{"Authorization": "Bearer wrong"}
	right := map[string]string{"Authorization": validHeader}
	form := func(token string) int {
		return d.do("POST", "/sign-in", map[string]string{"Content-Type": "application/x-www-form-urlencoded"}, "token="+token).StatusCode
	}
	for range freeFailures + 1 {
		d.status(401, "GET", "/api/x", wrong)
	}
	got := d.status(429, "GET", "/api/x", wrong)
	if got.Header.Get("Retry-After") == "" {
		t.Error("Retry-After is missing")
	}
	d.status(200, "GET", "/api/x", right)
	if status := form("wrong"); status != 429 {
		t.Errorf("the form, with a wrong token: %d", status)
	}
	if status := form("test-key"); status != 303 {
		t.Errorf("the form, with the right one: %d", status)
	}
	d.now = d.now.Add(firstWait)
	d.status(401, "GET", "/api/x", wrong)
	d.now = d.now.Add(firstWait)
	d.status(429, "GET", "/api/x", wrong) // twice as long now
	d.status(200, "GET", "/api/x", right)
	d.now = d.now.Add(forgetAfter + maxWait)
	d.status(401, "GET", "/api/x", wrong)
}

// However many addresses fail, memory is bounded, and new ones still wait.
func TestThrottleIsBounded(t *testing.T) {
	t.Parallel()
	s, now := newThrottle(), time.Unix(1000, 0)
	for i := range maxClients * 2 {
		s.failed(fmt.Sprint("10.0.", i), now)
	}
	if len(s.clients) > maxClients+1 {
		t.Errorf("%d addresses are remembered", len(s.clients))
	}
	if s.failed("another one", now) <= 0 {
		t.Error("a new address does not wait")
	}
}

func TestBehindProxy(t *testing.T) {
	t.Parallel()
	d := newServer(t, func(o *Options) { o.BehindProxy, o.TLS, o.Hosts = true, true, []string{"chorus.example"} })
	head := func(forwarded, token string) map[string]string {
		return map[string]string{"Host": "chorus.example", "X-Forwarded-For": forwarded, "Authorization": "Bearer " + token}
	}
	for range freeFailures + 1 {
		d.status(401, "GET", "/api/x", head("1.1.1.1, 9.9.9.9", "wrong"))
	}
	d.status(429, "GET", "/api/x", head("2.2.2.2, 9.9.9.9", "wrong")) // only the last hop comes from our proxy
	got := d.status(200, "GET", "/api/x", head("9.9.9.8", "test-key"))
	if got.Header.Get("Strict-Transport-Security") == "" {
		t.Error("no Strict-Transport-Security")
	}
}

// Whatever "next" says, signing in leads to a path of this server.
func TestRedirectAfterSignInIsLocal(t *testing.T) {
	t.Parallel()
	for next, want := range map[string]string{"": "/", "/s/a": "/s/a", "//evil.example": "/", "https://evil.example/": "/", `/\evil.example`: "/",
		"javascript:alert(1)": "/", "s/a": "/", "/sign-in?next=/": "/", "/a?b=c#d": "/a?b=c", "/%2F/evil.example": "/"} {
		if got := safePath(next); got != want && !(next == "/%2F/evil.example" && strings.HasPrefix(got, "/%2F")) {
			t.Errorf("%q leads to %q, want %q", next, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		next := rapid.OneOf(rapid.String(), rapid.StringMatching(`[/\\]{0,3}[a-z.:@/\\%]{0,12}`)).Draw(t, "next")
		base, _ := url.Parse("http://127.0.0.1:8420/sign-in")
		got, err := base.Parse(safePath(next))
		if err != nil || got.Host != base.Host || got.Scheme != "http" {
			t.Fatalf("%q leads to %v (%v)", next, got, err)
		}
	})
}

// A signed value that was changed anywhere is rejected.
func TestSignaturesCannotBeChanged(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_700_000_000, 0)
	rapid.Check(t, func(t *rapid.T) {
		text := Sign(testKey, "cookie", "one", now.Add(time.Hour))
		if s, ok := verify(testKey, "cookie", text, now); !ok || s.token != "one" {
			t.Fatal("an unchanged value is rejected")
		}
		at := rapid.IntRange(0, len(text)-1).Draw(t, "at")
		with := rapid.Byte().Draw(t, "with")
		changed := text[:at] + string([]byte{with}) + text[at+1:]
		if _, ok := verify(testKey, "cookie", changed, now); ok && changed != text {
			t.Fatalf("%q is accepted like %q", changed, text)
		}
	})
}

func FuzzVerify(f *testing.F) {
	f.Add(Sign(testKey, "cookie", "one", time.Unix(2_000_000_000, 0)))
	f.Add("a.b.c.d")
	f.Add("....")
	f.Fuzz(func(t *testing.T, text string) {
		if s, ok := verify([]byte(strings.Repeat("x", keySize)), "cookie", text, time.Unix(0, 0)); ok {
			t.Fatalf("%q is accepted for %q", text, s.token)
		}
	})
}
