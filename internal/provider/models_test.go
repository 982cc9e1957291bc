package provider

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"chorus/internal/config"
	"chorus/internal/datadir"
	"chorus/internal/model"
	"chorus/internal/modelrouter"
)

func TestDefaults(t *testing.T) {
	t.Parallel()
	const key = "test-key"
	for _, c := range []struct {
		env  []string
		want string
	}{
		{nil, "demo/guide"},
		{[]string{"GEMINI_API_KEY", key}, "google/gemini-2.5-flash"},
		{[]string{"OPENROUTER_API_KEY", key}, "openrouter/anthropic/claude-sonnet-4.5"},
		{[]string{"AWS_REGION", "eu-west-1", "AWS_ACCESS_KEY_ID", key, "AWS_SECRET_ACCESS_KEY", key}, "bedrock/global.anthropic.claude-sonnet-4-5-20250929-v1:0"},
		{[]string{"AWS_REGION", "eu-west-1"}, "demo/guide"},
		{[]string{"OLLAMA_HOST", "127.0.0.1"}, "ollama/llama3.2"},
		{[]string{"OPENAI_COMPLETIONS_API_KEY", key}, "demo/guide"},
		{[]string{"OLLAMA_HOST", "127.0.0.1", "OPENAI_API_KEY", key}, "openai/gpt-5-mini"},
		{[]string{"GOOGLE_API_KEY", key, "ANTHROPIC_API_KEY", key}, "anthropic/claude-sonnet-4-5"},
		{[]string{"GOOGLE_API_KEY", key, "OPENAI_API_KEY", key}, "openai/gpt-5-mini"},
	} {
		m := NewModels(env(c.env...), "", "")
		name, err := m.Name("", "")
		if err != nil || name != c.want {
			t.Errorf("%v: %q %v, want %q", c.env, name, err, c.want)
			continue
		}
		engine, err := m.Resolve(name)
		if err != nil || engine.Name != strings.SplitN(name, "/", 2)[1] {
			t.Errorf("%s: %+v %v", name, engine, err)
		}
	}
	if got, err := NewModels(env("ANTHROPIC_API_KEY", key), "google", "").Name("", ""); err != nil || got != "google/gemini-2.5-flash" {
		t.Errorf("the settings' provider: %q %v", got, err)
	}
	if _, err := NewModels(env(), "nobody", "").Name("", ""); err == nil {
		t.Error("a provider that is nobody was taken")
	}
}

// TestEveryKindHasItsProvider: nothing in the table is without a maker, and each can
// be asked what it has.
func TestEveryKindHasItsProvider(t *testing.T) {
	t.Parallel()
	m := NewModels(env(), "", "")
	all := modelrouter.BuiltIn(env())
	if len(all) == 0 {
		t.Fatal("the table is empty")
	}
	for _, v := range all {
		made, err := m.provide(v, modelrouter.Account{Key: "test-key"})
		if err != nil {
			t.Errorf("%s: %v", v.Kind, err)
			continue
		}
		if _, ok := made.(modelrouter.Lister); !ok {
			t.Errorf("%s cannot say what it has", v.Kind)
		}
	}
	if _, err := m.provide(modelrouter.Vendor{Kind: "nothing"}, modelrouter.Account{}); err == nil {
		t.Error("a kind that does not exist was made")
	}
}

// withShared opens a home whose shared.yaml says this.
func withShared(t *testing.T, text string, pairs ...string) *Models {
	t.Helper()
	dir := t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, "config"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "config", "shared.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	h, err := datadir.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return NewModels(env(pairs...), "", "").In(h)
}

const sharedVendors = `
vendors:
  work:
    config: {anthropic_api_key: "${WORK_KEY}"}
    provides: ["claude-opus*"]
  own:
    config: {openai_api_key: [test-one, test-two], api_base: "http://127.0.0.1:1/v1"}
    provides: ["*"]
    headers: {X-Team: chorus}
    extra: {user: somebody}
`

func TestVendorsOfTheConfig(t *testing.T) {
	t.Parallel()
	m := withShared(t, sharedVendors, "WORK_KEY", "test-work", "ANTHROPIC_API_KEY", "test-key")
	for name, want := range map[string]string{
		"claude-opus-4-5": "work/claude-opus-4-5", "claude-sonnet-4-5": "own/claude-sonnet-4-5", "anything": "own/anything",
		"anthropic/claude-opus-4-5": "anthropic/claude-opus-4-5", "own/a/b": "own/a/b",
	} {
		if got, err := m.Name("", name); got != want || err != nil {
			t.Errorf("%s: %q %v, want %q", name, got, err, want)
		}
	}
	if got, err := m.Name("own", "x"); got != "own/x" || err != nil {
		t.Errorf("%q %v", got, err)
	}
	all, err := m.Vendors()
	if err != nil {
		t.Fatal(err)
	}
	accounts, err := all[1].Accounts()
	if err != nil || len(accounts) != 2 || all[1].Headers["X-Team"] != "chorus" || all[1].Extra["user"] != "somebody" {
		t.Errorf("%+v %v", accounts, err)
	}
	if e, _ := m.Price("work/claude-opus-4-5"); !e.Known() {
		t.Error("the price of a vendor's model is unknown")
	}
	if e, _ := m.Price("own/claude-opus-4-5"); e.Known() {
		t.Error("what somebody's own server costs is not known")
	}
}

