package bedrock

import "strings"

// Models behind Bedrock differ, and their names say how: alone, after a region's prefix
// (us., eu., global.) or in an ARN. The ARN of an application profile does not name its
// model, so nothing special is asked of it.

// isClaude reports whether the model is Anthropic's and takes their body.
func isClaude(name string) bool { return strings.Contains(name, "anthropic.") }

// isNova reports whether the model is Amazon's own.
func isNova(name string) bool { return strings.Contains(name, "amazon.nova-") }

// wholeWithTools reports whether the model does not stream its answer when there are
// tools: "This model doesn't support tool use in streaming mode."
func wholeWithTools(name string) bool {
	for _, part := range []string{"meta.llama", "mistral.mi", "deepseek.r1", "writer.", "ai21."} {
		if strings.Contains(name, part) {
			return true
		}
	}
	return false
}

// signs reports whether a model that is not in the catalog may sign its reasoning and so take it
// back. Those listed here do not, and refuse what another model signed.
func signs(name string) bool {
	for _, maker := range []string{"openai.", "deepseek.", "qwen.", "mistral.", "meta.", "cohere.", "ai21.", "moonshot.", "minimax.", "google.", "nvidia.", "writer.", "zai."} {
		if strings.Contains(name, maker) {
			return false
		}
	}
	return true
}

// takes is which parts of a message a model accepts.
type takes struct {
	images   bool
	failures bool // a tool result has a status
	thinking bool // signed reasoning is taken back
}

// form names the encoding, one for each combination.
func (t takes) form() string {
	name := []byte("converse/---")
	for i, on := range []bool{t.images, t.failures, t.thinking} {
		if on {
			name[len("converse/")+i] = "ift"[i]
		}
	}
	return string(name)
}
