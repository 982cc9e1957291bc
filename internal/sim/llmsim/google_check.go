package llmsim

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"

	"chorus/internal/model/catalog"
	"chorus/internal/pattern"
)

// googleCheck validates a request against Google's rules and fills in its contents.
type googleCheck struct {
	req     *Request
	body    *googleBody
	lenient bool

	calls    int  // of the previous content, without results so far
	after    bool // the previous content was the user's, or results
	unsigned []*refusal
}

func (c *googleCheck) all() *refusal {
	for _, check := range []func() *refusal{c.settings, c.thinking, c.tools, c.system, c.contents} {
		if e := check(); e != nil && !c.lenient {
			return e
		}
	}
	return nil
}

func (c *googleCheck) settings() *refusal {
	g := c.body.GenerationConfig
	entry, known := catalog.Lookup("google", c.req.Model)
	c.req.Stop = g.StopSequences
	switch {
	case g.MaxOutputTokens != nil && *g.MaxOutputTokens < 1:
		return unfit("max_output_tokens must be positive.")
	case g.MaxOutputTokens != nil && known && *g.MaxOutputTokens > entry.MaxOutput:
		return unfit("Unable to submit request because it has a maxOutputTokens value of %d but the supported range is from 1 (inclusive) to %d (exclusive). Update the value and try again.", *g.MaxOutputTokens, entry.MaxOutput+1)
	case g.Temperature != nil && (*g.Temperature < 0 || *g.Temperature > 2):
		return unfit("* GenerateContentRequest.generation_config.temperature: temperature must be in the range [0.0, 2.0].\n")
	case g.TopP != nil && (*g.TopP < 0 || *g.TopP > 1):
		return unfit("* GenerateContentRequest.generation_config.top_p: top_p must be in the range [0.0, 1.0].\n")
	case len(g.StopSequences) > 5:
		return unfit("* GenerateContentRequest.generation_config.stop_sequences: the maximum number of stop sequences is 5.\n")
	case slices.Contains(g.StopSequences, ""):
		return unfit("* GenerateContentRequest.generation_config.stop_sequences: stop_sequence must not be empty.\n")
	}
	if g.MaxOutputTokens != nil {
		c.req.MaxTokens = *g.MaxOutputTokens
	}
	return nil
}

// third reports whether the model signs its calls and takes a level instead of a budget.
func (c *googleCheck) third() bool { return strings.HasPrefix(c.req.Model, "gemini-3") }

func (c *googleCheck) thinking() *refusal {
	t := c.body.GenerationConfig.ThinkingConfig
	if t == nil {
		return nil
	}
	low, high := 0, 24_576
	switch {
	case strings.Contains(c.req.Model, "-pro"):
		low, high = 128, 32_768
	case strings.Contains(c.req.Model, "-lite"):
		low = 512
	}
	switch {
	case t.ThinkingLevel != "" && t.ThinkingBudget != nil:
		return unfit("You can only set only one of thinking budget and thinking level.")
	case t.ThinkingLevel != "" && !c.third():
		return unfit("Thinking level is not supported for this model.")
	case t.ThinkingLevel != "" && !slices.Contains([]string{"low", "high"}, strings.ToLower(t.ThinkingLevel)):
		return unfit("Thinking level %s is not supported for this model. Please retry with other thinking level.", strings.ToUpper(t.ThinkingLevel))
	case t.ThinkingBudget != nil && *t.ThinkingBudget > 0 && (*t.ThinkingBudget < low || *t.ThinkingBudget > high):
		return unfit("The thinking budget %d is invalid. Please choose a value between %d and %d.", *t.ThinkingBudget, low, high)
	case t.ThinkingBudget != nil && *t.ThinkingBudget == 0 && low == 128:
		return unfit("Budget 0 is invalid. This model only works in thinking mode.")
	}
	c.req.thoughts = t.IncludeThoughts
	return nil
}

var googleName = pattern.Lazy(`^[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}$`)

