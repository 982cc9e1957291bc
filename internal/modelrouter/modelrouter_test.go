package modelrouter

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"chorus/internal/model"
	"chorus/internal/model/catalog"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func env(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

func declare(t *testing.T, name string, settings map[string]string, provides ...string) Vendor {
	t.Helper()
	v, err := Declare(name, "", settings, provides, env("SET", "test-key-of-the-variable"))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestInfer(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		settings []string
		want     Kind // "": an error
	}{
		{"anthropic", nil, "anthropic"},
		{"OpenRouter", nil, "openrouter"},
		{"gemini", nil, "google"},
		{"work", []string{"anthropic_api_key"}, "anthropic"},
		{"work", []string{"anthropic_api_key_file"}, "anthropic"},
		{"work", []string{"aws_access_key", "aws_secret_key", "aws_region"}, "bedrock"},
		{"work", []string{"aws_access_key_id"}, "bedrock"},
		{"work", []string{"openai_api_key", "api_base"}, "openai"},
		{"work", []string{"openai_api_key", "openai_base_url"}, "openai"},
		{"work", []string{"openai_completions_api_key", "openai_completions_base_url"}, "completions"},
		{"work", []string{"openrouter_api_key"}, "openrouter"},
		{"work", []string{"google_api_key"}, "google"},
		{"work", []string{"gemini_api_key"}, "google"},
		{"work", []string{"ollama_host"}, "ollama"},
		{"work", []string{"api_base"}, "openai"},
		{"work", []string{"api_base", "api_key"}, "openai"},
		{"anthropic", []string{"openai_api_key"}, "anthropic"}, // the name says it
		{"work", []string{"api_key"}, ""},
		{"work", nil, ""},
		{"work", []string{"anthropic_api_key", "openai_api_key"}, ""},
	} {
		got, err := Infer(c.name, c.settings)
		if got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s %v: %q, %v", c.name, c.settings, got, err)
		}
		if err != nil && !strings.Contains(err.Error(), "vendor "+c.name) {
			t.Errorf("%v does not name the vendor", err)
		}
	}
}

func TestDeclareRefuses(t *testing.T) {
	t.Parallel()
	for name, kind := range map[string]Kind{"": "anthropic", "a/b": "anthropic", "a b": "anthropic", "work": "carrier-pigeon"} {
		if v, err := Declare(name, kind, nil, nil, none); err == nil {
			t.Errorf("%q %q became %+v", name, kind, v)
		}
	}
}

func TestAccounts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "key")
	if err := os.WriteFile(file, []byte("test-key-1\ntest-key-2, test-key-1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name     string
		settings map[string]string
		want     []string // the keys; nil: an error
		base     string
	}{
		{"anthropic", map[string]string{"anthropic_api_key": "test-key"}, []string{"test-key"}, ""},
		{"anthropic", map[string]string{"api_key": " test-a ,, test-b,test-a"}, []string{"test-a", "test-b"}, ""},
		{"anthropic", map[string]string{"anthropic_api_key_file": file, "api_base": "http://x"}, []string{"test-key-1", "test-key-2"}, "http://x"},
		{"anthropic", map[string]string{"anthropic_api_key": "file:" + file}, []string{"test-key-1", "test-key-2"}, ""},
		{"anthropic", map[string]string{"anthropic_api_key": "${SET}"}, []string{"test-key-of-the-variable"}, ""},
		{"openai", map[string]string{"openai_api_key": "a-${SET}-b,${NOT_SET}", "openai_base_url": "http://y", "api_base": "http://z"}, []string{"a-test-key-of-the-variable-b"}, "http://y"},
		{"anthropic", map[string]string{"anthropic_api_key": "${NOT_SET}"}, nil, ""},
		{"anthropic", map[string]string{"anthropic_api_key": "file:" + dir + "/none"}, nil, ""},
		{"anthropic", map[string]string{"anthropic_api_key_file": dir + "/none"}, nil, ""},
		{"openai", nil, nil, ""},
		{"openai", map[string]string{"api_base": "http://local"}, []string{""}, "http://local"},
		{"ollama", nil, []string{""}, ""},
		{"bedrock", map[string]string{"aws_region": "eu-west-1"}, []string{""}, ""},
		{"demo", nil, []string{""}, ""},
	} {
		v := declare(t, c.name, c.settings)
		accounts, err := v.Accounts()
		var keys []string
		for _, a := range accounts {
			keys = append(keys, a.Key)
			if a.Base != c.base {
				t.Errorf("%s %v: address %q", c.name, c.settings, a.Base)
			}
		}
		if !slices.Equal(keys, c.want) || (err == nil) != (c.want != nil) {
			t.Errorf("%s %v: %q, %v", c.name, c.settings, keys, err)
		}
		if err != nil && !strings.Contains(err.Error(), c.name) {
			t.Errorf("%v does not name the vendor", err)
		}
	}
}

func TestNoKeySaysWhatToSet(t *testing.T) {
	t.Parallel()
	for _, v := range []Vendor{BuiltIn(none)[0], declare(t, "work", map[string]string{"anthropic_api_key": "${NOT_SET}"})} {
		_, err := v.Accounts()
		var missing *NoKey
		if !errors.As(err, &missing) || model.KindOf(err) != model.Auth || v.Configured() {
			t.Fatalf("%s: %v", v.Name, err)
		}
		want := "set ANTHROPIC_API_KEY (or ANTHROPIC_API_KEY_FILE)"
		if v.Declared {
			want = "set anthropic_api_key (or anthropic_api_key_file) in its config"
		}
		if !strings.Contains(err.Error(), "there is no key for "+v.Name+": "+want) {
			t.Errorf("%v", err)
		}
	}
}

