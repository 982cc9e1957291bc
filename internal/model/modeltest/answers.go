package modeltest

import (
	"context"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"chorus/internal/chat"
	"chorus/internal/model"
	"chorus/internal/sim/llmsim"
)

// answers checks what comes back.
func answers(t *testing.T, m Maker) {
	t.Run("text", func(t *testing.T) {
		t.Parallel()
		b := setup(t, m)
		b.sim.Push(llmsim.Turn{Text: "Hello, nice to meet you.", Chunk: 3})
		out := b.must(b.request())
		if out.text != "Hello, nice to meet you." || out.done.Stop != chat.StopEnd || out.deltas < 5 || len(out.done.Blocks) != 1 {
			t.Errorf("got %q in %d pieces, stop %s", out.text, out.deltas, out.done.Stop)
		}
	})
	t.Run("characters across packets", func(t *testing.T) {
		t.Parallel()
		b := setup(t, m)
		const said = "Grüße 世界 👩‍👩‍👧‍👦 \"quoted\"\n\u2028end"
		b.sim.Push(llmsim.Turn{Text: said, Chunk: 1, PacketSize: 5})
		if out := b.must(b.request()); out.text != said {
			t.Errorf("got %q", out.text)
		}
	})
	t.Run("huge", func(t *testing.T) {
		t.Parallel()
		b := setup(t, m)
		b.sim.Push(llmsim.Turn{Text: "0123456789abcdef", Repeat: 1 << 16, Chunk: 1 << 14})
		if out := b.must(b.request()); len(out.text) != 1<<20 {
			t.Errorf("got %d bytes", len(out.text))
		}
	})
	t.Run("empty", func(t *testing.T) {
		t.Parallel()
		b := setup(t, m)
		b.sim.Push(llmsim.Turn{})
		if out := b.must(b.request()); len(out.done.Blocks) != 0 || out.done.Stop != chat.StopEnd {
			t.Errorf("got %+v", out.done)
		}
	})
	t.Run("connections are used again", func(t *testing.T) {
		t.Parallel()
		var dials atomic.Int32
		b := setup(t, m, func(c *Config) {
			var d net.Dialer
			c.Client.Transport.(*http.Transport).DialContext = func(ctx context.Context, network, addr string) (net.Conn, error) {
				dials.Add(1)
				return d.DialContext(ctx, network, addr)
			}
		})
		b.sim.Push(llmsim.Text("a"), llmsim.Fail(429))
		for range 8 {
			b.ask(t.Context(), b.request())
		}
		// One, if the machine is fast enough for the short wait for an answer's end.
		if n := dials.Load(); n > 3 {
			t.Errorf("%d connections for eight calls", n)
		}
	})
	if !m.Text {
		t.Run("calls", func(t *testing.T) { t.Parallel(); calls(t, m) })
		t.Run("thinking", func(t *testing.T) { t.Parallel(); thinking(t, m) })
	}
	t.Run("stops", func(t *testing.T) { t.Parallel(); stops(t, m) })
	t.Run("usage", func(t *testing.T) { t.Parallel(); usage(t, m) })
	t.Run("models", func(t *testing.T) {
		t.Parallel()
		b := setup(t, m)
		names, err := b.p.Models(t.Context())
		if err != nil || len(names) < 5 {
			t.Errorf("models %v, %v", names, err)
		}
		wrong := setup(t, m, func(c *Config) { c.Key = "wrong-key" })
		if _, err := wrong.p.Models(t.Context()); model.KindOf(err) != model.Auth {
			t.Errorf("with a wrong key: %v", err)
		}
	})
}

func calls(t *testing.T, m Maker) {
	args := `{"path":"ä/世界.go","lines":[1,2,3],"nested":{"a":"}"}}`
	three := []llmsim.Call{
		{ID: "c-1", Name: "read", Args: args, Fragments: 3},
		{ID: "c-2", Name: "bash", Args: `{"command":"ls -la"}`, Fragments: 5},
		{ID: "c-3", Name: "status"}, // no arguments at all
	}
	for name, turn := range map[string]llmsim.Turn{
		"in order":      {Text: "Let me see.", Calls: three},
		"interleaved":   {Text: "Let me see.", Calls: three, Interleave: true},
		"repeated ids":  {Text: "Let me see.", Calls: three, Interleave: true, RepeatIDs: true},
		"small packets": {Text: "Let me see.", Calls: three, PacketSize: 7},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t, m)
			b.sim.Push(turn)
			out := b.must(b.request())
			got := out.done.Blocks.Calls()
			if len(got) != 3 || out.done.Stop != chat.StopTools || out.text != "Let me see." {
				t.Fatalf("got %+v", out.done)
			}
			want := []string{args, `{"command":"ls -la"}`, `{}`}
			for i, c := range got {
				if c.ID != three[i].ID || c.Name != three[i].Name || string(c.Args) != want[i] {
					t.Errorf("call %d: %s %s(%s)", i, c.ID, c.Name, c.Args)
				}
			}
		})
	}
	t.Run("cut off by the limit", func(t *testing.T) {
		t.Parallel()
		b := setup(t, m)
		b.sim.Push(llmsim.Turn{Calls: []llmsim.Call{{Name: "write", Args: `{"path":"a","cont`}}, Stop: "length"})
		out := b.must(b.request())
		if m.WholeCalls {
			if len(out.done.Blocks.Calls()) != 0 || out.done.Stop != chat.StopLength {
				t.Errorf("got %+v", out.done)
			}
			return
		}
		if got := out.done.Blocks.Calls(); len(got) != 1 || string(got[0].Args) != `{"path":"a","cont` || out.done.Stop != chat.StopLength {
			t.Errorf("got %+v", out.done)
		}
	})
}

