package modelrouter

import (
	"strings"

	"chorus/internal/model"
)

// Entry is what is known of a model at this vendor. Those who pass other people's
// models on call them by longer names; what is known of the model holds there too.
func (v Vendor) Entry(name string) model.Entry {
	e, known := model.Lookup(v.Catalog(), name)
	if known || v.Kind != OpenRouter {
		return e
	}
	if there, known := model.Lookup(routed(name)); known {
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