// TestEveryVariableMakesItsVendor: the environment alone configures.
func TestEveryVariableMakesItsVendor(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		env  []string
		want []string
	}{
		{nil, []string{"demo"}},
		{[]string{"ANTHROPIC_API_KEY", "test-key"}, []string{"anthropic", "demo"}},
		{[]string{"ANTHROPIC_BASE_URL", "http://x"}, []string{"demo"}},
		{[]string{"OPENAI_API_KEY", "test-key"}, []string{"openai", "demo"}},
		{[]string{"OPENAI_BASE_URL", "http://x"}, []string{"openai", "demo"}},
		{[]string{"GEMINI_API_KEY", "test-key"}, []string{"google", "demo"}},
		{[]string{"GOOGLE_API_KEY", "test-key"}, []string{"google", "demo"}},
		{[]string{"GOOGLE_GEMINI_BASE_URL", "http://x"}, []string{"google", "demo"}},
		{[]string{"OPENROUTER_API_KEY", "test-key"}, []string{"openrouter", "demo"}},
		{[]string{"OLLAMA_HOST", "127.0.0.1:11434"}, []string{"ollama", "demo"}},
		{[]string{"AWS_REGION", "eu-west-1"}, []string{"demo"}},
		{[]string{"AWS_PROFILE", "dev"}, []string{"demo"}},
		{[]string{"AWS_REGION", "eu-west-1", "AWS_ACCESS_KEY_ID", "test-id"}, []string{"bedrock", "demo"}},
		{[]string{"AWS_REGION", "eu-west-1", "AWS_PROFILE", "dev"}, []string{"bedrock", "demo"}},
		{[]string{"OPENAI_COMPLETIONS_BASE_URL", "http://x"}, []string{"completions", "demo"}},
		{[]string{"ANTHROPIC_API_KEY_FILE", "/nowhere/key"}, []string{"anthropic", "demo"}}, // so that somebody hears of it
		{[]string{"OPENROUTER_API_KEY", "test-key", "ANTHROPIC_API_KEY", "test-key"}, []string{"anthropic", "openrouter", "demo"}},
	} {
		var got []string
		for _, v := range BuiltIn(env(c.env...)) {
			if v.Configured() {
				got = append(got, v.Name)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%v: %v, want %v", c.env, got, c.want)
		}
	}
	for _, v := range BuiltIn(none) {
		if !v.Kind.Known() || v.Provider().DefaultModel == "" || v.Declared {
			t.Errorf("%+v", v)
		}
	}
	if len(BuiltIn(none)) != len(catalog.Providers()) {
		t.Error("a kind is not built in")
	}
}

func TestMerge(t *testing.T) {
	t.Parallel()
	built := BuiltIn(env("ANTHROPIC_API_KEY", "test-env", "OPENAI_API_KEY", "test-openai", "OPENAI_BASE_URL", "http://env"))
	all := Merge([]Vendor{
		declare(t, "work", map[string]string{"openrouter_api_key": "test-work"}),
		declare(t, "anthropic", map[string]string{"api_base": "http://file"}, "claude-*"),
		declare(t, "openai", map[string]string{"openai_api_key": "test-file"}),
	}, built)
	var names []string
	for _, v := range all {
		names = append(names, v.Name)
	}
	want := []string{"work", "anthropic", "openai", "google", "openrouter", "bedrock", "ollama", "completions", "demo"}
	if !slices.Equal(names, want) {
		t.Fatalf("%v, want %v", names, want)
	}
	for i, want := range []Account{{Key: "test-work"}, {Key: "test-env", Base: "http://file"}, {Key: "test-file", Base: "http://env"}} {
		got, err := all[i].Accounts()
		if err != nil || len(got) != 1 || got[0].Key != want.Key || got[0].Base != want.Base {
			t.Errorf("%s: %+v, %v", all[i].Name, got, err)
		}
	}
}

func TestCatalogNames(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		v    Vendor
		want string
	}{
		{BuiltIn(env("OPENAI_BASE_URL", "http://x"))[1], "openai"},
		{declare(t, "groq", map[string]string{"openai_api_key": "test-key", "api_base": "http://x"}), "groq"},
		{declare(t, "second", map[string]string{"openai_api_key": "test-key"}), "openai"},
		{declare(t, "work", map[string]string{"anthropic_api_key": "test-key", "api_base": "http://proxy"}), "anthropic"},
	} {
		if got := c.v.Catalog(); got != c.want {
			t.Errorf("%s: %q, want %q", c.v.Name, got, c.want)
		}
	}
}

func TestSecretsOfAnAccount(t *testing.T) {
	t.Parallel()
	v := declare(t, "b", map[string]string{"aws_access_key_id": "test-id", "aws_secret_access_key": "test-secret", "aws_region": "eu-west-1"})
	accounts, err := v.Accounts()
	if err != nil {
		t.Fatal(err)
	}
	for _, form := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		if text := fmt.Sprintf(form, accounts); strings.Contains(text, "test-") {
			t.Errorf("%s shows %s", form, text)
		}
	}
	got := accounts[0].secrets()
	slices.Sort(got)
	if !reflect.DeepEqual(got, []string{"test-id", "test-secret"}) || accounts[0].Get("aws_region") != "eu-west-1" {
		t.Errorf("%v", got)
	}
}
