package transcript

import (
	"encoding/json"
	"testing"

	"pgregory.net/rapid"

	"chorus/internal/chat"
)

// TestLinesArePairSafeAnywhere: wherever a conversation is cut, what another thread
// begins with has a result for every call and a call for every result.
func TestLinesArePairSafeAnywhere(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		log := New(nil)
		seq := int64(0)
		tell := func(body chat.Body) {
			seq++
			if err := log.Apply(chat.Event{Thread: "web:a:b", Seq: seq, Body: body}); err != nil {
				rt.Fatal(err)
			}
		}
		tell(chat.Received{Blocks: chat.TextBlocks("go"), Prompt: true})
		tell(chat.RunStarted{Run: "r"})
		tell(chat.Took{Run: "r", Step: 1, Seqs: []int64{1}})
		tell(chat.Noted{What: "date", Text: "today"})
		for step := range rapid.IntRange(1, 4).Draw(rt, "steps") {
			tell(chat.Asked{Step: step + 1, Attempt: 1, Purpose: chat.ForTurn, Sees: seq})
			calls := chat.Blocks{chat.Text{Text: "hm"}}
			n := rapid.IntRange(0, 3).Draw(rt, "calls")
			for i := range n {
				calls = append(calls, chat.ToolUse{ID: string(rune('a'+step)) + string(rune('0'+i)), Name: "read", Args: json.RawMessage(`{}`)})
			}
			tell(chat.Said{Step: step + 1, Attempt: 1, Blocks: calls})
			done := rapid.IntRange(0, n).Draw(rt, "done")
			for _, use := range calls.Calls()[:done] {
				tell(chat.ToolRan{Call: use.ID, Name: use.Name, Blocks: chat.TextBlocks("ok"), Outcome: chat.Ran})
			}
			if done < n {
				break
			}
		}
		if rapid.Bool().Draw(rt, "waits") {
			tell(chat.Received{Blocks: chat.TextBlocks("and this"), Prompt: true})
		}
		lines, err := log.Lines()
		if err != nil {
			rt.Fatal(err)
		}
		open := map[string]bool{}
		for _, line := range lines {
			for _, b := range line.Blocks {
				switch v := b.(type) {
				case chat.ToolUse:
					open[v.ID] = true
				case chat.ToolResult:
					if line.Role != "tool" || !open[v.Call] {
						rt.Fatalf("a result without its call: %+v", line)
					}
					delete(open, v.Call)
				case chat.Text:
					if v.Text == "today" {
						rt.Fatal("a note was taken along")
					}
				}
			}
		}
		if len(open) > 0 {
			rt.Fatalf("calls without results: %v", open)
		}
		if lines[0].Blocks.Text() != "go" {
			rt.Fatalf("it begins with %+v", lines[0])
		}
	})
}
