package rest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type dogBody struct {
	Name string   `json:"name" minLen:"1" maxLen:"10" doc:"what it listens to"`
	Age  int      `json:"age,omitempty" min:"0" max:"30"`
	Size string   `json:"size,omitempty" enum:"small,large"`
	Tags []string `json:"tags,omitempty" maxItems:"2"`
	Home *home    `json:"home,omitempty"`
}

type home struct {
	Street string `json:"street"`
}

type dogIn struct {
	Kennel string `path:"kennel" maxLen:"8"`
	Limit  int    `query:"limit" min:"1" max:"50"`
	Loud   bool   `query:"loud"`
	Body   dogBody
}

type dog struct {
	ID    string   `json:"id"`
	Likes []string `json:"likes"`
}

func (d dog) Location() string { return "/dogs/" + d.ID }

type remembered struct {
	digest string
	status int
	body   []byte
}

// memoryFake is a Memory that forgets with the test.
type memoryFake struct {
	mu   sync.Mutex
	kept map[string]remembered
}

var _ Memory = (*memoryFake)(nil)

func (s *memoryFake) RecallAnswer(_ context.Context, principal, key, route string) (string, int, []byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.kept[principal+key+route]
	return r.digest, r.status, r.body, nil
}

func (s *memoryFake) KeepAnswer(_ context.Context, principal, key, route, digest string, status int, body []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept == nil {
		s.kept = map[string]remembered{}
	}
	if s.kept[principal+key+route].status == 0 {
		s.kept[principal+key+route] = remembered{digest, status, body}
	}
	return nil
}

