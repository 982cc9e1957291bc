package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/coder/acp-go-sdk"

	"chorus/internal/sim/llmsim"
)

// editor is an editor with the protocol's own library: it keeps what it is shown, and answers what it is asked.
type editor struct {
	t      *testing.T
	conn   *sdk.ClientSideConnection
	cmd    *exec.Cmd
	in     io.Closer
	home   string
	dir    string
	info   sdk.InitializeResponse
	answer atomic.Pointer[func(sdk.RequestPermissionRequest) sdk.RequestPermissionOutcome]

	mu       sync.Mutex
	shownNow atomic.Pointer[[]sdk.SessionUpdate] // replaced, never changed: tests look while more comes in
	askedNow atomic.Pointer[[]sdk.RequestPermissionRequest]
	changed  chan struct{}
}

// answerWith is how the editor answers from now on; nil: not at all.
func (e *editor) answerWith(how func(sdk.RequestPermissionRequest) sdk.RequestPermissionOutcome) {
	if how == nil {
		e.answer.Store(nil)
		return
	}
	e.answer.Store(&how)
}

// updates is what was shown so far.
func (e *editor) updates() []sdk.SessionUpdate { return held(&e.shownNow) }

// asked is what was asked so far.
func (e *editor) asked() []sdk.RequestPermissionRequest { return held(&e.askedNow) }

func held[T any](p *atomic.Pointer[[]T]) []T {
	if list := p.Load(); list != nil {
		return *list
	}
	return nil
}

func extend[T any](p *atomic.Pointer[[]T], one T) {
	list := append(slices.Clone(held(p)), one)
	p.Store(&list)
}

var errNotOffered = errors.New("this editor does not offer it")

func (e *editor) SessionUpdate(_ context.Context, n sdk.SessionNotification) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	extend(&e.shownNow, n.Update)
	close(e.changed)
	e.changed = make(chan struct{})
	return nil
}

func (e *editor) RequestPermission(ctx context.Context, p sdk.RequestPermissionRequest) (sdk.RequestPermissionResponse, error) {
	e.mu.Lock()
	extend(&e.askedNow, p)
	close(e.changed)
	e.changed = make(chan struct{})
	e.mu.Unlock()
	answer := e.answer.Load()
	if answer == nil {
		<-ctx.Done()
		return sdk.RequestPermissionResponse{Outcome: sdk.NewRequestPermissionOutcomeCancelled()}, nil
	}
	return sdk.RequestPermissionResponse{Outcome: (*answer)(p)}, nil
}

func (e *editor) ReadTextFile(context.Context, sdk.ReadTextFileRequest) (sdk.ReadTextFileResponse, error) {
	return sdk.ReadTextFileResponse{}, errNotOffered
}
func (e *editor) WriteTextFile(context.Context, sdk.WriteTextFileRequest) (sdk.WriteTextFileResponse, error) {
	return sdk.WriteTextFileResponse{}, errNotOffered
}
func (e *editor) CreateTerminal(context.Context, sdk.CreateTerminalRequest) (sdk.CreateTerminalResponse, error) {
	return sdk.CreateTerminalResponse{}, errNotOffered
}
func (e *editor) KillTerminal(context.Context, sdk.KillTerminalRequest) (sdk.KillTerminalResponse, error) {
	return sdk.KillTerminalResponse{}, errNotOffered
}
func (e *editor) TerminalOutput(context.Context, sdk.TerminalOutputRequest) (sdk.TerminalOutputResponse, error) {
	return sdk.TerminalOutputResponse{}, errNotOffered
}
func (e *editor) ReleaseTerminal(context.Context, sdk.ReleaseTerminalRequest) (sdk.ReleaseTerminalResponse, error) {
	return sdk.ReleaseTerminalResponse{}, errNotOffered
}
func (e *editor) WaitForTerminalExit(context.Context, sdk.WaitForTerminalExitRequest) (sdk.WaitForTerminalExitResponse, error) {
	return sdk.WaitForTerminalExitResponse{}, errNotOffered
}

// model starts a model that plays a script.
func model(t *testing.T, script string) (env []string, server *llmsim.Server) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "script.yaml")
	if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	read, err := llmsim.ReadScript(file)
	if err != nil {
		t.Fatal(err)
	}
	server = llmsim.New(llmsim.Options{Keys: []string{"test-key"}})
	server.Load(read)
	url, stop, err := server.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return []string{"ANTHROPIC_BASE_URL=" + url, "ANTHROPIC_API_KEY=test-key"}, server
}

