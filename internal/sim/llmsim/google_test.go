package llmsim

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

const (
	gemini  = "/v1beta/models/gemini-2.5-flash:"
	gemini3 = "/v1beta/models/gemini-3-pro-preview:"
	sse     = "streamGenerateContent?alt=sse"
	helloG  = `{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}`
)

// goog is the header with a key that is accepted.
var goog = []string{"x-goog-api-key", "test-key"}

func TestGoogleEcho(t *testing.T) {
	t.Parallel()
	s, c := start(t, Options{})
	for method, want := range map[string]string{
		"generateContent":       `{"candidates":[{"content":{"parts":[{"text":"echo: hi"}]`,
		"streamGenerateContent": `[{"candidates":`,
		sse:                     "data: {",
	} {
		if code, body := c.ask(gemini+method, helloG, goog...); code != 200 || !strings.HasPrefix(body, want) || !strings.Contains(body, `"finishReason":"STOP"`) {
			t.Errorf("%s: %d %s", method, code, body)
		}
	}
	if got := s.Requests()[0]; got.API != Google || got.Model != "gemini-2.5-flash" || got.LastUser() != "hi" {
		t.Errorf("recorded %+v", got)
	}
	if code, _ := c.ask(gemini+"countTokens", helloG, goog...); code != 404 {
		t.Errorf("another method: %d", code)
	}
}

