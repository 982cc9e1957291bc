package bedrock

import (
	"context"
	"errors"
	"strings"
	"testing"

	"chorus/internal/chat"
	"chorus/internal/model"
	"chorus/internal/model/modeltest"
	"chorus/internal/sim/llmsim"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// nowhere is an environment in which nothing is set and nobody's files are read.
func nowhere(t testing.TB) func(string) string {
	return environment(map[string]string{"HOME": t.TempDir()})
}

func environment(vars map[string]string) func(string) string {
	return func(name string) string {
		if v, ok := vars[name]; ok {
			return v
		}
		if name == "AWS_EC2_METADATA_DISABLED" {
			return "true"
		}
		return ""
	}
}

// signing makes a provider with a fixed pair of keys, bearing one with an API key.
func signing(c modeltest.Config) modeltest.Provider {
	return New(Options{
		AccessKey: "AKIDEXAMPLE", SecretKey: c.Key, SessionToken: "test-session", Region: "us-west-2", BaseURL: c.BaseURL,
		HTTPClient: c.Client, IdleTimeout: c.Idle, FirstByteTimeout: c.FirstByte, Getenv: environment(nil),
	})
}

func bearing(c modeltest.Config) modeltest.Provider {
	return New(Options{
		APIKey: c.Key, Region: "us-west-2", BaseURL: c.BaseURL,
		HTTPClient: c.Client, IdleTimeout: c.Idle, FirstByteTimeout: c.FirstByte, Getenv: environment(nil),
	})
}

const (
	claude  = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
	nova    = "us.amazon.nova-pro-v1:0"
	llama   = "us.meta.llama3-3-70b-instruct-v1:0"
	thinker = "example.thinker-v1:0" // nobody knows it; it may do anything
)

var makers = map[string]modeltest.Maker{
	"claude": {
		Name: provider, API: llmsim.Bedrock, Model: claude, WrongKey: 403, New: signing,
		Prefill: true, NoPrefill: "anthropic.claude-opus-4-6-v1", Signatures: true, StopSequence: true, CacheWrites: true,
	},
	"nova": {
		Name: provider, API: llmsim.Converse, Model: nova, WrongKey: 403, New: bearing,
		Prefill: true, NoPrefill: llama, StopSequence: true, CacheWrites: true, NoToolMarks: true, Mark: "," + point,
	},
	"thinker": {
		Name: provider, API: llmsim.Converse, Model: thinker, WrongKey: 403, New: signing,
		Prefill: true, NoPrefill: llama, Signatures: true, StopSequence: true, NoCache: true,
	},
}

func TestSuite(t *testing.T) {
	t.Parallel()
	for name, m := range makers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			modeltest.Run(t, m)
		})
	}
}

// hello is the shortest request.
func hello(t testing.TB, p *Provider, name string) model.Prepared {
	t.Helper()
	prep, err := p.Prepare(model.Request{Model: name, Messages: []*model.Message{modeltest.Message(t, model.User, chat.Text{Text: "hi"})}})
	if err != nil {
		t.Fatal(err)
	}
	return prep
}

// ask sends it and gives the end.
func ask(t testing.TB, p *Provider, prep model.Prepared) (done *model.Done, failed *model.Error) {
	t.Helper()
	for c, err := range p.Stream(context.Background(), prep) {
		if err != nil && !errors.As(err, &failed) {
			t.Fatalf("%T is not an *Error", err)
		}
		if d, ok := c.(model.Done); ok {
			done = &d
		}
	}
	return done, failed
}

func TestNoKeysAreSaidWithoutACall(t *testing.T) {
	t.Parallel()
	p := New(Options{Region: "us-east-1", Getenv: nowhere(t)})
	defer p.Close()
	_, failed := ask(t, p, hello(t, p, claude))
	if failed == nil || failed.Kind != model.Auth || failed.Status != 0 || !strings.Contains(failed.Error(), "AWS_PROFILE") {
		t.Errorf("error %v", failed)
	}
	if _, err := p.Models(context.Background()); model.KindOf(err) != model.Auth {
		t.Errorf("error %v", err)
	}
	half := New(Options{AccessKey: "AKIDEXAMPLE", Region: "us-east-1", Getenv: nowhere(t)})
	if _, failed := ask(t, half, hello(t, half, claude)); failed == nil || failed.Kind != model.Auth || !strings.Contains(failed.Error(), "belong together") {
		t.Errorf("error %v", failed)
	}
}

func TestNoRegionIsSaid(t *testing.T) {
	t.Parallel()
	p := New(Options{APIKey: "test-key", Getenv: nowhere(t)})
	_, failed := ask(t, p, hello(t, p, claude))
	if failed == nil || failed.Kind != model.BadRequest || !strings.Contains(failed.Error(), "AWS_REGION") {
		t.Errorf("error %v", failed)
	}
}

func TestRegion(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		opts Options
		base string
		want string
	}{
		{Options{Region: "eu-west-1"}, "", "eu-west-1"},
		{Options{}, "https://bedrock-runtime.ap-south-1.amazonaws.com", "ap-south-1"},
		{Options{}, "http://127.0.0.1:1", "us-east-1"},
		{Options{}, "", ""},
	} {
		c.opts.Getenv = nowhere(t)
		if got := New(c.opts).region(c.base); got != c.want {
			t.Errorf("%+v at %q: %q, want %q", c.opts.Region, c.base, got, c.want)
		}
	}
	if got := regional("bedrock-runtime", "cn-north-1"); got != "https://bedrock-runtime.cn-north-1.amazonaws.com.cn" {
		t.Error(got)
	}
}

func BenchmarkPrepareClaude400(b *testing.B)   { modeltest.BenchmarkPrepare(b, makers["claude"], 400) }
func BenchmarkPrepareConverse400(b *testing.B) { modeltest.BenchmarkPrepare(b, makers["nova"], 400) }
