package llmsim

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

const sampleScript = `
turns:
  - text: hello
    delay: 10ms
    chunk: 4
  - calls:
      - name: bash
        args: {command: ls}
        fragments: 3
  - fault: {kind: status, code: 429, retryAfter: "2"}
rules:
  - when: {contains: weather}
    times: 1
    turn: {text: sunny}
  - when: {lastToolResultContains: a.txt}
    turns:
      - text: first
      - text: second
default: {text: that is all}
`

func TestScript(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s.yaml")
	if err := os.WriteFile(path, []byte(sampleScript), 0o600); err != nil {
		t.Fatal(err)
	}
	script, err := ReadScript(path)
	if err != nil {
		t.Fatal(err)
	}
	if script.Turns[0].Delay != 10*time.Millisecond || script.Turns[1].Calls[0].args() != `{"command":"ls"}` || len(script.Turns[1].Calls[0].fragments()) != 3 {
		t.Errorf("turns %+v", script.Turns)
	}
	s := New(Options{})
	s.Load(script)
	say := func(text string) string {
		return s.next(Request{Messages: []Message{{Role: "user", Text: text}}}).Text
	}
	result := Request{Messages: []Message{{Role: "user", Results: []Result{{Text: "a.txt b.txt"}}}}}
	if got := say("the weather?"); got != "sunny" {
		t.Errorf("rule: %q", got)
	}
	if got := say("the weather?"); got != "hello" {
		t.Errorf("spent rule: %q", got)
	}
	if a, b := s.next(result).Text, s.next(result).Text; a != "first" || b != "second" {
		t.Errorf("rule with two turns: %q, %q", a, b)
	}
	if got := s.next(result); len(got.Calls) != 1 {
		t.Errorf("then the queue: %+v", got)
	}
	if got := s.next(result); got.Fault == nil || got.Fault.Code != 429 {
		t.Errorf("then the fault: %+v", got)
	}
	if got := say("more"); got != "that is all" {
		t.Errorf("default: %q", got)
	}
}

// A posted script did not clear the rules of the one before; it takes its place, unless it is to be added.
func TestPostedScripts(t *testing.T) {
	t.Parallel()
	s := New(Options{})
	ask := func(text string) string {
		return s.next(Request{Messages: []Message{{Role: "user", Text: text}}}).Text
	}
	post := func(query, script string) {
		t.Helper()
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/sim/script"+query, strings.NewReader(script)))
		if w.Code != http.StatusNoContent {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
	}
	post("", "default: {text: nothing}\nrules:\n  - {when: {contains: weather}, turn: {text: sunny}}\nturns:\n  - text: unused\n")
	post("?add=true", "rules:\n  - {when: {contains: time}, turn: {text: noon}}\n")
	if a, b := ask("weather"), ask("time"); a != "sunny" || b != "noon" {
		t.Errorf("added: %q, %q", a, b)
	}
	post("", "default: {text: anew}\nrules:\n  - {when: {contains: time}, turn: {text: midnight}}\n")
	if a, b := ask("weather"), ask("time"); a != "anew" || b != "midnight" {
		t.Errorf("in place of it: %q, %q", a, b)
	}
}

func TestRespondAnswersWhatIsNotScripted(t *testing.T) {
	t.Parallel()
	s := New(Options{Respond: func(r Request) Turn { return Text("to " + r.LastUser()) }})
	s.Push(Text("pushed"))
	r := Request{Messages: []Message{{Role: "user", Text: "ada"}}}
	if a, b := s.next(r).Text, s.next(r).Text; a != "pushed" || b != "to ada" {
		t.Errorf("%q, %q", a, b)
	}
}

func TestBadScripts(t *testing.T) {
	t.Parallel()
	cases := []struct{ script, want string }{
		{"turns:\n  - txet: x", "txet"},
		{"- text: x\n  stop: never", "no stop"},
		{"- fault: {kind: explode}", "no fault"},
		{"- fault: {kind: status, code: 200}", "400 to 599"},
		{"rules:\n  - when: {contains: x}", "no turn"},
		{"turns: 3", "turns"},
	}
	for _, c := range cases {
		if _, err := ParseScript([]byte(c.script)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v", c.script, err)
		}
	}
	if _, err := ReadScript("/no/such/file"); err == nil {
		t.Error("read a file that is not there")
	}
	if s, err := ParseScript([]byte(`[{"text":"json","calls":[{"name":"a","args":{"b":[1,2]}}]}]`)); err != nil || s.Turns[0].Calls[0].args() != `{"b":[1,2]}` {
		t.Errorf("JSON: %+v, %v", s, err)
	}
}

// The guide names every key that a script can have, and its examples are scripts.
func TestGuideHasEveryKey(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../../../docs/guides/llm-sim.md")
	if err != nil {
		t.Fatal(err)
	}
	guide := string(data)
	for _, part := range []any{Script{}, Rule{}, When{}, Turn{}, Call{}, Usage{}, Fault{}} {
		for field := range reflect.TypeOf(part).Fields() {
			if key := field.Tag.Get("yaml"); key != "" && !strings.Contains(guide, "`"+key+"`") && !strings.Contains(guide, key+":") {
				t.Errorf("the guide does not name %s of %T", key, part)
			}
		}
	}
	examples := strings.Split(guide, "```yaml\n")[1:]
	if len(examples) != 3 {
		t.Fatalf("%d examples", len(examples))
	}
	for _, example := range examples {
		text, _, _ := strings.Cut(example, "```")
		if _, err := ParseScript([]byte(text)); err != nil {
			t.Errorf("%v:\n%s", err, text)
		}
	}
}