// kennel is a kernel with a route of each sort.
func kennel(t *testing.T, log io.Writer, ops ...Operation) *Kernel {
	t.Helper()
	k, err := New(Options{
		Title: "Kennel", Version: "1", Log: slog.New(slog.NewTextHandler(log, nil)), Memory: &memoryFake{},
		Allow: func(_ context.Context, scope string) error {
			if scope == "never" {
				return NewProblem(http.StatusForbidden, "forbidden", "never")
			}
			return nil
		},
		Explain: func(err error) *Problem {
			if errors.Is(err, io.ErrNoProgress) {
				return NewProblem(http.StatusConflict, "conflict", "it is busy")
			}
			return nil
		},
	}, append([]Operation{
		Op(Route{Method: "POST", Path: "/kennels/{kennel}/dogs", ID: "addDog", Scope: "any", Status: 201, MaxBody: 1024},
			func(_ context.Context, in dogIn) (dog, error) { return dog{ID: in.Body.Name}, nil }),
		Op(Route{Method: "GET", Path: "/panic", ID: "panic"}, func(context.Context, struct{}) (dog, error) { panic("the roof is on fire") }),
		Op(Route{Method: "GET", Path: "/never", ID: "never", Scope: "never"}, func(context.Context, struct{}) (dog, error) { return dog{}, nil }),
		Op(Route{Method: "GET", Path: "/busy", ID: "busy"}, func(context.Context, struct{}) (dog, error) { return dog{}, io.ErrNoProgress }),
		Op(Route{Method: "GET", Path: "/broken", ID: "broken"}, func(context.Context, struct{}) (dog, error) { return dog{}, errors.New("password 123") }),
		Op(Route{Method: "DELETE", Path: "/dogs/{id}", ID: "remove"}, func(context.Context, struct {
			ID string `path:"id"`
		}) (None, error) {
			return None{}, nil
		}),
	}, ops...)...)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func ask(k http.Handler, method, target, body string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	k.ServeHTTP(w, r)
	return w
}

func TestWhatIsSaid(t *testing.T) {
	t.Parallel()
	k := kennel(t, io.Discard)
	const dogs = "/kennels/k/dogs"
	for name, c := range map[string]struct {
		method, target, body string
		header               []string
		status               int
		said                 string
	}{
		"fine":               {method: "POST", target: dogs, body: `{"name":"rex"}`, status: 201, said: `{"id":"rex","likes":[]}`},
		"unknown field":      {method: "POST", target: dogs, body: "{\n  \"nmae\": \"rex\"}", status: 400, said: `line 2, column 3: nmae: there is no such field; did you mean "name"?`},
		"required":           {method: "POST", target: dogs, body: `{}`, status: 400, said: `name: it is required`},
		"wrong type":         {method: "POST", target: dogs, body: `{"name":5}`, status: 400, said: `line 1, column 9: name: it must be a string, not a whole number`},
		"null":               {method: "POST", target: dogs, body: `{"name":null}`, status: 400, said: `name: it must be a string, not null`},
		"empty":              {method: "POST", target: dogs, body: `{"name":""}`, status: 400, said: `name: it must not be empty`},
		"long":               {method: "POST", target: dogs, body: `{"name":"abcdefghijk"}`, status: 400, said: `it has 11 characters; at most 10 are allowed`},
		"two at once":        {method: "POST", target: dogs, body: `{"name":"","age":31}`, status: 400, said: `name: it must not be empty; line 1, column 18: age: it must be at most 30`},
		"enum":               {method: "POST", target: dogs, body: `{"name":"a","size":"smal"}`, status: 400, said: `it must be one of small, large; did you mean "small"?`},
		"too many":           {method: "POST", target: dogs, body: `{"name":"a","tags":["a","b","c"]}`, status: 400, said: `tags: there are 3 items; at most 2 are allowed`},
		"in a list":          {method: "POST", target: dogs, body: `{"name":"a","tags":["a",1]}`, status: 400, said: `tags[1]: it must be a string`},
		"within":             {method: "POST", target: dogs, body: `{"name":"a","home":{"street":"x","zip":1}}`, status: 400, said: `home.zip: there is no such field; there are street`},
		"twice":              {method: "POST", target: dogs, body: `{"name":"a","name":"b"}`, status: 400, said: `line 1, column 13: name: it is given twice`},
		"another case":       {method: "POST", target: dogs, body: `{"Name":"a"}`, status: 400, said: `did you mean "name"?`},
		"no JSON":            {method: "POST", target: dogs, body: "{\"name\":\n x}", status: 400, said: `line 2, column 2: it is not valid JSON`},
		"unfinished":         {method: "POST", target: dogs, body: `{"name":"a"`, status: 400, said: `the JSON is not finished`},
		"garbage behind":     {method: "POST", target: dogs, body: `{"name":"a"} x`, status: 400, said: `line 1, column 14: it is not valid JSON`},
		"no object":          {method: "POST", target: dogs, body: `[]`, status: 400, said: `it must be an object, not a list`},
		"deep":               {method: "POST", target: dogs, body: strings.Repeat("[", 100) + strings.Repeat("]", 100), status: 400, said: `nested more than 32`},
		"not UTF-8":          {method: "POST", target: dogs, body: "{\"name\":\"\xff\"}", status: 400, said: `line 1, column 10: the body is not valid UTF-8`},
		"too large a number": {method: "POST", target: dogs, body: `{"name":"a","age":1e400}`, status: 400, said: `age`},
		"large":              {method: "POST", target: dogs, body: `{"name":"` + strings.Repeat("x", 2000) + `"}`, status: 413, said: `the limit is 1 KB`},
		"none":               {method: "POST", target: dogs, status: 400, said: `it is missing; send a JSON object`},
		"a form":             {method: "POST", target: dogs, body: `a=b`, header: []string{"Content-Type", "application/x-www-form-urlencoded"}, status: 415, said: `Content-Type: application/json`},
		"latin1":             {method: "POST", target: dogs, body: `{}`, header: []string{"Content-Type", "application/json; charset=latin1"}, status: 415, said: `must be UTF-8`},
		"query slip":         {method: "POST", target: dogs + "?limt=5", body: `{"name":"a"}`, status: 400, said: `query limt: there is no such parameter; did you mean "limit"?`},
		"query twice":        {method: "POST", target: dogs + "?limit=5&limit=6", body: `{"name":"a"}`, status: 400, said: `given 2 times`},
		"query type":         {method: "POST", target: dogs + "?limit=ten&loud=x", body: `{"name":"a"}`, status: 400, said: `query limit: it must be a whole number, not "ten"; query loud: it must be true or false`},
		"query range":        {method: "POST", target: dogs + "?limit=51", body: `{"name":"a"}`, status: 400, said: `it must be at most 50`},
		"query huge":         {method: "POST", target: dogs + "?limit=99999999999999999999", body: `{"name":"a"}`, status: 400, said: `it must be at most 50`},
		"query broken":       {method: "POST", target: dogs + "?limit=%zz", body: `{"name":"a"}`, status: 400, said: `query it is not a valid query`},
		"path":               {method: "POST", target: "/kennels/123456789/dogs", body: `{"name":"a"}`, status: 400, said: `path kennel: it has 9 characters`},
		"nowhere":            {method: "GET", target: "/cats", status: 404, said: `there is no /cats`},
		"unclean":            {method: "GET", target: "/kennels//dogs", status: 404, said: `there is no`},
		"method":             {method: "PUT", target: dogs, status: 405, said: `it supports POST, OPTIONS`},
		"options":            {method: "OPTIONS", target: dogs, status: 204},
		"nothing":            {method: "DELETE", target: "/dogs/a", status: 204},
		"panic":              {method: "GET", target: "/panic", status: 500, said: `the server's log has the details under`},
		"forbidden":          {method: "GET", target: "/never", status: 403, said: `never`},
		"explained":          {method: "GET", target: "/busy", status: 409, said: `it is busy`},
		"not explained":      {method: "GET", target: "/broken", status: 500, said: `the server's log has the details under`},
		"head of a problem":  {method: "HEAD", target: "/busy", status: 409},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := ask(k, c.method, c.target, c.body, c.header...)
			if w.Code != c.status {
				t.Fatalf("status %d, want %d: %s", w.Code, c.status, w.Body)
			}
			body := w.Body.String()
			if w.Code >= 400 && c.method != "HEAD" {
				var p Problem
				if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil {
					t.Fatal(err)
				}
				if got := w.Header().Get("Content-Type"); got != problemMedia || p.Status != c.status || p.Message != p.Detail ||
					p.Type == "" || p.Title == "" || p.Instance == "" || p.RequestID != w.Header().Get("X-Request-Id") {
					t.Errorf("not a whole problem (%s): %s", got, body)
				}
				body = p.Detail
			}
			if !strings.Contains(body, c.said) {
				t.Errorf("said %s\nwant %s", body, c.said)
			}
			if strings.Contains(body, "password") {
				t.Error("an inner error got out")
			}
		})
	}
}