// newEditor makes one for a home and a folder of their own.
func newEditor(t *testing.T, env []string, args ...string) *editor {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	e := &editor{t: t, home: filepath.Join(dir, "home"), dir: filepath.Join(dir, "work"), changed: make(chan struct{})}
	if err := os.MkdirAll(e.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	e.start(env, args...)
	return e
}

// start runs the program and shakes hands with it.
func (e *editor) start(env []string, args ...string) {
	e.t.Helper()
	e.cmd = exec.Command("chorus", append([]string{"acp"}, args...)...)
	e.cmd.Env = append([]string{"HOME=" + e.dir, "CHORUS_HOME=" + e.home, "USER=ada", "PATH=" + os.Getenv("PATH"), "CHORUS_SANDBOX=host"}, env...)
	e.cmd.Stderr = os.Stderr
	in, err := e.cmd.StdinPipe()
	if err != nil {
		e.t.Fatal(err)
	}
	out, err := e.cmd.StdoutPipe()
	if err != nil {
		e.t.Fatal(err)
	}
	if err := e.cmd.Start(); err != nil {
		e.t.Fatal(err)
	}
	e.in = in
	e.conn = sdk.NewClientSideConnection(e, in, out)
	e.conn.SetLogger(slog.New(slog.DiscardHandler))
	e.t.Cleanup(func() { _ = e.cmd.Process.Kill() })
	made, err := e.conn.Initialize(e.t.Context(), sdk.InitializeRequest{ProtocolVersion: sdk.ProtocolVersionNumber})
	if err != nil {
		e.t.Fatal(err)
	}
	e.info = made
}

// leave ends the program as an editor does that is closed.
func (e *editor) leave() {
	e.t.Helper()
	_ = e.in.Close()
	if err := e.cmd.Wait(); err != nil {
		e.t.Errorf("chorus acp: %v", err)
	}
}

func (e *editor) kill() {
	_ = e.cmd.Process.Kill()
	_ = e.cmd.Wait()
}

func (e *editor) open() sdk.NewSessionResponse {
	e.t.Helper()
	made, err := e.conn.NewSession(e.t.Context(), sdk.NewSessionRequest{Cwd: e.dir, McpServers: []sdk.McpServer{}})
	if err != nil {
		e.t.Fatal(err)
	}
	return made
}

func (e *editor) say(id sdk.SessionId, text string, more ...sdk.ContentBlock) (sdk.PromptResponse, error) {
	ctx, cancel := context.WithTimeout(e.t.Context(), time.Minute)
	defer cancel()
	return e.conn.Prompt(ctx, sdk.PromptRequest{SessionId: id, Prompt: append([]sdk.ContentBlock{sdk.TextBlock(text)}, more...)})
}

// must is say for prompts that end well.
func (e *editor) must(id sdk.SessionId, text string, more ...sdk.ContentBlock) sdk.PromptResponse {
	e.t.Helper()
	got, err := e.say(id, text, more...)
	if err != nil || got.StopReason != sdk.StopReasonEndTurn {
		e.t.Fatalf("%q: %+v, %v", text, got, err)
	}
	return got
}

// until waits until what was shown holds.
func (e *editor) until(what string, holds func() bool) {
	e.t.Helper()
	late := time.After(time.Minute)
	for {
		e.mu.Lock()
		changed, ok := e.changed, holds()
		e.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-changed:
		case <-late:
			e.t.Fatalf("never: %s; shown is %s", what, e.shown())
		}
	}
}

// shown is what was shown, in one line for each kind.
func (e *editor) shown() string {
	data, _ := json.Marshal(e.updates())
	return string(data)
}

// told is the text that was shown as the agent's.
func (e *editor) told() string {
	var b strings.Builder
	for _, u := range e.updates() {
		if u.AgentMessageChunk != nil && u.AgentMessageChunk.Content.Text != nil {
			b.WriteString(u.AgentMessageChunk.Content.Text.Text)
		}
	}
	return b.String()
}

// forget empties what was shown.
func (e *editor) forget() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.shownNow.Store(nil)
	e.askedNow.Store(nil)
}

func choose(id string) func(sdk.RequestPermissionRequest) sdk.RequestPermissionOutcome {
	return func(sdk.RequestPermissionRequest) sdk.RequestPermissionOutcome {
		return sdk.NewRequestPermissionOutcomeSelected(sdk.PermissionOptionId(id))
	}
}

