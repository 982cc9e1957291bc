package pages

import (
	"fmt"
	"strings"
	"time"

	template "github.com/DataDog/datadog-agent/pkg/template/html"

	"chorus/internal/feed"
)

// row is one piece of a conversation: an element of the page with an id of its own,
// rendered by the template of its kind.
type row struct {
	ID       string // of the element it is, or is put into
	Template string
	Data     any
	Replaces string // the element it takes the place of, if that is there
}

// talk is what a page of a conversation knows beside the items.
type talk struct {
	Session string
	Agent   string
	May     bool // the reader may write
	Answer  bool // the reader may answer questions
	Fork    bool
	Names   map[string]string
	Past    bool // a page of earlier things, which does not move
}

// shown is an item with the conversation it is of. Parts are rows that were put into it,
// by what they are: "out", "state", "answer", "over".
type shown struct {
	Talk  talk
	Item  any
	Parts map[string]template.HTML
}

// rowsOf are what an item puts on the page. Each item stands alone: a result is put
// into the element that its call made, so a reader may begin anywhere.
func (t talk) rowsOf(item feed.Item) []row {
	s := shown{Talk: t, Item: item}
	switch it := item.(type) {
	case feed.UserMessage:
		return []row{{ID: fmt.Sprint("e", it.Seq), Template: "user", Data: s}}
	case feed.Steered:
		return []row{{ID: fmt.Sprint("e", it.Seq), Template: "steered", Data: s}}
	case feed.AssistantMessage:
		if strings.TrimSpace(it.Text) == "" && strings.TrimSpace(it.Thinking) == "" {
			return []row{{ID: "live", Template: "nothing"}}
		}
		return []row{{ID: fmt.Sprint("e", it.Seq), Template: "assistant", Data: s, Replaces: "live"}}
	case feed.ToolCall:
		return []row{{ID: "call-" + it.CallID, Template: "call", Data: s}}
	case feed.ToolResult:
		return []row{{ID: "out-" + it.CallID, Template: "result", Data: s}, {ID: "state-" + it.CallID, Template: "callstate", Data: s},
			{ID: "over-" + it.CallID, Template: "over", Data: s}}
	case feed.ApprovalRequired:
		return []row{{ID: "ask-" + it.ApprovalID, Template: "ask", Data: s}, {ID: "state-" + it.CallID, Template: "asking", Data: s}}
	case feed.ApprovalResolved:
		return []row{{ID: "answer-" + it.ApprovalID, Template: "answered", Data: s}, {ID: "state-" + it.CallID, Template: "answeredstate", Data: s}}
	case feed.Refused:
		return []row{{ID: fmt.Sprint("e", it.Seq), Template: "refused", Data: s}}
	case feed.Compacted:
		return []row{{ID: fmt.Sprint("e", it.Seq), Template: "compacted", Data: s}}
	case feed.Cleared:
		return []row{{ID: fmt.Sprint("e", it.Seq), Template: "cleared", Data: s}}
	case feed.Completed:
		return []row{{ID: "live", Template: "nothing"}, {ID: fmt.Sprint("e", it.Seq), Template: "completed", Data: s}}
	case feed.Error:
		return []row{{ID: "live", Template: "nothing"}, {ID: fmt.Sprint("e", it.Seq), Template: "failed", Data: s}}
	}
	return nil
}

// inside is the row that a row is put into, and as which part of it. A row that stands
// for itself is in none.
func (r row) inside() (owner, part string) {
	kind, rest, _ := strings.Cut(r.ID, "-")
	switch kind {
	case "out", "state":
		return "call-" + rest, kind
	case "answer":
		return "ask-" + rest, kind
	case "over":
		return "ask of " + rest, kind // which row that is, only the page knows
	}
	return "", ""
}

// state is what a reader wants to know beside the conversation.
type state struct {
	Session string    `json:"session"`
	Status  string    `json:"status"`
	Words   string    `json:"words"` // the status as people say it
	Queue   int       `json:"queue"`
	Tokens  string    `json:"tokens"`
	Cost    string    `json:"cost"`
	Title   string    `json:"title"`
	Model   string    `json:"model"`
	At      time.Time `json:"at"`
}
