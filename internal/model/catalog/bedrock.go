package catalog

import (
	"strings"

	"chorus/internal/ledger"
)

// amazon returns a row of Bedrock's table for a model that is not Anthropic's, with prices in
// dollars as in claude. Writing to the cache costs the same as input.
func amazon(model string, window, output int, in, out, read ledger.Nanos) Entry {
	return Entry{
		Provider: "bedrock", Model: model, ContextWindow: window, MaxOutput: output,
		Price: ledger.Price{Input: in, Output: out, CacheRead: read, CacheWrite: in},
		Tools: true,
	}
}

// nova marks one of Amazon's own models that sees pictures and accepts a prefill.
func nova(e Entry) Entry { e.Images, e.Prefill = true, true; return e }

// bedrock is what Bedrock offers besides Anthropic's models, at the
// prices of the regions in the United States.
var bedrock = [...]Entry{
	nova(amazon("amazon.nova-premier-v1:0", m, 32*k, 2_500, 12_500, 625)),
	nova(amazon("amazon.nova-pro-v1:0", 300*k, 5_120, 800, 3_200, 200)),
	nova(amazon("amazon.nova-lite-v1:0", 300*k, 5_120, 60, 240, 15)),
	blind(nova(amazon("amazon.nova-micro-v1:0", 128*k, 5_120, 35, 140, 9))),
	amazon("meta.llama3-3-70b-instruct-v1:0", 128*k, 8_192, 720, 720, 720),
	amazon("meta.llama3-1-70b-instruct-v1:0", 128*k, 8_192, 720, 720, 720),
	amazon("meta.llama3-1-8b-instruct-v1:0", 128*k, 8_192, 220, 220, 220),
}

// bedrockID returns a model's own name, without the ARN before it and the prefix of an
// inference profile (us., eu., apac., global.). Every name on Bedrock has the form
// maker.model, so a first part before two others is a region.
func bedrockID(name string) string {
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		name = name[i+1:]
	}
	head, rest, ok := strings.Cut(name, ".")
	if !ok {
		return name
	}
	maker, _, more := strings.Cut(rest, ".")
	switch head {
	case "us", "eu", "ap", "apac", "global", "us-gov", "jp", "au", "ca", "sa", "me", "af":
		if more && maker != "" {
			return rest
		}
	}
	return name
}

// lookupBedrock finds a model by any of its names on Bedrock. Anthropic's models are in
// Anthropic's table and cost the same there, except that regional profiles of the newer
// ones cost a tenth more, which is not in the table.
func lookupBedrock(_, name string) (Entry, bool) {
	id := bedrockID(name)
	if claude, ok := strings.CutPrefix(id, "anthropic."); ok {
		e, known := search("anthropic", claude)
		return onBedrock(e), known
	}
	for _, e := range bedrock {
		if id == e.Model || continues(id, e.Model) {
			return e, true
		}
	}
	return Entry{}, false
}

func onBedrock(e Entry) Entry {
	e.Provider, e.Model = "bedrock", "anthropic."+e.Model
	return e
}

// bedrockEntries lists them. The vendor's aliases ("-0") are not names there.
func bedrockEntries() []Entry {
	all := append([]Entry(nil), bedrock[:]...)
	for _, e := range models {
		if e.Provider == "anthropic" && !strings.HasSuffix(e.Model, "-0") {
			all = append(all, onBedrock(e))
		}
	}
	return all
}