func TestEditor(t *testing.T) {
	t.Parallel()
	env, server := model(t, `
- {text: hello there, thinking: let me see}
- calls: [{id: a, name: write, args: {path: notes.txt, content: "one\ntwo\n"}}]
- calls: [{id: b, name: edit, args: {path: notes.txt, old_string: two, new_string: three}}]
- text: written
- calls: [{id: a, name: bash, args: {command: "echo ran >>log; cat log"}}]
- text: once
- calls: [{id: a, name: bash, args: {command: "echo ran >>log; cat log"}}]
- text: twice
- calls: [{id: a, name: bash, args: {command: "echo ran >>log; cat log"}}]
- text: thrice
- calls: [{id: a, name: bash, args: {command: "touch other"}}]
- text: refused
- calls: [{id: a, name: bash, args: {command: "touch free"}}]
- text: free
- text: a red dot
- {text: I will not, stop: refusal}
`)
	e := newEditor(t, env)
	info := e.info
	c := info.AgentCapabilities
	if info.ProtocolVersion != 1 || !c.LoadSession || !c.PromptCapabilities.Image || !c.PromptCapabilities.EmbeddedContext || c.SessionCapabilities.List == nil {
		t.Errorf("capabilities: %+v", c)
	}
	made := e.open()
	id := made.SessionId
	if made.Modes == nil || made.Modes.CurrentModeId != "standard" || len(made.Modes.AvailableModes) < 6 || len(made.ConfigOptions) != 2 {
		t.Errorf("modes: %+v, options: %+v", made.Modes, made.ConfigOptions)
	}
	e.until("commands are offered", func() bool {
		return slices.ContainsFunc(e.updates(), func(u sdk.SessionUpdate) bool {
			return u.AvailableCommandsUpdate != nil && slices.ContainsFunc(u.AvailableCommandsUpdate.AvailableCommands, func(c sdk.AvailableCommand) bool { return c.Name == "status" })
		})
	})

	// An answer with thoughts; what the person said is not said back.
	e.forget()
	if got := e.must(id, "hi"); got.Usage == nil || got.Usage.OutputTokens == 0 {
		t.Errorf("usage: %+v", got.Usage)
	}
	if text := e.told(); text != "hello there" || strings.Contains(e.shown(), "user_message_chunk") || !strings.Contains(e.shown(), "let me see") {
		t.Errorf("%q in %s", text, e.shown())
	}

	// Calls with their files and diffs.
	e.forget()
	e.must(id, "write it")
	calls, diffs := e.calls()
	if fmt.Sprint(calls) != "[write notes.txt edit completed edit notes.txt edit completed]" || fmt.Sprint(diffs) != `[notes.txt:"<nil>">"one\ntwo\n" notes.txt:"one\ntwo\n">"one\nthree\n"]` {
		t.Errorf("calls %v, diffs %v", calls, diffs)
	}

	// Questions: once, for the session, no.
	e.forget()
	e.answerWith(choose("allow"))
	e.must(id, "run it")
	if len(e.asked()) != 1 || len(e.asked()[0].Options) < 3 || !strings.Contains(e.shown(), "ran") {
		t.Fatalf("asked %+v", e.asked())
	}
	if call := e.asked()[0].ToolCall; call.Title == nil || !strings.Contains(*call.Title, "echo ran") || call.Kind == nil || *call.Kind != sdk.ToolKindExecute {
		t.Errorf("asked about %+v", call)
	}
	e.answerWith(choose("allow_session"))
	e.must(id, "run it again")
	e.answerWith(nil)
	e.must(id, "and again") // not asked
	if len(e.asked()) != 2 {
		t.Errorf("asked %d times", len(e.asked()))
	}
	e.forget()
	e.answerWith(choose("reject"))
	e.must(id, "touch it")
	if _, err := os.Stat(filepath.Join(e.dir, "other")); err == nil || !strings.Contains(e.shown(), `"failed"`) {
		t.Errorf("a rejected command ran: %s", e.shown())
	}
	if data, _ := os.ReadFile(filepath.Join(e.dir, "log")); string(data) != "ran\nran\nran\n" {
		t.Errorf("log: %q", data)
	}

	// Modes are profiles: nothing is asked under open.
	e.forget()
	e.answerWith(nil)
	if _, err := e.conn.SetSessionMode(t.Context(), sdk.SetSessionModeRequest{SessionId: id, ModeId: "open"}); err != nil {
		t.Fatal(err)
	}
	e.must(id, "touch it freely")
	if _, err := os.Stat(filepath.Join(e.dir, "free")); err != nil || len(e.asked()) > 0 {
		t.Errorf("asked %v, %v", e.asked(), err)
	}
	if _, err := e.conn.SetSessionMode(t.Context(), sdk.SetSessionModeRequest{SessionId: id, ModeId: "nonsense"}); err == nil {
		t.Error("a mode that does not exist was taken")
	}

	// Pictures and files of the editor.
	dot := base64.StdEncoding.EncodeToString(onePixel)
	e.must(id, "what is this?", sdk.ImageBlock(dot, "image/png"), sdk.ResourceLinkBlock("notes.txt", "file://"+e.dir+"/notes.txt"),
		sdk.ResourceBlock(sdk.EmbeddedResourceResource{TextResourceContents: &sdk.TextResourceContents{Uri: "file:///elsewhere/x.go", Text: "package x"}}))
	last := string(server.Requests()[len(server.Requests())-1].Body)
	for _, want := range []string{"image/png", "package x", "notes.txt", "/elsewhere/x.go"} {
		if !strings.Contains(last, want) {
			t.Errorf("the model did not see %s", want)
		}
	}
	if _, err := e.say(id, "listen", sdk.AudioBlock(dot, "audio/wav")); err == nil {
		t.Error("sound was taken")
	}
	if got, err := e.say(id, "go on"); err != nil || got.StopReason != sdk.StopReasonRefusal {
		t.Errorf("an answer that was refused: %+v %v", got, err)
	}

	// Commands, and words that only look like one.
	e.forget()
	e.must(id, "/status")
	if text := e.told(); !strings.Contains(text, string(id)) || !strings.Contains(text, "open") {
		t.Errorf("/status: %q", text)
	}

	list, err := e.conn.ListSessions(t.Context(), sdk.ListSessionsRequest{Cwd: &e.dir})
	if err != nil || len(list.Sessions) != 1 || list.Sessions[0].SessionId != id || list.Sessions[0].Cwd != e.dir {
		t.Errorf("list: %+v %v", list, err)
	}

	// The same session in another process: all of it is shown.
	e.leave()
	e.forget()
	e.start(env)
	if _, err := e.conn.LoadSession(t.Context(), sdk.LoadSessionRequest{SessionId: id, Cwd: e.dir, McpServers: []sdk.McpServer{}}); err != nil {
		t.Fatal(err)
	}
	if text := e.told(); !strings.HasPrefix(text, "hello therewritten") || strings.Count(e.shown(), "user_message_chunk") != 9 {
		t.Errorf("loaded: %q, %s", text, e.shown())
	}
	calls, diffs = e.calls()
	if len(calls) != 21 || len(diffs) != 2 {
		t.Errorf("loaded calls: %v %v", calls, diffs)
	}
	for _, id := range []sdk.SessionId{"nosuchsession", ""} {
		if _, err := e.conn.LoadSession(t.Context(), sdk.LoadSessionRequest{SessionId: id, Cwd: e.dir, McpServers: []sdk.McpServer{}}); err == nil {
			t.Errorf("session %q was loaded", id)
		}
	}
	if _, err := e.conn.NewSession(t.Context(), sdk.NewSessionRequest{Cwd: "relative", McpServers: []sdk.McpServer{}}); err == nil {
		t.Error("a relative folder was taken")
	}
	e.leave()
}

