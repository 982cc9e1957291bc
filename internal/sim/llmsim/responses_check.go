package llmsim

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"chorus/internal/model/catalog"
)

// responsesCheck validates a request against the rules of Responses and fills in its contents.
type responsesCheck struct {
	req     *Request
	body    *responsesBody
	called  []string // calls so far
	pending []string // of those, the ones without a result
	alone   bool     // the previous item was reasoning
	sealed  bool     // encrypted reasoning is requested
}

func (c *responsesCheck) all() *refusal {
	for _, check := range []func() *refusal{c.settings, c.tools, c.items} {
		if e := check(); e != nil {
			return e
		}
	}
	return nil
}

func (c *responsesCheck) settings() *refusal {
	b := c.body
	entry, known := catalog.Lookup("openai", b.Model)
	if b.MaxOutputTokens != nil {
		c.req.MaxTokens = *b.MaxOutputTokens
	}
	for _, include := range b.Include {
		if include != "reasoning.encrypted_content" {
			return wrong("Invalid value: '%s'. Supported values are: 'reasoning.encrypted_content' and others that the simulator does not know.", include)
		}
		c.sealed = true
	}
	c.req.sealed = c.sealed
	switch {
	case b.Model == "":
		return wrong("Missing required parameter: 'model'.")
	case b.MaxOutputTokens != nil && *b.MaxOutputTokens < 16:
		return wrong("Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16, but got %d instead.", *b.MaxOutputTokens)
	case known && c.req.MaxTokens > entry.MaxOutput:
		return wrong("Invalid 'max_output_tokens': integer above maximum value. Expected a value <= %d, but got %d instead.", entry.MaxOutput, c.req.MaxTokens)
	case b.Temperature != nil && (*b.Temperature < 0 || *b.Temperature > 2):
		return wrong("Invalid 'temperature': decimal out of range.")
	case known && entry.NoSampling && (b.Temperature != nil || b.TopP != nil):
		return wrong("Unsupported parameter: 'temperature' is not supported with this model.")
	case c.sealed && known && !entry.Thinking:
		return wrong("Encrypted content is not supported with this model.")
	case c.sealed && (b.Store == nil || *b.Store):
		return wrong("Encrypted content is only simulated for requests with 'store' set to false.")
	case b.Reasoning != nil && known && !entry.Thinking:
		return wrong("Unsupported parameter: 'reasoning.effort' is not supported with this model.")
	}
	return c.effort(entry)
}

func (c *responsesCheck) effort(entry catalog.Entry) *refusal {
	all := []string{"low", "medium", "high"}
	if entry.LeastEffort != "" {
		all = all[slices.Index(all, entry.LeastEffort):]
	}
	if r := c.body.Reasoning; r != nil && r.Effort != "" && !slices.Contains(all, r.Effort) {
		return wrong("Unsupported value: '%s' is not supported with the '%s' model. Supported values are: '%s'.", r.Effort, c.body.Model, strings.Join(all, "', '"))
	}
	return nil
}

func (c *responsesCheck) tools() *refusal {
	if c.body.Instructions != "" {
		c.req.parts = append(c.req.parts, part{bytes: []byte(c.body.Instructions)})
	}
	for i, raw := range c.body.Tools {
		if hosted(raw) {
			c.req.parts = append(c.req.parts, part{bytes: raw})
			continue
		}
		var t struct {
			Type        string          `json:"type"`
			Name        string          `json:"name"`
			Description string          `json:"description"`
			Parameters  json.RawMessage `json:"parameters"`
			Strict      *bool           `json:"strict"`
		}
		unknown, err := decodeStrict(raw, &t)
		var schema struct {
			Type string `json:"type"`
		}
		switch {
		case err != nil:
			return wrong("Invalid 'tools[%d]': %v", i, err)
		case unknown != "" && t.Name == "":
			return wrong("Missing required parameter: 'tools[%d].name'.", i)
		case unknown != "":
			return wrong("Unknown parameter: 'tools[%d].%s'.", i, unknown)
		case t.Type != "function":
			return wrong("Invalid value: '%s'. The simulator supports only: 'function'.", t.Type)
		case !toolName().MatchString(t.Name) || len(t.Name) > 64:
			return wrong("Invalid 'tools[%d].name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.", i)
		case json.Unmarshal(t.Parameters, &schema) != nil || schema.Type != "object":
			return wrong("Invalid schema for function '%s': schema must be a JSON Schema of 'type: \"object\"'.", t.Name)
		case t.Strict == nil || *t.Strict:
			return wrong("Invalid schema for function '%s': In context=(), 'additionalProperties' is required to be supplied and to be false.", t.Name)
		}
		c.req.Tools = append(c.req.Tools, t.Name)
		c.req.parts = append(c.req.parts, part{bytes: raw})
	}
	return nil
}

