package pages

import (
	"io"
	"net/http"
	"strconv"

	"chorus/internal/feed"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/transport/http/display"
)

// writtenText returns a message as it was written, for people who copy it.
func (p *Pages) writtenText(w http.ResponseWriter, r *http.Request, by operation.Caller) error {
	none := operation.Errorf(operation.NotFound, "there is no message with this number")
	seq, err := strconv.ParseInt(r.PathValue("seq"), 10, 64)
	if err != nil || seq < 1 {
		return none
	}
	list, err := operations.Messages.Call(r.Context(), p.Executor, by, operations.EventRange{ID: r.PathValue("id"), After: seq - 1, Limit: 1})
	if err != nil {
		return err
	}
	for _, item := range list.Items {
		if item.Header().Seq != seq {
			continue
		}
		var text string
		switch it := item.(type) {
		case feed.UserMessage:
			text, _ = display.SplitFiles(it.Text)
		case feed.Steered:
			text, _ = display.SplitFiles(it.Text)
		case feed.AssistantMessage:
			text = it.Text
		default:
			continue
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		_, err := io.WriteString(w, text)
		return err
	}
	return none
}

// withCalls extends a page of items to the calls whose results it has, so that no call is separated from its result. earlier
// returns the items before a number. A call that is further away than it reaches stays there.
func withCalls(page operation.List[feed.Item], earlier func(before int64) (operation.List[feed.Item], error)) (operation.List[feed.Item], error) {
	before, err := strconv.ParseInt(page.Next, 10, 64)
	wanted := callsBefore(page.Items)
	if err != nil || len(wanted) == 0 {
		return page, nil // this is the first page, or it has all of its calls
	}
	more, err := earlier(before)
	if err != nil {
		return page, err
	}
	for i, item := range more.Items {
		call, ok := item.(feed.ToolCall)
		if !ok || !wanted[call.CallID] {
			continue
		}
		for i > 0 && more.Items[i-1].Header().Seq == call.Seq { // what the agent said with it
			i--
		}
		page.Items, page.Next = append(more.Items[i:], page.Items...), strconv.FormatInt(call.Seq, 10)
		if i == 0 {
			page.Next = more.Next
		}
		break
	}
	return page, nil
}

// callsBefore returns the ids of the calls that items are about and that were made before them.
func callsBefore(items []feed.Item) map[string]bool {
	out, made := map[string]bool{}, map[string]bool{}
	for _, item := range items {
		var call string
		switch it := item.(type) {
		case feed.ToolCall:
			made[it.CallID] = true
		case feed.ToolResult:
			call = it.CallID
		case feed.ApprovalRequired:
			call = it.CallID
		case feed.ApprovalResolved:
			call = it.CallID
		}
		if call != "" && !made[call] {
			out[call] = true
		}
	}
	return out
}
