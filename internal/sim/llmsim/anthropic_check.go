package llmsim

import (
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"

	"chorus/internal/model/catalog"
	"chorus/internal/pattern"
)

// anthropicCheck validates a request against Anthropic's rules and fills in its contents.
type anthropicCheck struct {
	req     *Request
	body    *anthropicBody
	lenient bool

	marks   int
	pending []string // tool uses of the last assistant turn without results so far
	open    []string // all of them, to detect results without a call
	at      int      // which message made the call
	used    map[string]bool

	unthought bool // the newest answer called tools without thinking
}

var toolName = pattern.Lazy(`^[a-zA-Z0-9_-]{1,128}$`)

// all checks everything in the order of the real server's errors.
func (c *anthropicCheck) all() *refusal {
	for _, check := range []func() *refusal{c.settings, c.system, c.tools, c.messages, c.ending, c.count} {
		if e := check(); e != nil && !c.lenient {
			return e
		}
	}
	return nil
}

func (c *anthropicCheck) settings() *refusal {
	b := c.body
	entry, known := catalog.Lookup("anthropic", b.Model)
	switch {
	case b.Model == "":
		return invalid("model: Field required")
	case b.MaxTokens == nil:
		return invalid("max_tokens: Field required")
	case *b.MaxTokens < 1:
		return invalid("max_tokens: Input should be greater than or equal to 1")
	case known && *b.MaxTokens > entry.MaxOutput:
		return invalid("max_tokens: %d > %d, which is the maximum allowed number of output tokens for %s", *b.MaxTokens, entry.MaxOutput, b.Model)
	case b.Temperature != nil && (*b.Temperature < 0 || *b.Temperature > 1):
		return invalid("temperature: range: 0..1")
	case known && entry.NoSampling && (b.Temperature != nil || b.TopP != nil || b.TopK != nil):
		return invalid("`temperature` is deprecated for this model.")
	}
	for _, stop := range b.StopSequences {
		if strings.TrimSpace(stop) == "" {
			return invalid("stop_sequences: each stop sequence must contain non-whitespace")
		}
	}
	if t := b.Thinking; t != nil {
		switch {
		case !slices.Contains([]string{"enabled", "disabled", "adaptive"}, t.Type):
			return invalid("thinking.type: Input should be 'enabled', 'disabled' or 'adaptive'")
		case t.Type == "enabled" && known && entry.Adaptive:
			return invalid(`"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.`)
		case t.Type == "enabled" && t.Budget < 1024:
			return invalid("thinking.enabled.budget_tokens: Input should be greater than or equal to 1024")
		case t.Type == "enabled" && *b.MaxTokens <= t.Budget:
			return invalid("`max_tokens` must be greater than `thinking.budget_tokens`.")
		case t.Type == "enabled" && b.Temperature != nil && *b.Temperature != 1:
			return invalid("`temperature` may only be set to 1 when thinking is enabled.")
		}
	}
	return nil
}

func (c *anthropicCheck) system() *refusal {
	if c.body.System == nil {
		return nil
	}
	list, e := blocks(c.body.System, "system")
	if e != nil {
		return e
	}
	for _, b := range list {
		if b.Type != "text" || b.Text == nil {
			return invalid("system: only text blocks are allowed")
		}
		if *b.Text == "" && b.CacheControl != nil {
			return invalid("system: cache_control cannot be set for empty text blocks")
		}
		if *b.Text == "" {
			return invalid("system: text content blocks must be non-empty")
		}
		c.req.System += *b.Text
		c.mark(b)
	}
	return nil
}

func (c *anthropicCheck) mark(b anthropicBlock) bool {
	if b.CacheControl == nil {
		return false
	}
	c.marks++
	return true
}

func (c *anthropicCheck) tools() *refusal {
	for i, raw := range c.body.Tools {
		var t anthropicTool
		unknown, err := decodeStrict(raw, &t)
		switch {
		case err != nil:
			return invalid("tools.%d: %v", i, err)
		case unknown != "":
			return invalid("tools.%d.custom.%s: Extra inputs are not permitted", i, unknown)
		case !toolName().MatchString(t.Name):
			return invalid("tools.%d.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'", i)
		case slices.Contains(c.req.Tools, t.Name):
			return invalid("tools: Tool names must be unique.")
		}
		var schema struct {
			Type string `json:"type"`
		}
		if err := json.Unmarshal(t.InputSchema, &schema); err != nil || schema.Type != "object" {
			return invalid("tools.%d.custom.input_schema.type: Input should be 'object'", i)
		}
		if t.CacheControl != nil {
			c.marks++
		}
		c.req.Tools = append(c.req.Tools, t.Name)
		c.req.parts = append(c.req.parts, newPart(raw))
	}
	if c.body.System != nil {
		c.req.parts = append(c.req.parts, newPart(c.body.System))
	}
	return nil
}

