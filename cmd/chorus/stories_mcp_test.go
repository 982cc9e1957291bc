package main

import (
	"context"
	"fmt"
	"os"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// mcpServer is a small MCP server for stories: `mcpserver [N]` has the tools greet and
// secret, and N more.
func mcpServer() {
	s := mcp.NewServer(&mcp.Implementation{Name: "story", Version: "1"}, nil)
	type who struct {
		Name string `json:"name"`
	}
	text := func(t string) *mcp.CallToolResult {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: t}}}
	}
	mcp.AddTool(s, &mcp.Tool{Name: "greet", Description: "Greets somebody by name."},
		func(_ context.Context, _ *mcp.CallToolRequest, in who) (*mcp.CallToolResult, any, error) {
			return text("hello " + in.Name), nil, nil
		})
	mcp.AddTool(s, &mcp.Tool{Name: "secret", Description: "Tells what the environment holds."},
		func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			return text(fmt.Sprintf("key=%q note=%q", os.Getenv("ANTHROPIC_API_KEY"), os.Getenv("STORY_NOTE"))), nil, nil
		})
	more := 0
	if len(os.Args) > 1 {
		more, _ = strconv.Atoi(os.Args[1]) // no number: no more tools
	}
	for i := range more {
		mcp.AddTool(s, &mcp.Tool{Name: fmt.Sprintf("extra_%d", i), Description: fmt.Sprintf("Does the thing number %d.", i)},
			func(_ context.Context, _ *mcp.CallToolRequest, in who) (*mcp.CallToolResult, any, error) {
				return text(fmt.Sprintf("did %d for %s", i, in.Name)), nil, nil
			})
	}
	if err := s.Run(context.Background(), &mcp.StdioTransport{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