func TestGoogleIsStrict(t *testing.T) {
	t.Parallel()
	user := `{"role":"user","parts":[{"text":"hi"}]}`
	use := `{"role":"model","parts":[{"functionCall":{"name":"bash","args":{}}}]}`
	two := `{"role":"model","parts":[{"functionCall":{"name":"a"}},{"functionCall":{"name":"b"}}]}`
	result := `{"role":"user","parts":[{"functionResponse":{"name":"bash","response":{"output":"ok"}}}]}`
	body := func(extra string, contents ...string) string {
		return `{"contents":[` + strings.Join(contents, ",") + `]` + extra + `}`
	}
	part := func(p string) string { return `{"role":"user","parts":[` + p + `]}` }
	config := func(c string) string { return `,"generationConfig":{` + c + `}` }
	cases := []struct{ name, body, want string }{
		{"not json", `{"contents":`, "Invalid JSON payload received."},
		{"unknown field", body(`,"colour":1`, user), `Unknown name \"colour\"`},
		{"unknown setting", body(config(`"colour":1`), user), `Unknown name \"colour\"`},
		{"unknown part", body("", part(`{"colour":1}`)), `Unknown name \"colour\" at 'contents[0]'`},
		{"no contents", `{}`, "contents is not specified"},
		{"bad role", body("", `{"role":"assistant","parts":[{"text":"x"}]}`), "Please use a valid role: user, model."},
		{"no parts", body("", `{"role":"user","parts":[]}`), "contents.parts must not be empty"},
		{"empty part", body("", part(`{}`)), "required oneof field 'data'"},
		{"empty text", body("", part(`{"text":""}`)), "required oneof field 'data'"},
		{"two kinds in a part", body("", part(`{"text":"a","inlineData":{"mimeType":"image/png","data":"eA=="}}`)), "required oneof field 'data'"},
		{"a gif", body("", part(`{"inlineData":{"mimeType":"image/gif","data":"eA=="}}`)), "Unsupported MIME type: image/gif"},
		{"no base64", body("", part(`{"inlineData":{"mimeType":"image/png","data":"?"}}`)), "Base64 decoding failed"},
		{"a call first", body("", use, result), "function call turn comes immediately after a user turn"},
		{"a call behind an answer", body("", user, `{"role":"model","parts":[{"text":"x"}]}`, use, result), "function call turn comes immediately after a user turn"},
		{"a call of the user's", body("", user, strings.Replace(use, "model", "user", 1), result), "function call turn comes immediately after a user turn"},
		{"dangling call", body("", user, use), "number of function response parts is equal"},
		{"dangling call in the middle", body("", user, use, user), "number of function response parts is equal"},
		{"one of two results", body("", user, two, result), "number of function response parts is equal"},
		{"results apart", body("", user, two, result, result), "number of function response parts is equal"},
		{"orphan result", body("", user, result), "function response turn comes immediately after a function call turn"},
		{"result without a name", body("", user, use, strings.Replace(result, `"name":"bash",`, "", 1)), "function_response.name: Name cannot be empty"},
		{"result without a response", body("", user, use, part(`{"functionResponse":{"name":"bash"}}`)), "function_response.response"},
		{"call without a name", body("", user, strings.Replace(use, "bash", "", 1), result), "function_call.name: Name cannot be empty"},
		{"args no object", body("", user, strings.Replace(use, "{}}}", `"x"}}`, 1), result), "google.protobuf.Struct"},
		{"a foreign signature", body("", part(`{"text":"x","thoughtSignature":"c2ln"}`)), "Corrupted thought signature."},
		{"a signature that is no base64", body("", part(`{"text":"x","thoughtSignature":"sig-1"}`)), "Base64 decoding failed"},
		{"too much output", body(config(`"maxOutputTokens":100000`), user), "to 65537 (exclusive)"},
		{"no output", body(config(`"maxOutputTokens":0`), user), "must be positive"},
		{"too hot", body(config(`"temperature":3`), user), "[0.0, 2.0]"},
		{"top p", body(config(`"topP":2`), user), "[0.0, 1.0]"},
		{"six stops", body(config(`"stopSequences":["1","2","3","4","5","6"]`), user), "maximum number of stop sequences is 5"},
		{"empty stop", body(config(`"stopSequences":[""]`), user), "must not be empty"},
		{"budget too large", body(config(`"thinkingConfig":{"thinkingBudget":100000}`), user), "between 0 and 24576"},
		{"a level where none is", body(config(`"thinkingConfig":{"thinkingLevel":"low"}`), user), "Thinking level is not supported"},
		{"level and budget", body(config(`"thinkingConfig":{"thinkingLevel":"low","thinkingBudget":1}`), user), "only one of thinking budget and thinking level"},
		{"tool name", body(`,"tools":[{"functionDeclarations":[{"name":"1x"}]}]`, user), "Invalid function name"},
		{"tool twice", body(`,"tools":[{"functionDeclarations":[{"name":"x"},{"name":"x"}]}]`, user), "Duplicate function declaration found: x"},
		{"tool schema", body(`,"tools":[{"functionDeclarations":[{"name":"x","parametersJsonSchema":{"type":"string"}}]}]`, user), "schema type should be OBJECT"},
		{"empty system", body(`,"systemInstruction":{"parts":[{"text":""}]}`, user), "system_instruction"},
	}
	_, c := start(t, Options{})
	for _, tc := range cases {
		code, got := c.ask(gemini+sse, tc.body, goog...)
		if code != 400 || !strings.Contains(got, tc.want) || !strings.Contains(got, `"status":"INVALID_ARGUMENT"`) {
			t.Errorf("%s: %d %s", tc.name, code, got)
		}
	}
	for name, fine := range map[string]string{
		"calls and results": body("", user, use, result, user), "results with a word": body("", user, use, result, user, user),
		"a role in a row": body("", user, user), "skipped signature": body("", part(`{"text":"x","thoughtSignature":"skip_thought_signature_validator"}`)),
		"no thinking": body(config(`"thinkingConfig":{"thinkingBudget":0}`), user),
	} {
		if code, got := c.ask(gemini+sse, fine, goog...); code != 200 {
			t.Errorf("%s: %d %s", name, code, got)
		}
	}
	if code, got := c.ask(gemini3+sse, body("", user, use, result), goog...); code != 400 || !strings.Contains(got, "missing a thought_signature") {
		t.Errorf("an unsigned call: %d %s", code, got)
	}
	if code, got := c.ask(gemini3+sse, body("", user, use, result, user), goog...); code != 200 {
		t.Errorf("an unsigned call of an older turn: %d %s", code, got)
	}
}

