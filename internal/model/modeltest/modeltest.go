// Package modeltest is the suite that every provider passes: answers of all shapes, failures
// of all kinds, and the promises about bytes, each through the model simulator over a real
// connection. Call Run first when you write a new provider.
package modeltest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"chorus/internal/chat"
	"chorus/internal/model"
	"chorus/internal/sim/llmsim"
)

// Key is the key that the simulator accepts. It must never appear anywhere else.
const Key = "test-key-0123456789"

// Config is what a provider under test is created with.
type Config struct {
	BaseURL         string
	Key             string
	Client          *http.Client
	Idle, FirstByte time.Duration // 0: the default
}

// Provider is what the suite needs of a provider.
type Provider interface {
	model.Model
	Models(context.Context) ([]string, error)
}

// Maker creates providers, and says what their wire format cannot carry.
type Maker struct {
	Name  string     // as it appears in errors
	API   llmsim.API // the wire format it uses
	Model string     // the model to ask
	New   func(Config) Provider

	Prefill      bool   // Model accepts a prefill
	NoPrefill    string // a model that does not
	Signatures   bool   // reasoning has signatures and may come redacted
	StopSequence bool   // it says which stops were stop sequences
	CacheWrites  bool   // it counts what is written to the cache, and accepts marks
	NoToolMarks  bool   // the mark behind the system prompt covers the tools
	NoStops      bool   // stop sequences cannot be sent
	Text         bool   // a base model: it continues one text, and nothing else
	WholeCalls   bool   // a call comes whole or not at all: its arguments are never cut
	NoCacheReads bool   // it does not report what was read from the cache
	NoRefusals   bool   // it cannot report a refusal
	PlainErrors  bool   // an error in the stream is a sentence: only its words reveal the kind
	// Golden is the folder of its golden files below testdata; "": testdata itself.
	Golden string
	// SentBack is how the simulator shows reasoning that was sent back; nil: as
	// Anthropic does, "text|signature" or "redacted|data".
	SentBack func(chat.Thinking) string
	// Mark is a cache mark as it appears in a body, with the preceding comma; "": Anthropic's.
	Mark     string
	NoCache  bool // it caches nothing for this model
	WrongKey int  // the status for a wrong key; 0: 401
}

// mark returns how a cache mark is written.
func (m Maker) mark() []byte {
	return []byte(cmp.Or(m.Mark, `,"cache_control":{"type":"ephemeral"}`))
}

// sentBack returns how reasoning looks when it comes back.
func (m Maker) sentBack(th chat.Thinking) string {
	switch {
	case m.SentBack != nil:
		return m.SentBack(th)
	case th.Redacted != "":
		return "redacted|" + th.Redacted
	default:
		return th.Text + "|" + th.Signature
	}
}

// head returns h as far as the wire format can carry it.
func (m Maker) head(h *model.Head) *model.Head {
	if h == nil || !m.Text {
		return h
	}
	return &model.Head{System: h.System}
}

// conversation is Conversation as far as the wire format can carry it.
func (m Maker) conversation(t testing.TB, n int) []*model.Message {
	t.Helper()
	all := Conversation(t, n)
	if !m.Text {
		return all
	}
	for i, msg := range all {
		all[i] = Message(t, msg.Role, chat.Text{Text: fmt.Sprintf("%d: %s\n", i, msg.Blocks.Text())})
	}
	return all
}

// Run runs the suite.
func Run(t *testing.T, m Maker) {
	t.Helper()
	for _, group := range []struct {
		name string
		run  func(*testing.T, Maker)
	}{
		{"answers", answers}, {"requests", requests}, {"failures", failures}, {"bytes", promises},
	} {
		t.Run(group.name, func(t *testing.T) {
			t.Parallel()
			group.run(t, m)
		})
	}
}

// bench is one provider with its own simulator.
type bench struct {
	t    *testing.T
	m    Maker
	sim  *llmsim.Server
	p    Provider
	blob map[string][]byte
}

// setup starts a simulator and creates a provider for it. change may alter the config.
func setup(t *testing.T, m Maker, change ...func(*Config)) *bench {
	t.Helper()
	sim, url := llmsim.Launch(t, llmsim.Options{Keys: []string{Key}})
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	cfg := Config{BaseURL: url, Key: Key, Client: &http.Client{Transport: transport}}
	for _, c := range change {
		c(&cfg)
	}
	return &bench{t: t, m: m, sim: sim, p: m.New(cfg), blob: map[string][]byte{}}
}

