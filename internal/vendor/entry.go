package vendor

import (
	"slices"
	"strings"

	"chorus/internal/model"
)

// Entry is what is known of a model at this vendor. Those who pass other people's
// models on call them by longer names; what is known of the model holds there too.
func (v Vendor) Entry(name string) model.Entry {
	e, known := model.Lookup(v.Catalog(), name)
	if known {
		return e
	}
	provider, behind := "", ""
	switch v.Kind {
	case OpenRouter:
		provider, behind = routed(name)
	case Bedrock:
		provider, behind = hosted(name)
	default:
		return e
	}
	if there, known := model.Lookup(provider, behind); known {
		there.Provider, there.Model = e.Provider, name
		return there
	}
	return e
}

// routed takes anthropic/claude-sonnet-4.5:beta apart.
func routed(name string) (provider, behind string) {
	provider, behind, _ = strings.Cut(name, "/")
	behind, _, _ = strings.Cut(behind, ":")
	if provider == string(Anthropic) {
		behind = strings.ReplaceAll(behind, ".", "-")
	}
	return provider, behind
}

// regions may stand before a model's name on Bedrock.
var regions = []string{"us", "eu", "apac", "jp", "au", "ca", "global", "us-gov"}

// hosted takes eu.anthropic.claude-sonnet-4-5-20250929-v1:0 apart, also at the end of
// an ARN.
func hosted(name string) (provider, behind string) {
	name = name[strings.LastIndexByte(name, '/')+1:]
	if region, rest, ok := strings.Cut(name, "."); ok && slices.Contains(regions, region) {
		name = rest
	}
	provider, behind, _ = strings.Cut(name, ".")
	return provider, behind
}