func (c *googleCheck) tools() *refusal {
	for i, raw := range c.body.Tools {
		var t struct {
			FunctionDeclarations []struct {
				Name                 string          `json:"name"`
				Description          string          `json:"description"`
				Parameters           json.RawMessage `json:"parameters"`
				ParametersJSONSchema json.RawMessage `json:"parametersJsonSchema"`
			} `json:"functionDeclarations"`
		}
		unknown, err := decodeStrict(raw, &t)
		switch {
		case err != nil:
			return unfit("Invalid value at 'tools[%d]': %v", i, err)
		case unknown != "":
			return unfit("Invalid JSON payload received. Unknown name %q at 'tools[%d]': Cannot find field.", unknown, i)
		}
		for j, f := range t.FunctionDeclarations {
			var schema struct {
				Type string `json:"type"`
			}
			switch {
			case !googleName().MatchString(f.Name):
				return unfit("* GenerateContentRequest.tools[%d].function_declarations[%d].name: [FIELD_INVALID] Invalid function name. Must start with a letter or an underscore. Must be alphanumeric (a-z, A-Z, 0-9), underscores (_), dots (.), colons (:), or dashes (-), with a maximum length of 64.\n", i, j)
			case slices.Contains(c.req.Tools, f.Name):
				return unfit("Duplicate function declaration found: %s", f.Name)
			case f.Parameters != nil && f.ParametersJSONSchema != nil:
				return unfit("* GenerateContentRequest.tools[%d].function_declarations[%d]: parameters and parameters_json_schema are mutually exclusive.\n", i, j)
			case f.ParametersJSONSchema != nil && (json.Unmarshal(f.ParametersJSONSchema, &schema) != nil || schema.Type != "object"):
				return unfit("* GenerateContentRequest.tools[%d].function_declarations[%d].parameters_json_schema: schema type should be OBJECT\n", i, j)
			}
			c.req.Tools = append(c.req.Tools, f.Name)
		}
		c.req.parts = append(c.req.parts, part{bytes: raw})
	}
	return nil
}

func (c *googleCheck) system() *refusal {
	if c.body.SystemInstruction == nil {
		return nil
	}
	var content googleContent
	unknown, err := decodeStrict(c.body.SystemInstruction, &content)
	if err != nil || unknown != "" {
		return unfit("Invalid JSON payload received. Unknown name %q at 'system_instruction': Cannot find field. %v", unknown, err)
	}
	for _, p := range content.Parts {
		if p.Text == nil || *p.Text == "" {
			return unfit("* GenerateContentRequest.system_instruction.parts[0].data: required oneof field 'data' must have one initialized field\n")
		}
		c.req.System += *p.Text
	}
	c.req.parts = append(c.req.parts, part{bytes: c.body.SystemInstruction})
	return nil
}

// The rules about the order of calls and results, in Google's words.
const (
	callOrder   = "Please ensure that function call turn comes immediately after a user turn or after a function response turn."
	resultOrder = "Please ensure that function response turn comes immediately after a function call turn."
	resultCount = "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn."
)

func (c *googleCheck) contents() *refusal {
	if len(c.body.Contents) == 0 {
		return unfit("* GenerateContentRequest.contents: contents is not specified\n")
	}
	for i, raw := range c.body.Contents {
		var content googleContent
		unknown, err := decodeStrict(raw, &content)
		switch {
		case err != nil:
			return unfit("Invalid value at 'contents[%d]': %v", i, err)
		case unknown != "":
			return unfit("Invalid JSON payload received. Unknown name %q at 'contents[%d]': Cannot find field.", unknown, i)
		case content.Role != "user" && content.Role != "model":
			return unfit("Please use a valid role: user, model.")
		case len(content.Parts) == 0:
			return unfit("* GenerateContentRequest.contents[%d].parts: contents.parts must not be empty.\n", i)
		}
		c.req.parts = append(c.req.parts, part{bytes: raw})
		if e := c.content(i, content); e != nil {
			return e
		}
	}
	if c.calls > 0 {
		return unfit(resultCount)
	}
	if len(c.unsigned) > 0 { // of the current turn
		return c.unsigned[0]
	}
	return nil
}

