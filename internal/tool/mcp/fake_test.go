//lint:file-ignore SA1019 servers use what newer versions of the protocol deprecate

package mcp

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"
)

// kindVar names in the environment which server the test binary shall be.
const kindVar = "CHORUS_TEST_MCP"

func TestMain(m *testing.M) {
	if kind := os.Getenv(kindVar); kind != "" {
		serve(kind)
		return
	}
	goleak.VerifyTestMain(m)
}

var (
	png   = append([]byte("\x89PNG\r\n\x1a\n"), make([]byte, 100)...)
	plain = &sdk.Implementation{Name: "fake", Version: "1"}
)

// serve is the child's whole life.
func serve(kind string) {
	switch kind {
	case "conformance":
		if err := suiteClient(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	case "plain":
		runSDK(fake(nil))
	case "tasks":
		taskServer()
	case "many":
		runSDK(manyTools(500, 60))
	case "noise":
		fmt.Print("starting…\n{\"half\":\n[1,2]\n{}\nnull\n\n")
		runSDK(fake(nil))
	case "babble":
		for {
			if _, err := fmt.Println("yes"); err != nil {
				return
			}
		}
	case "flood":
		for range 2000 {
			fmt.Fprintln(os.Stderr, strings.Repeat("noise ", 400))
		}
		runSDK(fake(nil))
	case "mute":
		for in := bufio.NewReader(os.Stdin); ; {
			if _, err := in.ReadString('\n'); err != nil {
				return
			}
		}
	case "crash":
		fmt.Fprintln(os.Stderr, "cannot open the database with key "+os.Getenv("FAKE_KEY"))
		os.Exit(3)
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
		child := exec.Command("sleep", "1000")
		if err := child.Start(); err != nil {
			os.Exit(4)
		}
		_ = os.WriteFile(os.Getenv("FAKE_FILE"), []byte(fmt.Sprint(os.Getpid(), " ", child.Process.Pid)), 0o600)
		runRaw(nil)
		time.Sleep(time.Hour)
	default:
		runRaw(rawKinds[kind])
	}
}

func runSDK(s *sdk.Server) { _ = s.Run(context.Background(), &sdk.StdioTransport{}) }

// rawKinds answer requests themselves; "" leaves one unanswered.
var rawKinds = map[string]func(method, id string) string{
	"badjson": func(method, id string) string {
		if method == "tools/call" {
			return `{"jsonrpc":"2.0","id":` + id + `,"result":{"content":[{"type":"te`
		}
		return ""
	},
	"big": func(method, id string) string {
		if method == "tools/call" {
			return result(id, `{"content":[{"type":"text","text":"`+strings.Repeat("x", 20<<20)+`"}]}`)
		}
		return ""
	},
	"bigend": func(method, id string) string {
		if method == "tools/call" {
			return `{"result":{"content":[{"type":"text","text":"` + strings.Repeat("x", 11<<20) + `"}]},"jsonrpc":"2.0","id":` + id + `}`
		}
		return ""
	},
	"bigodd": func(method, id string) string {
		if method == "tools/call" {
			return `{"result":{"content":[{"type":"text","text":"` + strings.Repeat("x", 11<<20) + `"}]},"id":` + id + `,"more":"` + strings.Repeat("y", 600) + `"}`
		}
		return ""
	},
	"cursor": func(method, id string) string {
		if method == "tools/list" {
			return result(id, `{"tools":[{"name":"t`+id+`","inputSchema":{"type":"object"}}],"nextCursor":"same"}`)
		}
		return ""
	},
	"pages": func(method, id string) string {
		if method == "tools/list" {
			return result(id, `{"tools":[{"name":"t`+id+`","inputSchema":{"type":"object"}}],"nextCursor":"c`+id+`"}`)
		}
		return ""
	},
	"odd": func(method, id string) string {
		if method == "tools/list" {
			return result(id, `{"tools":[null,{"name":"","inputSchema":{}},{"name":"no schema"},{"name":"draft4","inputSchema":{"type":"object",`+
				`"$schema":"http://json-schema.org/draft-04/schema#","properties":{"n":{"type":"integer","minimum":0,"exclusiveMinimum":true}}}},`+
				`{"name":"endless","inputSchema":{"$ref":"#","type":"object"}},{"name":"twice","inputSchema":{"type":"object"}},{"name":"twice","inputSchema":{"type":"object"}},`+
				`{"name":"a.b","inputSchema":{"type":"object"}},{"name":"a b","inputSchema":{"type":"object"}},{"name":"either","inputSchema":{"oneOf":[{"properties":{"x":{"type":"string"}}}]}},`+
				`{"name":"true","inputSchema":true},{"name":"trusted","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true,"title":"Harmless"}},`+
				`{"name":"`+strings.Repeat("long", 40)+`","description":"`+strings.Repeat("word ", 2000)+`","inputSchema":{"type":"object"}}]}`)
		}
		if method == "tools/call" {
			return result(id, `{"content":[{"type":"hologram","data":"AAAA"}]}`)
		}
		return ""
	},
	"deaf": func(method, id string) string {
		if method == "tools/list" {
			fmt.Println(result(id, `{"tools":[{"name":"listen","inputSchema":{"type":"object"}}]}`))
			time.Sleep(time.Hour)
		}
		return ""
	},
	"wrongversion": func(method, id string) string {
		if method == "initialize" {
			return result(id, `{"protocolVersion":"1999-01-01","capabilities":{},"serverInfo":{"name":"x","version":"1"}}`)
		}
		return ""
	},
	"batch": func(method, id string) string {
		if method == "tools/list" {
			return `[{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}},` +
				result(id, `{"tools":[{"name":"one","inputSchema":{"type":"object"}}]}`) + `]`
		}
		return ""
	},
}

func result(id, value string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"result":` + value + `}`
}

// runRaw speaks the protocol by hand, so that it can speak it badly.
func runRaw(handle func(method, id string) string) {
	in := bufio.NewReader(os.Stdin)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var msg struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
		}
		if json.Unmarshal(line, &msg) != nil || msg.ID == nil {
			continue
		}
		out := ""
		if handle != nil {
			out = handle(msg.Method, string(msg.ID))
		}
		if out == "" {
			switch msg.Method {
			case "initialize":
				out = result(string(msg.ID), `{"protocolVersion":"2024-11-05","capabilities":{"tools":{}},"serverInfo":{"name":"raw","version":"1"}}`)
			case "tools/list":
				out = result(string(msg.ID), `{"tools":[{"name":"any","inputSchema":{"type":"object"}}]}`)
			default:
				continue
			}
		}
		fmt.Println(out)
	}
}

func manyTools(n, page int) *sdk.Server {
	s := sdk.NewServer(plain, &sdk.ServerOptions{PageSize: page})
	for i := range n {
		add(s, fmt.Sprintf("tool_%03d", i), func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return said("number %d", i), nil
		})
	}
	return s
}

func said(format string, args ...any) *sdk.CallToolResult {
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: fmt.Sprintf(format, args...)}}}
}

func add(s *sdk.Server, name string, h sdk.ToolHandler) {
	s.AddTool(&sdk.Tool{Name: name, Description: "Does " + name + ".", InputSchema: json.RawMessage(`{"type":"object"}`)}, h)
}

// fake is a server with a tool for everything that can come back. cancelled (may be
// nil) is told when a call of slow was.
func fake(cancelled func()) *sdk.Server {
	s := sdk.NewServer(plain, &sdk.ServerOptions{Instructions: "Ask for the weather first.",
		SubscribeHandler:   func(context.Context, *sdk.SubscribeRequest) error { return nil },
		UnsubscribeHandler: func(context.Context, *sdk.UnsubscribeRequest) error { return nil }})
	type req = *sdk.CallToolRequest
	type res = *sdk.CallToolResult
	content := func(name string, blocks ...sdk.Content) {
		add(s, name, func(context.Context, req) (res, error) { return &sdk.CallToolResult{Content: blocks}, nil })
	}
	s.AddTool(&sdk.Tool{Name: "echo", Description: "Says it again.", InputSchema: json.RawMessage(
		`{"type":"object","properties":{"text":{"type":"string","description":"what"},"times":{"type":"integer","description":"how often"}},"required":["text"]}`)},
		func(_ context.Context, r req) (res, error) { return said("%s", r.Params.Arguments), nil })
	content("picture", &sdk.TextContent{Text: "here"}, &sdk.ImageContent{Data: png, MIMEType: "image/jpeg"},
		&sdk.ImageContent{Data: []byte("BM not shown"), MIMEType: "image/bmp"}, &sdk.AudioContent{Data: []byte("abc"), MIMEType: "audio/wav"})
	content("embedded", &sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "file:///a.txt", Text: "inside"}},
		&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "file:///a.png", Blob: png}},
		&sdk.ResourceLink{URI: "file:///b.txt", Name: "b", Description: "the other"})
	content("nothing")
	content("long", &sdk.TextContent{Text: strings.Repeat("line\n", 5000)})
	content("control", &sdk.TextContent{Text: "a\xffb"})
	add(s, "structured", func(context.Context, req) (res, error) {
		return &sdk.CallToolResult{StructuredContent: map[string]any{"b": 1, "a": []int{2}}}, nil
	})
	add(s, "fails", func(context.Context, req) (res, error) {
		out := said("no such thing")
		out.IsError = true
		return out, nil
	})
	add(s, "silentfail", func(context.Context, req) (res, error) { return &sdk.CallToolResult{IsError: true}, nil })
	add(s, "error", func(context.Context, req) (res, error) {
		return nil, fmt.Errorf("broken inside, key %s", os.Getenv("FAKE_KEY"))
	})
	add(s, "environ", func(context.Context, req) (res, error) { return said("%s", strings.Join(os.Environ(), "\n")), nil })
	add(s, "pid", func(context.Context, req) (res, error) { return said("%d", os.Getpid()), nil })
	add(s, "die", func(context.Context, req) (res, error) {
		fmt.Fprintln(os.Stderr, "panic: out of cheese, key "+os.Getenv("FAKE_KEY"))
		os.Exit(7)
		return nil, nil
	})
	add(s, "slow", func(ctx context.Context, r req) (res, error) {
		_ = r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Message: "sleeping"})
		<-ctx.Done()
		if cancelled != nil {
			cancelled()
		}
		if file := os.Getenv("FAKE_FILE"); file != "" {
			_ = os.WriteFile(file, []byte("cancelled"), 0o600)
		}
		return nil, ctx.Err()
	})
	add(s, "progress", func(ctx context.Context, r req) (res, error) {
		for _, p := range []sdk.ProgressNotificationParams{
			{Progress: 1, Total: 4}, {Progress: -5, Total: 4}, {Progress: 9, Total: 4, Message: "more\x1b[31m than all"}, {Progress: 3}, {Message: "done"},
		} {
			p.ProgressToken = r.Params.GetProgressToken()
			_ = r.Session.NotifyProgress(ctx, &p)
		}
		_ = r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: "chorus-999", Message: "not yours"})
		_ = r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: 7, Message: "nobody's"})
		for ctx.Err() == nil { // a result may overtake them: wait until they were heard
			if _, err := os.Stat(os.Getenv("FAKE_FILE")); err == nil {
				break
			}
			time.Sleep(5 * time.Millisecond)
		}
		return said("ok"), nil
	})
	add(s, "change", func(context.Context, req) (res, error) {
		s.RemoveTools("nothing")
		add(s, "brand new", func(context.Context, req) (res, error) { return said("new"), nil })
		return said("ok"), nil
	})
	add(s, "asks", func(ctx context.Context, r req) (res, error) {
		got, err := r.Session.Elicit(ctx, &sdk.ElicitParams{Message: "how many?", RequestedSchema: json.RawMessage(
			`{"type":"object","properties":{"count":{"type":"integer","description":"how many"},"note":{"type":"string"}},"required":["count"]}`)})
		if err != nil {
			return said("refused: %v", err), nil
		}
		return said("%s %v", got.Action, got.Content), nil
	})
	pages := 0
	add(s, "page", func(ctx context.Context, r req) (res, error) {
		var in struct{ URL, How string }
		_ = json.Unmarshal(r.Params.Arguments, &in)
		params := &sdk.ElicitParams{Mode: "url", URL: in.URL, Message: "Say who you are.", ElicitationID: "e1"}
		switch in.How {
		case "error": // the call can be made once the page has been opened
			if pages++; pages == 1 {
				return nil, sdk.URLElicitationRequiredError([]*sdk.ElicitParams{params})
			}
			return said("made at the second time"), nil
		case "done": // the page has done its part before anybody answers
			answered, stop := context.WithCancel(ctx)
			defer stop()
			go func() {
				for answered.Err() == nil { // the first may come before the question
					_ = r.Session.NotifyElicitationComplete(answered, &sdk.ElicitationCompleteParams{ElicitationID: "e1"})
					time.Sleep(5 * time.Millisecond)
				}
			}()
		}
		got, err := r.Session.Elicit(ctx, params)
		if err != nil {
			return said("refused: %v", err), nil
		}
		return said("%s %v", got.Action, got.Content), nil
	})
	add(s, "touch", func(ctx context.Context, r req) (res, error) {
		return said("touched"), s.ResourceUpdated(ctx, &sdk.ResourceUpdatedNotificationParams{URI: "doc://one"})
	})
	add(s, "samples", func(ctx context.Context, r req) (res, error) {
		got, err := r.Session.CreateMessage(ctx, &sdk.CreateMessageParams{MaxTokens: 50, SystemPrompt: "Be short.",
			Messages: []*sdk.SamplingMessage{{Role: "user", Content: &sdk.TextContent{Text: "what is it?"}}}})
		if err != nil {
			return said("refused: %v", err), nil
		}
		return said("%s said %s", got.Model, got.Content.(*sdk.TextContent).Text), nil
	})
	add(s, "roots", func(ctx context.Context, r req) (res, error) {
		got, err := r.Session.ListRoots(ctx, nil)
		if err != nil {
			return nil, err
		}
		out := ""
		for _, root := range got.Roots {
			out += root.Name + " " + root.URI + "\n"
		}
		return said("%s", out), nil
	})
	s.AddPrompt(&sdk.Prompt{Name: "review", Description: "Reviews something.", Arguments: []*sdk.PromptArgument{{Name: "what", Required: true}, {Name: "how"}}},
		func(_ context.Context, r *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
			return &sdk.GetPromptResult{Messages: []*sdk.PromptMessage{{Role: "user", Content: &sdk.TextContent{
				Text: fmt.Sprintf("Review %s, %s.", r.Params.Arguments["what"], r.Params.Arguments["how"])}}}}, nil
		})
	s.AddResource(&sdk.Resource{URI: "doc://bytes", Name: "bytes"}, func(_ context.Context, r *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: r.Params.URI, MIMEType: "application/octet-stream", Blob: []byte("plain words\n")}}}, nil
	})
	read := func(_ context.Context, r *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: r.Params.URI, Text: "the text of " + r.Params.URI}, {URI: "x", Blob: png}}}, nil
	}
	s.AddResource(&sdk.Resource{URI: "doc://one", Name: "one", Description: "The first.", MIMEType: "text/plain"}, read)
	s.AddResource(&sdk.Resource{URI: "doc://two", Name: "two"}, read)
	s.AddResourceTemplate(&sdk.ResourceTemplate{URITemplate: "row://{id}", Name: "a row"}, read)
	return s
}

// self is this test binary as a server of that kind.
func self(t *testing.T, name, kind string, env ...string) Server {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s := Server{Name: name, Command: exe, Env: map[string]string{kindVar: kind, "FAKE_KEY": "test-key-fake-1", "GORACE": os.Getenv("GORACE")}, StartTimeout: time.Minute}
	for i := 0; i+1 < len(env); i += 2 {
		s.Env[env[i]] = env[i+1]
	}
	return s
}

// open is a hub that is closed with the test, with short pauses.
func open(t *testing.T, servers ...Server) *Hub {
	t.Helper()
	h := New(servers, Options{Dir: t.TempDir(), Version: "test"})
	h.pause = func(int) time.Duration { return 10 * time.Millisecond }
	t.Cleanup(h.Close)
	return h
}
