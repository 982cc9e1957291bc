package mcp

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"chorus/internal/chat"
	"chorus/internal/permit"
	"chorus/internal/polltest"
	"chorus/internal/tool"
	"chorus/internal/tool/toolsearch"
	"chorus/internal/tool/tooltest"
)

// until waits for the hub to change until it is so.
func until(t *testing.T, h *Hub, what string, so func() bool) {
	t.Helper()
	late := time.After(time.Minute)
	for {
		changed := h.Changed()
		if so() {
			return
		}
		select {
		case <-changed:
		case <-late:
			t.Fatalf("never: %s; %v", what, h.Status())
		}
	}
}

func toolsOf(t *testing.T, h *Hub) *tool.Set {
	t.Helper()
	list := h.Tools(t.Context(), nil)
	if len(list.Missing) > 0 {
		t.Fatalf("missing: %v", list.Missing)
	}
	set, err := tool.NewSet(list.Tools...)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func run(t *testing.T, set *tool.Set, name, args string) tool.Result {
	t.Helper()
	one, corrected, err := set.Resolve(name, []byte(args))
	if err == nil {
		err = set.Validate(one, corrected)
	}
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	res, err := one.Run(tool.WithCall(t.Context(), tool.Call{ID: "call_1"}), corrected)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return res
}

func names(set *tool.Set) []string {
	var out []string
	for _, s := range set.Specs() {
		out = append(out, s.Name)
	}
	return out
}

func TestResults(t *testing.T) {
	t.Parallel()
	set := toolsOf(t, open(t, self(t, "fake", "plain")))
	for _, c := range []struct {
		name, args string
		text       string
		images     int
		failed     bool
	}{
		{"echo", `{"times":"3","text":"<hi>"}`, `{"text":"<hi>","times":3}`, 0, false},
		{"picture", `{}`, "here\n[image/bmp: 12 bytes that are neither text nor a picture]\n[a sound: audio/wav, 3 bytes; it cannot be played here]", 1, false},
		{"embedded", `{}`, "[resource file:///a.txt]\ninside\n[resource file:///b.txt (b): the other; read it with mcp_read]", 1, false},
		{"nothing", `{}`, "(no output)", 0, false},
		{"structured", `{}`, "{\n  \"a\": [\n    2\n  ],\n  \"b\": 1\n}", 0, false},
		{"fails", `{}`, "no such thing", 0, true},
		{"silentfail", `{}`, "The tool failed without saying why.", 0, true},
		{"error", `{}`, "The MCP server fake answered with an error: broken inside, key ***", 0, true},
		{"control", `{}`, "a\uFFFDb", 0, false},
		{"asks", `{}`, "cancel map[]", 0, false},
		{"samples", `{}`, "refused: ", 0, false},
	} {
		res := run(t, set, "mcp__fake__"+c.name, c.args)
		text, images := "", 0
		for _, b := range res.Blocks {
			switch b := b.(type) {
			case chat.Text:
				text += b.Text
			case chat.Image:
				images++
				if b.MediaType != "image/png" || len(res.Blobs) == 0 || res.Blobs[0].Hash != b.Blob {
					t.Errorf("%s: %+v", c.name, b)
				}
			}
		}
		if !strings.HasPrefix(text, c.text) || c.name != "samples" && text != c.text || images != c.images || res.Failed != c.failed {
			t.Errorf("%s: %q, %d images, failed %v", c.name, text, images, res.Failed)
		}
	}
}

func TestLongResultIsClipped(t *testing.T) {
	t.Parallel()
	kept := ""
	keep := func(_ context.Context, call, text string) (string, error) {
		kept = text
		return "@outputs/" + call + ".txt", nil
	}
	h := open(t, self(t, "fake", "plain"))
	set, err := tool.NewSet(h.Tools(t.Context(), keep).Tools...)
	if err != nil {
		t.Fatal(err)
	}
	text := run(t, set, "mcp__fake__long", `{}`).Blocks.Text()
	if len(text) > tool.MaxBytes || !strings.Contains(text, "Full output: @outputs/call_1.txt") || strings.Count(kept, "line") != 5000 {
		t.Errorf("%d bytes, kept %d: %s", len(text), len(kept), text[len(text)-200:])
	}
}

func TestTooLargeAnswerFailsThatCallOnly(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"big", "bigend"} {
		h := open(t, self(t, "fake", kind))
		set := toolsOf(t, h)
		changed := h.Changed()
		res := run(t, set, "mcp__fake__any", `{}`)
		if text := res.Blocks.Text(); !res.Failed || !strings.Contains(text, "larger than 10 MB") {
			t.Errorf("%s: %.300s", kind, text)
		}
		select {
		case <-changed:
			t.Errorf("%s: the server was started again", kind)
		default:
		}
	}
	h := open(t, self(t, "fake", "bigodd"))
	res := run(t, toolsOf(t, h), "mcp__fake__any", `{}`)
	if text := res.Blocks.Text(); !res.Failed || !strings.Contains(text, "it sent a message of more than 10 MB") {
		t.Errorf("%.300s", text)
	}
}