func TestVendorsOfTheConfigThatCannotBe(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"vendors: {own: {config: {api_base: 'http://x'}, provides: ['a(\\d']}}":                  "vendor own",
		"vendors: {own: {config: {region: x}}}":                                                  "vendor own",
		"vendors: {own: {config: {kind: pigeon}}}":                                               "pigeon",
		"vendors: {own: {config: {anthropic_api_key: x}, extra: {a: 1}}}":                        "extra is only for",
		"vendors: {own: {config: {anthropic_api_key: '${NOT_SET_ANYWHERE}'}}}":                   "NOT_SET_ANYWHERE",
		"vendors: {a: {config: {anthropic_api_key: x, openai_api_key: y}}}":                      "anthropic and openai",
		"vendors: {own: {config: {api_base: 'http://x', openai_api: telepathy}, provides: [x]}}": "",
	} {
		m := withShared(t, text)
		_, err := m.Name("", "x")
		if want == "" {
			if err != nil {
				t.Errorf("%s: %v", text, err)
				continue
			}
			// An interface that does not exist shows when it is to be spoken.
			engine, err := m.Resolve("x")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := engine.Model.Prepare(model.Request{Model: "x"}); err == nil || !strings.Contains(err.Error(), "chat or responses") {
				t.Errorf("%s: %v", text, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
		if _, err := m.Resolve("demo/echo"); err == nil {
			t.Errorf("%s: it was passed over in silence", text)
		}
	}
}

// TestBotsOfTheirOwnKeys: a bot's vendors are its own, and those who declare the same
// share how their keys fare.
func TestBotsOfTheirOwnKeys(t *testing.T) {
	t.Parallel()
	m := NewModels(env(), "", "")
	one := func(key string, provides ...string) []config.Vendor {
		v := config.Vendor{Name: "own", Config: config.Values{"openai_api_key": key}, Provides: provides}
		v.Reread = func() (config.Vendor, error) { return v, nil }
		return []config.Vendor{v}
	}
	view := func(all []config.Vendor) *Models {
		got, err := m.For(all)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	first, again, other := view(one("test-a", "*")), view(one("test-a", "*")), view(one("test-b", "*"))
	if view(nil) != m || first != again || first == other {
		t.Error("the same are not the same, or others are")
	}
	if got, _ := first.Name("", "x"); got != "own/x" {
		t.Errorf("%q", got)
	}
	if got, err := m.Name("", "x"); err == nil {
		t.Errorf("another's vendor was used: %q", got)
	}
	if _, err := m.For(one("test-c", "[.*")); err == nil {
		t.Error("a wrong pattern was taken")
	}
	if m.Renew(nil); view(one("test-a", "*")) == first {
		t.Error("nothing was forgotten")
	}
}

// TestHeadersStayAtHome: they go to the vendor, and not to where it sends us on.
func TestHeadersStayAtHome(t *testing.T) {
	t.Parallel()
	var seen []string
	far := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { seen = append(seen, "far "+r.Header.Get("X-Secret")) }))
	defer far.Close()
	near := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, "near "+r.Header.Get("X-Secret"))
		http.Redirect(w, r, far.URL, http.StatusTemporaryRedirect)
	}))
	defer near.Close()
	client := headerClient(modelrouter.Vendor{Headers: map[string]string{"X-Secret": "test-key"}})
	defer client.CloseIdleConnections()
	res, err := client.Get(near.URL)
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	if !slices.Equal(seen, []string{"near test-key", "far "}) {
		t.Errorf("%q", seen)
	}
	if headerClient(modelrouter.Vendor{}) != nil {
		t.Error("a client for nothing")
	}
}

func TestUnknownIsTyped(t *testing.T) {
	t.Parallel()
	_, err := NewModels(env(), "", "").Resolve("zzz")
	var unknown *modelrouter.Unknown
	if !errors.As(err, &unknown) || len(unknown.Considered) == 0 {
		t.Errorf("%v", err)
	}
}