// hosted reports whether a tool is not a function: tools of the provider, and groups of tools. The simulator never calls them.
func hosted(raw json.RawMessage) bool {
	var t struct {
		Type string `json:"type"`
	}
	return json.Unmarshal(raw, &t) == nil && slices.Contains([]string{"web_search", "custom", "namespace", "local_shell"}, t.Type)
}

func (c *responsesCheck) items() *refusal {
	if len(c.body.Input) == 0 {
		return wrong("Missing required parameter: 'input'.")
	}
	for i, raw := range c.body.Input {
		var it responsesItem
		unknown, err := decodeStrict(raw, &it)
		switch {
		case err != nil:
			return wrong("Invalid type for 'input[%d]': %v", i, err)
		case unknown != "":
			return wrong("Unknown parameter: 'input[%d].%s'.", i, unknown)
		}
		c.req.parts = append(c.req.parts, part{bytes: raw})
		if e := c.item(i, it); e != nil {
			return e
		}
		c.alone = it.Type == "reasoning"
	}
	if c.alone {
		return wrong("Item of type 'reasoning' was provided without its required following item.")
	}
	if len(c.pending) > 0 {
		return wrong("No tool output found for function call %s.", c.pending[0])
	}
	return nil
}

func (c *responsesCheck) item(i int, it responsesItem) *refusal {
	follows := it.Type == "function_call" || it.Type == "reasoning" || it.Role == "assistant"
	if c.alone && !follows {
		return wrong("Item of type 'reasoning' was provided without its required following item.")
	}
	switch it.Type {
	case "message", "":
		return c.message(i, it)
	case "reasoning":
		return c.reasoning(i, it)
	case "function_call":
		if it.CallID == "" || it.Name == "" || it.Arguments == nil {
			return wrong("Missing required parameter: 'input[%d].call_id', 'name' or 'arguments'.", i)
		}
		if len(it.CallID) > 64 || len(it.Name) > 64 || !toolName().MatchString(it.Name) {
			return wrong("Invalid 'input[%d]': the call_id is too long, or the name does not match the pattern '^[a-zA-Z0-9_-]+$'.", i)
		}
		if slices.Contains(c.called, it.CallID) {
			return wrong("Duplicate item found with call_id %s.", it.CallID)
		}
		c.called, c.pending = append(c.called, it.CallID), append(c.pending, it.CallID)
		turn := c.turn("assistant")
		turn.Calls = append(turn.Calls, Used{ID: it.CallID, Name: it.Name, Args: json.RawMessage(*it.Arguments)})
	case "function_call_output":
		if !slices.Contains(c.called, it.CallID) {
			return wrong("No tool call found for function call output with call_id %s.", it.CallID)
		}
		c.pending = slices.DeleteFunc(c.pending, func(id string) bool { return id == it.CallID })
		var out Message
		if e := c.content(fmt.Sprintf("input[%d].output", i), "tool", it.Output, &out); e != nil {
			return e
		}
		turn := c.turn("tool")
		turn.Images += out.Images
		turn.Results = append(turn.Results, Result{Call: it.CallID, Text: out.Text, Images: out.Images})
	default:
		return wrong("Invalid value: '%s'. Supported values are: 'message', 'function_call', 'function_call_output', 'reasoning'.", it.Type)
	}
	return nil
}

