//lint:file-ignore SA1019 the suite asks for logging and sampling, which newer versions of the protocol deprecate

package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// pixel is a picture of one red pixel, silence a sound of no samples.
var (
	pixel = []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x02\x00\x00\x00\x90wS\xde" +
		"\x00\x00\x00\x0cIDATx\x9cc\xf8\xcf\xc0\x00\x00\x03\x01\x01\x00\xc9\xfe\x92\xef\x00\x00\x00\x00IEND\xaeB`\x82")
	silence = []byte("RIFF$\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00D\xac\x00\x00\x88X\x01\x00\x02\x00\x10\x00data\x00\x00\x00\x00")
)

type (
	callRequest = *sdk.CallToolRequest
	callResult  = *sdk.CallToolResult
)

// fixture is a server with everything that the public conformance suite asks for.
func fixture() *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "fixture", Version: "1"}, &sdk.ServerOptions{
		CompletionHandler: func(context.Context, *sdk.CompleteRequest) (*sdk.CompleteResult, error) {
			return &sdk.CompleteResult{Completion: sdk.CompletionResultDetails{Values: []string{"paris", "park"}}}, nil
		},
		SubscribeHandler:   func(context.Context, *sdk.SubscribeRequest) error { return nil },
		UnsubscribeHandler: func(context.Context, *sdk.UnsubscribeRequest) error { return nil },
	})
	fixtureContent(s)
	fixtureCalls(s)
	fixtureQuestions(s)
	fixtureResources(s)
	fixturePrompts(s)
	return s
}

func fixtureTool(s *sdk.Server, name, properties string, run func(context.Context, callRequest) (callResult, error)) {
	schema := json.RawMessage(`{"type":"object","properties":{` + properties + `}}`)
	s.AddTool(&sdk.Tool{Name: name, Description: "A tool of the conformance suite.", InputSchema: schema}, run)
}

func said(format string, args ...any) callResult {
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: fmt.Sprintf(format, args...)}}}
}

func fixtureContent(s *sdk.Server) {
	embedded := func(uri, media, text string) sdk.Content {
		return &sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: uri, MIMEType: media, Text: text}}
	}
	for name, content := range map[string][]sdk.Content{
		"test_simple_text":       {&sdk.TextContent{Text: "This is a simple text response for testing."}},
		"test_image_content":     {&sdk.ImageContent{Data: pixel, MIMEType: "image/png"}},
		"test_audio_content":     {&sdk.AudioContent{Data: silence, MIMEType: "audio/wav"}},
		"test_embedded_resource": {embedded("test://embedded-resource", "text/plain", "This is an embedded resource content.")},
		"test_multiple_content_types": {&sdk.TextContent{Text: "Multiple content types test:"}, &sdk.ImageContent{Data: pixel, MIMEType: "image/png"},
			embedded("test://mixed-content-resource", "application/json", `{"test":"data","value":123}`)},
	} {
		fixtureTool(s, name, "", func(context.Context, callRequest) (callResult, error) {
			return &sdk.CallToolResult{Content: content}, nil
		})
	}
	s.AddTool(&sdk.Tool{Name: "json_schema_2020_12_tool", Description: "Tool with JSON Schema 2020-12 features", InputSchema: json.RawMessage(
		`{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object","$defs":{"address":{"type":"object","properties":{"street":{"type":"string"},` +
			`"city":{"type":"string"}}}},"properties":{"name":{"type":"string"},"address":{"$ref":"#/$defs/address"}},"additionalProperties":false}`)},
		func(context.Context, callRequest) (callResult, error) { return said("ok"), nil })
}

func fixtureCalls(s *sdk.Server) {
	fixtureTool(s, "test_error_handling", "", func(context.Context, callRequest) (callResult, error) {
		out := said("This tool intentionally returns an error for testing")
		out.IsError = true
		return out, nil
	})
	fixtureTool(s, "test_tool_with_logging", "", func(ctx context.Context, req callRequest) (callResult, error) {
		for _, text := range []string{"Tool execution started", "Tool processing data", "Tool execution completed"} {
			if err := req.Session.Log(ctx, &sdk.LoggingMessageParams{Level: "info", Data: text}); err != nil {
				return nil, err
			}
			time.Sleep(50 * time.Millisecond) // the suite asks for pauses
		}
		return said("logged"), nil
	})
	fixtureTool(s, "test_tool_with_progress", "", func(ctx context.Context, req callRequest) (callResult, error) {
		for _, done := range []float64{0, 50, 100} {
			if token := req.Params.GetProgressToken(); token != nil {
				if err := req.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: token, Progress: done, Total: 100}); err != nil {
					return nil, err
				}
			}
			time.Sleep(50 * time.Millisecond)
		}
		return said("done"), nil
	})
	fixtureTool(s, "test_reconnection", "", func(_ context.Context, req callRequest) (callResult, error) {
		if req.Extra == nil || req.Extra.CloseSSEStream == nil {
			return nil, errors.New("the stream cannot be closed")
		}
		req.Extra.CloseSSEStream(sdk.CloseSSEStreamArgs{RetryAfter: 10 * time.Millisecond})
		time.Sleep(100 * time.Millisecond) // the client comes back meanwhile
		return said("after the break"), nil
	})
}

