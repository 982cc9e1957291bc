package llmsim

import (
	"encoding/json"
	"slices"
	"strings"

	"chorus/internal/model/catalog"
	"chorus/internal/pattern"
)

// converseCheck validates a request against Converse's rules and fills in its contents.
type converseCheck struct {
	req     *Request
	body    *converseBody
	entry   catalog.Entry
	known   bool
	lenient bool

	points  int
	pending []string // calls of the previous turn without a result
	used    map[string]bool
	tooled  bool // there are calls or results
}

var toolUseID = pattern.Lazy(`^[a-zA-Z0-9_-]{1,64}$`)

// converseRequest parses and validates a body.
func (s *Server) converseRequest(req *Request, data []byte) *refusal {
	var body converseBody
	unknown, err := decodeStrict(data, &body)
	switch {
	case err != nil:
		return &refusal{code: 400, kind: "SerializationException", message: "could not read the request: " + err.Error()}
	case unknown != "":
		return awsInvalid("Malformed input request: #: extraneous key [%s] is not permitted, please reformat your input and try again.", unknown)
	}
	entry, known := catalog.Lookup("bedrock", req.Model)
	c := &converseCheck{req: req, body: &body, entry: entry, known: known, lenient: s.opts.Lenient}
	for _, check := range []func() *refusal{c.settings, c.tools, c.system, c.messages, c.ending} {
		if e := check(); e != nil && !c.lenient {
			return e
		}
	}
	return nil
}

func (c *converseCheck) is(part string) bool { return strings.Contains(c.req.Model, part) }

func (c *converseCheck) settings() *refusal {
	if fields := c.body.Additional; len(fields) > 0 && !c.is("amazon.nova-2") && !c.is("openai.gpt-oss") {
		return awsInvalid("The model returned the following errors: Malformed input request: #: extraneous key is not permitted, please reformat your input and try again.")
	}
	f := c.body.Inference
	if f == nil {
		return nil
	}
	c.req.Stop = f.Stop
	if f.MaxTokens != nil {
		c.req.MaxTokens = *f.MaxTokens
	}
	switch {
	case f.MaxTokens != nil && *f.MaxTokens < 1:
		return awsInvalid("1 validation error detected: Value '%d' at 'inferenceConfig.maxTokens' failed to satisfy constraint: Member must have value greater than or equal to 1", *f.MaxTokens)
	case c.known && c.req.MaxTokens > c.entry.MaxOutput:
		return awsInvalid("The maximum tokens you requested exceeds the model limit of %d. Try again with a maximum tokens value that is lower than %d.", c.entry.MaxOutput, c.entry.MaxOutput)
	case f.Temperature != nil && (*f.Temperature < 0 || *f.Temperature > 1):
		return awsInvalid("1 validation error detected: Value '%v' at 'inferenceConfig.temperature' failed to satisfy constraint: Member must have value less than or equal to 1", *f.Temperature)
	case f.TopP != nil && (*f.TopP < 0 || *f.TopP > 1):
		return awsInvalid("1 validation error detected: Value '%v' at 'inferenceConfig.topP' failed to satisfy constraint: Member must have value less than or equal to 1", *f.TopP)
	case len(f.Stop) > 0 && c.is("meta.llama"):
		return awsInvalid("This model doesn't support the stopSequences field. Remove stopSequences and try again.")
	case len(f.Stop) > 4 && c.is("amazon.nova"):
		return awsInvalid("The model returned the following errors: Malformed input request: #/inferenceConfig/stopSequences: expected maximum item count: 4, found: %d", len(f.Stop))
	case slices.ContainsFunc(f.Stop, func(s string) bool { return strings.TrimSpace(s) == "" }):
		return awsInvalid("1 validation error detected: Value at 'inferenceConfig.stopSequences' failed to satisfy constraint: Member must not be blank")
	}
	return nil
}