func TestAllowIsSaid(t *testing.T) {
	t.Parallel()
	k := kennel(t, io.Discard)
	for _, method := range []string{"PUT", "OPTIONS"} {
		if got := ask(k, method, "/busy", "").Header().Get("Allow"); got != "GET, HEAD, OPTIONS" {
			t.Errorf("%s: Allow is %q", method, got)
		}
	}
}

func TestPanicIsLoggedUnderItsNumber(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	w := ask(kennel(t, &log), "GET", "/panic", "")
	if id := w.Header().Get("X-Request-Id"); !strings.Contains(log.String(), "request="+id) || !strings.Contains(log.String(), "roof is on fire") {
		t.Errorf("the log does not have %s: %s", id, &log)
	}
}

func TestLocation(t *testing.T) {
	t.Parallel()
	if got := ask(kennel(t, io.Discard), "POST", "/kennels/k/dogs", `{"name":"rex"}`).Header().Get("Location"); got != "/dogs/rex" {
		t.Errorf("Location is %q", got)
	}
}

// counting makes a new dog each time it is really asked.
func counting(calls *atomic.Int64, secret bool, gate chan struct{}) Operation {
	path := "/count"
	if secret {
		path = "/secret"
	}
	return Op(Route{Method: "POST", Path: path, ID: path, Creates: true, Status: 201, Secret: secret},
		func(_ context.Context, in struct{ Body dogBody }) (dog, error) {
			n := calls.Add(1)
			if gate != nil {
				<-gate
			}
			if in.Body.Name == "bad" {
				return dog{}, io.ErrNoProgress
			}
			return dog{ID: fmt.Sprint(n)}, nil
		})
}

