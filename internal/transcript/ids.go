package transcript

import (
	"cmp"
	"fmt"
	"slices"

	"chorus/internal/chat"
	"chorus/internal/model"
)

// CallID returns the id that a call of the next answer gets if the model named it id. Models
// and servers name their calls as they like, and some always use the same name. Providers
// refuse a conversation in which two calls have the same id.
func (l *Log) CallID(id string) string {
	return uniqueID(id, l.place+1, l.calledAs)
}

// UniqueCalls gives every call of an answer that is about to be written an id that
// no other call of the answer and no call still shown has.
func (l *Log) UniqueCalls(blocks chat.Blocks) chat.Blocks {
	return uniqueCalls(blocks, l.place+1, l.calledAs)
}

// uniqueCalls renames the calls whose ids are taken. n distinguishes
// them from renamed calls elsewhere in the thread.
func uniqueCalls(blocks chat.Blocks, n int64, taken func(string) bool) chat.Blocks {
	var here []string
	out := blocks
	for i, b := range blocks {
		use, ok := b.(chat.ToolUse)
		if !ok {
			continue
		}
		id := uniqueID(use.ID, n, func(id string) bool { return slices.Contains(here, id) || taken(id) })
		here = append(here, id)
		if id == use.ID {
			continue
		}
		if &out[0] == &blocks[0] {
			out = slices.Clone(blocks)
		}
		use.ID = id
		out[i] = use
	}
	return out
}

func uniqueID(id string, n int64, taken func(string) bool) string {
	id = cmp.Or(id, "call")
	name := id
	for k := 1; taken(name); k++ {
		if name = fmt.Sprintf("%s-%d", id, n); k > 1 {
			name = fmt.Sprintf("%s-%d-%d", id, n, k)
		}
	}
	return name
}

// calledAs reports whether a call that is shown, or is about to be, has this id. It runs
// for every call of every answer and therefore allocates nothing.
func (l *Log) calledAs(id string) bool {
	calls := func(m *model.Message) bool { return m.Role == model.Assistant && countCalls(m, id) > 0 }
	for _, e := range l.window {
		if calls(e.msg) {
			return true
		}
	}
	for _, it := range l.pending {
		if slices.ContainsFunc(it.msgs, calls) {
			return true
		}
	}
	return l.renewal != nil && slices.ContainsFunc(l.renewal.msgs, calls)
}
