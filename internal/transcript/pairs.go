package transcript

import (
	"fmt"
	"slices"

	"chorus/internal/chat"
	"chorus/internal/model"
)

// CheckPairs reports the first violation of the rule that every tool call is answered in
// the very next message, and nothing is answered that was not called. It runs over the
// whole window before every request, so it allocates nothing.
func CheckPairs(msgs []*model.Message) error { return CheckPairsFrom(msgs, 0) }

// CheckPairsFrom is CheckPairs for messages of which the first known ones have been checked already.
func CheckPairsFrom(msgs []*model.Message, known int) error {
	var before *model.Message
	if known > 0 {
		before = msgs[known-1]
	}
	for i := known; i < len(msgs); i++ {
		m := msgs[i]
		results, calls := 0, 0
		for _, b := range m.Blocks {
			switch v := b.(type) {
			case chat.ToolResult:
				results++
				if m.Role != model.User {
					return fmt.Errorf("message %d: a result in an assistant turn", i)
				}
				if countCalls(before, v.Call) == 0 {
					return fmt.Errorf("message %d: a result for %q, which the message before did not call", i, v.Call)
				}
				if countResults(m, v.Call) > 1 {
					return fmt.Errorf("message %d: two results for %q", i, v.Call)
				}
			case chat.ToolUse:
				calls++
				if m.Role != model.Assistant {
					return fmt.Errorf("message %d: a call in a user turn", i)
				}
				if countCalls(m, v.ID) > 1 {
					return fmt.Errorf("message %d: two calls are named %q", i, v.ID)
				}
			}
		}
		if open := callsOf(before); results != open {
			return fmt.Errorf("message %d: %d results for %d calls", i, results, open)
		}
		before = m
	}
	if callsOf(before) > 0 {
		return fmt.Errorf("the last message calls tools and nothing answers")
	}
	return nil
}

func callsOf(m *model.Message) int {
	if m == nil {
		return 0
	}
	return len(m.Calls())
}

func countCalls(m *model.Message, id string) int {
	n := 0
	if m != nil {
		for _, call := range m.Calls() {
			if call == id {
				n++
			}
		}
	}
	return n
}

func countResults(m *model.Message, id string) int {
	n := 0
	for _, b := range m.Blocks {
		if r, ok := b.(chat.ToolResult); ok && r.Call == id {
			n++
		}
	}
	return n
}

// pairLines turns imported lines into messages and completes their pairs. A call without a result
// gets one that says so, a result without a call is dropped, and a call whose id is taken gets
// another. n distinguishes these from other renamed calls of the thread.
func pairLines(lines []chat.Line, n int64, taken func(string) bool) (out []*model.Message, ids []string, err error) {
	add := func(role model.Role, from chat.Participant, blocks chat.Blocks, id string) error {
		msg, err := model.NewMessage(role, from, blocks)
		if err == nil {
			out, ids = append(out, msg), append(ids, id)
		}
		return err
	}
	used := func(id string) bool {
		return taken(id) || slices.ContainsFunc(out, func(m *model.Message) bool { return countCalls(m, id) > 0 })
	}
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		switch line.Role {
		case "assistant":
			// Each call has its result here, even one that shares its id with another.
			unique := uniqueCalls(line.Blocks, n, used)
			blocks := sayable(chat.Said{Blocks: unique})
			if len(blocks) == 0 {
				continue
			}
			from := line.From
			from.Kind = chat.Agent
			if err := add(model.Assistant, from, blocks, line.ID); err != nil {
				return nil, nil, err
			}
			calls := blocks.Calls()
			if len(calls) == 0 {
				continue
			}
			got := map[string][]chat.ToolResult{}
			for i+1 < len(lines) && lines[i+1].Role == "tool" {
				i++
				for _, b := range lines[i].Blocks {
					if r, ok := b.(chat.ToolResult); ok {
						got[r.Call] = append(got[r.Call], r)
					}
				}
			}
			var answers chat.Blocks
			for k, use := range line.Blocks.Calls() {
				answers = append(answers, takeResult(got, use, calls[k].ID))
			}
			if err := add(model.User, chat.Participant{Kind: chat.System}, answers, ""); err != nil {
				return nil, nil, err
			}
		case "user":
			var blocks chat.Blocks
			for _, b := range line.Blocks {
				switch b.(type) {
				case chat.Text, chat.Image, chat.File:
					blocks = append(blocks, b)
				}
			}
			if len(blocks) == 0 {
				continue
			}
			if err := add(model.User, line.From, blocks, line.ID); err != nil {
				return nil, nil, err
			}
		}
	}
	return out, ids, nil
}

// takeResult returns the next result of an imported call, under the id that is shown for the call.
func takeResult(got map[string][]chat.ToolResult, use chat.ToolUse, shown string) chat.ToolResult {
	r := chat.ToolResult{Name: use.Name, Blocks: Interrupted(), Failed: true}
	if list := got[use.ID]; len(list) > 0 {
		r, got[use.ID] = list[0], list[1:]
	}
	r.Call = shown
	if len(r.Blocks) == 0 {
		r.Blocks = chat.TextBlocks("(no output)")
	}
	return r
}