func TestGoogleKeysAndModels(t *testing.T) {
	t.Parallel()
	_, c := start(t, Options{Keys: []string{"right"}, Models: []string{"gemini-a", "gemini-b", "gemini-c"}, Window: 100})
	path := "/v1beta/models/gemini-a:" + sse
	for _, tc := range []struct {
		key, path, body string
		code            int
		want            string
	}{
		{"right", path, helloG, 200, "echo"},
		{"", path, helloG, 403, "unregistered callers"},
		{"wrong", path, helloG, 400, `"reason":"API_KEY_INVALID"`},
		{"right", "/v1beta/models/gemini-z:" + sse, helloG, 404, "is not found for API version v1beta"},
		{"right", path, strings.Replace(helloG, "hi", strings.Repeat("long ", 200), 1), 400, "exceeds the maximum number of tokens allowed (100)"},
	} {
		if code, body := c.ask(tc.path, tc.body, "x-goog-api-key", tc.key); code != tc.code || !strings.Contains(body, tc.want) {
			t.Errorf("%+v: %d %s", tc, code, body)
		}
	}
	var names []string
	for token := ""; ; {
		var page struct {
			Models []struct{ Name string }
			Next   string `json:"nextPageToken"`
		}
		get(t, c, "/v1beta/models?pageSize=2&key=right&pageToken="+token, &page)
		for _, m := range page.Models {
			names = append(names, m.Name)
		}
		if token = page.Next; token == "" {
			break
		}
	}
	if strings.Join(names, ",") != "models/gemini-a,models/gemini-b,models/gemini-c" {
		t.Errorf("models %v", names)
	}
}

// get reads a JSON answer.
func get(t *testing.T, c *client, path string, into any) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "GET", c.url+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := c.http.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	if err := json.NewDecoder(res.Body).Decode(into); err != nil || res.StatusCode != 200 {
		t.Fatalf("%s: %d, %v", path, res.StatusCode, err)
	}
}

func TestGoogleFaults(t *testing.T) {
	t.Parallel()
	s, c := start(t, Options{})
	s.Push(
		Turn{Fault: &Fault{Kind: Status, Code: 429, RetryAfter: "7"}},
		Turn{Fault: &Fault{Kind: Status, Code: 503, RetryAfterMS: 250}},
		Turn{Fault: &Fault{Kind: Status, Code: 429, RetryAfter: "soon"}},
		Turn{Text: "abc", Chunk: 1, Fault: &Fault{Kind: StreamError, After: 1, Type: "rate_limit_error"}},
		Turn{Text: "abc", Stop: "refusal"},
		Turn{Calls: []Call{{Name: "x", Args: `{"cut`}}, Stop: "length"},
	)
	for _, want := range []string{
		`"retryDelay":"7s"`, `"retryDelay":"0.25s"`, `"status":"RESOURCE_EXHAUSTED"`, `data: {"error":{"code":429`, `"finishReason":"SAFETY"`, `"finishReason":"MAX_TOKENS"`,
	} {
		if _, body := c.ask(gemini+sse, helloG, goog...); !strings.Contains(body, want) {
			t.Errorf("want %s in %s", want, body)
		}
	}
}

func TestGoogleMeasures(t *testing.T) {
	t.Parallel()
	_, c := start(t, Options{Bench: &Bench{Turns: 1}})
	if _, body := c.ask(gemini+sse, helloG, goog...); !strings.Contains(body, `"functionCall"`) {
		t.Errorf("the first turn: %s", body)
	}
	second := strings.Replace(helloG, "]}]", `]},{"role":"model","parts":[{"text":"x"}]},{"role":"user","parts":[{"text":"y"}]}]`, 1)
	if _, body := c.ask(gemini+sse, second, goog...); !strings.Contains(body, `"text":"done"`) {
		t.Errorf("the last turn: %s", body)
	}
}
