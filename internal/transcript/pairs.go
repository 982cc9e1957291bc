package transcript

import (
	"fmt"

	"chorus/internal/chat"
	"chorus/internal/model"
)

// CheckPairs reports the first break of the rule that every tool call is answered
// in the very next message, and nothing is answered that was not called.
func CheckPairs(msgs []*model.Message) error {
	var open map[string]bool
	for i, m := range msgs {
		answered := map[string]bool{}
		for _, b := range m.Blocks {
			r, ok := b.(chat.ToolResult)
			if !ok {
				continue
			}
			if m.Role != model.User {
				return fmt.Errorf("message %d: a result in an assistant turn", i)
			}
			if !open[r.Call] {
				return fmt.Errorf("message %d: a result for %q, which the message before did not call", i, r.Call)
			}
			if answered[r.Call] {
				return fmt.Errorf("message %d: two results for %q", i, r.Call)
			}
			answered[r.Call] = true
		}
		for id := range open {
			if !answered[id] {
				return fmt.Errorf("message %d: call %q has no result", i, id)
			}
		}
		open = map[string]bool{}
		for _, use := range m.Blocks.Calls() {
			if m.Role != model.Assistant {
				return fmt.Errorf("message %d: a call in a user turn", i)
			}
			open[use.ID] = true
		}
	}
	if len(open) > 0 {
		return fmt.Errorf("the last message calls tools and nothing answers")
	}
	return nil
}

// pairLines makes messages of imported lines and mends their pairs: a call
// without a result gets one that says so, a result without a call goes.
func pairLines(lines []chat.Line) ([]*model.Message, error) {
	var out []*model.Message
	add := func(role model.Role, from chat.Participant, blocks chat.Blocks) error {
		msg, err := model.NewMessage(role, from, blocks)
		if err == nil {
			out = append(out, msg)
		}
		return err
	}
	for i := 0; i < len(lines); i++ {
		line := lines[i]
		switch line.Role {
		case "assistant":
			blocks := sayable(chat.Said{Blocks: line.Blocks})
			if len(blocks) == 0 {
				continue
			}
			from := line.From
			from.Kind = chat.Agent
			if err := add(model.Assistant, from, blocks); err != nil {
				return nil, err
			}
			calls := blocks.Calls()
			if len(calls) == 0 {
				continue
			}
			got := map[string]chat.ToolResult{}
			for i+1 < len(lines) && lines[i+1].Role == "tool" {
				i++
				for _, b := range lines[i].Blocks {
					if r, ok := b.(chat.ToolResult); ok {
						if _, twice := got[r.Call]; !twice {
							got[r.Call] = r
						}
					}
				}
			}
			var answers chat.Blocks
			for _, use := range calls {
				r, ok := got[use.ID]
				if !ok {
					r = chat.ToolResult{Call: use.ID, Name: use.Name, Blocks: Interrupted(), Failed: true}
				}
				if len(r.Blocks) == 0 {
					r.Blocks = chat.TextBlocks("(no output)")
				}
				answers = append(answers, r)
			}
			if err := add(model.User, chat.Participant{Kind: chat.System}, answers); err != nil {
				return nil, err
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
			if err := add(model.User, line.From, blocks); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}
