package modelrouter

import "testing"

func TestEntries(t *testing.T) {
	t.Parallel()
	built := map[Kind]Vendor{}
	for _, v := range BuiltIn(none) {
		built[v.Kind] = v
	}
	own := declare(t, "own", map[string]string{"openai_api_key": "test-key", "api_base": "http://x"})
	for _, c := range []struct {
		v        Vendor
		name     string
		provider string
		window   int
		priced   bool
	}{
		{built["anthropic"], "claude-sonnet-4-5", "anthropic", 200_000, true},
		{built["openrouter"], "anthropic/claude-sonnet-4.5", "openrouter", 200_000, true},
		{built["openrouter"], "anthropic/claude-sonnet-4.5:beta", "openrouter", 200_000, true},
		{built["openrouter"], "openai/gpt-4o", "openrouter", 128_000, true},
		{built["openrouter"], "nobody/knows", "openrouter", 128_000, false},
		{built["bedrock"], "anthropic.claude-sonnet-4-5-20250929-v1:0", "bedrock", 200_000, true},
		{built["bedrock"], "eu.anthropic.claude-sonnet-4-5-20250929-v1:0", "bedrock", 200_000, true},
		{built["bedrock"], "arn:aws:bedrock:eu-west-1:123456789012:inference-profile/eu.anthropic.claude-sonnet-4-5-20250929-v1:0", "bedrock", 200_000, true},
		{built["openai"], "gpt-4o", "openai", 128_000, true},
		{own, "gpt-4o", "own", 128_000, false}, // whatever that server calls so
	} {
		e := c.v.Entry(c.name)
		if e.Provider != c.provider || e.ContextWindow != c.window || e.Price.Known() != c.priced {
			t.Errorf("%s/%s: %+v", c.v.Name, c.name, e)
		}
	}
}
