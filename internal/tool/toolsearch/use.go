package toolsearch

import (
	"context"
	_ "embed"
	"encoding/json"
	"strings"

	"chorus/internal/tool"
)

//go:embed use_tool.md
var useWords string

const useSchema = `{"type":"object","properties":{` +
	`"name":{"type":"string","description":"as find_tools names it"},` +
	`"arguments":{"type":"object","description":"that tool's"}},` +
	`"required":["name","arguments"]}`

// use is use_tool. It has no state: whatever set it is in knows the tools.
type use struct{}

var _ tool.Forwarder = use{}

func (use) Spec() tool.Spec {
	return tool.Spec{Name: "use_tool", Description: strings.TrimSpace(useWords), Schema: json.RawMessage(useSchema), Risk: tool.Medium}
}

func (use) Access([]byte) []tool.Access { return nil }

// Forward implements tool.Forwarder. It also accepts arguments placed
// next to the name instead of one level deeper.
func (use) Forward(args []byte) (string, []byte, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(args, &fields); err != nil {
		return "", nil, tool.Mistake("Invalid arguments for use_tool: they must be one JSON object.")
	}
	var name string
	for _, key := range []string{"name", "tool", "tool_name"} {
		if json.Unmarshal(fields[key], &name) == nil && strings.TrimSpace(name) != "" {
			delete(fields, key)
			break
		}
	}
	if name = strings.TrimSpace(name); name == "" {
		return "", nil, tool.Mistake("Invalid arguments for use_tool: 'name' is missing. Find the name of a tool with find_tools.")
	}
	if inner, ok := fields["arguments"]; ok {
		return name, inner, nil
	}
	inner, err := json.Marshal(fields)
	return name, inner, err
}

// Run implements tool.Tool. A Set never calls it.
func (use) Run(ctx context.Context, _ []byte) (tool.Result, error) {
	if err := ctx.Err(); err != nil {
		return tool.Result{}, err
	}
	return tool.Fail("use_tool only passes a call on, and this one reached nobody: call the tool by its own name."), nil
}
