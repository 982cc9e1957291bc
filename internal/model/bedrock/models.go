package bedrock

import "strings"

// What the hosts behind Bedrock differ in is told by the name, wherever it stands:
// alone, behind a region's prefix (us., eu., global.) or in an ARN. Behind the ARN of
// an application's own profile anything may be; it is asked for nothing special.

// isClaude reports whether the model is Anthropic's and takes their body.
func isClaude(name string) bool { return strings.Contains(name, "anthropic.") }

// isNova reports whether the model is Amazon's own.
func isNova(name string) bool { return strings.Contains(name, "amazon.nova-") }

// wholeWithTools reports whether the model gives its answer only in one piece when
// there are tools: "This model doesn't support tool use in streaming mode."
func wholeWithTools(name string) bool {
	for _, part := range []string{"meta.llama", "mistral.mi", "deepseek.r1", "writer.", "ai21."} {
		if strings.Contains(name, part) {
			return true
		}
	}
	return false
}

// signs reports whether an unknown model may have signed its reasoning, so that it
// takes it back. These do not, and refuse what another model signed.
func signs(name string) bool {
	for _, maker := range []string{"openai.", "deepseek.", "qwen.", "mistral.", "meta.", "cohere.", "ai21.", "moonshot.", "minimax.", "google.", "nvidia.", "writer.", "zai."} {
		if strings.Contains(name, maker) {
			return false
		}
	}
	return true
}

// stops is how many stop sequences the model takes; the answer is cut at the others
// by those who asked.
func stops(name string) int {
	switch {
	case strings.Contains(name, "meta.llama"):
		return 0 // "This model doesn't support the stopSequences field."
	case strings.Contains(name, "deepseek."), strings.Contains(name, "mistral."):
		return 10
	default:
		return 4
	}
}

// takes is what a model understands of what a message may hold.
type takes struct {
	images   bool
	failures bool // a result can be said to be a failure
	thinking bool // signed reasoning is taken back
}

// form is the name of the wire form, one for each way of writing.
func (t takes) form() string {
	name := []byte("converse/---")
	for i, on := range []bool{t.images, t.failures, t.thinking} {
		if on {
			name[len("converse/")+i] = "ift"[i]
		}
	}
	return string(name)
}
