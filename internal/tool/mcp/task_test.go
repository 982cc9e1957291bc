package mcp

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"chorus/internal/polltest"
	"chorus/internal/tool"
)

// taskServer has tools that must be called as tasks. It speaks by hand, since the SDK has no tasks. What it was asked is in
// the folder FAKE_FILE, and so are its tasks: they outlive the process.
func taskServer() {
	dir := os.Getenv("FAKE_FILE")
	note := func(what string) {
		f, err := os.OpenFile(filepath.Join(dir, "asked"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err == nil {
			fmt.Fprintln(f, what)
			_ = f.Close()
		}
	}
	asked := func(what string) int {
		data, _ := os.ReadFile(filepath.Join(dir, "asked"))
		return strings.Count(string(data), what+"\n")
	}
	state := func(id, status, message string) string {
		return fmt.Sprintf(`{"taskId":%q,"status":%q,"statusMessage":%q,"createdAt":"2026-01-01T00:00:00Z","lastUpdatedAt":"2026-01-01T00:00:00Z","ttl":%s,"pollInterval":60}`, id, status, message, cmp.Or(os.Getenv("FAKE_TTL"), "60000"))
	}
	waiting := "" // the tasks/result that waits for an answer of a person
	in := bufio.NewReader(os.Stdin)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var msg struct {
			ID     json.RawMessage
			Method string
			Params struct {
				Name   string
				Task   *struct{ TTL int }
				TaskID string
			}
			Result struct {
				Action  string
				Content map[string]any
			}
		}
		if json.Unmarshal(line, &msg) != nil || msg.ID == nil {
			continue
		}
		id, out := string(msg.ID), "{}"
		known := msg.Params.TaskID != "" && asked("made "+msg.Params.TaskID) > 0
		switch {
		case msg.Method == "": // the answer of a person
			id, out = waiting, fmt.Sprintf(`{"content":[{"type":"text","text":"%s %v"}]}`, msg.Result.Action, msg.Result.Content["count"])
		case msg.Method == "initialize":
			out = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"tasks":{"cancel":{},"requests":{"tools":{"call":{}}}}},"serverInfo":{"name":"tasks","version":"1"}}`
		case msg.Method == "tools/list":
			var tools []string
			for name, support := range map[string]string{"long": "required", "broken": "required", "asks": "required", "never": "required", "dies": "required", "forgets": "required", "told": "required", "quick": "optional"} {
				tools = append(tools, fmt.Sprintf(`{"name":%q,"inputSchema":{"type":"object"},"execution":{"taskSupport":%q}}`, name, support))
			}
			out = `{"tools":[` + strings.Join(append(tools, `{"name":"plain","inputSchema":{"type":"object"}}`), ",") + `]}`
		case msg.Method == "tools/call" && (msg.Params.Task == nil || msg.Params.Name == "quick"):
			note("called " + msg.Params.Name)
			out = fmt.Sprintf(`{"content":[{"type":"text","text":"at once, as a task: %v"}]}`, msg.Params.Task != nil)
		case msg.Method == "tools/call":
			if msg.Params.Name != "forgets" {
				note("made " + msg.Params.Name)
			}
			if out = `{"task":` + state(msg.Params.Name, "working", "begun") + `}`; msg.Params.Name == "told" {
				out = strings.Replace(out, `"pollInterval":60`, `"pollInterval":9000000`, 1)
				fmt.Println(result(id, out))
				fmt.Println(`{"jsonrpc":"2.0","method":"notifications/tasks/status","params":` + state("told", "completed", "") + `}`)
				continue
			}
		case !known:
			fmt.Printf("{\"jsonrpc\":\"2.0\",\"id\":%s,\"error\":{\"code\":-32602,\"message\":\"no such task\"}}\n", id)
			continue
		case msg.Method == "tasks/get":
			note("looked " + msg.Params.TaskID)
			looked := asked("looked " + msg.Params.TaskID)
			switch {
			case msg.Params.TaskID == "dies" && looked == 1:
				os.Exit(7)
			case msg.Params.TaskID == "never" || looked < 3 && msg.Params.TaskID != "told":
				out = state(msg.Params.TaskID, "working", fmt.Sprintf("step %d", looked))
			case msg.Params.TaskID == "broken":
				out = state("broken", "failed", "no more paper")
			case msg.Params.TaskID == "asks":
				out = state("asks", "input_required", "a question")
			default:
				out = state(msg.Params.TaskID, "completed", "")
			}
		case msg.Method == "tasks/result" && msg.Params.TaskID == "asks":
			waiting = id
			fmt.Println(`{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"how many?","requestedSchema":{"type":"object","properties":{"count":{"type":"integer"}},"required":["count"]},"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"asks"}}}}`)
			continue
		case msg.Method == "tasks/result" && msg.Params.TaskID == "broken":
			out = `{"content":[{"type":"text","text":"no more paper"}],"isError":true}`
		case msg.Method == "tasks/result":
			out = `{"content":[{"type":"text","text":"the result of ` + msg.Params.TaskID + `"}],"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"x"}}}`
		case msg.Method == "tasks/cancel":
			note("cancelled " + msg.Params.TaskID)
			out = state(msg.Params.TaskID, "cancelled", "")
		}
		fmt.Println(result(id, out))
	}
}