// Message returns a message or fails the test.
func Message(t testing.TB, role model.Role, blocks ...chat.Block) *model.Message {
	t.Helper()
	msg, err := model.NewMessage(role, chat.Participant{ID: "p", Name: "ada"}, blocks)
	if err != nil {
		t.Fatal(err)
	}
	return msg
}

func (b *bench) request(messages ...*model.Message) model.Request {
	if len(messages) == 0 {
		messages = []*model.Message{Message(b.t, model.User, chat.Text{Text: "hello"})}
	}
	return model.Request{
		Model: b.m.Model, Messages: messages,
		Blob: func(hash string) ([]byte, error) {
			if data, ok := b.blob[hash]; ok {
				return data, nil
			}
			return nil, errors.New("no such blob")
		},
	}
}

// outcome is everything that a stream yielded.
type outcome struct {
	text, thinking string
	args           map[string]string // by call id
	deltas         int
	unreadable     int
	done           *model.Done
	err            *model.Error
}

func (b *bench) prepare(r model.Request) model.Prepared {
	b.t.Helper()
	prep, err := b.p.Prepare(r)
	if err != nil {
		b.t.Fatalf("prepare: %v", err)
	}
	return prep
}

// ask sends a request and checks what holds for every stream: it ends once,
// with Done or an *Error, and the pieces make up the whole.
func (b *bench) ask(ctx context.Context, r model.Request) outcome {
	b.t.Helper()
	return b.send(ctx, b.prepare(r))
}

func (b *bench) send(ctx context.Context, prep model.Prepared) outcome {
	b.t.Helper()
	out := outcome{args: map[string]string{}}
	ended := false
	for chunk, err := range b.p.Stream(ctx, prep) {
		if ended {
			b.t.Fatal("the stream went on after its end")
		}
		if err != nil {
			ended = true
			if !errors.As(err, &out.err) {
				b.t.Fatalf("%T is not an *Error: %v", err, err)
			}
			b.checkError(out.err)
			continue
		}
		out.deltas++
		switch c := chunk.(type) {
		case model.TextDelta:
			out.text += c.Text
		case model.ThinkingDelta:
			out.thinking += c.Text
		case model.ArgsDelta:
			out.args[c.Call] += c.Text
		case model.Unreadable:
			out.unreadable++
		case model.Done:
			ended = true
			out.done = &c
		}
	}
	if !ended {
		b.t.Fatal("the stream ended without Done or an error")
	}
	if out.done != nil {
		b.checkWhole(out)
	}
	return out
}

func (b *bench) checkError(e *model.Error) {
	b.t.Helper()
	for err := error(e); err != nil; err = errors.Unwrap(err) {
		if strings.Contains(err.Error(), Key) {
			b.t.Errorf("the key stands in the error %q", err)
		}
	}
	if e.Provider != b.m.Name || e.Model == "" {
		b.t.Errorf("error of %q/%q, want %q and a model", e.Provider, e.Model, b.m.Name)
	}
}

func (b *bench) checkWhole(out outcome) {
	b.t.Helper()
	if got := out.done.Blocks.Text(); got != out.text {
		b.t.Errorf("pieces %q, whole %q", out.text, got)
	}
	thinking := ""
	for _, block := range out.done.Blocks {
		if th, ok := block.(chat.Thinking); ok {
			thinking += th.Text
		}
	}
	if thinking != out.thinking {
		b.t.Errorf("pieces of thinking %q, whole %q", out.thinking, thinking)
	}
	calls := out.done.Blocks.Calls()
	if len(calls) != len(out.args) {
		b.t.Errorf("%d calls, pieces of %d", len(calls), len(out.args))
	}
	for _, c := range calls {
		pieces, ok := out.args[c.ID]
		if !ok || pieces != string(c.Args) && (pieces != "" || string(c.Args) != "{}") {
			b.t.Errorf("call %s: pieces %q, whole %q", c.ID, pieces, c.Args)
		}
	}
	if out.done.ID == "" {
		b.t.Error("the answer has no id")
	}
}

// must is ask for an answer that has to succeed.
func (b *bench) must(r model.Request) outcome {
	b.t.Helper()
	out := b.ask(context.Background(), r)
	if out.err != nil {
		b.t.Fatalf("failed: %v", out.err)
	}
	return out
}

// last returns the newest request that the simulator saw.
func (b *bench) last() llmsim.Request {
	b.t.Helper()
	all := b.sim.Requests()
	if len(all) == 0 {
		b.t.Fatal("no request came")
	}
	return all[len(all)-1]
}
