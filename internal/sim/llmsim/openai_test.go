package llmsim

import (
	"encoding/json"
	"strings"
	"testing"
)

const (
	responses   = "/v1/responses"
	completions = "/v1/completions"
	router      = "/api/v1/chat/completions"
)

func TestOpenAIsOthersEcho(t *testing.T) {
	t.Parallel()
	_, c := start(t, Options{})
	for path, body := range map[string]string{
		responses:   `{"model":"gpt-5.1-codex","store":false,"input":[{"role":"user","content":"hi"}]}`,
		completions: `{"model":"davinci-002","prompt":"hi"}`,
		router:      `{"model":"anthropic/claude-sonnet-4.5","messages":[{"role":"user","content":"hi"}]}`,
	} {
		for _, stream := range []string{"", `"stream":true,`} {
			code, got := c.ask(path, strings.Replace(body, "{", "{"+stream, 1))
			if code != 200 || !strings.Contains(got, `echo: hi`) {
				t.Errorf("%s: %d %s", path, code, got)
			}
		}
		if code, got := c.ask(path, body, "Authorization", "Bearer "); code != 401 || !strings.Contains(got, "API key") {
			t.Errorf("%s without a key: %d %s", path, code, got)
		}
	}
}

func TestResponsesAreStrict(t *testing.T) {
	t.Parallel()
	user := `{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}`
	call := `{"type":"function_call","call_id":"c1","name":"bash","arguments":"{}"}`
	result := `{"type":"function_call_output","call_id":"c1","output":"ok"}`
	reasoned := `{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"E"}`
	body := func(model, extra string, items ...string) string {
		return `{"model":"` + model + `"` + extra + `,"input":[` + strings.Join(items, ",") + `]}`
	}
	cases := []struct{ name, body, want string }{
		{"no model", `{"input":[` + user + `]}`, "'model'"},
		{"messages", `{"model":"gpt-5","messages":[]}`, "has moved to 'input'"},
		{"stop", body("gpt-4o", `,"stop":["x"]`, user), "Unknown parameter: 'stop'"},
		{"no input", body("gpt-4o", ""), "'input'"},
		{"small limit", body("gpt-4o", `,"max_output_tokens":15`, user), ">= 16"},
		{"large limit", body("gpt-4o", `,"max_output_tokens":16385`, user), "<= 16384"},
		{"temperature", body("o3", `,"temperature":1`, user), "not supported with this model"},
		{"effort", body("gpt-4o", `,"reasoning":{"effort":"low"}`, user), "'reasoning.effort' is not supported"},
		{"low effort", body("gpt-5-pro", `,"reasoning":{"effort":"low"}`, user), "Supported values are: 'high'"},
		{"encrypted for nothing", body("gpt-4o", `,"store":false,"include":["reasoning.encrypted_content"]`, user), "Encrypted content is not supported"},
		{"chat's tools", body("gpt-4o", `,"tools":[{"type":"function","function":{"name":"bash"}}]`, user), "'tools[0].name'"},
		{"strict tools", body("gpt-4o", `,"tools":[{"type":"function","name":"bash","parameters":{"type":"object"}}]`, user), "additionalProperties"},
		{"dangling call", body("gpt-4o", "", user, call), "No tool output found for function call c1"},
		{"orphan output", body("gpt-4o", "", user, result), "No tool call found"},
		{"reasoning at the end", body("gpt-5", "", user, reasoned), "required following item"},
		{"reasoning before the user", body("gpt-5", "", user, reasoned, user), "required following item"},
		{"reasoning without an id", body("gpt-5", "", user, `{"type":"reasoning","summary":[],"encrypted_content":"E"}`, call, result), "'input[1].id'"},
		{"reasoning that was not kept", body("gpt-5", "", user, `{"type":"reasoning","id":"rs_1","summary":[]}`, call, result), "not persisted"},
		{"reasoning that was changed", body("gpt-5", "", user, `{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"x"}],"encrypted_content":"sig-0"}`, call, result), "could not be verified"},
		{"input of an assistant", body("gpt-5", "", `{"role":"assistant","content":[{"type":"input_text","text":"x"}]}`), "'output_text' and 'refusal'"},
		{"bad picture", body("gpt-5", "", `{"role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,"}]}`), "base64"},
		{"an item of another kind", body("gpt-5", "", `{"type":"song"}`), "Invalid value: 'song'"},
	}
	_, c := start(t, Options{})
	for _, tc := range cases {
		code, got := c.ask(responses, tc.body)
		if code != 400 && code != 404 || !strings.Contains(got, `"error":{`) || !strings.Contains(got, tc.want) {
			t.Errorf("%s: %d %s, want %q", tc.name, code, got, tc.want)
		}
	}
	if code, got := c.ask(responses, body("gpt-5", "", user, reasoned, call, result)); code != 200 {
		t.Errorf("a good request: %d %s", code, got)
	}
	if code, got := c.ask(chats, `{"model":"o3-pro","messages":[{"role":"user","content":"hi"}]}`); code != 404 || !strings.Contains(got, "v1/responses") {
		t.Errorf("a model of Responses in Chat Completions: %d %s", code, got)
	}
}

