package ledger

import (
	"testing"

	"chorus/internal/chat"
)

func TestSettle(t *testing.T) {
	t.Parallel()
	price := Price{Input: 3, Output: 15}
	counted := chat.Usage{Input: 100, Output: 10}
	for name, c := range map[string]struct {
		said chat.Said
		how  How
		want Nanos
	}{
		"the provider counted":     {chat.Said{Usage: counted, Blocks: chat.TextBlocks("much more than ten tokens of text, which do not matter")}, ByUsage, 450},
		"refused before it sent":   {chat.Said{Error: &chat.Failure{Kind: "rate_limit"}}, ByUsage, 0},
		"the connection broke":     {chat.Said{Error: &chat.Failure{Kind: "network"}, Blocks: chat.TextBlocks("12345")}, Estimate, 200*3 + 2*15},
		"nobody counted":           {chat.Said{Blocks: chat.Blocks{chat.Thinking{Text: "hm.."}, chat.Text{Text: "1234"}, chat.ToolUse{Args: []byte(`{"a":1}`)}}}, Estimate, 200*3 + 4*15},
		"cut off while it thought": {chat.Said{Error: &chat.Failure{Kind: "overloaded"}, Received: 41}, Estimate, 200*3 + 11*15},
		"silent for too long":      {chat.Said{Error: &chat.Failure{Kind: "stuck"}}, Estimate, 600},
		"aborted":                  {chat.Said{Partial: true}, Estimate, 600},
	} {
		if got := (Entry{Reserved: 9}).Settle(price, 200, c.said); got.How != c.how || got.Settled != c.want || got.Reserved != 9 {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestMaxOutput(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ tokens, thinking, want int }{{0, 0, 0}, {-1, 500, 0}, {100, 0, 100}, {100, 500, 1124}, {100, 5000, 5100}} {
		if got := MaxOutput(chat.Settings{MaxTokens: c.tokens, ThinkingBudget: c.thinking}); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}
