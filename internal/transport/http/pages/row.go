package pages

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	template "github.com/DataDog/datadog-agent/pkg/template/html"

	"chorus/internal/chat"
	"chorus/internal/feed"
)

// row is one element of a conversation's page, rendered by a template.
type row struct {
	ID       string // of the element
	Template string
	Data     any
	Replaces string // the element that it replaces, if that exists
}

// view is what the templates of a conversation need besides the items.
type view struct {
	Key       string // identifies this page, so that its buttons take effect once
	Session   string
	Agent     string
	MayWrite  bool // the caller may send messages
	MayAnswer bool // the caller may answer approvals
	MayFork   bool
	Names     map[string]string
	Past      bool   // a page of earlier items, which is not updated
	Split     bool   // changes are shown side by side
	Before    int64  // of a page of earlier items: where it ends
	State     string // of the list of approvals: which are shown
}

// rowData is the data of a row's template. Parts are rendered rows inside it, by kind: "out",
// "state", "answer", "over".
type rowData struct {
	View  view
	Item  any
	Parts map[string]template.HTML
	Open  bool // of a call: its result is shown at once
	Mine  bool // a person said it
	Copy  bool // one of several items of one event, the start of a fork: none of them can be linked to
}

// rowsOf returns the rows of an item. They do not depend on other items, so a stream can start anywhere: a result goes
// into an element of its call's row.
func (t view) rowsOf(item feed.Item) []row {
	s := rowData{View: t, Item: item}
	switch it := item.(type) {
	case feed.UserMessage:
		s.Mine = true
		return []row{{ID: fmt.Sprint("e", it.Seq), Template: "user", Data: s}}
	case feed.Steered:
		return []row{{ID: fmt.Sprint("e", it.Seq), Template: "steered", Data: s}}
	case feed.AssistantMessage:
		if strings.TrimSpace(it.Text) == "" && strings.TrimSpace(it.Thinking) == "" || chat.IsSilent(it.Text) {
			return []row{{ID: "live", Template: "nothing"}, noRetry}
		}
		return []row{{ID: fmt.Sprint("e", it.Seq), Template: "assistant", Data: s, Replaces: "live"}, noRetry}
	case feed.ToolCall:
		return []row{{ID: "call-" + it.CallID, Template: "call", Data: s}, noRetry}
	case feed.Trace:
		if wait, ok := retryOf(it.Kind, it.Data, it.At); ok {
			return []row{wait}
		}
	case feed.ToolResult:
		s.Open = opens(it)
		return []row{{ID: "out-" + it.CallID, Template: "result", Data: s}, {ID: "state-" + it.CallID, Template: "callstate", Data: s},
			{ID: "over-" + it.CallID, Template: "over", Data: s}}
	case feed.ApprovalRequired:
		return []row{{ID: "ask-" + it.ApprovalID, Template: "ask", Data: s}, {ID: "state-" + it.CallID, Template: "asking", Data: s}}
	case feed.ApprovalResolved:
		return []row{{ID: "answer-" + it.ApprovalID, Template: "answered", Data: s}, {ID: "state-" + it.CallID, Template: "answeredstate", Data: s}}
	case feed.Refused:
		return []row{{ID: fmt.Sprint("e", it.Seq), Template: "refused", Data: s}}
	case feed.Compacted:
		return []row{{ID: fmt.Sprint("e", it.Seq), Template: "compacted", Data: s}, noRetry}
	case feed.Cleared:
		return []row{{ID: fmt.Sprint("e", it.Seq), Template: "cleared", Data: s}}
	case feed.Completed:
		return []row{{ID: "live", Template: "nothing"}, {ID: fmt.Sprint("e", it.Seq), Template: "completed", Data: s}, noRetry}
	case feed.Error:
		return []row{{ID: "live", Template: "nothing"}, {ID: fmt.Sprint("e", it.Seq), Template: "failed", Data: s}, noRetry}
	}
	return nil
}

// opens reports whether a result is shown without a click: a change short enough to read.
func opens(it feed.ToolResult) bool {
	return it.Diff != "" && strings.Count(it.Diff, "\n") <= foldedLines
}

// noRetry removes the notice that a provider is being waited for: it has answered, or the run has ended.
var noRetry = row{ID: "retry", Template: "nothing"}

// retryOf returns the row about a failed request that will be retried; false: the item is something else, or there will be no retry.
func retryOf(kind string, data []byte, at time.Time) (row, bool) {
	var failed chat.Failure
	if kind != "error" || json.Unmarshal(data, &failed) != nil || failed.Final {
		return row{}, false
	}
	return row{ID: noRetry.ID, Template: "retry", Data: map[string]any{
		"Message": failed.Message, "Model": failed.Next, "At": at.Add(time.Duration(failed.RetryMS) * time.Millisecond),
	}}, true
}

// owner returns the row that a row belongs to, and as which part; "" for a row of its own.
func (r row) owner() (owner, part string) {
	kind, rest, _ := strings.Cut(r.ID, "-")
	switch kind {
	case "out", "state":
		return "call-" + rest, kind
	case "answer":
		return "ask-" + rest, kind
	case "over":
		return "ask of " + rest, kind // the caller knows the id of that row
	}
	return "", ""
}

// state is the state of a session that the page shows around the conversation.
type state struct {
	Session string    `json:"session"`
	Status  string    `json:"status"`
	Shown   string    `json:"shown"` // the status as its dot shows it, including failed
	Words   string    `json:"words"` // the same in words
	Queue   int       `json:"queue"`
	Tokens  string    `json:"tokens"`
	Cost    string    `json:"cost"`
	Title   string    `json:"title"`
	Model   string    `json:"model"`
	At      time.Time `json:"at"`
}