// point validates a cache point and counts it.
func (c *converseCheck) point(p *conversePoint, where string) *refusal {
	c.points++
	switch {
	case p.Type != "default":
		return awsInvalid("1 validation error detected: Value '%s' at '%s.cachePoint.type' failed to satisfy constraint: Member must satisfy enum value set: [default]", p.Type, where)
	case !c.is("amazon.nova") && !c.is("anthropic."):
		return &refusal{code: 403, kind: "AccessDeniedException", message: "You invoked an unsupported model or your request did not allow prompt caching. See the documentation for more information."}
	case c.points > 4:
		return awsInvalid("You exceeded the maximum number of cache points per request: 4. Try again with fewer cache points.")
	}
	if n := len(c.req.parts); n > 0 {
		c.req.parts[n-1].marked = true
	}
	return nil
}

func (c *converseCheck) tools() *refusal {
	if c.body.Tools == nil {
		return nil
	}
	if len(c.body.Tools.Tools) == 0 {
		return awsInvalid("1 validation error detected: Value '[]' at 'toolConfig.tools' failed to satisfy constraint: Member must have length greater than or equal to 1")
	}
	if c.req.Stream && (c.is("meta.llama") || c.is("mistral.mi") || c.is("deepseek.r1")) {
		return awsInvalid("This model doesn't support tool use in streaming mode.")
	}
	for i, t := range c.body.Tools.Tools {
		switch {
		case t.Point != nil && c.is("amazon.nova"):
			return awsInvalid("The model returned the following errors: Malformed input request: #/toolConfig/tools/%d: extraneous key [cachePoint] is not permitted, please reformat your input and try again.", i)
		case t.Point != nil:
			if e := c.point(t.Point, "toolConfig.tools"); e != nil {
				return e
			}
			continue
		case t.Spec == nil || !toolUseID().MatchString(t.Spec.Name):
			return awsInvalid("1 validation error detected: Value at 'toolConfig.tools.%d.member.toolSpec.name' failed to satisfy constraint: Member must satisfy regular expression pattern: [a-zA-Z0-9_-]+", i+1)
		case t.Spec.Description != nil && *t.Spec.Description == "":
			return awsInvalid("1 validation error detected: Value '' at 'toolConfig.tools.%d.member.toolSpec.description' failed to satisfy constraint: Member must have length greater than or equal to 1", i+1)
		}
		var schema struct {
			Type string `json:"type"`
		}
		if err := json.Unmarshal(t.Spec.Schema.JSON, &schema); err != nil || schema.Type != "object" {
			return awsInvalid("The value at toolConfig.tools.%d.toolSpec.inputSchema.json.type must be one of the following: object.", i)
		}
		if t.Spec.Name != "no_tool" {
			c.req.Tools = append(c.req.Tools, t.Spec.Name)
		}
		c.req.parts = append(c.req.parts, part{bytes: encode(t)})
	}
	return nil
}

func (c *converseCheck) system() *refusal {
	for i, b := range c.body.System {
		switch {
		case b.Point != nil:
			if e := c.point(b.Point, "system"); e != nil {
				return e
			}
		case b.Text == nil || strings.TrimSpace(*b.Text) == "":
			return awsInvalid("The text field in the SystemContentBlock object at system.%d is blank. Add text to the text field, and try again.", i)
		default:
			c.req.System += *b.Text
			c.req.parts = append(c.req.parts, part{bytes: b.raw})
		}
	}
	return nil
}