func TestPictures(t *testing.T) {
	t.Parallel()
	var a answer
	a.image(append(slices.Clone(png), make([]byte, largestImage)...), "image/png", "")
	for range maxImages + 1 {
		a.image(png, "image/png", "x://y")
	}
	res := a.result(t.Context(), "mcp server x", nil)
	const want = "[image/png: a picture of 5242988 bytes, too large to look at; at most 5242880]\n[x://y, image/png: one more picture, left out; at most 8 are shown]"
	if text := res.Blocks.Text(); text != want || len(res.Blobs) != maxImages || len(res.Blocks) != 1+maxImages {
		t.Errorf("%d pictures, %s", len(res.Blobs), text)
	}
	var b answer
	b.image(png, "text/html", "")
	if res := b.result(t.Context(), "mcp server x", nil); res.Blocks.Text() != "(1 pictures)" || res.Blocks[1].(chat.Image).MediaType != "image/png" {
		t.Errorf("%v", res.Blocks)
	}
}

func TestNothingIsTrusted(t *testing.T) {
	t.Parallel()
	set := toolsOf(t, open(t, self(t, "odd one", "odd")))
	var trusted tool.Tool
	for _, one := range set.Tools() {
		s := one.Spec()
		if s.ReadOnly || s.Risk == tool.Low || one.Access([]byte(`{}`)) != nil {
			t.Errorf("%s is believed: %+v", s.Name, s)
		}
		if s.Name == "mcp__odd_one__trusted" {
			trusted = one
		}
		if len(s.Name) > 64 || len(s.Description) > longDescription+8 || s.Description == "" {
			t.Errorf("%s has %d bytes of description", s.Name, len(s.Description))
		}
	}
	if trusted == nil {
		t.Fatalf("only %v", names(set))
	}
	long := strings.Repeat("long", 40)
	want := []string{"mcp__odd_one__a_b_" + short("a b"), "mcp__odd_one__a_b_" + short("a.b"), "mcp__odd_one__draft4", "mcp__odd_one__either", "mcp__odd_one__endless",
		"mcp__odd_one__" + long[:64-14-9] + "_" + short(long), "mcp__odd_one__no_schema", "mcp__odd_one__true", "mcp__odd_one__trusted", "mcp__odd_one__twice"}
	slices.Sort(want)
	if got := names(set); !slices.Equal(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	_, args, err := set.Resolve("mcp__odd_one__trusted", []byte(`{"b":{"z":1,"y":2}, "a":"<x>"}`))
	if err != nil {
		t.Fatal(err)
	}
	for preset, verdict := range map[string]permit.Verdict{"standard": permit.Ask, "locked": permit.Deny, "open": permit.Allow} {
		p, err := permit.Preset(preset)
		if err != nil {
			t.Fatal(err)
		}
		j := p.Judge([]permit.Request{{Tool: trusted.Spec().Name, Detail: permit.ToolDetail(args)}}, permit.JudgeOptions{})
		if j.Verdict != verdict || j.Decision.Action != `tool:mcp__odd_one__trusted:{"a":"<x>","b":{"y":2,"z":1}}` || "tool:"+trusted.Spec().Name+":"+string(args) != j.Decision.Action {
			t.Errorf("%s: %s of %s", preset, j.Verdict, j.Decision.Action)
		}
	}
	if res := run(t, set, "mcp__odd_one__endless", `{"a":{"a":{}}}`); !res.Failed || !strings.Contains(res.Blocks.Text(), "hologram") {
		t.Errorf("content of an unknown kind: %s", res.Blocks.Text())
	}
	if label := set.Label("mcp__odd_one__trusted", []byte(`{"path":"a\u001b[2Jb","n":[1,2]}`)); label != "odd one: trusted n=[1,2] path=a[2Jb" {
		t.Errorf("label %q", label)
	}
}

func TestProgress(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "heard")
	set := toolsOf(t, open(t, self(t, "fake", "plain", "FAKE_FILE", file)))
	one, _, err := set.Resolve("mcp__fake__progress", nil)
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var got []string
	ctx := tool.WithCall(t.Context(), tool.Call{ID: "c", Progress: func(text string) {
		mu.Lock()
		defer mu.Unlock()
		if got = append(got, text); text == "done" {
			if err := os.WriteFile(file, nil, 0o600); err != nil {
				t.Error(err)
			}
		}
	}})
	if _, err := one.Run(ctx, []byte(`{}`)); err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if want := []string{"1 of 4", "more[31m than all", "3", "done"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

func TestCancelledCallIsCancelledThere(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "mark")
	set := toolsOf(t, open(t, self(t, "fake", "plain", "FAKE_FILE", file)))
	one, _, err := set.Resolve("mcp__fake__slow", nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ctx = tool.WithCall(ctx, tool.Call{ID: "c", Progress: func(string) { cancel() }})
	if _, err := one.Run(ctx, []byte(`{}`)); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	polltest.Until(t, "the server hears of it", func() bool { data, _ := os.ReadFile(file); return string(data) == "cancelled" })
	if res := run(t, set, "mcp__fake__echo", `{"text":"x"}`); res.Failed {
		t.Error("it does not answer any more")
	}
}

func TestCallDeadline(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ kind, tool string }{{"plain", "slow"}, {"badjson", "any"}, {"mutecall", "any"}, {"deaf", "listen"}} {
		t.Run(c.kind, func(t *testing.T) {
			t.Parallel()
			s := self(t, "fake", c.kind)
			if c.kind == "mutecall" {
				s.Env[kindVar] = "raw"
			}
			s.CallTimeout = 300 * time.Millisecond
			set := toolsOf(t, open(t, s))
			args := `{}`
			if c.kind == "deaf" { // more than its pipe holds
				args = `{"a":"` + strings.Repeat("x", 1<<20) + `"}`
			}
			res := run(t, set, "mcp__fake__"+c.tool, args)
			text := res.Blocks.Text()
			if !res.Failed || !strings.Contains(text, "did not answer within 300ms") && c.kind != "deaf" {
				t.Errorf("%s", text)
			}
		})
	}
}

func TestNoiseIsPassedOver(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"noise", "flood"} {
		set := toolsOf(t, open(t, self(t, "fake", kind)))
		if res := run(t, set, "mcp__fake__echo", `{"text":"x"}`); res.Failed {
			t.Errorf("%s: %s", kind, res.Blocks.Text())
		}
	}
}

