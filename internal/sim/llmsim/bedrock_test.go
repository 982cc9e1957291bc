package llmsim

import (
	"encoding/binary"
	"encoding/json"
	"hash/crc32"
	"io"
	"net/http"
	"strings"
	"testing"
)

// aws asks the simulator with an API key and gives status, the error's name, and
// the body.
func aws(t *testing.T, url, path, body string) (int, string, []byte) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer test-key")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, res.Header.Get("X-Amzn-Errortype"), data
}

func TestBedrockRefusals(t *testing.T) {
	t.Parallel()
	_, url := Launch(t, Options{})
	const (
		say   = `"messages":[{"role":"user","content":[{"text":"hi"}]}]`
		tool  = `"toolConfig":{"tools":[{"toolSpec":{"name":"a","inputSchema":{"json":{"type":"object"}}}}]}`
		use   = `{"role":"assistant","content":[{"toolUse":{"toolUseId":"c","name":"a","input":{}}}]}`
		hi    = `{"role":"user","content":[{"text":"hi"}]}`
		res   = `{"toolResult":{"toolUseId":"c","content":[{"text":"ok"}]}}`
		point = `{"cachePoint":{"type":"default"}}`
		nova  = "/model/us.amazon.nova-pro-v1%3A0/converse-stream"
		llama = "/model/meta.llama3-3-70b-instruct-v1%3A0/converse-stream"
		sonn  = "/model/anthropic.claude-sonnet-4-5-20250929-v1%3A0/invoke-with-response-stream"
		ask   = `"max_tokens":9,"messages":[{"role":"user","content":"hi"}]`
	)
	for _, c := range []struct{ path, body, want string }{
		{nova, `{`, "SerializationException"},
		{nova, `{"x":1}`, "extraneous key [x]"},
		{nova, `{}`, "must start with a user message"},
		{nova, `{"messages":[` + use + `]}`, "must start with a user message"},
		{nova, `{"messages":[` + hi + `,` + hi + `]}`, "must alternate"},
		{nova, `{"messages":[{"role":"user","content":[]}]}`, "is empty"},
		{nova, `{"messages":[{"role":"user","content":[{"text":" "}]}]}`, "is blank"},
		{nova, `{"messages":[{"role":"user","content":[{"txt":"a"}]}]}`, "extraneous key [txt]"},
		{nova, `{"messages":[{"role":"system","content":[{"text":"a"}]}]}`, "enum value set"},
		{nova, `{` + say + `,"system":[{"text":""}]}`, "SystemContentBlock"},
		{nova, `{` + say + `,"inferenceConfig":{"maxTokens":9999999}}`, "exceeds the model limit"},
		{nova, `{` + say + `,"inferenceConfig":{"temperature":2}}`, "inferenceConfig.temperature"},
		{nova, `{` + say + `,"inferenceConfig":{"stopSequences":["a","b","c","d","e"]}}`, "maximum item count"},
		{nova, `{` + say + `,"additionalModelRequestFields":{"thinking":{}}}`, "extraneous key"},
		{nova, `{` + say + `,"toolConfig":{"tools":[]}}`, "toolConfig.tools"},
		{nova, `{` + say + `,"toolConfig":{"tools":[{"toolSpec":{"name":"a b","inputSchema":{"json":{"type":"object"}}}}]}}`, "toolSpec.name"},
		{nova, `{` + say + `,"toolConfig":{"tools":[{"toolSpec":{"name":"a","description":"","inputSchema":{"json":{"type":"object"}}}}]}}`, "toolSpec.description"},
		{nova, `{` + say + `,"toolConfig":{"tools":[{"toolSpec":{"name":"a","inputSchema":{"json":{"type":"string"}}}}]}}`, "inputSchema.json.type"},
		{nova, `{` + say + `,"toolConfig":{"tools":[{"toolSpec":{"name":"a","inputSchema":{"json":{"type":"object"}}}},` + point + `]}}`, "extraneous key [cachePoint]"},
		{nova, `{"messages":[{"role":"user","content":[{"text":"hi"},` + strings.Repeat(point+",", 4) + point + `]}]}`, "maximum number of cache points"},
		{nova, `{"messages":[` + hi + `,` + use + `,{"role":"user","content":[` + res + `]}]}`, "toolConfig field must be defined"},
		{nova, `{` + tool + `,"messages":[` + hi + `,` + use + `,` + hi + `]}`, "Expected toolResult blocks"},
		{nova, `{` + tool + `,"messages":[` + hi + `,` + use + `]}`, "Expected toolResult blocks"},
		{nova, `{` + tool + `,"messages":[{"role":"user","content":[` + res + `]}]}`, "exceeds the number of toolUse blocks"},
		{nova, `{` + tool + `,"messages":[` + hi + `,` + use + `,{"role":"user","content":[{"text":"x"},` + res + `]}]}`, "must come before"},
		{nova, `{` + tool + `,"messages":[` + hi + `,` + strings.Replace(use, `"c"`, `"c:1"`, 1) + `]}`, "toolUseId"},
		{nova, `{"messages":[` + hi + `,{"role":"assistant","content":[{"reasoningContent":{"redactedContent":"eA=="}},{"text":"a"}]}]}`, "reasoningContent"},
		{nova, `{"messages":[{"role":"user","content":[{"image":{"format":"bmp","source":{"bytes":"eA=="}}}]}]}`, "image.format"},
		{nova, `{"messages":[` + hi + `,{"role":"assistant","content":[{"text":"a "}]}]}`, "trailing whitespace"},
		{llama, `{` + say + `,` + tool + `}`, "tool use in streaming mode"},
		{llama, `{` + say + `,"inferenceConfig":{"stopSequences":["a"]}}`, "stopSequences"},
		{llama, `{"messages":[{"role":"user","content":[{"text":"hi"},` + point + `]}]}`, "AccessDeniedException"},
		{llama, `{"messages":[{"role":"user","content":[{"image":{"format":"png","source":{"bytes":"eA=="}}}]}]}`, "image content block"},
		{llama, `{"messages":[` + hi + `,{"role":"assistant","content":[{"text":"a"}]}]}`, "prefill"},
		{sonn, `{` + ask + `}`, "anthropic_version"},
		{sonn, `{"anthropic_version":"bedrock-2023-05-31","model":"m",` + ask + `}`, "extraneous key [model]"},
		{sonn, `{"anthropic_version":"bedrock-2023-05-31","stream":true,` + ask + `}`, "extraneous key [stream]"},
		{sonn, `{"anthropic_version":"bedrock-2023-05-31","messages":[]}`, "max_tokens: Field required"},
		{strings.Replace(nova, "converse", "invoke-with-response", 1), `{"anthropic_version":"bedrock-2023-05-31",` + ask + `}`, "not one of the model's"},
	} {
		status, name, data := aws(t, url, c.path, c.body)
		var said struct {
			Message string `json:"message"`
		}
		if err := json.Unmarshal(data, &said); err != nil || status < 400 || !strings.Contains(name+" "+said.Message, c.want) {
			t.Errorf("%s %s: %d %s %q, want %q", c.path, c.body, status, name, data, c.want)
		}
	}
}

