package mcp

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"chorus/internal/text"
	"chorus/internal/tool"
)

const (
	longDescription = 2048     // what a careful author needs; every request pays for it
	largestSchema   = 32 << 10 // anything larger is not a useful description
)

// listed is one tool of a server: the server's name for it, and ours.
type listed struct {
	task bool // it is called as a task
	raw  string
	spec tool.Spec
}

// usable converts what a server listed to specs. It drops tools without a name and
// duplicates, and ignores the server's claims that a tool is harmless.
func (s *server) usable(tools []*offered) []listed {
	var names []string
	first := map[string]*offered{}
	for _, t := range tools {
		if t == nil || t.Name == "" || first[t.Name] != nil || slices.Contains(s.DisabledTools, t.Name) || len(names) == mostTools {
			continue
		}
		names = append(names, t.Name)
		first[t.Name] = t
	}
	ours := toolNames(s.key, names)
	slices.Sort(names)
	out := make([]listed, len(names))
	for i, name := range names {
		t := first[name]
		out[i] = listed{raw: name, task: t.task == taskRequired || t.task == taskOptional, spec: tool.Spec{Name: ours[name], Description: describe(s.Name, &t.Tool), Schema: schemaOf(t.InputSchema), Risk: tool.Medium}}
	}
	return out
}

// describe returns the server's description of a tool, cut to a reasonable length.
func describe(server string, t *sdk.Tool) string {
	about := strings.TrimSpace(strings.ToValidUTF8(t.Description, ""))
	if about == "" {
		about = printable(t.Title, 200)
	}
	if about == "" {
		about = "The tool " + printable(t.Name, 100) + " of the MCP server " + server + "."
	}
	return text.Clip(about, longDescription)
}

const anything = `{"type":"object"}`

// schemaOf returns the server's schema, as far as model providers accept it: an object without
// alternatives at the top level, whose parameters are merged instead.
func schemaOf(given any) json.RawMessage {
	top, ok := given.(map[string]any)
	if !ok {
		return json.RawMessage(anything)
	}
	out := map[string]any{}
	for key, value := range top {
		switch key {
		case "$schema", "$id", "oneOf", "anyOf", "allOf", "not", "enum", "const", "if", "then", "else":
		default:
			out[key] = value
		}
	}
	out["type"] = "object"
	props, _ := out["properties"].(map[string]any)
	merged := map[string]any{}
	maps.Copy(merged, props)
	for _, key := range []string{"allOf", "anyOf", "oneOf"} {
		branches, _ := top[key].([]any)
		for _, b := range branches {
			branch, _ := b.(map[string]any)
			inner, _ := branch["properties"].(map[string]any)
			for name, value := range inner {
				if _, there := merged[name]; !there {
					merged[name] = value
				}
			}
		}
	}
	if len(merged) > 0 {
		out["properties"] = merged
	} else {
		delete(out, "properties")
	}
	if len(merged) > len(props) {
		delete(out, "additionalProperties")
	}
	data, err := json.Marshal(out) // keys are sorted, so the bytes are always the same
	if err != nil || len(data) > largestSchema {
		return json.RawMessage(anything)
	}
	return data
}