func TestTasks(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		want   string
		failed bool
	}{
		"long":    {want: "the result of long"},
		"told":    {want: "the result of told"}, // its pollInterval is hours: what it says unasked counts
		"broken":  {want: "no more paper", failed: true},
		"asks":    {want: "accept 7"},
		"quick":   {want: "at once, as a task: true"},
		"plain":   {want: "at once, as a task: false"},
		"dies":    {want: "the result of dies"}, // another process of it has the task
		"forgets": {want: "answered with an error: no such task", failed: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ttl := "60000"
			if name == "told" {
				ttl = "null" // else it is looked at when its time is over
			}
			h := open(t, self(t, "jobs", "tasks", "FAKE_FILE", t.TempDir(), "FAKE_TTL", ttl))
			h.SetHost(&person{replies: []Reply{{Accept, "7"}}})
			set := toolsOf(t, h)
			one, args, err := set.Resolve("mcp__jobs__"+name, []byte(`{}`))
			if err != nil {
				t.Fatal(err)
			}
			var progress []string
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			res, err := one.Run(tool.WithCall(ctx, tool.Call{ID: "c", Key: "run/c", Progress: func(text string) { progress = append(progress, text) }}), args)
			if err != nil || res.Failed != c.failed || !strings.Contains(res.Blocks.Text(), c.want) {
				t.Errorf("%v, %v %s", err, res.Failed, res.Blocks.Text())
			}
			if name == "long" && strings.Join(progress, ", ") != "begun, step 1, step 2" {
				t.Errorf("told on the way: %q", progress)
			}
		})
	}
}