func (c *converseCheck) messages() *refusal {
	if len(c.body.Messages) == 0 {
		return awsInvalid("A conversation must start with a user message. Try again with a conversation that starts with a user message.")
	}
	before := ""
	for i, m := range c.body.Messages {
		switch {
		case m.Role != "user" && m.Role != "assistant":
			return awsInvalid("1 validation error detected: Value '%s' at 'messages.%d.member.role' failed to satisfy constraint: Member must satisfy enum value set: [user, assistant]", m.Role, i+1)
		case i == 0 && m.Role != "user":
			return awsInvalid("A conversation must start with a user message. Try again with a conversation that starts with a user message.")
		case m.Role == before:
			return awsInvalid("A conversation must alternate between user and assistant roles. Make sure the conversation alternates between user and assistant roles and try again.")
		case len(m.Content) == 0:
			return awsInvalid("The content field in the Message object at messages.%d is empty. Add a ContentBlock object to the content field and try again.", i)
		}
		before = m.Role
		if e := c.message(i, m.Role, m.Content); e != nil {
			return e
		}
	}
	if c.tooled && c.body.Tools == nil {
		return awsInvalid("The toolConfig field must be defined when using toolUse and toolResult content blocks.")
	}
	if len(c.pending) > 0 && before == "assistant" {
		return awsInvalid("Expected toolResult blocks at messages.%d.content for the following Ids: %s", len(c.body.Messages), strings.Join(c.pending, ", "))
	}
	return nil
}

func (c *converseCheck) message(i int, role string, content []converseBlock) *refusal {
	out := Message{Role: role}
	asked := c.pending
	c.pending = nil
	for j, b := range content {
		if b.Point != nil {
			out.Marked = true
			if e := c.point(b.Point, "messages.content"); e != nil {
				return e
			}
			continue
		}
		c.req.parts = append(c.req.parts, part{bytes: b.raw})
		if e := c.block(i, j, b, &out); e != nil {
			return e
		}
	}
	if role == "user" {
		if len(out.Results) > len(asked) {
			return awsInvalid("The number of toolResult blocks at messages.%d.content exceeds the number of toolUse blocks of previous turn.", i)
		}
		for _, r := range out.Results {
			asked = slices.DeleteFunc(asked, func(id string) bool { return id == r.Call })
		}
		if len(asked) > 0 {
			return awsInvalid("Expected toolResult blocks at messages.%d.content for the following Ids: %s", i, strings.Join(asked, ", "))
		}
	} else if last := content[len(content)-1]; last.Reasoning != nil {
		return awsInvalid("messages.%d: The final block in an assistant message cannot be reasoningContent.", i)
	}
	c.req.Messages = append(c.req.Messages, out)
	return nil
}

func (c *converseCheck) block(i, j int, b converseBlock, out *Message) *refusal {
	switch {
	case b.Text != nil:
		if strings.TrimSpace(*b.Text) == "" {
			return awsInvalid("The text field in the ContentBlock object at messages.%d.content.%d is blank. Add text to the text field, and try again.", i, j)
		}
		out.Text += *b.Text
	case b.Image != nil:
		out.Images++
		return c.image(i, j, b)
	case b.ToolUse != nil:
		u := b.ToolUse
		c.tooled = true
		switch {
		case out.Role != "assistant":
			return awsInvalid("User messages cannot contain toolUse blocks: messages.%d.content.%d", i, j)
		case !toolUseID().MatchString(u.ID) || u.Name == "":
			return awsInvalid("1 validation error detected: Value '%s' at 'messages.%d.member.content.%d.member.toolUse.toolUseId' failed to satisfy constraint: Member must satisfy regular expression pattern: [a-zA-Z0-9_-]+", u.ID, i+1, j+1)
		case !toolName().MatchString(u.Name) || len(u.Name) > 64:
			return awsInvalid("1 validation error detected: Value '%s' at 'messages.%d.member.content.%d.member.toolUse.name' failed to satisfy constraint: Member must satisfy regular expression pattern: [a-zA-Z0-9_-]+", u.Name, i+1, j+1)
		case c.used[u.ID]:
			return awsInvalid("The toolUse blocks at messages.%d.content contain duplicate Ids: %s", i, u.ID)
		case len(u.Input) == 0 || u.Input[0] != '{':
			return awsInvalid("The format of the value at messages.%d.content.%d.toolUse.input is invalid. Provide a json object for the field and try again.", i, j)
		}
		if c.used == nil {
			c.used = map[string]bool{}
		}
		c.used[u.ID] = true
		c.pending = append(c.pending, u.ID)
		out.Calls = append(out.Calls, Used{ID: u.ID, Name: u.Name, Args: u.Input})
	case b.ToolResult != nil:
		return c.result(i, j, b, out)
	case b.Reasoning != nil:
		return c.reasoning(i, j, b, out)
	default:
		return awsInvalid("The ContentBlock object at messages.%d.content.%d must set one of its members.", i, j)
	}
	return nil
}

