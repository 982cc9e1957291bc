package catalog

import (
	"slices"
	"strings"
)

// Traits say how a request for a model must be written. They are derived from its name alone, so
// they also apply to models of a family that are not in the table of models.
type Traits struct {
	MaxStops int // stop sequences that a request may have; -1: any number
	// Reasoning is how to ask it to think; "": as for all models of the provider.
	Reasoning Reasoning
	// LeastBudget and MostBudget limit its thinking budget, in tokens, if it accepts one; 0: no limit.
	LeastBudget, MostBudget int

	AnthropicBody bool // Bedrock: it accepts Anthropic's own body
	CachePoints   bool // Bedrock: its requests may have cache points
	ResultStatus  bool // Bedrock: a tool result may say that it failed
	WholeTools    bool // Bedrock: with tools its answer is not streamed
	// Unsigned means that it does not sign its thoughts and rejects those of others.
	Unsigned bool
	// SignedCalls means that it signs its tool calls and wants the signatures back.
	SignedCalls bool
}

// Reasoning is a way to request reasoning.
type Reasoning string

// The ways that differ from a provider's usual one.
const (
	ReasonByLevel  Reasoning = "level"  // low, medium, high in the provider's own field
	ReasonByConfig Reasoning = "config" // Amazon's reasoningConfig
	ReasonByEffort Reasoning = "effort" // OpenAI's reasoning_effort
	ReasonNone     Reasoning = "none"   // it is not asked: makers reject fields that they do not know
)

// TraitsOf returns a model's traits at a provider. A model about which
// nothing is known has those of the provider.
func TraitsOf(provider, model string) Traits {
	p, _ := Find(provider)
	t := Traits{MaxStops: -1}
	if p.MaxStops > 0 {
		t.MaxStops = p.MaxStops
	}
	if p.traits != nil {
		p.traits(model, &t)
	}
	return t
}

// MaxStops returns how many stop sequences a model accepts; -1: any number.
// Callers that need more must cut the answer themselves.
func MaxStops(provider, model string) int { return TraitsOf(provider, model).MaxStops }

// geminiTraits sets the traits of a Gemini. From the third generation on it thinks by
// level and signs its calls; before that, each size has its own limits.
func geminiTraits(name string, t *Traits) {
	name = name[strings.LastIndexByte(name, '/')+1:]
	if version, ok := strings.CutPrefix(name, "gemini-"); ok && !strings.HasPrefix(version, "1") && !strings.HasPrefix(version, "2") {
		t.Reasoning, t.SignedCalls = ReasonByLevel, true
		return
	}
	switch {
	case strings.Contains(name, "-pro"):
		t.LeastBudget, t.MostBudget = 128, 32_768
	case strings.Contains(name, "-lite"):
		t.LeastBudget, t.MostBudget = 512, 24_576
	default:
		t.LeastBudget, t.MostBudget = 1, 24_576
	}
}

// ollamaTraits sets the traits of a model on Ollama. For most models thinking
// is only on or off; gpt-oss accepts nothing but levels.
func ollamaTraits(name string, t *Traits) {
	if strings.Contains(name, "gpt-oss") {
		t.Reasoning = ReasonByLevel
	}
}

// bedrockTraits sets the traits of a model on Bedrock. They follow from the model's name:
// alone, after a region's prefix (us., eu., global.) or in an ARN. The ARN of an application
// profile does not name its model, so no special traits are assumed.
func bedrockTraits(name string, t *Traits) {
	has := func(parts ...string) bool {
		return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(name, part) })
	}
	t.Reasoning, t.MaxStops = ReasonNone, 4
	switch {
	case has("anthropic."):
		t.AnthropicBody, t.MaxStops = true, -1
	case has("meta.llama"):
		t.MaxStops = 0 // "This model doesn't support the stopSequences field."
	case has("deepseek.", "mistral."):
		t.MaxStops = 10
	case has("amazon.nova-2"):
		t.Reasoning = ReasonByConfig
	case has("openai.gpt-oss"):
		t.Reasoning = ReasonByEffort
	}
	t.CachePoints = has("amazon.nova-")
	t.ResultStatus = t.CachePoints
	// "This model doesn't support tool use in streaming mode."
	t.WholeTools = has("meta.llama", "mistral.mi", "deepseek.r1", "writer.", "ai21.")
	t.Unsigned = has("openai.", "deepseek.", "qwen.", "mistral.", "meta.", "cohere.", "ai21.", "moonshot.", "minimax.", "google.", "nvidia.", "writer.", "zai.")
}