func (c *googleCheck) content(i int, content googleContent) *refusal {
	out := Message{Role: "user"}
	if content.Role == "model" {
		out.Role = "assistant"
	}
	signed := true
	for j, p := range content.Parts {
		if e := c.part(i, j, p, &out); e != nil {
			return e
		}
		if p.FunctionCall != nil && len(out.Calls) == 1 {
			signed = p.ThoughtSignature != ""
		}
	}
	switch {
	case len(out.Results) > 0 && (c.calls == 0 || out.Role != "user"):
		return unfit(resultOrder)
	case len(out.Results) != c.calls:
		return unfit(resultCount)
	case len(out.Calls) > 0 && (out.Role != "assistant" || !c.after):
		return unfit(callOrder)
	}
	if out.Role == "user" && out.Text != "" {
		c.unsigned = nil // a new turn; older ones are not checked
	}
	if !signed && c.third() {
		c.unsigned = append(c.unsigned, unfit("Function call is missing a thought_signature in functionCall parts. This is required for tools to work correctly, and missing thought_signature may lead to degraded model performance. Additional data, function call `default_api:%s` , position %d.", out.Calls[0].Name, i+1))
	}
	c.calls, c.after = len(out.Calls), out.Role == "user"
	c.req.Messages = append(c.req.Messages, out)
	return nil
}

// googleImages are the image types that Google accepts.
var googleImages = []string{"image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"}

func (c *googleCheck) part(i, j int, p googlePart, out *Message) *refusal {
	kinds := 0
	for _, given := range []bool{p.Text != nil, p.InlineData != nil, p.FunctionCall != nil, p.FunctionResponse != nil} {
		if given {
			kinds++
		}
	}
	if kinds != 1 || p.Text != nil && *p.Text == "" && p.ThoughtSignature == "" {
		return unfit("* GenerateContentRequest.contents[%d].parts[%d].data: required oneof field 'data' must have one initialized field\n", i, j)
	}
	if e := signature(i, j, p.ThoughtSignature); e != nil {
		return e
	}
	switch {
	case p.Text != nil && p.Thought:
		out.Thinking = append(out.Thinking, *p.Text+"|"+p.ThoughtSignature)
	case p.Text != nil:
		out.Text += *p.Text
	case p.InlineData != nil:
		if !slices.Contains(googleImages, p.InlineData.MimeType) {
			return unfit("Unsupported MIME type: %s", p.InlineData.MimeType)
		}
		if data, err := base64.StdEncoding.DecodeString(p.InlineData.Data); err != nil || len(data) == 0 {
			return unfit("Invalid value at 'contents[%d].parts[%d].inline_data.data' (TYPE_BYTES), Base64 decoding failed", i, j)
		}
		out.Images++
	case p.FunctionCall != nil:
		return c.call(i, j, *p.FunctionCall, out)
	case p.FunctionResponse != nil:
		return c.result(i, j, *p.FunctionResponse, out)
	}
	return nil
}

// signature checks that a signature was issued here, or is the placeholder for none.
func signature(i, j int, sign string) *refusal {
	if sign == "" || sign == "skip_thought_signature_validator" {
		return nil
	}
	data, err := base64.StdEncoding.DecodeString(sign)
	if err != nil {
		return unfit("Invalid value at 'contents[%d].parts[%d].thought_signature' (TYPE_BYTES), Base64 decoding failed for %q", i, j, sign)
	}
	if !bytes.HasPrefix(data, []byte(signedBySim)) {
		return unfit("Corrupted thought signature.")
	}
	return nil
}

func (c *googleCheck) call(i, j int, call googleCall, out *Message) *refusal {
	if call.Name == "" {
		return unfit("* GenerateContentRequest.contents[%d].parts[%d].function_call.name: Name cannot be empty.\n", i, j)
	}
	if args := bytes.TrimSpace(call.Args); len(args) > 0 && args[0] != '{' {
		return unfit("Invalid value at 'contents[%d].parts[%d].function_call.args' (type.googleapis.com/google.protobuf.Struct), %s", i, j, args)
	}
	out.Calls = append(out.Calls, Used(call))
	return nil
}

func (c *googleCheck) result(i, j int, r googleResponse, out *Message) *refusal {
	switch {
	case r.Name == "":
		return unfit("* GenerateContentRequest.contents[%d].parts[%d].function_response.name: Name cannot be empty.\n", i, j)
	case r.Response == nil:
		return unfit("* GenerateContentRequest.contents[%d].parts[%d].function_response.response: response is required.\n", i, j)
	}
	result := Result{Call: r.ID}
	raw, failed := r.Response["error"]
	if result.Failed = failed; !failed {
		raw = r.Response["output"]
	}
	if json.Unmarshal(raw, &result.Text) != nil {
		result.Text = string(raw)
	}
	out.Results = append(out.Results, result)
	return nil
}