func (c *converseCheck) image(i, j int, b converseBlock) *refusal {
	switch {
	case !slices.Contains([]string{"png", "jpeg", "gif", "webp"}, b.Image.Format):
		return awsInvalid("1 validation error detected: Value '%s' at 'messages.%d.member.content.%d.member.image.format' failed to satisfy constraint: Member must satisfy enum value set: [png, jpeg, gif, webp]", b.Image.Format, i+1, j+1)
	case len(b.Image.Source.Bytes) == 0:
		return awsInvalid("The provided image in messages.%d.content.%d is empty.", i, j)
	case c.known && !c.entry.Images:
		return awsInvalid("This model doesn't support the image content block that you provided.")
	}
	return nil
}

func (c *converseCheck) reasoning(i, j int, b converseBlock, out *Message) *refusal {
	r := b.Reasoning
	switch {
	case out.Role != "assistant" || c.known && !c.entry.Thinking:
		return awsInvalid("This model doesn't support the reasoningContent field at messages.%d.content.%d. Remove reasoningContent and try again.", i, j)
	case r.Text != nil && r.Text.Signature != "":
		out.Thinking = append(out.Thinking, r.Text.Text+"|"+r.Text.Signature)
	case r.Redacted != "":
		out.Thinking = append(out.Thinking, "redacted|"+r.Redacted)
	default:
		return awsInvalid("The reasoningContent at messages.%d.content.%d has no signature.", i, j)
	}
	return nil
}

func (c *converseCheck) result(i, j int, b converseBlock, out *Message) *refusal {
	r := b.ToolResult
	c.tooled = true
	switch {
	case out.Role != "user":
		return awsInvalid("Assistant messages cannot contain toolResult blocks: messages.%d.content.%d", i, j)
	case len(r.Content) == 0:
		return awsInvalid("The content field in the ToolResultBlock object at messages.%d.content.%d.toolResult is empty.", i, j)
	case r.Status != "" && !c.is("amazon.nova") && !c.is("anthropic."):
		return awsInvalid("This model doesn't support the status field. Remove status and try again.")
	case out.Text != "" || out.Images > 0 && len(out.Results) == 0:
		return awsInvalid("The toolResult blocks at messages.%d.content must come before all other blocks.", i)
	}
	res := Result{Call: r.ID, Failed: r.Status == "error"}
	for k, inner := range r.Content {
		switch {
		case inner.Text != nil && strings.TrimSpace(*inner.Text) != "":
			res.Text += *inner.Text
		case inner.Image != nil:
			if e := c.image(i, j, inner); e != nil {
				return e
			}
			res.Images++
		default:
			return awsInvalid("The ToolResultContentBlock object at messages.%d.content.%d.toolResult.content.%d is blank.", i, j, k)
		}
	}
	out.Images += res.Images
	out.Results = append(out.Results, res)
	return nil
}

// ending checks a prefill.
func (c *converseCheck) ending() *refusal {
	if n := len(c.req.Messages); n == 0 || c.req.Messages[n-1].Role != "assistant" {
		return nil
	}
	if c.known && !c.entry.Prefill {
		return awsInvalid("This model doesn't support assistant message prefill. The conversation must end with a user message.")
	}
	last := c.req.Messages[len(c.req.Messages)-1].Text
	if strings.TrimRight(last, " \t\r\n") != last {
		return awsInvalid("The final assistant message cannot end with trailing whitespace.")
	}
	return nil
}
