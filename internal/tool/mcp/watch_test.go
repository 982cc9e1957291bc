package mcp

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"chorus/internal/polltest"
	"chorus/internal/tool"
)

// changed are the watched resources that have changed, once there are as many as that.
func changed(t *testing.T, h *Hub, n int) []ChangedResource {
	t.Helper()
	for {
		news := h.Changed()
		if got := h.ChangedResources(); len(got) == n {
			return got
		}
		select {
		case <-news:
		case <-t.Context().Done():
			t.Fatalf("never: %d resources have changed", n)
		}
	}
}

func TestWatchedResources(t *testing.T) {
	t.Parallel()
	h := open(t, self(t, "docs", "plain"))
	set := toolsOf(t, h)
	if text := run(t, set, "mcp_read", `{"server":"docs","uri":"doc://one"}`).Blocks.Text(); strings.Contains(text, "told") {
		t.Errorf("%s", text)
	}
	run(t, set, "mcp__docs__touch", `{}`)
	if text := run(t, set, "mcp_read", `{"server":"docs","uri":"doc://one","watch":true}`).Blocks.Text(); !strings.Contains(text, "you will be told when it changes") {
		t.Fatalf("%s", text)
	}
	if got := h.ChangedResources(); len(got) != 0 {
		t.Errorf("%v", got)
	}
	run(t, set, "mcp__docs__touch", `{}`)
	if got := changed(t, h, 1); got[0] != (ChangedResource{"docs", "doc://one"}) {
		t.Errorf("%v", got)
	}
	// Once it is read it is known.
	run(t, set, "mcp_read", `{"server":"docs","uri":"doc://one"}`)
	if got := h.ChangedResources(); len(got) != 0 {
		t.Errorf("%v", got)
	}
	// A server that was started again is watched as before; what happened meanwhile is not known.
	run(t, set, "mcp__docs__die", `{}`)
	changed(t, h, 1)
	run(t, set, "mcp_read", `{"server":"docs","uri":"doc://one","watch":false}`)
	run(t, set, "mcp__docs__touch", `{}`)
	if got := h.ChangedResources(); len(got) != 0 {
		t.Errorf("%v", got)
	}
}

func TestRealSubscription(t *testing.T) {
	t.Parallel()
	bin := fetched(t)
	h := open(t, Server{Name: "every", Command: filepath.Join(bin, "mcp-server-everything"), Args: []string{"stdio"}})
	set := toolsOf(t, h)
	uri := "demo://resource/dynamic/text/1"
	if text := run(t, set, "mcp_read", `{"server":"every","uri":"`+uri+`","watch":true}`).Blocks.Text(); !strings.Contains(text, "you will be told") {
		t.Fatalf("%s", text)
	}
	run(t, set, "mcp__every__toggle-subscriber-updates", `{}`)
	polltest.Until(t, "the real server told of a change", func() bool {
		return slices.Contains(h.ChangedResources(), ChangedResource{"every", uri})
	})
}

// runAs calls a tool as a run does, so that its server may ask.
func runAs(t *testing.T, h *Hub, name, args string) tool.Result {
	t.Helper()
	one, corrected, err := toolsOf(t, h).Resolve(name, []byte(args))
	if err != nil {
		t.Fatal(err)
	}
	res, err := one.Run(tool.WithCall(t.Context(), tool.Call{ID: "c", Key: "run/c"}), corrected)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func TestPagesThatAPersonOpens(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args    string
		replies []Reply
		want    string
		asked   int
	}{
		"opened":                 {`{"url":"https://example.org/sign-in?a=b"}`, []Reply{{Accept, ""}}, "accept map[]", 1},
		"declined":               {`{"url":"https://example.org/sign-in"}`, []Reply{{Decline, ""}}, "decline map[]", 1},
		"nobody there":           {`{"url":"https://example.org/sign-in"}`, nil, "cancel map[]", 1},
		"no address":             {`{"url":"javascript:alert(1)"}`, nil, "cancel map[]", 0},
		"looks like another":     {`{"url":"https://example.org@evil.test/"}`, nil, "cancel map[]", 0},
		"letters of elsewhere":   {`{"url":"https://ex\u0430mple.org/"}`, nil, "cancel map[]", 0},
		"first, then the call":   {`{"url":"https://example.org/","how":"error"}`, []Reply{{Accept, ""}}, "made at the second time", 1},
		"first, and nobody does": {`{"url":"https://example.org/","how":"error"}`, []Reply{{Decline, ""}}, "wants a person to open a page first, and nobody did", 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := open(t, self(t, "docs", "plain"))
			someone := &person{replies: c.replies}
			h.SetHost(someone)
			got := runAs(t, h, "mcp__docs__page", c.args)
			if !strings.Contains(got.Blocks.Text(), c.want) || len(someone.asked) != c.asked {
				t.Errorf("%s, asked %+v", got.Blocks.Text(), someone.asked)
			}
			if c.asked > 0 && (!strings.Contains(someone.asked[0].Text(), "https://example.org/") || !strings.Contains(someone.asked[0].Text(), "belongs to example.org")) {
				t.Errorf("%s", someone.asked[0].Text())
			}
		})
	}
}

// A page that has done its part needs nobody's word any more.
func TestAPageThatIsDone(t *testing.T) {
	t.Parallel()
	h := open(t, self(t, "docs", "plain"))
	h.SetHost(&person{wait: 1 << 40})
	if got := runAs(t, h, "mcp__docs__page", `{"url":"https://example.org/","how":"done"}`).Blocks.Text(); got != "accept map[]" {
		t.Errorf("%s", got)
	}
}
