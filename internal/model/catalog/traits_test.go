package catalog

import "testing"

func TestTraits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		provider, model string
		want            Traits
	}{
		{"anthropic", "claude-sonnet-4-5", Traits{MaxStops: -1}},
		{"openai", "gpt-5-mini", Traits{MaxStops: 4}},
		{"somebodys-own", "x", Traits{MaxStops: -1}},
		{"google", "gemini-2.5-pro", Traits{MaxStops: 5, LeastBudget: 128, MostBudget: 32_768}},
		{"google", "models/gemini-2.5-flash-lite", Traits{MaxStops: 5, LeastBudget: 512, MostBudget: 24_576}},
		{"google", "models/gemini-3-pro-preview", Traits{MaxStops: 5, Reasoning: ReasonByLevel, SignedCalls: true}},
		{"ollama", "gpt-oss:20b", Traits{MaxStops: -1, Reasoning: ReasonByLevel}},
		{"ollama", "llama3.2", Traits{MaxStops: -1}},
		{"bedrock", "us.anthropic.claude-sonnet-4-5-20250929-v1:0", Traits{MaxStops: -1, Reasoning: ReasonNone, AnthropicBody: true}},
		{"bedrock", "amazon.nova-pro-v1:0", Traits{MaxStops: 4, Reasoning: ReasonNone, CachePoints: true, ResultStatus: true}},
		{"bedrock", "us.amazon.nova-2-lite-v1:0", Traits{MaxStops: 4, Reasoning: ReasonByConfig, CachePoints: true, ResultStatus: true}},
		{"bedrock", "meta.llama3-3-70b-instruct-v1:0", Traits{MaxStops: 0, Reasoning: ReasonNone, WholeTools: true, Unsigned: true}},
		{"bedrock", "openai.gpt-oss-120b-1:0", Traits{MaxStops: 4, Reasoning: ReasonByEffort, Unsigned: true}},
		{"bedrock", "deepseek.r1-v1:0", Traits{MaxStops: 10, Reasoning: ReasonNone, WholeTools: true, Unsigned: true}},
		{"bedrock", "arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/abc", Traits{MaxStops: 4, Reasoning: ReasonNone}},
	} {
		if got := TraitsOf(c.provider, c.model); got != c.want {
			t.Errorf("%s/%s: %+v, want %+v", c.provider, c.model, got, c.want)
		}
	}
}