// turn returns the message that an item belongs to: the items of one answer are consecutive, and so are results.
func (c *responsesCheck) turn(role string) *Message {
	n := len(c.req.Messages)
	if n == 0 || c.req.Messages[n-1].Role != role || role == "user" {
		c.req.Messages = append(c.req.Messages, Message{Role: role})
		n++
	}
	return &c.req.Messages[n-1]
}

func (c *responsesCheck) message(i int, it responsesItem) *refusal {
	if !slices.Contains([]string{"user", "assistant", "system", "developer"}, it.Role) {
		return wrong("Invalid value: '%s'. Supported values are: 'assistant', 'system', 'developer', and 'user'.", it.Role)
	}
	var out Message
	if e := c.content(fmt.Sprintf("input[%d].content", i), it.Role, it.Content, &out); e != nil {
		return e
	}
	turn := c.turn(it.Role)
	turn.Text += out.Text
	turn.Images += out.Images
	return nil
}

func (c *responsesCheck) reasoning(i int, it responsesItem) *refusal {
	text := ""
	for _, s := range it.Summary {
		text += s.Text
	}
	switch {
	case it.ID == "":
		return wrong("Missing required parameter: 'input[%d].id'.", i)
	case it.Summary == nil:
		return wrong("Missing required parameter: 'input[%d].summary'.", i)
	case it.Encrypted == "":
		return &refusal{code: 404, kind: "invalid_request_error", message: "Item with id '" + it.ID + "' not found. Items are not persisted when `store` is set to false. Try again with `store` set to true, or remove this item from your input."}
	case strings.HasPrefix(it.Encrypted, "sig-") && it.Encrypted != (Turn{Thinking: text}).signature():
		return &refusal{code: 400, kind: "invalid_request_error", errCode: "invalid_encrypted_content", message: "The encrypted content for item " + it.ID + " could not be verified."}
	}
	said := text + "|" + it.Encrypted
	if text == "" {
		said = "redacted|" + it.Encrypted
	}
	turn := c.turn("assistant")
	turn.Thinking = append(turn.Thinking, said)
	return nil
}

// content parses text, or a list of parts.
func (c *responsesCheck) content(where, role string, raw json.RawMessage, out *Message) *refusal {
	if len(raw) > 0 && raw[0] == '"' {
		if err := json.Unmarshal(raw, &out.Text); err != nil {
			return wrong("Invalid '%s': %v", where, err)
		}
		return nil
	}
	var parts []responsesPart
	unknown, err := decodeStrict(raw, &parts)
	if err != nil || unknown != "" || len(parts) == 0 {
		return wrong("Invalid type for '%s': expected one of an array of objects or string (%v %s)", where, err, unknown)
	}
	for _, p := range parts {
		switch {
		case p.Type == "output_text" && role == "assistant" && p.Annotations == nil:
			return wrong("Missing required parameter: '%s[0].annotations'.", where)
		case p.Type == "output_text" && role == "assistant", p.Type == "input_text" && role != "assistant":
			out.Text += p.Text
		case p.Type == "refusal" && role == "assistant":
			out.Text += p.Refusal
		case p.Type == "input_image" && (role == "user" || role == "tool"):
			head, data, ok := strings.Cut(p.ImageURL, ";base64,")
			if !ok || !strings.HasPrefix(head, "data:image/") {
				return wrong("Invalid '%s'. Expected a valid URL, but got a value with an invalid format.", where)
			}
			if _, err := base64.StdEncoding.DecodeString(data); err != nil || data == "" {
				return wrong("Invalid base64 image_url.")
			}
			out.Images++
		case role == "assistant":
			return wrong("Invalid value: '%s'. Supported values are: 'output_text' and 'refusal'.", p.Type)
		default:
			return wrong("Invalid value: '%s'. Supported values are: 'input_text', 'input_image', and 'input_file'.", p.Type)
		}
	}
	return nil
}