func (c *anthropicCheck) messages() *refusal {
	if len(c.body.Messages) == 0 {
		return invalid("messages: at least one message is required")
	}
	c.used = map[string]bool{}
	for i, raw := range c.body.Messages {
		var m anthropicMessage
		unknown, err := decodeStrict(raw, &m)
		switch {
		case err != nil:
			return invalid("messages.%d: %v", i, err)
		case unknown != "":
			return invalid("messages.%d.%s: Extra inputs are not permitted", i, unknown)
		case m.Role == "system" && i > 0 && beta(c.req.Header, "mid-conversation-system"):
			c.req.parts = append(c.req.parts, newPart(raw))
			if e := c.systemMessage(i, m); e != nil {
				return e
			}
			continue
		case m.Role != "user" && m.Role != "assistant":
			return invalid("messages.%d.role: Input should be 'user' or 'assistant'", i)
		case i == 0 && m.Role != "user":
			return invalid(`messages: first message must use the "user" role`)
		}
		c.req.parts = append(c.req.parts, newPart(raw))
		if e := c.message(i, m); e != nil {
			return e
		}
	}
	return c.unanswered()
}

// systemMessage checks instructions between messages; they count as a part of the system prompt.
func (c *anthropicCheck) systemMessage(i int, m anthropicMessage) *refusal {
	list, e := blocks(m.Content, "messages")
	if e != nil {
		return e
	}
	for _, b := range list {
		if b.Type != "text" || b.Text == nil || *b.Text == "" {
			return invalid("messages.%d: system messages must have text", i)
		}
		c.req.System += *b.Text
		c.mark(b)
	}
	return nil
}

// message checks one message. Consecutive messages of one role count as one turn.
func (c *anthropicCheck) message(i int, m anthropicMessage) *refusal {
	list, e := blocks(m.Content, "messages")
	if e != nil {
		return e
	}
	last := i == len(c.body.Messages)-1
	if len(list) == 0 && (!last || m.Role != "assistant") {
		return invalid("messages.%d: all messages must have non-empty content except for the optional final assistant message", i)
	}
	n := len(c.req.Messages)
	turnBegins := n == 0 || c.req.Messages[n-1].Role != m.Role
	if turnBegins && m.Role == "assistant" {
		if e := c.unanswered(); e != nil {
			return e
		}
		c.open, c.at = nil, i
	}
	out := Message{Role: m.Role}
	for j, b := range list {
		if e := c.block(i, j, b, &out); e != nil {
			return e
		}
	}
	c.req.Messages = append(c.req.Messages, out)
	if m.Role == "assistant" {
		return c.answer(i, list, last)
	}
	return nil
}

// answer checks where thinking is in an answer.
func (c *anthropicCheck) answer(i int, list []anthropicBlock, last bool) *refusal {
	if len(list) == 0 {
		return nil
	}
	thinks := func(b anthropicBlock) bool { return b.Type == "thinking" || b.Type == "redacted_thinking" }
	if thinks(list[len(list)-1]) && !last {
		return invalid("messages.%d: The final block in an assistant message cannot be `thinking`.", i)
	}
	// Within a tool loop, an answer that began without thinking cannot continue with it.
	c.unthought = len(c.pending) > 0 && !thinks(list[0])
	return nil
}

func (c *anthropicCheck) block(i, j int, b anthropicBlock, out *Message) *refusal {
	marked := c.mark(b)
	out.Marked = out.Marked || marked
	switch b.Type {
	case "text":
		return c.text(b, out)
	case "image":
		out.Images++
		return image(i, j, b)
	case "thinking":
		switch {
		case b.Thinking == nil || b.Signature == nil || *b.Signature == "":
			return invalid("messages.%d.content.%d.thinking.signature: Field required", i, j)
		case marked:
			return invalid("messages.%d.content.%d.thinking.cache_control: Extra inputs are not permitted", i, j)
		}
		out.Thinking = append(out.Thinking, *b.Thinking+"|"+*b.Signature)
	case "redacted_thinking":
		if b.Data == "" {
			return invalid("messages.%d.content.%d.redacted_thinking.data: Field required", i, j)
		}
		out.Thinking = append(out.Thinking, "redacted|"+b.Data)
	case "tool_use":
		return c.toolUse(i, j, b, out)
	case "tool_result":
		return c.toolResult(i, j, b, out)
	default:
		return invalid("messages.%d.content.%d: Input tag '%s' found using 'type' does not match any of the expected tags", i, j, b.Type)
	}
	return nil
}

func (c *anthropicCheck) text(b anthropicBlock, out *Message) *refusal {
	switch {
	case b.Text == nil || *b.Text == "":
		return invalid("messages: text content blocks must be non-empty")
	case strings.TrimSpace(*b.Text) == "":
		return invalid("messages: text content blocks must contain non-whitespace text")
	}
	out.Text += *b.Text
	return nil
}

