package participants

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"chorus/internal/chat"
	"chorus/internal/model"
	"chorus/internal/model/wire"
)

// toolText describes the tools to a model that continues a script: one entry each, and an example of a call.
func (t *styledModel) toolText(tools []model.ToolSpec) (string, error) {
	var out strings.Builder
	out.WriteString("<tools>\n")
	for _, tool := range tools {
		schema, err := wire.Schema(tool)
		if err != nil {
			return "", err
		}
		about := strings.ReplaceAll(strings.TrimSpace(tool.Description), "\n", "\n  ")
		out.WriteString("- " + tool.Name + ": " + about + "\n  input: " + spacedJSON(schema) + "\n")
	}
	out.WriteString("</tools>\n\n")
	name := tools[0].Name
	out.WriteString("To use a tool, " + t.Bot + " writes a line of this form and stops:\n" + t.Bot + ">[" + name + "]: " + example(tools[0]))
	out.WriteString("\nThe result then follows in a line that begins with " + t.Bot + "<[" + name + "]:")
	return out.String(), nil
}

// example returns an example input for a tool.
func example(tool model.ToolSpec) string {
	schema := readSchema(tool)
	names := slices.Clone(schema.Required)
	if len(names) == 0 {
		for name := range schema.Properties {
			names = append(names, name)
		}
		slices.Sort(names)
		names = names[:min(1, len(names))]
	}
	parts := []string{}
	for _, name := range names {
		value := `"…"`
		switch schema.Properties[name].Type {
		case "integer", "number":
			value = "1"
		case "boolean":
			value = "true"
		case "array":
			value = "[]"
		case "object":
			value = "{}"
		}
		parts = append(parts, string(wire.AppendString(nil, name))+": "+value)
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// schema is the part of a JSON schema that is needed here.
type schema struct {
	Required   []string `json:"required"`
	Properties map[string]struct {
		Type any `json:"type"` // a type, or a list of them
	} `json:"properties"`
}

func readSchema(tool model.ToolSpec) schema {
	var s schema
	if json.Unmarshal(tool.Schema, &s) != nil {
		return schema{} // an unreadable schema only costs the example
	}
	return s
}

// callLine returns a call as written in the script.
func (t *styledModel) callLine(use chat.ToolUse) string {
	return t.Bot + ">[" + use.Name + "]: " + spacedJSON(wire.Args(use.Args))
}

// withBlock adds what can be said about a block in words. A picture that the model sees adds nothing.
func (w *writer) withBlock(text string, block chat.Block) string {
	switch b := block.(type) {
	case chat.Text:
		text += b.Text
	case chat.File:
		text = onOwnLine(text, wire.FileLine(b))
	case chat.Image:
		if !w.entry.Images || !wire.Shown(b.MediaType) {
			text = onOwnLine(text, wire.Unseen(b))
		}
	}
	return text
}

// resultLine returns a tool's result. Multiple lines are indented, so that
// none of them can pass for a line of the conversation.
func (w *writer) resultLine(at int, r chat.ToolResult) string {
	var text string
	for _, block := range r.Blocks {
		text = w.withBlock(text, block)
	}
	text = strings.Trim(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	switch {
	case strings.TrimSpace(text) == "" && len(shown(r.Blocks)) > 0 && w.entry.Images:
		text = "(a picture)"
	case strings.TrimSpace(text) == "":
		text = "(nothing)"
	}
	if r.Failed && !strings.HasPrefix(strings.ToLower(text), "error") {
		text = "error: " + text
	}
	label := w.Bot + "<[" + w.toolName(at, r) + "]:"
	if !strings.Contains(text, "\n") {
		return label + " " + strings.TrimSpace(text)
	}
	return label + "\n  " + strings.ReplaceAll(text, "\n", "\n  ")
}

// toolName returns the name of the tool a result is from. Old results do not contain it, but their call does.
func (w *writer) toolName(at int, r chat.ToolResult) string {
	if r.Name != "" {
		return r.Name
	}
	for _, m := range slices.Backward(w.r.Messages[:at]) {
		for _, use := range m.Blocks.Calls() {
			if use.ID == r.Call {
				return use.Name
			}
		}
	}
	return "tool"
}

// spacedJSON writes JSON on one line with a space after each colon and comma, as
// the document does. Text that is not JSON stays unchanged.
func spacedJSON(raw []byte) string {
	var compact bytes.Buffer
	if json.Compact(&compact, raw) != nil {
		return string(raw)
	}
	out := make([]byte, 0, compact.Len()+compact.Len()/8)
	inside, escaped := false, false
	for _, c := range compact.Bytes() {
		out = append(out, c)
		switch {
		case escaped:
			escaped = false
		case inside && c == '\\':
			escaped = true
		case c == '"':
			inside = !inside
		case !inside && (c == ':' || c == ','):
			out = append(out, ' ')
		}
	}
	return string(out)
}
