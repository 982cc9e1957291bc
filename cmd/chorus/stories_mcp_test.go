//lint:file-ignore SA1019 servers use what newer versions of the protocol deprecate

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"chorus/internal/tool/mcp/oauthtest"
)

// askingServer adds what asks people and models: tools that put a question, want an answer of a model and bring another tool,
// a prompt, a page that a person is to open, and a resource that changes.
func askingServer(s *mcp.Server) {
	text := func(format string, args ...any) *mcp.CallToolResult {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: fmt.Sprintf(format, args...)}}}
	}
	mcp.AddTool(s, &mcp.Tool{Name: "order", Description: "Orders cups."}, func(ctx context.Context, r *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		got, err := r.Session.Elicit(ctx, &mcp.ElicitParams{Message: "How many cups?", RequestedSchema: json.RawMessage(
			`{"type":"object","properties":{"count":{"type":"integer"}},"required":["count"]}`)})
		if err != nil {
			return nil, nil, err
		}
		return text("%s: %v cups", got.Action, got.Content["count"]), nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "parcel", Description: "Sends a parcel."}, func(ctx context.Context, r *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		got, err := r.Session.Elicit(ctx, &mcp.ElicitParams{Message: "What shall be sent?", RequestedSchema: json.RawMessage(`{"type":"object","required":["count","size"],"properties":{
			"count":{"type":"integer","title":"How many"},"size":{"type":"string","title":"Size","description":"Of the box","enum":["S","M"],"enumNames":["small","medium"]},
			"extras":{"type":"array","title":"Extras","items":{"type":"string","enum":["ribbon","card"]}},"gift":{"type":"boolean","title":"Gift","default":true},"note":{"type":"string","title":"Note"}}}`)})
		if err != nil {
			return nil, nil, err
		}
		content, err := json.Marshal(got.Content)
		return text("%s: %s", got.Action, content), nil, err
	})
	mcp.AddTool(s, &mcp.Tool{Name: "poem", Description: "Has a poem written."}, func(ctx context.Context, r *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		got, err := r.Session.CreateMessage(ctx, &mcp.CreateMessageParams{MaxTokens: 100, Messages: []*mcp.SamplingMessage{{Role: "user", Content: &mcp.TextContent{Text: "a poem about cups"}}}})
		if err != nil {
			return text("no poem: %v", err), nil, nil
		}
		return text("the poem: %s", got.Content.(*mcp.TextContent).Text), nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "grow", Description: "Brings another tool."}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		mcp.AddTool(s, &mcp.Tool{Name: "fresh", Description: "Was not there before."}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			return text("fresh as the morning"), nil, nil
		})
		return text("there is more now"), nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "signin", Description: "Signs somebody in."}, func(ctx context.Context, r *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		got, err := r.Session.Elicit(ctx, &mcp.ElicitParams{Mode: "url", URL: "https://example.org/sign-in?for=cups", Message: "Say who you are.", ElicitationID: "e1"})
		if err != nil {
			return nil, nil, err
		}
		return text("signed in: %s", got.Action), nil, nil
	})
	mcp.AddTool(s, &mcp.Tool{Name: "refill", Description: "Fills the cups."}, func(ctx context.Context, _ *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		return text("filled"), nil, s.ResourceUpdated(ctx, &mcp.ResourceUpdatedNotificationParams{URI: "doc://cups"})
	})
	s.AddResource(&mcp.Resource{URI: "doc://cups", Name: "cups"}, func(_ context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: r.Params.URI, Text: "seven cups"}}}, nil
	})
	s.AddPrompt(&mcp.Prompt{Name: "review", Description: "Reviews a file.", Arguments: []*mcp.PromptArgument{{Name: "file", Required: true}}},
		func(_ context.Context, r *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: "Look at " + r.Params.Arguments["file"] + " line by line."}}}}, nil
		})
}

// mcpServer is a small MCP server for stories: `mcpserver [N]` has the tools greet and
// secret, and N more.
func mcpServer() {
	s := mcp.NewServer(&mcp.Implementation{Name: "story", Version: "1"}, &mcp.ServerOptions{Instructions: os.Getenv("STORY_INSTRUCTIONS"),
		SubscribeHandler:   func(context.Context, *mcp.SubscribeRequest) error { return nil },
		UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil }})
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
	mcp.AddTool(s, &mcp.Tool{Name: "secret", Description: cmp.Or(os.Getenv("STORY_DESCRIPTION"), "Tells what the environment holds.")},
		func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
			return text(fmt.Sprintf("key=%q note=%q", os.Getenv("ANTHROPIC_API_KEY"), os.Getenv("STORY_NOTE"))), nil, nil
		})
	if os.Getenv("STORY_INSTRUCTIONS") != "" {
		askingServer(s)
	}
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

// oauthServer is an MCP server on the network that wants a login, until it is ended. Whoever opens its page says yes.
func oauthServer() {
	inner := mcp.NewServer(&mcp.Implementation{Name: "far", Version: "1"}, nil)
	mcp.AddTool(inner, &mcp.Tool{Name: "greet", Description: "Greets."}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "hello from afar"}}}, nil, nil
	})
	fmt.Println("listening on", oauthtest.New(inner).URL)
	select {}
}