func TestTheSameKeyIsOneDeed(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	k := kennel(t, io.Discard, counting(&calls, false, nil), counting(&calls, true, nil))
	post := func(path, name, key string) (int, string, string) {
		w := ask(k, "POST", path, `{"name":"`+name+`"}`, "Idempotency-Key", key)
		return w.Code, strings.TrimSpace(w.Body.String()), w.Header().Get("Location")
	}
	for i, c := range []struct {
		path, name, key string
		status          int
		said, location  string
	}{
		{"/count", "a", "k1", 201, `"id":"1"`, "/dogs/1"},
		{"/count", "a", "k1", 201, `"id":"1"`, "/dogs/1"},
		{"/count", "b", "k1", 422, "another body", ""},
		{"/count", "a", "k2", 201, `"id":"2"`, "/dogs/2"},
		{"/count", "bad", "k3", 409, "busy", ""},
		{"/count", "bad", "k3", 409, "busy", ""}, // a failure is tried again
		{"/count", "a", "", 201, `"id":"5"`, "/dogs/5"},
		{"/secret", "a", "k1", 201, `"id":"6"`, "/dogs/6"},
		{"/secret", "a", "k1", 409, "shown only once", ""},
		{"/count", "a", strings.Repeat("k", 256), 400, "at most 255", ""},
	} {
		status, body, location := post(c.path, c.name, c.key)
		if status != c.status || !strings.Contains(body, c.said) || location != c.location {
			t.Errorf("%d: %d %s %q", i, status, body, location)
		}
	}
}

func TestATwinWaits(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	gate := make(chan struct{})
	k := kennel(t, io.Discard, counting(&calls, false, gate))
	answers := make(chan string, 8)
	for range cap(answers) {
		go func() {
			answers <- ask(k, "POST", "/count", `{"name":"a"}`, "Idempotency-Key", "k").Body.String()
		}()
	}
	close(gate)
	for range cap(answers) {
		if got := <-answers; !strings.Contains(got, `"id":"1"`) {
			t.Error(got)
		}
	}
	if calls.Load() != 1 {
		t.Errorf("done %d times", calls.Load())
	}
}

func TestCursor(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "1", "2026-01-02|ü"} {
		if got, err := ReadCursor(Cursor(text)); err != nil || got != text {
			t.Errorf("%q became %q, %v", text, got, err)
		}
	}
	for _, bad := range []string{"5", "YzE", "!!", "eHg"} {
		if _, err := ReadCursor(bad); err == nil {
			t.Errorf("%q is taken for a cursor", bad)
		}
	}
}

