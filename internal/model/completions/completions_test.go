package completions

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"chorus/internal/chat"
	"chorus/internal/model"
	"chorus/internal/model/modeltest"
	"chorus/internal/sim/llmsim"

	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var maker = modeltest.Maker{
	Name: "completions", API: llmsim.Completions, Model: "davinci-002", Prefill: true, Text: true,
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
	for _, err := range p.Stream(t.Context(), model.Prepared{Model: "davinci-002", Body: []byte(`{}`)}) {
		if model.KindOf(err) != model.Auth || err.(*model.Error).Status != 0 {
			t.Errorf("error %v", err)
		}
	}
	if _, err := p.Models(t.Context()); model.KindOf(err) != model.Auth {
		t.Errorf("error %v", err)
	}
}

func TestAServerWithItsOwnWays(t *testing.T) {
	t.Parallel()
	sim, url := llmsim.Launch(t, llmsim.Options{Keys: []string{"other-key"}})
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	p := New(Options{
		BaseURL: url + "/v1/completions?x=1", Name: "acme", HTTPClient: &http.Client{Transport: transport},
		Headers: map[string]string{"authorization": "Bearer other-key"},
		Extra:   map[string]json.RawMessage{"presence_penalty": json.RawMessage(`0.5`), "frequency_penalty": json.RawMessage(`-1`)},
	})
	prep, err := p.Prepare(model.Request{
		Model: "acme-base", Settings: chat.Settings{Stop: []string{"a", "", "b", "c", "d", "e"}},
		Messages: []*model.Message{modeltest.Message(t, model.User, chat.Text{Text: "Once upon a time"})},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range p.Stream(t.Context(), prep) {
		if err != nil {
			t.Fatal(err)
		}
	}
	got := sim.Requests()[0]
	want := `{"model":"acme-base","stream":true,"stream_options":{"include_usage":true},"max_tokens":1024,"stop":["a","b","c","d"],"frequency_penalty":-1,"presence_penalty":0.5,"prompt":"Once upon a time"}`
	if string(got.Body) != want {
		t.Errorf("sent %s\nwant %s", got.Body, want)
	}
	if names, err := p.Models(t.Context()); err != nil || len(names) == 0 {
		t.Errorf("models %v, %v", names, err)
	}
}

func TestExtraCannotTouchThePrompt(t *testing.T) {
	t.Parallel()
	p := New(Options{Extra: map[string]json.RawMessage{"prompt": json.RawMessage(`"x"`)}})
	if _, err := p.Prepare(model.Request{Model: "m"}); model.KindOf(err) != model.BadRequest || !strings.Contains(err.Error(), `"prompt"`) {
		t.Errorf("error %v", err)
	}
}

// Whatever the messages, the prompt is their text, and nothing else.
func TestThePromptIsTheText(t *testing.T) {
	t.Parallel()
	p := New(Options{})
	rapid.Check(t, func(rt *rapid.T) {
		var want strings.Builder
		r := model.Request{Model: "m", Head: &model.Head{System: rapid.String().Draw(rt, "system")}, Prefill: rapid.String().Draw(rt, "prefill")}
		if r.Head.System != "" {
			want.WriteString(r.Head.System + "\n\n")
		}
		for _, text := range rapid.SliceOf(rapid.String()).Draw(rt, "texts") {
			want.WriteString(text)
			r.Messages = append(r.Messages, modeltest.Message(t, model.Assistant, chat.Text{Text: text}))
		}
		want.WriteString(r.Prefill)
		prep, err := p.Prepare(r)
		if want.Len() == 0 {
			if model.KindOf(err) != model.BadRequest {
				rt.Fatalf("nothing was sent: %v", err)
			}
			return
		}
		if err != nil {
			rt.Fatal(err)
		}
		var body struct{ Prompt string }
		if err := json.Unmarshal(prep.Body, &body); err != nil || body.Prompt != strings.ToValidUTF8(want.String(), "\ufffd") {
			rt.Fatalf("prompt %q, want %q, %v", body.Prompt, want.String(), err)
		}
	})
}

func BenchmarkPrepare400(b *testing.B) { modeltest.BenchmarkPrepare(b, maker, 400) }
