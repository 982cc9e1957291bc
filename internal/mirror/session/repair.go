package session

import (
	"fmt"

	"chorus/internal/chat"
	"chorus/internal/mirror/jsonl"
)

// interrupted replaces a result that never arrived.
const interrupted = "interrupted: the session ended before this call had a result; check its effects before repeating it"

// slot is one call and, once found, its result.
type slot struct {
	id     string // unique in the conversation
	name   string
	result *chat.ToolResult
}

// Repair makes every call be followed by exactly its result, directly after the message that made
// it, in the order of the calls. A missing result becomes an interrupted one, a result without a
// call is dropped, and an id that was used before gets a number. Lines with unknown roles and empty
// lines are dropped. The input is not changed. warn may be nil.
func Repair(lines []chat.Line, warn func(string)) []chat.Line {
	if warn == nil {
		warn = func(string) {}
	}
	slots := pair(lines, warn)
	var out []chat.Line
	for i, l := range lines {
		switch l.Role {
		case "user":
			l.Blocks = without[chat.ToolUse](without[chat.ToolResult](l.Blocks))
			if len(l.Blocks) > 0 {
				out = append(out, l)
			}
		case "assistant":
			l.Blocks = rename(without[chat.ToolResult](l.Blocks), slots[i])
			if len(l.Blocks) == 0 {
				continue
			}
			out = append(out, l)
			for _, s := range slots[i] {
				if s.result == nil {
					warn(fmt.Sprintf("the call %s of %s never got a result; marked as interrupted", s.id, s.name))
					s.result = &chat.ToolResult{Blocks: chat.TextBlocks(interrupted), Failed: true}
				}
				r := *s.result
				r.Call, r.Name = s.id, s.name
				out = append(out, chat.Line{Role: "tool", From: chat.Participant{Kind: chat.System}, At: l.At, Blocks: chat.Blocks{r}})
			}
		}
	}
	return out
}

// pair finds the result of each call: the next one with its id, unless the id was used again before that.
func pair(lines []chat.Line, warn func(string)) map[int][]*slot {
	slots := map[int][]*slot{}
	open := map[string][]*slot{}
	used := map[string]bool{}
	for i, l := range lines {
		switch l.Role {
		case "assistant":
			calls := l.Blocks.Calls()
			for _, c := range calls {
				delete(open, c.ID)
			}
			for _, c := range calls {
				s := &slot{id: jsonl.UniqueID(c.ID, used), name: c.Name}
				slots[i] = append(slots[i], s)
				open[c.ID] = append(open[c.ID], s)
			}
		case "tool":
			for _, block := range l.Blocks {
				r, ok := block.(chat.ToolResult)
				if !ok {
					continue
				}
				waiting := open[r.Call]
				if len(waiting) == 0 {
					warn(fmt.Sprintf("a result for the unknown or already answered call %.80q was dropped", r.Call))
					continue
				}
				waiting[0].result, open[r.Call] = &r, waiting[1:]
			}
		}
	}
	return slots
}

// rename gives the calls of one message the ids of their slots.
func rename(blocks chat.Blocks, slots []*slot) chat.Blocks {
	var out chat.Blocks
	for _, block := range blocks {
		if c, ok := block.(chat.ToolUse); ok {
			c.ID, slots = slots[0].id, slots[1:]
			block = c
		}
		out = append(out, block)
	}
	return out
}

func without[T chat.Block](blocks chat.Blocks) chat.Blocks {
	var out chat.Blocks
	for _, block := range blocks {
		if _, drop := block.(T); !drop {
			out = append(out, block)
		}
	}
	return out
}
