package format

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestBase(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"": "", " ": "", "http://x": "http://x/v1/", "http://x/": "http://x/v1/", "http://x/v1": "http://x/v1/", "http://x/v1//": "http://x/v1/",
		"http://x/api/chat/completions": "http://x/api/", "http://x/v1/chat/completions/": "http://x/v1/", "http://x/openai": "http://x/openai/v1/",
		"http://x/v1/responses": "http://x/v1/", "http://x/completions": "http://x/", "https://openrouter.ai/api/v1": "https://openrouter.ai/api/v1/",
		"https://x/v1beta/openai/": "https://x/v1beta/openai/", "https://x/api/paas/v4": "https://x/api/paas/v4/",
		"http://v1": "http://v1/v1/", "x:8080": "x:8080/v1/", "http://x/v1?api-version=7&a=b#c": "http://x/v1/ a=b&api-version=7",
	} {
		got, query := Base(in)
		if len(query) > 0 {
			got += " " + query.Encode()
		}
		if got != want {
			t.Errorf("Base(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestExtraReplacesAndTakesAway(t *testing.T) {
	t.Parallel()
	b := Body{Bytes: []byte(`{"model":"m"`), Extra: Extra{
		"temperature": json.RawMessage(`0.1`), "max_completion_tokens": json.RawMessage(`null`), "zeta": json.RawMessage(`{"a":[1]}`), "al\"pha": json.RawMessage(`"x"`),
	}}
	if err := b.Extra.Check(); err != nil {
		t.Fatal(err)
	}
	one, low := 1.0, -3.0
	b.Float("temperature", &one, 0, 2)
	b.Float("top_p", &low, 0, 1)
	b.Float("nothing", nil, 0, 1)
	b.Int("max_completion_tokens", 5)
	b.Int("n", 1)
	b.Stops("stop", []string{"", "a", "b", "c"}, 2)
	b.Stops("no", []string{"a"}, 0)
	got := string(b.Extra.Append(b.Bytes)) + "}"
	if want := `{"model":"m","top_p":0,"n":1,"stop":["a","b"],"al\"pha":"x","temperature":0.1,"zeta":{"a":[1]}}`; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

func TestSomeFieldsAreNotFree(t *testing.T) {
	t.Parallel()
	for _, key := range ours {
		if err := (Extra{key: json.RawMessage(`1`)}).Check(); err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("%s: %v", key, err)
		}
	}
	if err := (Extra{"x": json.RawMessage(`{`)}).Check(); err == nil {
		t.Error("half an object was taken")
	}
}

// A body stays one JSON object in which no field stands twice, whatever the extras.
func TestBodiesStayWhole(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SampledFrom([]string{"a", "b", "temperature", "stop", "ö\"", ""})
		extra := Extra{}
		for _, name := range rapid.SliceOfDistinct(names, func(s string) string { return s }).Draw(t, "extra") {
			extra[name] = json.RawMessage(rapid.SampledFrom([]string{`1`, `null`, `"x"`, `[]`, `{"a":null}`}).Draw(t, name))
		}
		b := Body{Bytes: []byte(`{"model":"m"`), Extra: extra}
		b.Raw("temperature", "1")
		b.Stops("stop", []string{"x"}, 0)
		b.Int("a", 1)
		dec := json.NewDecoder(strings.NewReader(string(b.Extra.Append(b.Bytes)) + "}"))
		seen, depth := map[string]bool{}, 0
		for key := true; ; {
			tok, err := dec.Token()
			if err != nil {
				break
			}
			switch d, _ := tok.(json.Delim); {
			case d == '{' || d == '[':
				depth++
				key = depth == 1
				continue
			case d == '}' || d == ']':
				depth--
				key = true
				continue
			}
			if depth == 1 && key {
				if name := tok.(string); seen[name] {
					t.Fatalf("%q stands twice", name)
				} else {
					seen[name] = true
				}
			}
			if depth == 1 {
				key = !key
			}
		}
		if depth != 0 || !seen["model"] {
			t.Fatalf("no object: depth %d, %v", depth, seen)
		}
		for name, value := range extra {
			if seen[name] == (string(value) == "null") {
				t.Fatalf("%q = %s, and in the body: %v", name, value, seen[name])
			}
		}
	})
}

func TestPrefillsEndIsNotSaidTwice(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ prefill, pieces, want string }{
		{"ada: ", " |well", "well"}, {"ada:", " well", " well"}, {"ada:\n\n", "\n|\n|well", "well"}, {"ada:\n\n", "\nwell", "well"},
		{"ada: ", "well", "well"}, {" ", " well", " well"}, {"ada: \n", " |x", "x"},
	} {
		a := Stream{Prefill: c.prefill, Yield: nil}.answer()
		got := ""
		a.Yield = collect(&got)
		for _, p := range strings.Split(c.pieces, "|") {
			a.say(nil, p)
		}
		if got != c.want || a.done().Blocks.Text() != c.want {
			t.Errorf("%q then %q: %q", c.prefill, c.pieces, got)
		}
	}
}
