package vendor

import (
	"fmt"
	"slices"
	"strings"

	"chorus/internal/home"
)

// standing is a vendor that exists without any file.
type standing struct {
	kind   Kind
	secret string              // the variable of its key, also with _FILE
	vars   map[string][]string // settings that the environment gives, by their config name
	model  string              // what it stands for when no model is named
}

// standings is the table of the built-in vendors: their usual variables, and the
// model each is asked for when none is named.
var standings = []standing{
	{Anthropic, "ANTHROPIC_API_KEY", map[string][]string{"anthropic_api_key": {"ANTHROPIC_API_KEY"}, "api_base": {"ANTHROPIC_BASE_URL"}}, "claude-sonnet-4-5"},
	{OpenAI, "OPENAI_API_KEY", map[string][]string{"openai_api_key": {"OPENAI_API_KEY"}, "api_base": {"OPENAI_BASE_URL"}}, "gpt-5-mini"},
	{Google, "GEMINI_API_KEY", map[string][]string{"google_api_key": {"GEMINI_API_KEY", "GOOGLE_API_KEY"}, "api_base": {"GOOGLE_GEMINI_BASE_URL"}}, "gemini-2.5-flash"},
	{OpenRouter, "OPENROUTER_API_KEY", map[string][]string{"openrouter_api_key": {"OPENROUTER_API_KEY"}, "api_base": {"OPENROUTER_BASE_URL"}}, "anthropic/claude-sonnet-4.5"},
	{Bedrock, "", map[string][]string{
		"aws_access_key": {"AWS_ACCESS_KEY_ID"}, "aws_secret_key": {"AWS_SECRET_ACCESS_KEY"}, "aws_session_token": {"AWS_SESSION_TOKEN"},
		"aws_region": {"AWS_REGION", "AWS_DEFAULT_REGION"}, "aws_profile": {"AWS_PROFILE"},
		"aws_bearer_token_bedrock": {"AWS_BEARER_TOKEN_BEDROCK"}, "api_base": {"AWS_ENDPOINT_URL_BEDROCK_RUNTIME"},
	}, "global.anthropic.claude-sonnet-4-5-20250929-v1:0"},
	{Ollama, "", map[string][]string{"ollama_host": {"OLLAMA_HOST"}, "ollama_api_key": {"OLLAMA_API_KEY"}}, "llama3.2"},
	{Completions, "OPENAI_COMPLETIONS_API_KEY", map[string][]string{
		"openai_completions_api_key": {"OPENAI_COMPLETIONS_API_KEY"}, "api_base": {"OPENAI_COMPLETIONS_BASE_URL"},
	}, "gpt-3.5-turbo-instruct"},
	{Demo, "", nil, "guide"},
}

func builtIn(k Kind) (standing, bool) {
	i := slices.IndexFunc(standings, func(s standing) bool { return s.kind == k })
	if i < 0 {
		return standing{}, false
	}
	return standings[i], true
}

// DefaultModel is the model that a kind stands for when none is named.
func DefaultModel(k Kind) string {
	s, _ := builtIn(k)
	return s.model
}

// BuiltIn are the vendors that the environment alone makes, in the order in which a
// default is looked for. env is asked again whenever a key is needed.
func BuiltIn(env func(string) string) []Vendor {
	var out []Vendor
	for _, s := range standings {
		out = append(out, Vendor{Name: string(s.kind), Kind: s.kind, Config: s.config(env)})
	}
	return out
}

func (s standing) config(env func(string) string) func(string) (string, error) {
	return func(key string) (string, error) {
		for _, variable := range s.vars[key] {
			if value, err := home.Secret(env, variable); value != "" || err != nil {
				return value, err
			}
		}
		return "", nil
	}
}