func TestBedrockFrames(t *testing.T) {
	t.Parallel()
	s, url := Launch(t, Options{})
	s.Push(Turn{Text: "hello", Usage: &Usage{Input: 1, Output: 2}})
	status, _, data := aws(t, url, "/model/amazon.nova-lite-v1:0/converse-stream", `{"messages":[{"role":"user","content":[{"text":"hi"}]}]}`)
	if status != 200 {
		t.Fatalf("%d %s", status, data)
	}
	var names []string
	for len(data) > 0 {
		n := binary.BigEndian.Uint32(data)
		frame := data[:n]
		data = data[n:]
		if crc32.ChecksumIEEE(frame[:8]) != binary.BigEndian.Uint32(frame[8:]) || crc32.ChecksumIEEE(frame[:n-4]) != binary.BigEndian.Uint32(frame[n-4:]) {
			t.Fatal("a sum is wrong")
		}
		_, after, _ := strings.Cut(string(frame), ":event-type\x07")
		names = append(names, after[2:2+int(after[1])])
	}
	if got := strings.Join(names, " "); got != "messageStart contentBlockDelta contentBlockStop messageStop metadata" {
		t.Errorf("events %s", got)
	}
}

func TestBedrockKeys(t *testing.T) {
	t.Parallel()
	_, url := Launch(t, Options{Keys: []string{"test-key"}})
	const good = "AWS4-HMAC-SHA256 Credential=AKID/20260101/us-east-1/bedrock/aws4_request, SignedHeaders=host;x-amz-date, Signature="
	for header, want := range map[string]string{
		"":                              "MissingAuthenticationTokenException",
		"Bearer wrong":                  "AccessDeniedException",
		"AWS4-HMAC-SHA256 Credential=x": "IncompleteSignatureException",
		good + strings.Repeat("0", 64):  "InvalidSignatureException",
		strings.Replace(good, "host;", "", 1) + strings.Repeat("0", 64):     "InvalidSignatureException",
		strings.Replace(good, "bedrock", "s3", 1) + strings.Repeat("0", 64): "IncompleteSignatureException",
		"Bearer test-key": "",
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/foundation-models", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", header)
		req.Header.Set("X-Amz-Date", "20260101T000000Z")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if got := res.Header.Get("X-Amzn-Errortype"); got != want || (want == "") != (res.StatusCode == 200) {
			t.Errorf("%q: %d %s, want %s", header, res.StatusCode, got, want)
		}
	}
}