// calls are titles, kinds and last states of the calls that were shown, and their diffs.
func (e *editor) calls() (calls, diffs []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, u := range e.updates() {
		var content []sdk.ToolCallContent
		switch {
		case u.ToolCall != nil:
			calls = append(calls, u.ToolCall.Title, string(u.ToolCall.Kind))
			content = u.ToolCall.Content
		case u.ToolCallUpdate != nil:
			if s := u.ToolCallUpdate.Status; s != nil && (*s == sdk.ToolCallStatusCompleted || *s == sdk.ToolCallStatusFailed) {
				calls = append(calls, string(*s))
			}
			content = u.ToolCallUpdate.Content
		}
		for _, c := range content {
			if c.Diff != nil {
				old := "<nil>"
				if c.Diff.OldText != nil {
					old = *c.Diff.OldText
				}
				diffs = append(diffs, fmt.Sprintf("%s:%q>%q", filepath.Base(c.Diff.Path), old, c.Diff.NewText))
			}
		}
	}
	return calls, diffs
}

// onePixel is a picture.
var onePixel, _ = base64.StdEncoding.DecodeString("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==")

// A prompt that is cancelled ends as cancelled, in the middle of an answer, of a command and of a question.
func TestEditorCancels(t *testing.T) {
	t.Parallel()
	env, _ := model(t, `
- {text: 'Everything that there is to say of it', fault: {kind: stall, after: 6}}
- calls: [{id: a, name: bash, args: {command: "echo begun; sleep 60"}}]
- calls: [{id: a, name: bash, args: {command: "echo begun; sleep 60"}}]
- text: fine
`)
	e := newEditor(t, env)
	id := e.open().SessionId
	cancelled := func(prompt string, when func() bool) {
		t.Helper()
		e.forget()
		type answer struct {
			got sdk.PromptResponse
			err error
		}
		done := make(chan answer, 1)
		go func() {
			got, err := e.say(id, prompt)
			done <- answer{got, err}
		}()
		e.until(prompt, when)
		if err := e.conn.Cancel(t.Context(), sdk.CancelNotification{SessionId: id}); err != nil {
			t.Fatal(err)
		}
		if a := <-done; a.err != nil || a.got.StopReason != sdk.StopReasonCancelled {
			t.Errorf("%s: %+v %v", prompt, a.got, a.err)
		}
	}
	cancelled("tell me everything", func() bool { return strings.Contains(e.told(), "Everything") })
	cancelled("ask me", func() bool { return len(e.asked()) == 1 })
	e.answerWith(choose("allow"))
	cancelled("run it", func() bool { return strings.Contains(e.shown(), "begun\\n`") })
	e.must(id, "still there?")
	e.leave()
}