func TestPageHoldsEverything(t *testing.T) {
	t.Parallel()
	k, err := New(Options{Title: "<Kennel>", Tags: [][2]string{{"dogs", "all of them"}}},
		Op(Route{Method: "GET", Path: "/dogs", ID: "dogs", Tag: "dogs", Scope: "read", Summary: "every dog"}, func(context.Context, struct{}) (dog, error) { return dog{}, nil }))
	if err != nil {
		t.Fatal(err)
	}
	page, err := k.Page("/style.css", "v1", [][2]string{{"invalid", "it is wrong"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"&lt;Kennel&gt;", "GET /dogs", "<code>read</code>", `href="#type-dog"`, `id="type-dog"`, `id="problem-invalid"`} {
		if !bytes.Contains(page, []byte(want)) {
			t.Errorf("no %s in\n%s", want, page)
		}
	}
	if bytes.Contains(page, []byte("<script")) || bytes.Contains(page, []byte("<Kennel>")) {
		t.Error("not escaped, or a script")
	}
}

// deadlines notes how often they are moved.
type deadlines struct {
	*httptest.ResponseRecorder
	reads, writes []time.Time
}

func (d *deadlines) SetReadDeadline(t time.Time) error  { d.reads = append(d.reads, t); return nil }
func (d *deadlines) SetWriteDeadline(t time.Time) error { d.writes = append(d.writes, t); return nil }

// A file may take as long as it likes, piece by piece.
func TestLargeThingsMoveTheirDeadlines(t *testing.T) {
	t.Parallel()
	k := kennel(t, io.Discard, Op(Route{Method: "POST", Path: "/files", ID: "file"},
		func(_ context.Context, in struct{ Body File }) (dog, error) {
			data, err := io.ReadAll(iotest.OneByteReader(in.Body))
			return dog{ID: string(data)}, err
		}))
	w := &deadlines{ResponseRecorder: httptest.NewRecorder()}
	k.ServeHTTP(w, httptest.NewRequest("POST", "/files", strings.NewReader("four")))
	if len(w.reads) < 4 || len(w.writes) < 4 || time.Until(w.reads[3]) < PieceTimeout/2 || !w.writes[3].After(w.reads[3]) {
		t.Errorf("reads until %v, writes until %v", w.reads, w.writes)
	}
}

func TestFiles(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	k := kennel(t, io.Discard, Op(Route{Method: "POST", Path: "/files", ID: "file", Creates: true, MaxBody: 2000},
		func(_ context.Context, in struct{ Body File }) (dog, error) {
			calls.Add(1)
			data, err := io.ReadAll(in.Body)
			if err != nil {
				return dog{}, NewProblem(http.StatusBadRequest, "invalid", "%v", err)
			}
			return dog{ID: in.Body.Name + ":" + string(data)}, nil
		}))
	form := func(parts ...string) string {
		out := ""
		for _, name := range parts {
			out += "--b\r\nContent-Disposition: form-data; name=\"x\"" + name + "\r\n\r\nbytes\r\n"
		}
		return out + "--b--\r\n"
	}
	const multi = "multipart/form-data; boundary=b"
	for name, c := range map[string]struct {
		body, media string
		status      int
		said        string
	}{
		"bytes":      {"hello", "text/plain", 200, `"id":":hello"`},
		"no type":    {"hello", "", 200, `"id":":hello"`},
		"form":       {form(`; filename="../a/b.txt"`), multi, 200, `"id":"b.txt:bytes"`},
		"with more":  {form("", `; filename="b.txt"`, ""), multi, 200, `"id":"b.txt:bytes"`},
		"two":        {form(`; filename="a"`, `; filename="b"`), multi, 400, "more than one file"},
		"none":       {form(""), multi, 400, "no file"},
		"bad form":   {"x", "multipart/form-data", 400, "cannot be read"},
		"urlencoded": {"a=b", "application/x-www-form-urlencoded", 415, "cannot contain files"},
		"bad type":   {"a=b", "text/", 415, "cannot be read"},
		"large":      {strings.Repeat("x", 3000), "text/plain", 413, "limit"},
	} {
		w := ask(k, "POST", "/files", c.body, "Content-Type", c.media)
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.said) {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
	before := calls.Load()
	for range 2 {
		ask(k, "POST", "/files", "hello", "Content-Type", "text/plain", "Idempotency-Key", "k")
	}
	if w := ask(k, "POST", "/files", "hello!", "Content-Type", "text/plain", "Idempotency-Key", "k"); w.Code != 422 {
		t.Errorf("another file under the same key: %d", w.Code)
	}
	if n := calls.Load() - before; n != 1 {
		t.Errorf("stored %d times", n)
	}
}
