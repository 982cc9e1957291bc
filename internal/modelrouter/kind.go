package modelrouter

import (
	"slices"
	"strings"
)

// Kind is the wire a vendor is spoken to over: the name of a provider package.
type Kind string

// The kinds there are.
const (
	Anthropic   Kind = "anthropic"
	OpenAI      Kind = "openai"
	Google      Kind = "google"
	OpenRouter  Kind = "openrouter"
	Bedrock     Kind = "bedrock"
	Ollama      Kind = "ollama"
	Completions Kind = "completions"
	Demo        Kind = "demo"
)

// row is what is known of a kind. Of several names for a setting the first that is
// set wins.
type row struct {
	kind  Kind
	model string   // what it stands for when no model is named
	key   []string // one API key or several
	base  []string // the address
	more  []string // whatever else it is made with
	// keyless: it can do without a key; gated: it can if it has an address, where
	// somebody may have put the key; own: what stands at another address is a server
	// of its own, with models of its own.
	keyless, gated, own bool
	// env are the variables that give a built-in vendor its settings; each also as
	// NAME_FILE.
	env map[string][]string
}

// table has them in the order in which a default is looked for.
var table = []row{
	{
		kind: Anthropic, model: "claude-sonnet-4-5",
		key: []string{"anthropic_api_key", "api_key"}, base: []string{"anthropic_base_url", "api_base", "base_url"},
		env: map[string][]string{"anthropic_api_key": {"ANTHROPIC_API_KEY"}, "api_base": {"ANTHROPIC_BASE_URL"}},
	},
	{
		kind: OpenAI, model: "gpt-5-mini", gated: true, own: true,
		key: []string{"openai_api_key", "api_key"}, base: []string{"openai_base_url", "api_base", "base_url"}, more: []string{"openai_api"},
		env: map[string][]string{"openai_api_key": {"OPENAI_API_KEY"}, "api_base": {"OPENAI_BASE_URL"}},
	},
	{
		kind: Google, model: "gemini-2.5-flash", gated: true,
		key: []string{"google_api_key", "gemini_api_key", "api_key"}, base: []string{"google_base_url", "gemini_base_url", "api_base", "base_url"},
		env: map[string][]string{"google_api_key": {"GEMINI_API_KEY", "GOOGLE_API_KEY"}, "api_base": {"GOOGLE_GEMINI_BASE_URL"}},
	},
	{
		kind: OpenRouter, model: "anthropic/claude-sonnet-4.5",
		key: []string{"openrouter_api_key", "api_key"}, base: []string{"openrouter_base_url", "api_base", "base_url"},
		env: map[string][]string{"openrouter_api_key": {"OPENROUTER_API_KEY"}, "api_base": {"OPENROUTER_BASE_URL"}},
	},
	{
		kind: Bedrock, model: "global.anthropic.claude-sonnet-4-5-20250929-v1:0", keyless: true,
		base: []string{"aws_endpoint_url_bedrock_runtime", "api_base", "base_url"},
		more: []string{"aws_access_key", "aws_secret_key", "aws_session_token", "aws_region", "aws_profile", "aws_bearer_token_bedrock"},
		env: map[string][]string{
			"aws_access_key": {"AWS_ACCESS_KEY_ID"}, "aws_secret_key": {"AWS_SECRET_ACCESS_KEY"}, "aws_session_token": {"AWS_SESSION_TOKEN"},
			"aws_region": {"AWS_REGION", "AWS_DEFAULT_REGION"}, "aws_profile": {"AWS_PROFILE"},
			"aws_bearer_token_bedrock": {"AWS_BEARER_TOKEN_BEDROCK"}, "api_base": {"AWS_ENDPOINT_URL_BEDROCK_RUNTIME"},
		},
	},
	{
		kind: Ollama, model: "llama3.2", keyless: true,
		key: []string{"ollama_api_key", "api_key"}, base: []string{"ollama_host", "ollama_base_url", "api_base", "base_url"},
		env: map[string][]string{"ollama_api_key": {"OLLAMA_API_KEY"}, "ollama_host": {"OLLAMA_HOST"}},
	},
	{
		kind: Completions, model: "gpt-3.5-turbo-instruct", gated: true, own: true,
		key: []string{"openai_completions_api_key", "api_key"}, base: []string{"openai_completions_base_url", "api_base", "base_url"},
		env: map[string][]string{"openai_completions_api_key": {"OPENAI_COMPLETIONS_API_KEY"}, "api_base": {"OPENAI_COMPLETIONS_BASE_URL"}},
	},
	{kind: Demo, model: "guide", keyless: true},
}

// aliases are other spellings of settings.
var aliases = map[string][]string{
	"aws_access_key": {"aws_access_key_id"},
	"aws_secret_key": {"aws_secret_access_key"},
	"aws_region":     {"aws_default_region", "region"},
}

func (k Kind) row() (row, bool) {
	i := slices.IndexFunc(table, func(r row) bool { return r.kind == k })
	if i < 0 {
		return row{}, false
	}
	return table[i], true
}

// Known reports whether it is one of the kinds there are.
func (k Kind) Known() bool { _, ok := k.row(); return ok }

// Kinds lists them in the order in which a default is looked for.
func Kinds() []Kind {
	var out []Kind
	for _, r := range table {
		out = append(out, r.kind)
	}
	return out
}

// DefaultModel is the model that a kind stands for when none is named.
func DefaultModel(k Kind) string {
	r, _ := k.row()
	return r.model
}

// Settings lists the names that the settings of a kind may have, the key's with their
// file variants.
func (k Kind) Settings() []string {
	r, _ := k.row()
	var out []string
	for _, name := range r.key {
		out = append(out, name, name+"_file")
	}
	out = append(out, r.base...)
	for _, name := range r.more {
		out = append(append(out, name), aliases[name]...)
	}
	return out
}

func kindNames() string {
	var names []string
	for _, r := range table {
		names = append(names, string(r.kind))
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}