// kill -9 in the middle of an answer, and while a question is open: whoever loads the session sees what was said, is
// asked again, and the run goes on.
func TestEditorAfterACrash(t *testing.T) {
	t.Parallel()
	env, _ := model(t, `
- {text: 'Everything that there is to say of it', fault: {kind: stall, after: 6}}
- text: Everything there is.
- calls: [{id: a, name: bash, args: {command: "echo ran >>log"}}]
- text: it ran
`)
	e := newEditor(t, env)
	id := e.open().SessionId
	said := make(chan error, 2)
	go func() { _, err := e.say(id, "tell me everything"); said <- err }()
	e.until("the answer begins", func() bool { return strings.Contains(e.told(), "Everything") })
	e.kill()
	if err := <-said; err == nil {
		t.Error("a prompt was answered by the dead")
	}
	load := func() {
		t.Helper()
		e.forget()
		e.start(env)
		if _, err := e.conn.LoadSession(t.Context(), sdk.LoadSessionRequest{SessionId: id, Cwd: e.dir, McpServers: []sdk.McpServer{}}); err != nil {
			t.Fatal(err)
		}
	}
	load()
	if !strings.Contains(e.shown(), "tell me everything") {
		t.Errorf("what was said is not shown: %s", e.shown())
	}
	e.until("the run goes on", func() bool { return strings.Contains(e.told(), "Everything there is.") })

	go func() { _, err := e.say(id, "run it"); said <- err }()
	e.until("it is asked", func() bool { return len(e.asked()) == 1 })
	e.kill()
	<-said
	e.answerWith(choose("allow"))
	load()
	e.until("it is asked again and goes on", func() bool { return len(e.asked()) == 1 && strings.Contains(e.told(), "it ran") })
	if data, _ := os.ReadFile(filepath.Join(e.dir, "log")); string(data) != "ran\n" {
		t.Errorf("log: %q", data)
	}
	e.leave()
}

// MCP servers that the editor names are the session's; those that cannot be used are told.
func TestEditorsServers(t *testing.T) {
	t.Parallel()
	env, server := model(t, `
- calls: [{id: a, name: mcp__story__greet, args: {name: Ada}}]
- text: greeted
- text: nobody here
`)
	e := newEditor(t, env, "--permissions", "open")
	made, err := e.conn.NewSession(t.Context(), sdk.NewSessionRequest{Cwd: e.dir, McpServers: []sdk.McpServer{
		{Stdio: &sdk.McpServerStdio{Name: "story", Command: "mcpserver", Args: []string{}, Env: []sdk.EnvVariable{{Name: "STORY_NOTE", Value: "x"}}}},
		{Acp: &sdk.McpServerAcpInline{Name: "inner", Id: "1", Type: "acp"}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	e.until("what is refused is told", func() bool { return strings.Contains(e.shown(), "The MCP server inner is not used") })
	e.must(made.SessionId, "greet me")
	if !strings.Contains(e.shown(), "hello Ada") {
		t.Errorf("not greeted: %s", e.shown())
	}
	e.must(e.open().SessionId, "who is there?")
	if last := server.Requests()[len(server.Requests())-1]; strings.Contains(string(last.Body), "mcp__story") {
		t.Error("another session has the server too")
	}
	e.leave()
}
