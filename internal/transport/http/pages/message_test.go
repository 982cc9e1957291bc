package pages

import (
	"fmt"
	"testing"

	"chorus/internal/feed"
	"chorus/internal/operation"
)

// A page of the history begins before the calls whose results it has.
func TestCallsAreOnThePageOfTheirResults(t *testing.T) {
	t.Parallel()
	at := func(seq int64) feed.Head { return feed.Head{Seq: seq} }
	all := []feed.Item{
		feed.UserMessage{Head: at(1), Text: "do it"}, feed.AssistantMessage{Head: at(3), Text: "I read"},
		feed.ToolCall{Head: at(3), CallID: "a"}, feed.ToolCall{Head: at(3), CallID: "b"}, feed.ApprovalRequired{Head: at(4), CallID: "b"},
		feed.ToolResult{Head: at(5), CallID: "a"}, feed.ApprovalResolved{Head: at(6), CallID: "b"}, feed.ToolResult{Head: at(7), CallID: "b"}, feed.Completed{Head: at(8)},
	}
	// between returns the items from a number up to before another.
	between := func(from, before int64) operation.List[feed.Item] {
		var out operation.List[feed.Item]
		for _, item := range all {
			if seq := item.Header().Seq; seq >= from && seq < before {
				out.Items = append(out.Items, item)
			}
		}
		if from > 1 {
			out.Next = fmt.Sprint(from)
		}
		return out
	}
	for _, c := range []struct {
		from, back int64 // where the page begins, and how far the one before it reaches
		items      int
		next       string
	}{
		{1, 1, 9, ""},
		{8, 1, 1, "8"}, // it has no results
		{5, 1, 8, "3"}, // with what the agent said
		{7, 2, 8, "2"}, // one of two calls; there is nothing with the number 2
		{7, 3, 8, "3"}, // the page before begins with them
		{4, 3, 8, "3"}, // the request for approval is about a call too
		{7, 5, 2, "7"}, // the call is further away
		{3, 1, 8, "3"}, // nothing is missing
	} {
		got, err := withCalls(between(c.from, 9), func(before int64) (operation.List[feed.Item], error) { return between(c.back, before), nil })
		if err != nil || len(got.Items) != c.items || got.Next != c.next {
			t.Errorf("from %d: %d items, next %q, %v", c.from, len(got.Items), got.Next, err)
		}
	}
}