// A task ends with the run that wants it.
func TestATaskIsCancelledWithItsCall(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := open(t, self(t, "jobs", "tasks", "FAKE_FILE", dir))
	one, args, err := toolsOf(t, h).Resolve("mcp__jobs__never", []byte(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	asked := func() string {
		data, _ := os.ReadFile(filepath.Join(dir, "asked"))
		return string(data)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := one.Run(tool.WithCall(ctx, tool.Call{ID: "c", Key: "run/c"}), args)
		ended <- err
	}()
	polltest.Until(t, "the task was looked at", func() bool { return strings.Contains(asked(), "looked never") })
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if !strings.Contains(asked(), "cancelled never") {
		t.Errorf("the server was asked: %s", asked())
	}
}

// memory is a TaskStore.
type memory map[string]string

func (m memory) Task(_ context.Context, call string) (string, error) { return m[call], nil }

func (m memory) SetTask(_ context.Context, call, kept string) error {
	if m[call] = kept; kept == "" {
		delete(m, call)
	}
	return nil
}

// What a call became is kept beside it. A process that takes the call up asks for that task and makes no other, and one that
// does not know which task it is makes none either.
func TestATaskIsFoundAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		kept, want string
		made       int
		failed     bool
	}{
		"anew":             {want: "the result of long", made: 1},
		"found":            {kept: `{"task":"long","until":"2100-01-01T00:00:00Z"}`, want: "the result of long"},
		"not known which":  {kept: `{"until":"2100-01-01T00:00:00Z"}`, want: "It is not made again", failed: true},
		"forgotten":        {kept: `{"task":"forgets","until":"2100-01-01T00:00:00Z"}`, want: "no such task", failed: true},
		"nobody waits":     {kept: `{"task":"never","until":"2000-01-01T00:00:00Z"}`, want: "its deadline", failed: true},
		"done in the mean": {kept: `{"task":"told","until":"2000-01-01T00:00:00Z"}`, want: "the result of told"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, store := t.TempDir(), memory{}
			if c.kept != "" {
				store["run/c"] = c.kept
				if err := os.WriteFile(filepath.Join(dir, "asked"), []byte("made long\nmade never\nmade told\n"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			h := open(t, self(t, "jobs", "tasks", "FAKE_FILE", dir))
			h.opt.Tasks = store
			one, args, err := toolsOf(t, h).Resolve("mcp__jobs__long", []byte(`{}`))
			if err != nil || !one.Spec().Once || one.Spec().Limit < time.Hour {
				t.Fatalf("%v, %+v", err, one.Spec())
			}
			began := false
			res, err := one.Run(tool.WithCall(t.Context(), tool.Call{ID: "c", Key: "run/c", Progress: func(string) { began = began || strings.Contains(store["run/c"], `"task":"`) }}), args)
			if err != nil || res.Failed != c.failed || !strings.Contains(res.Blocks.Text(), c.want) {
				t.Errorf("%v, %v %s", err, res.Failed, res.Blocks.Text())
			}
			data, _ := os.ReadFile(filepath.Join(dir, "asked"))
			before := 0
			if c.kept != "" {
				before = 1
			}
			if made := strings.Count(string(data), "made long\n") - before; made != c.made || len(store) != 0 || c.made == 1 && !began {
				t.Errorf("made %d times, kept afterwards %v, kept meanwhile %v", made, store, began)
			}
		})
	}
}

// A server that keeps its tasks for less than they may take is not asked for longer.
func TestATaskEndsWithItsTTL(t *testing.T) {
	t.Parallel()
	s := self(t, "jobs", "tasks", "FAKE_FILE", t.TempDir(), "FAKE_TTL", "150")
	one, args, err := toolsOf(t, open(t, s)).Resolve("mcp__jobs__never", []byte(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	res, err := one.Run(tool.WithCall(t.Context(), tool.Call{ID: "c", Key: "run/c"}), args)
	if err != nil || !res.Failed || !strings.Contains(res.Blocks.Text(), "its deadline") {
		t.Errorf("%v, %s", err, res.Blocks.Text())
	}
}

// The example server of the protocol's authors carries a call out as a task, and asks on the way.
func TestRealTasks(t *testing.T) {
	t.Parallel()
	bin := fetched(t)
	h := open(t, Server{Name: "every", Command: filepath.Join(bin, "mcp-server-everything"), Args: []string{"stdio"}})
	someone := &person{replies: []Reply{{Accept, "technical"}, {Accept, "technical"}, {Accept, "technical"}}}
	h.SetHost(someone)
	one, args, err := toolsOf(t, h).Resolve("mcp__every__simulate-research-query", []byte(`{"topic":"cups","ambiguous":true}`))
	if err != nil {
		t.Fatal(err)
	}
	var progress []string
	res, err := one.Run(tool.WithCall(t.Context(), tool.Call{ID: "c", Key: "run/c", Progress: func(text string) { progress = append(progress, text) }}), args)
	if err != nil || res.Failed || !strings.Contains(res.Blocks.Text(), "Research Report: cups (technical)") || len(someone.asked) != 1 {
		t.Errorf("%v %s, asked %+v", err, res.Blocks.Text(), someone.asked)
	}
	if len(progress) == 0 {
		t.Error("nothing was told on the way")
	}
}