func (c *anthropicCheck) toolUse(i, j int, b anthropicBlock, out *Message) *refusal {
	switch {
	case out.Role != "assistant":
		return invalid("messages.%d: `tool_use` blocks can only be in `assistant` messages", i)
	case b.ID == "" || b.Name == "":
		return invalid("messages.%d.content.%d.tool_use.id: Field required", i, j)
	case !toolName().MatchString(b.Name):
		return invalid("messages.%d.content.%d.tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'", i, j)
	case !toolName().MatchString(b.ID):
		return invalid("messages.%d.content.%d.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'", i, j)
	case len(b.Input) == 0 || b.Input[0] != '{':
		return invalid("messages.%d.content.%d.tool_use.input: Input should be a valid dictionary", i, j)
	case c.used[b.ID]:
		return invalid("messages.%d.content.%d: `tool_use` ids must be unique", i, j)
	}
	c.used[b.ID] = true
	c.pending = append(c.pending, b.ID)
	c.open = append(c.open, b.ID)
	out.Calls = append(out.Calls, Used{ID: b.ID, Name: b.Name, Args: b.Input})
	return nil
}

func (c *anthropicCheck) toolResult(i, j int, b anthropicBlock, out *Message) *refusal {
	switch {
	case out.Role != "user":
		return invalid("messages.%d: `tool_result` blocks can only be in `user` messages", i)
	case !slices.Contains(c.open, b.ToolUseID):
		return invalid("messages.%d.content.%d: unexpected `tool_use_id` found in `tool_result` blocks: %s. Each `tool_result` block must have a corresponding `tool_use` block in the previous message.", i, j, b.ToolUseID)
	}
	c.pending = slices.DeleteFunc(c.pending, func(id string) bool { return id == b.ToolUseID })
	res := Result{Call: b.ToolUseID, Failed: b.IsError}
	if b.Content != nil {
		list, e := blocks(b.Content, "messages")
		if e != nil {
			return e
		}
		for k, inner := range list {
			switch inner.Type {
			case "text":
				if inner.Text == nil {
					return invalid("messages.%d.content.%d.tool_result.content.%d.text: Field required", i, j, k)
				}
				res.Text += *inner.Text
			case "image":
				if e := image(i, j, inner); e != nil {
					return e
				}
				res.Images++
			default:
				return invalid("messages.%d.content.%d.tool_result.content.%d: Input tag '%s' is not allowed", i, j, k, inner.Type)
			}
		}
	}
	out.Images += res.Images
	out.Results = append(out.Results, res)
	return nil
}

func image(i, j int, b anthropicBlock) *refusal {
	src := b.Source
	switch {
	case src == nil:
		return invalid("messages.%d.content.%d.image.source: Field required", i, j)
	case src.Type == "url" && src.URL != "":
		return nil
	case !slices.Contains([]string{"image/jpeg", "image/png", "image/gif", "image/webp"}, src.MediaType):
		return invalid("messages.%d.content.%d.image.source.base64.media_type: Input should be 'image/jpeg', 'image/png', 'image/gif' or 'image/webp'", i, j)
	}
	if data, err := base64.StdEncoding.DecodeString(src.Data); err != nil || len(data) == 0 {
		return invalid("messages.%d.content.%d.image.source.base64.data: Input should be valid base64", i, j)
	}
	return nil
}

// unanswered reports calls without a result.
func (c *anthropicCheck) unanswered() *refusal {
	if len(c.pending) == 0 {
		return nil
	}
	return invalid("messages.%d: `tool_use` ids were found without `tool_result` blocks immediately after: %s. Each `tool_use` block must have a corresponding `tool_result` block in the next message.",
		c.at, strings.Join(c.pending, ", "))
}

// ending checks a prefill.
func (c *anthropicCheck) ending() *refusal {
	if len(c.req.Messages) == 0 {
		return nil
	}
	last := c.req.Messages[len(c.req.Messages)-1]
	if last.Role != "assistant" {
		return nil
	}
	entry, known := catalog.Lookup("anthropic", c.body.Model)
	switch {
	case known && !entry.Prefill:
		return invalid("This model does not support assistant message prefill. The conversation must end with a user message.")
	case c.body.Thinking != nil && c.body.Thinking.Type == "enabled":
		return invalid("messages: a prefilled assistant message is not supported when thinking is enabled")
	case strings.TrimRight(last.Text, " \t\r\n") != last.Text:
		return invalid("messages: final assistant content cannot end with trailing whitespace")
	}
	return nil
}

func (c *anthropicCheck) count() *refusal {
	if t := c.body.Thinking; t != nil && t.Type == "enabled" && c.unthought && c.req.LastToolResult() != "" {
		return invalid("messages.%d.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`. When `thinking` is enabled, a final `assistant` message must start with a thinking block (preceeding the lastmost set of `tool_use` and `tool_result` blocks).", c.at)
	}
	if c.marks > 4 {
		return invalid("A maximum of 4 blocks with cache_control may be provided. Found %d.", c.marks)
	}
	return nil
}