func TestCompletionsAreStrict(t *testing.T) {
	t.Parallel()
	cases := []struct{ name, body, want string }{
		{"no model", `{"prompt":"x"}`, "model parameter"},
		{"a chat model", `{"model":"gpt-4o","prompt":"x"}`, "Did you mean to use v1/chat/completions"},
		{"no prompt", `{"model":"davinci-002"}`, "'prompt'"},
		{"messages", `{"model":"davinci-002","prompt":"x","messages":[]}`, "Unrecognized request argument supplied: messages"},
		{"five stops", `{"model":"davinci-002","prompt":"x","stop":["a","b","c","d","e"]}`, "maximum length 4"},
		{"no tokens", `{"model":"davinci-002","prompt":"x","max_tokens":0}`, "minimum of 1"},
		{"more than the window", `{"model":"davinci-002","prompt":"x","max_tokens":16384}`, "maximum context length is 16384"},
		{"temperature", `{"model":"davinci-002","prompt":"x","temperature":3}`, "'temperature'"},
		{"penalty", `{"model":"davinci-002","prompt":"x","presence_penalty":-3}`, "'presence_penalty'"},
	}
	_, c := start(t, Options{})
	for _, tc := range cases {
		code, got := c.ask(completions, tc.body)
		if code != 400 && code != 404 || !strings.Contains(got, tc.want) {
			t.Errorf("%s: %d %s, want %q", tc.name, code, got, tc.want)
		}
	}
}