func thinking(t *testing.T, m Maker) {
	b := setup(t, m)
	b.sim.Push(llmsim.Turn{Thinking: "first I look, then I leap", Chunk: 4, Text: "Leaping.", Calls: []llmsim.Call{{ID: "c-1", Name: "leap"}}})
	out := b.must(b.request())
	if out.thinking != "first I look, then I leap" || out.text != "Leaping." {
		t.Fatalf("got %q and %q", out.thinking, out.text)
	}
	if _, first := out.done.Blocks[0].(chat.Thinking); !first {
		t.Errorf("thinking is not first: %+v", out.done.Blocks)
	}
	if !m.Signatures {
		return
	}
	sent := out.done.Blocks[0].(chat.Thinking)
	if sent.Signature == "" {
		t.Fatal("the signature is lost")
	}
	b.sim.Push(llmsim.Turn{Redacted: "ZW5jcnlwdGVk", Text: "Landed."})
	history := []*model.Message{
		Message(t, model.User, chat.Text{Text: "hello"}),
		Message(t, model.Assistant, out.done.Blocks...),
		Message(t, model.User, chat.ToolResult{Call: "c-1", Blocks: chat.TextBlocks("ok")}),
	}
	out = b.must(b.request(history...))
	if got := b.last().Messages[1].Thinking; len(got) != 1 || got[0] != m.sentBack(sent) {
		t.Errorf("sent back %q", got)
	}
	red, ok := out.done.Blocks[0].(chat.Thinking)
	if !ok || m.sentBack(red) != "redacted|ZW5jcnlwdGVk" || red.Redacted == "" {
		t.Fatalf("redacted: %+v", out.done.Blocks)
	}
	history = append(history, Message(t, model.Assistant, out.done.Blocks...), Message(t, model.User, chat.Text{Text: "and?"}))
	b.must(b.request(history...))
	if got := b.last().Messages[3].Thinking; len(got) != 1 || got[0] != "redacted|ZW5jcnlwdGVk" {
		t.Errorf("sent back %q", got)
	}
}

func stops(t *testing.T, m Maker) {
	cases := []struct {
		stop string
		want chat.Stop
	}{
		{"end", chat.StopEnd}, {"length", chat.StopLength}, {"refusal", chat.StopRefused}, {"pause", chat.StopEnd},
		{"stop_sequence", chat.StopSeq},
	}
	b := setup(t, m)
	for _, c := range cases {
		if c.want == chat.StopSeq && !m.StopSequence {
			c.want = chat.StopEnd
		}
		if c.want == chat.StopRefused && m.NoRefusals {
			c.want = chat.StopEnd
		}
		b.sim.Push(llmsim.Turn{Text: "so far", Stop: c.stop, StopSequence: strings.Repeat("x", len(c.stop)/10)})
		if out := b.must(b.request()); out.done.Stop != c.want || out.text != "so far" {
			t.Errorf("%s: %s with %q", c.stop, out.done.Stop, out.text)
		}
	}
}

func usage(t *testing.T, m Maker) {
	b := setup(t, m)
	want := chat.Usage{Input: 11, Output: 22, CacheRead: 33}
	if m.CacheWrites {
		want.CacheWrite = 44
	}
	b.sim.Push(llmsim.Turn{Text: "x", Usage: &llmsim.Usage{Input: want.Input, Output: want.Output, CacheRead: want.CacheRead, CacheWrite: want.CacheWrite}})
	if m.NoCacheReads { // then all of it is input
		want = chat.Usage{Input: want.Input + want.CacheRead, Output: want.Output}
	}
	if out := b.must(b.request()); out.done.Usage != want {
		t.Errorf("usage %+v, want %+v", out.done.Usage, want)
	}

	if m.NoCache {
		return
	}
	// A conversation that only grows reads its past from the cache.
	history := []*model.Message{Message(t, model.User, chat.Text{Text: strings.Repeat("a long beginning ", 200)})}
	head := m.head(&model.Head{System: strings.Repeat("be kind ", 200), Tools: []model.ToolSpec{{Name: "bash", Description: "runs"}}})
	var seen []chat.Usage
	for range 3 {
		r := b.request(history...)
		r.Head, r.Marks = head, []int{len(history) - 1}
		out := b.must(r)
		seen = append(seen, out.done.Usage)
		history = append(history, Message(t, model.Assistant, out.done.Blocks...), Message(t, model.User, chat.Text{Text: "go on"}))
	}
	if m.NoCacheReads {
		if seen[0].Input < 500 || seen[1].Input <= seen[0].Input || seen[2].Total() != seen[2].Input+seen[2].Output {
			t.Errorf("usage %+v", seen)
		}
		return
	}
	if seen[0].CacheRead != 0 || seen[1].CacheRead < 1000 || seen[2].CacheRead <= seen[1].CacheRead {
		t.Errorf("cache reads %+v", seen)
	}
	if m.CacheWrites && (seen[0].CacheWrite < 1000 || seen[1].CacheWrite == 0) {
		t.Errorf("cache writes %+v", seen)
	}
}