func fixtureQuestions(s *sdk.Server) {
	fixtureTool(s, "test_sampling", `"prompt":{"type":"string"}`, func(ctx context.Context, req callRequest) (callResult, error) {
		var in struct{ Prompt string }
		if err := json.Unmarshal(req.Params.Arguments, &in); err != nil {
			return nil, err
		}
		got, err := req.Session.CreateMessage(ctx, &sdk.CreateMessageParams{MaxTokens: 100,
			Messages: []*sdk.SamplingMessage{{Role: "user", Content: &sdk.TextContent{Text: in.Prompt}}}})
		if err != nil {
			return nil, err
		}
		text, _ := got.Content.(*sdk.TextContent)
		return said("LLM response: %s", text.Text), nil
	})
	elicit := func(ctx context.Context, req callRequest, message, schema string) (callResult, error) {
		got, err := req.Session.Elicit(ctx, &sdk.ElicitParams{Message: message, RequestedSchema: json.RawMessage(schema)})
		if err != nil {
			return nil, err
		}
		content, err := json.Marshal(got.Content)
		return said("Elicitation completed: action=%s, content=%s", got.Action, content), err
	}
	fixtureTool(s, "test_elicitation", `"message":{"type":"string"}`, func(ctx context.Context, req callRequest) (callResult, error) {
		var in struct{ Message string }
		if err := json.Unmarshal(req.Params.Arguments, &in); err != nil {
			return nil, err
		}
		return elicit(ctx, req, in.Message, `{"type":"object","properties":{"username":{"type":"string","description":"User's response"},`+
			`"email":{"type":"string","description":"User's email address"}},"required":["username","email"]}`)
	})
	fixtureTool(s, "test_elicitation_sep1034_defaults", "", func(ctx context.Context, req callRequest) (callResult, error) {
		return elicit(ctx, req, "Look through the defaults", `{"type":"object","properties":{"name":{"type":"string","default":"John Doe"},"age":{"type":"integer","default":30},`+
			`"score":{"type":"number","default":95.5},"status":{"type":"string","enum":["active","inactive","pending"],"default":"active"},"verified":{"type":"boolean","default":true}}}`)
	})
	fixtureTool(s, "test_elicitation_sep1330_enums", "", func(ctx context.Context, req callRequest) (callResult, error) {
		titled := func(kind string) string {
			return `"` + kind + `":[{"const":"value1","title":"First"},{"const":"value2","title":"Second"},{"const":"value3","title":"Third"}]`
		}
		plain := `"type":"string","enum":["option1","option2","option3"]`
		return elicit(ctx, req, "Choose", `{"type":"object","properties":{"untitledSingle":{`+plain+`},"titledSingle":{"type":"string",`+titled("oneOf")+`},`+
			`"legacyEnum":{"type":"string","enum":["opt1","opt2","opt3"],"enumNames":["Option One","Option Two","Option Three"]},`+
			`"untitledMulti":{"type":"array","items":{`+plain+`}},"titledMulti":{"type":"array","items":{`+titled("anyOf")+`}}}}`)
	})
}

func fixtureResources(s *sdk.Server) {
	fixed := func(uri, media string, contents sdk.ResourceContents) {
		s.AddResource(&sdk.Resource{URI: uri, Name: uri, Description: "A resource of the conformance suite.", MIMEType: media},
			func(context.Context, *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
				contents.URI, contents.MIMEType = uri, media
				return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{&contents}}, nil
			})
	}
	fixed("test://static-text", "text/plain", sdk.ResourceContents{Text: "This is the content of the static text resource."})
	fixed("test://static-binary", "image/png", sdk.ResourceContents{Blob: pixel})
	fixed("test://watched-resource", "text/plain", sdk.ResourceContents{Text: "watched"})
	s.AddResourceTemplate(&sdk.ResourceTemplate{URITemplate: "test://template/{id}/data", Name: "template", Description: "A template.", MIMEType: "application/json"},
		func(_ context.Context, req *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
			id := strings.TrimSuffix(strings.TrimPrefix(req.Params.URI, "test://template/"), "/data")
			text := fmt.Sprintf(`{"id":%q,"templateTest":true,"data":"Data for ID: %s"}`, id, id)
			return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: req.Params.URI, MIMEType: "application/json", Text: text}}}, nil
		})
}

func fixturePrompts(s *sdk.Server) {
	add := func(name string, arguments []string, messages func(args map[string]string) []sdk.Content) {
		p := &sdk.Prompt{Name: name, Description: "A prompt of the conformance suite."}
		for _, a := range arguments {
			p.Arguments = append(p.Arguments, &sdk.PromptArgument{Name: a, Description: "An argument.", Required: true})
		}
		s.AddPrompt(p, func(_ context.Context, req *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
			out := &sdk.GetPromptResult{}
			for _, c := range messages(req.Params.Arguments) {
				out.Messages = append(out.Messages, &sdk.PromptMessage{Role: "user", Content: c})
			}
			return out, nil
		})
	}
	text := func(format string, args ...any) sdk.Content {
		return &sdk.TextContent{Text: fmt.Sprintf(format, args...)}
	}
	add("test_simple_prompt", nil, func(map[string]string) []sdk.Content {
		return []sdk.Content{text("This is a simple prompt for testing.")}
	})
	add("test_prompt_with_arguments", []string{"arg1", "arg2"}, func(a map[string]string) []sdk.Content {
		return []sdk.Content{text("Prompt with arguments: arg1='%s', arg2='%s'", a["arg1"], a["arg2"])}
	})
	add("test_prompt_with_embedded_resource", []string{"resourceUri"}, func(a map[string]string) []sdk.Content {
		return []sdk.Content{&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: a["resourceUri"], MIMEType: "text/plain", Text: "Embedded resource content for testing."}},
			text("Please process the embedded resource above.")}
	})
	add("test_prompt_with_image", nil, func(map[string]string) []sdk.Content {
		return []sdk.Content{&sdk.ImageContent{Data: pixel, MIMEType: "image/png"}, text("Please analyze the image above.")}
	})
}