// Declare makes a vendor out of what a file says of it. The kind may be left out: it
// follows from the name or from which settings there are. A value may be ${VARIABLE}
// or file:PATH, which are looked up each time the value is needed.
func Declare(name string, kind Kind, settings map[string]string, provides []string, env func(string) string) (Vendor, error) {
	v := Vendor{Name: name, Kind: kind, Declared: true}
	if name == "" || strings.ContainsAny(name, "/ \t\n") {
		return v, fmt.Errorf("vendor %q: a name has neither slashes nor spaces, since it is put before the slash of a model's name", name)
	}
	var names []string
	for key, value := range settings {
		if value != "" {
			names = append(names, key)
		}
	}
	var err error
	if v.Kind == "" {
		if v.Kind, err = Infer(name, names); err != nil {
			return v, err
		}
	} else if !v.Kind.Known() {
		return v, fmt.Errorf("vendor %s: there is no kind %q; there are %s", name, kind, kindNames())
	}
	for _, p := range provides {
		pattern, err := Compile(p)
		if err != nil {
			return v, fmt.Errorf("vendor %s: %w", name, err)
		}
		v.Provides = append(v.Provides, pattern)
	}
	v.Config = func(key string) (string, error) { return Expand(settings[key], env) }
	return v, nil
}

// Expand looks up what a value of a config file refers to: file:PATH is the file's
// content, ${NAME} a variable (or the file that NAME_FILE names).
func Expand(value string, env func(string) string) (string, error) {
	if path, ok := strings.CutPrefix(value, "file:"); ok {
		return home.SecretFile(strings.TrimPrefix(path, "//"))
	}
	var out strings.Builder
	for {
		before, rest, ok := strings.Cut(value, "${")
		name, after, closed := strings.Cut(rest, "}")
		if !ok || !closed {
			out.WriteString(value)
			return out.String(), nil
		}
		text, err := home.Secret(env, name)
		if err != nil {
			return "", err
		}
		out.WriteString(before)
		out.WriteString(text)
		value = after
	}
}

// Infer says of which kind a vendor is that does not say so itself: by its name if
// that is a kind's, else by the settings it has. Two kinds' keys in one vendor, or
// none, are an error.
func Infer(name string, settings []string) (Kind, error) {
	if k := Kind(strings.ToLower(name)); k.Known() {
		return k, nil
	}
	if strings.ToLower(name) == "gemini" {
		return Google, nil
	}
	var found []string
	for _, k := range Kinds() {
		own := func(s string) bool {
			return !slices.Contains([]string{"api_key", "api_key_file", "api_base", "base_url"}, s)
		}
		if slices.ContainsFunc(settings, func(s string) bool { return own(s) && slices.Contains(k.Settings(), s) }) {
			found = append(found, string(k))
		}
	}
	switch {
	case len(found) == 1:
		return Kind(found[0]), nil
	case len(found) > 1:
		return "", fmt.Errorf("vendor %s: its config has the settings of %s; make a vendor of each, or say kind:", name, strings.Join(found, " and "))
	case slices.Contains(settings, "api_base") || slices.Contains(settings, "base_url"):
		return OpenAI, nil // an address alone: nearly every server speaks like OpenAI's
	default:
		return "", fmt.Errorf("vendor %s: its config has no key that says whose it is; say kind: with one of %s", name, kindNames())
	}
}

// Merge puts declared vendors before the built-in ones. One that has a built-in's name
// takes its place, and what it does not set itself comes from the environment.
func Merge(declared, built []Vendor) []Vendor {
	out := slices.Clone(declared)
	for _, b := range built {
		i := slices.IndexFunc(out, func(v Vendor) bool { return v.Name == b.Name })
		if i < 0 {
			out = append(out, b)
			continue
		}
		if v := out[i]; v.Kind == b.Kind {
			out[i].Config = v.or(b)
		}
	}
	return out
}

// or asks v first: for a key as for the address, whatever the setting is called there.
func (v Vendor) or(b Vendor) func(string) (string, error) {
	group := func(key string) []string {
		w := wirings[v.Kind]
		for _, names := range [][]string{w.key, w.base} {
			if slices.Contains(names, strings.TrimSuffix(key, "_file")) {
				return names
			}
		}
		return []string{key}
	}
	return func(key string) (string, error) {
		text, err := v.Config(key)
		if text != "" || err != nil || b.Config == nil {
			return text, err
		}
		for _, other := range group(key) {
			if has, err := v.Config(other); has != "" || err != nil {
				return "", err
			}
			if has, err := v.Config(other + "_file"); has != "" || err != nil {
				return "", err
			}
		}
		return b.Config(key)
	}
}
