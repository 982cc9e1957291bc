package app

import (
	"fmt"

	"chorus/internal/model"
	"chorus/internal/model/anthropic"
	"chorus/internal/model/demo"
	"chorus/internal/model/openai"
	"chorus/internal/vendor"
)

// provide makes what speaks a vendor's language, for one of its keys.
func provide(v vendor.Vendor, a vendor.Account) (model.Model, error) {
	switch v.Kind {
	case vendor.Demo:
		return demo.New(), nil
	case vendor.Anthropic:
		return anthropic.New(anthropic.Options{APIKey: a.Key, BaseURL: a.Base}), nil
	case vendor.OpenAI:
		return openai.New(openai.Options{Name: v.Catalog(), APIKey: a.Key, BaseURL: a.Base}), nil
	default:
		return nil, fmt.Errorf("there is nothing here yet that speaks %s", v.Kind)
	}
}