func TestLists(t *testing.T) {
	t.Parallel()
	for kind, want := range map[string]int{"many": 500, "cursor": 2, "pages": mostPages, "batch": 1} {
		set := toolsOf(t, open(t, self(t, "s", kind)))
		if got := len(set.Specs()); got != want {
			t.Errorf("%s: %d tools", kind, got)
		}
		if kind == "many" {
			if text := run(t, set, "mcp__s__tool_321", `{}`).Blocks.Text(); text != "number 321" {
				t.Errorf("%s", text)
			}
			short, err := toolsearch.Of(set, toolsearch.Limit, func(tool.Spec) bool { return false })
			if err != nil || len(short.Specs()) != 2 {
				t.Fatalf("%v", err)
			}
			if text := run(t, short, "use_tool", `{"name":"mcp__s__tool_007","arguments":{}}`).Blocks.Text(); text != "number 7" {
				t.Errorf("%s", text)
			}
		}
	}
}

func TestDisabledTools(t *testing.T) {
	t.Parallel()
	s := self(t, "fake", "plain")
	s.DisabledTools = []string{"die", "slow"}
	got := names(toolsOf(t, open(t, s)))
	if slices.Contains(got, "mcp__fake__die") || !slices.Contains(got, "mcp__fake__echo") {
		t.Errorf("%v", got)
	}
}

func TestToolsChange(t *testing.T) {
	t.Parallel()
	h := open(t, self(t, "fake", "plain"))
	set := toolsOf(t, h)
	before := set.Specs()
	run(t, set, "mcp__fake__change", `{}`)
	until(t, h, "the new tool is there", func() bool {
		return slices.ContainsFunc(h.Tools(t.Context(), nil).Tools, func(one tool.Tool) bool { return one.Spec().Name == "mcp__fake__brand_new" })
	})
	set = toolsOf(t, h)
	if text := run(t, set, "mcp__fake__brand_new", `{}`).Blocks.Text(); text != "new" {
		t.Errorf("%s", text)
	}
	if got := set.Specs(); len(got) != len(before) {
		t.Errorf("%d tools, before %d", len(got), len(before))
	}
}

