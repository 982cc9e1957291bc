package catalog

import (
	"slices"
	"strings"
)

// Traits are how a request for a model has to be written, told by its name alone: they hold for
// models of a family that are not in the table of models, too.
type Traits struct {
	MaxStops int // stop sequences that a request may have; -1: any number
	// Reasoning is how it is asked to think; "": with whatever the provider has for all its models.
	Reasoning Reasoning
	// LeastBudget and MostBudget bound what it may be told to think, in tokens, where it takes a
	// budget; 0: no bound.
	LeastBudget, MostBudget int

	AnthropicBody bool // Bedrock: it takes Anthropic's own body
	CachePoints   bool // Bedrock: its requests may have cache points
	ResultStatus  bool // Bedrock: a tool result may say that it failed
	WholeTools    bool // Bedrock: with tools its answer is not streamed
	// Unsigned: it does not sign its thoughts and refuses to be shown those of others.
	Unsigned bool
	// SignedCalls: it signs its tool calls and wants the signatures back.
	SignedCalls bool
}

// Reasoning is a way to ask for thought.
type Reasoning string

// The ways that differ from a provider's usual one.
const (
	ReasonByLevel  Reasoning = "level"  // low, medium, high in the provider's own field
	ReasonByConfig Reasoning = "config" // Amazon's reasoningConfig
	ReasonByEffort Reasoning = "effort" // OpenAI's reasoning_effort
	ReasonNone     Reasoning = "none"   // it is not asked: makers refuse fields that they do not know
)

// TraitsOf are a model's traits at a provider. A model that nothing is known about has those of
// the provider.
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

// MaxStops is how many stop sequences a model takes; -1: any number. Whoever needs more of them
// cuts the answer itself.
func MaxStops(provider, model string) int { return TraitsOf(provider, model).MaxStops }

// geminiTraits: from the third generation on Gemini thinks by level and signs its calls; before,
// each size has bounds of its own.
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

// ollamaTraits: most models take a yes; gpt-oss takes levels and nothing else.
func ollamaTraits(name string, t *Traits) {
	if strings.Contains(name, "gpt-oss") {
		t.Reasoning = ReasonByLevel
	}
}

// bedrockTraits: the models behind Bedrock differ, and their names say how: alone, after a
// region's prefix (us., eu., global.) or in an ARN. The ARN of an application profile does not
// name its model, so nothing special is asked of it.
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