func TestOpenRouterIsStrict(t *testing.T) {
	t.Parallel()
	user := `{"role":"user","content":"hi"}`
	use := `{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"bash","arguments":"{}"}}]}`
	result := `{"role":"tool","tool_call_id":"c1","content":"ok"}`
	marked := `{"role":"user","content":[{"type":"text","text":"hi","cache_control":{"type":"ephemeral"}}]}`
	body := func(model, extra string, msgs ...string) string {
		return `{"model":"` + model + `"` + extra + `,"messages":[` + strings.Join(msgs, ",") + `]}`
	}
	const claude = "anthropic/claude-sonnet-4.5"
	cases := []struct{ name, body, want string }{
		{"no vendor", body("gpt-4o", "", user), "not a valid model ID"},
		{"unknown field", body(claude, `,"colour":1`, user), "colour"},
		{"five marks", body(claude, "", marked, marked, marked, marked, marked), "maximum of 4 blocks"},
		{"a mark on nothing", body(claude, "", strings.Replace(marked, `"hi"`, `""`, 1)), "not empty"},
		{"two ways to reason", body(claude, `,"reasoning":{"effort":"low","max_tokens":2000}`, user), "Only one of"},
		{"no room to answer", body(claude, `,"max_tokens":2000,"reasoning":{"max_tokens":2000}`, user), "must be greater"},
		{"two ways to sample", body(claude, `,"temperature":1,"top_p":1`, user), "cannot both"},
		{"sampling while thinking", body(claude, `,"temperature":0.5,"reasoning":{"max_tokens":2000}`, user), "only be set to 1"},
		{"thinking after calls without", body(claude, `,"reasoning":{"max_tokens":2000}`, user, use, result), "Expected `thinking`"},
		{"odd details", body(claude, "", user, `{"role":"assistant","content":"x","reasoning_details":[{"type":"song"}]}`), "song"},
		{"changed details", body(claude, "", user, `{"role":"assistant","content":"x","reasoning_details":[{"type":"reasoning.text","text":"x","signature":"sig-0"}]}`), "signature"},
		{"dangling call", body(claude, "", user, use), "c1"},
	}
	_, c := start(t, Options{})
	for _, tc := range cases {
		code, got := c.ask(router, tc.body)
		if code != 400 || !strings.Contains(got, `"code":400`) || !strings.Contains(strings.ReplaceAll(got, `\"`, `"`), tc.want) {
			t.Errorf("%s: %d %s, want %q", tc.name, code, got, tc.want)
		}
	}
	// What is OpenRouter's own OpenAI does not know.
	for name, b := range map[string]string{
		"usage": body("gpt-4o", `,"usage":{"include":true}`, user), "reasoning": body("gpt-4o", `,"reasoning":{}`, user),
		"cache_control": body("gpt-4o", "", marked), "reasoning_details": body("gpt-4o", "", user, `{"role":"assistant","content":"x","reasoning_details":[{}]}`),
	} {
		if code, got := c.ask(chats, b); code != 400 || !strings.Contains(got, name) {
			t.Errorf("%s at OpenAI: %d %s", name, code, got)
		}
	}
}

func TestOpenAIsOthersLookReal(t *testing.T) {
	t.Parallel()
	turn := Turn{Thinking: "hm", Text: "well", Calls: []Call{{Name: "bash", Args: `{"a":1}`, Fragments: 2}}}
	for path, c := range map[string]struct {
		body string
		want []string
	}{
		responses: {`{"model":"gpt-5","stream":true,"store":false,"include":["reasoning.encrypted_content"],"input":[{"role":"user","content":"hi"}]}`, []string{
			"event: response.created\n", "event: response.reasoning_summary_text.delta\n", `"encrypted_content":"sig-`, "event: response.output_text.delta\n",
			"event: response.function_call_arguments.delta\n", `"arguments":"{\"a\":1}"`, "event: response.completed\n", `"input_tokens_details":{"cached_tokens":`,
		}},
		completions: {`{"model":"davinci-002","stream":true,"stream_options":{"include_usage":true},"prompt":"hi"}`, []string{
			`"object":"text_completion"`, `"text":"well"`, `"finish_reason":"stop"`, `"prompt_tokens":`, "data: [DONE]\n\n",
		}},
		router: {`{"model":"anthropic/claude-sonnet-4.5","stream":true,"usage":{"include":true},"messages":[{"role":"user","content":"hi"}]}`, []string{
			": OPENROUTER PROCESSING\n\n", `"reasoning":"hm"`, `"type":"reasoning.text"`, `"signature":"sig-`, `"content":"well"`, `"finish_reason":"tool_calls"`, `"cost":`, "data: [DONE]\n\n",
		}},
	} {
		s, client := start(t, Options{})
		s.Push(turn)
		_, got := client.ask(path, c.body)
		for _, want := range c.want {
			at := strings.Index(got, want)
			if at < 0 {
				t.Errorf("%s: no %q in %s", path, want, got)
				break
			}
		}
		for line := range strings.Lines(got) {
			if data, ok := strings.CutPrefix(line, "data: "); ok && !json.Valid([]byte(data)) && data != "[DONE]\n" {
				t.Errorf("%s: %s", path, line)
			}
		}
	}
}