func TestSecretsStayHere(t *testing.T) {
	t.Parallel()
	s := self(t, "fake", "plain", "OWN", "own value")
	h := New([]Server{s}, Options{Dir: t.TempDir(), Environ: []string{
		"PATH=" + os.Getenv("PATH"), "HOME=/h", "LC_ALL=C", "ANTHROPIC_API_KEY=test-key", "AWS_SECRET_ACCESS_KEY=test-key", "CHORUS_TOKEN=test-key",
		"GITHUB_TOKEN=test-key", "XDG_CACHE_HOME=https://me:test-key@host", "OWN=ours", "=odd", "plain",
	}})
	t.Cleanup(h.Close)
	lines := strings.Split(run(t, toolsOf(t, h), "mcp__fake__environ", `{}`).Blocks.Text(), "\n")
	slices.Sort(lines)
	// The program that answers is a Go test, which adds nothing; PWD comes with its directory.
	lines = slices.DeleteFunc(lines, func(l string) bool { return strings.HasPrefix(l, "PWD=") })
	want := []string{kindVar + "=plain", "FAKE_KEY=test-key-fake-1", "GORACE=" + os.Getenv("GORACE"), "HOME=/h", "LC_ALL=C", "OWN=own value", "PATH=" + os.Getenv("PATH")}
	slices.Sort(want)
	if !slices.Equal(lines, want) {
		t.Errorf("it sees %q", lines)
	}
	for _, text := range []string{fmt.Sprint(s), fmt.Sprintf("%+v", s), fmt.Sprintf("%#v", s), fmt.Sprint(s.LogValue())} {
		if strings.Contains(text, "test-key") || strings.Contains(text, "own value") {
			t.Errorf("printed: %s", text)
		}
	}
}

func TestResources(t *testing.T) {
	t.Parallel()
	h := open(t, self(t, "fake", "plain"), self(t, "bare", "many"))
	set := toolsOf(t, h)
	for args, want := range map[string]string{
		`{}`:                               "fake:\ndoc://bytes (bytes)\ndoc://one (one) text/plain: The first.\ndoc://two (two)\nrow://{id} (a row)",
		`{"filter":"FIRST"}`:               "fake:\ndoc://one (one) text/plain: The first.",
		`{"filter":"zzz"}`:                 `There are no resources with "zzz" in them.`,
		`{"server":"bare"}`:                "There are no resources.",
		`{"server":"nobody"}`:              "There is no MCP server nobody. There are: bare, fake",
		`{"server":"fake","filter":"row"}`: "fake:\nrow://{id} (a row)",
	} {
		if text := run(t, set, "mcp_resources", args).Blocks.Text(); text != want {
			t.Errorf("%s: %s", args, text)
		}
	}
	res := run(t, set, "mcp_read", `{"server":"fake","uri":"row://7"}`)
	if text := res.Blocks.Text(); !strings.HasPrefix(text, "[resource row://7]\nthe text of row://7") || len(res.Blobs) != 1 {
		t.Errorf("%s", text)
	}
	for args, want := range map[string]string{`{"server":"x","uri":"y"}`: "There is no MCP server x", `{"server":"fake","uri":"doc://three"}`: "answered with an error"} {
		if res := run(t, set, "mcp_read", args); !res.Failed || !strings.Contains(res.Blocks.Text(), want) {
			t.Errorf("%s: %s", args, res.Blocks.Text())
		}
	}
	standard, err := permit.Preset("standard")
	if err != nil {
		t.Fatal(err)
	}
	one, args, err := set.Resolve("mcp_read", []byte(`{"server":"fake","uri":"row://7"}`))
	if err != nil {
		t.Fatal(err)
	}
	if a := one.Access(args); len(a) != 1 || a[0].Action() != "tool:mcp__fake__@read:row://7" || standard.Decide(a[0].Action()).Verdict != permit.Ask {
		t.Errorf("%v", a)
	}
	if !toolsearch.Keep([]tool.Tool{one}, standard.Possible)(one.Spec()) {
		t.Error("it is hidden where it is asked for")
	}
	locked, err := permit.Preset("locked")
	if err != nil {
		t.Fatal(err)
	}
	if kept := toolsearch.Keep(set.Tools(), locked.Possible); slices.ContainsFunc(set.Specs(), kept) {
		t.Error("locked is shown some")
	}
}

func TestKeepsTheRulesOfTools(t *testing.T) {
	t.Parallel()
	h := open(t, self(t, "fake", "plain"))
	few := []string{"mcp__fake__echo", "mcp_resources", "mcp_read"}
	tooltest.Run(t, tooltest.Fixture{
		New: func(t *testing.T) (*tool.Set, []string) {
			return toolsOf(t, h).Filter(func(s tool.Spec) bool { return slices.Contains(few, s.Name) }), nil
		},
		Calls: map[string][]string{
			"mcp__fake__echo": {`{"text":"x"}`}, "mcp_resources": {`{}`, `{"server":"nobody"}`}, "mcp_read": {`{"server":"fake","uri":"doc://one"}`, `{"server":"x","uri":"y"}`},
		},
	})
}

func TestNoServers(t *testing.T) {
	t.Parallel()
	h := open(t)
	if list := h.Tools(t.Context(), nil); len(list.Tools) != 0 || list.Notice() != "" || len(h.Status()) != 0 {
		t.Errorf("%v", list)
	}
}
