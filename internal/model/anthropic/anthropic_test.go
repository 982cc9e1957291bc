package anthropic

import (
	"context"
	"testing"

	"chorus/internal/chat"
	"chorus/internal/model"
	"chorus/internal/model/modeltest"
	"chorus/internal/sim/llmsim"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var maker = modeltest.Maker{
	Name: "anthropic", API: llmsim.Anthropic, Model: "claude-sonnet-4-5",
	Prefill: true, NoPrefill: "claude-opus-4-6", Signatures: true, StopSequence: true, CacheWrites: true,
	New: func(c modeltest.Config) modeltest.Provider {
		return New(Options{APIKey: c.Key, BaseURL: c.BaseURL, HTTPClient: c.Client, IdleTimeout: c.Idle, FirstByteTimeout: c.FirstByte})
	},
}

func TestSuite(t *testing.T) {
	t.Parallel()
	modeltest.Run(t, maker)
}

func TestNoKeyIsSaidWithoutACall(t *testing.T) {
	t.Parallel()
	p := New(Options{})
	prep, err := p.Prepare(model.Request{Model: "claude-sonnet-4-5", Messages: []*model.Message{modeltest.Message(t, model.User, chat.Text{Text: "hi"})}})
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range p.Stream(context.Background(), prep) {
		if model.KindOf(err) != model.Auth || err.(*model.Error).Status != 0 {
			t.Errorf("error %v", err)
		}
	}
	if _, err := p.Models(context.Background()); model.KindOf(err) != model.Auth {
		t.Errorf("error %v", err)
	}
}

func TestBaseURL(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"": "", "https://x": "https://x", "https://x/": "https://x", "https://x/v1": "https://x", "https://x/v1/": "https://x",
		"https://x/proxy/v1/messages": "https://x/proxy", "https://x/proxy": "https://x/proxy",
	} {
		if got := baseURL(in); got != want {
			t.Errorf("baseURL(%q) = %q, want %q", in, got, want)
		}
	}
}

func BenchmarkPrepare20(b *testing.B)  { modeltest.BenchmarkPrepare(b, maker, 20) }
func BenchmarkPrepare400(b *testing.B) { modeltest.BenchmarkPrepare(b, maker, 400) }
