package pages

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	template "github.com/DataDog/datadog-agent/pkg/template/html"

	"chorus/internal/approval"
	"chorus/internal/chat"
	"chorus/internal/feed"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/transport/http/display"
)

// maxItems is how many items of a conversation one page shows.
const maxItems = 200

// conversation shows a session: its newest items, which are updated live, or earlier ones.
func (p *Pages) conversation(w http.ResponseWriter, r *http.Request, by operation.Caller) error {
	ctx := r.Context()
	s, err := operations.GetSession.Call(ctx, p.Executor, by, operations.SessionRef{ID: r.PathValue("id")})
	if err != nil {
		return err
	}
	// The page ends at the session's current number; the stream continues from there.
	span := operations.EventRange{ID: s.ID, Before: s.Seq + 1, Limit: maxItems}
	t := viewOf(s, by)
	t.Names, t.Split = p.names(ctx, by), splitDiffs(w, r)
	if before, err := strconv.ParseInt(r.URL.Query().Get("before"), 10, 64); err == nil && before > 0 && before <= s.Seq {
		span.Before, t.Past, t.Before = before, true, before
	}
	items, err := operations.Messages.Call(ctx, p.Executor, by, span)
	if err != nil {
		return err
	}
	items, err = withCalls(items, func(before int64) (operation.List[feed.Item], error) {
		return operations.Messages.Call(ctx, p.Executor, by, operations.EventRange{ID: s.ID, Before: before, Limit: maxItems})
	})
	if err != nil {
		return err
	}
	html, err := p.rows(t, items.Items)
	if err != nil {
		return err
	}
	if s.Status == "running" && !t.Past {
		retry, err := p.retrying(ctx, by, s)
		if err != nil {
			return err
		}
		html += retry
	}
	below, err := operations.ListSessions.Call(ctx, p.Executor, by, operations.SessionQuery{Parent: s.ID, Limit: maxBelow})
	if err != nil {
		return err
	}
	f := p.layout(r, by, titleOf(s))
	if !t.Past {
		f.Script = "live.js"
	}
	return p.render(w, http.StatusOK, "conversation.html", map[string]any{
		"Layout": f, "Session": s, "Rows": html, "After": s.Seq, "Earlier": items.Next, "View": t, "State": p.stateOf(s), "Below": below.Items, "Choices": p.chooseFor(r, by, s), "Draft": p.draftOf(r, by),
	})
}

// maxBelow limits the listed conversations with other agents.
const maxBelow = 20

// retrying returns the row of a provider that is being waited for; "": there is none.
func (p *Pages) retrying(ctx context.Context, by operation.Caller, s operations.Session) (template.HTML, error) {
	// The failed request is the last event, or the one before the request in progress.
	events, err := operations.Events.Call(ctx, p.Executor, by, operations.EventQuery{ID: s.ID, Before: s.Seq + 1, Limit: 2})
	if err != nil {
		return "", err
	}
	for _, ev := range slices.Backward(events.Items) {
		if ev.Kind == string(chat.Asked{}.Kind()) {
			continue
		}
		var said struct {
			Error json.RawMessage `json:"error"`
		}
		if ev.Kind != string(chat.Said{}.Kind()) || json.Unmarshal(ev.Body, &said) != nil || said.Error == nil {
			return "", nil
		}
		wait, ok := retryOf("error", said.Error, ev.At)
		if !ok {
			return "", nil
		}
		html, err := p.fragment(wait.Template, wait.Data)
		return template.HTML(html), err
	}
	return "", nil
}

func viewOf(s operations.Session, by operation.Caller) view {
	return view{Key: rand.Text(), Session: s.ID, Agent: s.Agent, MayWrite: by.May(operation.Chat), MayAnswer: by.May(operation.Approve), MayFork: by.May(operation.Chat)}
}

func (p *Pages) stateOf(s operations.Session) state {
	shown := shownStatus(s)
	return state{Session: s.ID, Status: s.Status, Shown: shown, Words: display.Status(shown), Queue: s.Queue, Tokens: display.Count(display.NewTokens(s.Usage)), Cost: display.USD(s.Cost),
		Title: titleOf(s), Model: modelOf(s), At: s.MovedAt}
}

// titleOf returns the title of a conversation's page.
func titleOf(s operations.Session) string {
	return cmp.Or(display.Short(s.Title, 90), "New conversation")
}

// shownStatus is the status of a conversation, or that its last run failed and nothing has happened since.
func shownStatus(s operations.Session) string {
	if s.Status == "idle" && s.Error != "" {
		return "failed"
	}
	return s.Status
}

// modelOf is the full name of the model.
func modelOf(s operations.Session) string {
	if s.Provider == "" || s.Model == "" || strings.Contains(s.Model, "/") {
		return s.Model
	}
	return s.Provider + "/" + s.Model
}

// rows renders the items of a whole page: results are put into the rows of their calls.
func (p *Pages) rows(t view, items []feed.Item) (template.HTML, error) {
	var order []*row
	made := map[string]*row{}
	add := func(r row) {
		if old, ok := made[r.ID]; ok {
			if !old.copied(r) {
				*old = r
				return
			}
			old.copy()
			r.copy()
			order = append(order, &r)
			return
		}
		made[r.ID] = &r
		order = append(order, &r)
	}
	asks := map[string]string{} // call id to the id of its approval row
	for _, item := range items {
		if ask, ok := item.(feed.ApprovalRequired); ok {
			asks[ask.CallID] = "ask-" + ask.ApprovalID
		}
		for _, r := range t.rowsOf(item) {
			owner, part := r.owner()
			if call, ok := strings.CutPrefix(owner, "ask of "); ok { // a call with a result needs no approval
				if owner = asks[call]; made[owner] == nil {
					continue
				}
			}
			if r.Template == "nothing" {
				continue // whole pages have no draft
			}
			if owner == "" {
				add(r)
				continue
			}
			if made[owner] == nil {
				alone, ok := t.rowOfOrphan(item)
				if !ok {
					continue
				}
				add(alone)
			}
			html, err := p.fragment(r.Template, r.Data)
			if err != nil {
				return "", err
			}
			made[owner].setPart(part, template.HTML(html))
			if d, ok := r.Data.(rowData); ok && d.Open && part == "out" {
				made[owner].open()
			}
		}
	}
	var out strings.Builder
	for _, r := range order {
		html, err := p.fragment(r.Template, r.Data)
		if err != nil {
			return "", err
		}
		out.WriteString(html)
	}
	return template.HTML(out.String()), nil
}

// rowOfOrphan is the row for a result whose call is on an earlier page.
func (t view) rowOfOrphan(item feed.Item) (row, bool) {
	it, ok := item.(feed.ToolResult)
	if !ok {
		return row{}, false
	}
	call := feed.ToolCall{Head: it.Head, CallID: it.CallID, Tool: it.Tool}
	return row{ID: "call-" + it.CallID, Template: "call", Data: rowData{View: t, Item: call}}, true
}

// setPart puts a rendered part into a row.
func (r *row) setPart(part string, html template.HTML) {
	s, ok := r.Data.(rowData)
	if !ok {
		return
	}
	if s.Parts == nil {
		s.Parts = map[string]template.HTML{}
	}
	s.Parts[part] = html
	r.Data = s
}

// copied reports whether another row belongs to the same event but another item: a fork starts with all earlier messages.
func (r *row) copied(other row) bool {
	of := func(r row) bool {
		switch it := dataOf(r).Item.(type) {
		case feed.UserMessage:
			return it.MessageID == ""
		case feed.AssistantMessage:
			return true
		}
		return false
	}
	return of(*r) && of(other)
}

func dataOf(r row) rowData {
	d, _ := r.Data.(rowData)
	return d
}

// copy removes all actions from a row.
func (r *row) copy() {
	d := dataOf(*r)
	d.Copy, d.View.MayFork = true, false
	r.Data = d
}

// open unfolds a row.
func (r *row) open() {
	if s, ok := r.Data.(rowData); ok {
		s.Open = true
		r.Data = s
	}
}

// maxForm limits the fields of a form; files are limited by maxUploads.
const maxForm = 1 << 20

// maxUploads limits a whole form with its files.
const maxUploads = 64 << 20

// sendMessage sends a message with its attachments.
func (p *Pages) sendMessage(_ http.ResponseWriter, r *http.Request, by operation.Caller, id, message string) (operations.Said, error) {
	words := operations.SteerMessage{ID: id, Message: message, Key: r.PostFormValue("key")}
	if r.MultipartForm != nil {
		for _, head := range r.MultipartForm.File["files"] {
			f, err := head.Open()
			if err != nil {
				return operations.Said{}, err
			}
			kept, err := operations.Attach.Call(r.Context(), p.Executor, by, operations.NewAttachment{ID: id, File: operation.Upload(head.Filename, f)})
			f.Close()
			if err != nil {
				return operations.Said{}, err
			}
			words.Attachments = append(words.Attachments, kept.ID)
		}
	}
	if words.Message == "" && len(words.Attachments) == 0 {
		return operations.Said{}, operation.Errorf(operation.Invalid, "the message is empty")
	}
	if mode := r.PostFormValue("mode"); mode == string(chat.Inject) || mode == string(chat.Interrupt) {
		words.Mode = chat.Intake(mode)
		return operations.Steer.Call(r.Context(), p.Executor, by, words)
	}
	return operations.Say.Call(r.Context(), p.Executor, by, operations.Message{ID: id, Message: words.Message, Attachments: words.Attachments, Key: words.Key})
}

func (p *Pages) say(w http.ResponseWriter, r *http.Request, by operation.Caller) error {
	id, message := r.PathValue("id"), strings.TrimSpace(r.PostFormValue("message"))
	if !fromScript(r) && isCommand(message) { // our script sends commands to their own address
		return p.command(w, r, by)
	}
	// A browser without our script sends its choices along with the message.
	if change := changeOf(r, id); change != (operations.SessionChange{ID: id}) {
		if _, err := operations.ChangeSession.Call(r.Context(), p.Executor, by, change); err != nil {
			return err
		}
	}
	said, err := p.sendMessage(w, r, by, id, message)
	if err != nil {
		return err
	}
	return finishForm(w, r, "/s/"+id, fmt.Sprint(said.Seq))
}

func (p *Pages) stop(w http.ResponseWriter, r *http.Request, by operation.Caller) error {
	id := r.PathValue("id")
	if _, err := operations.Abort.Call(r.Context(), p.Executor, by, operations.AbortRequest{ID: id, All: r.PostFormValue("all") != ""}); err != nil {
		return err
	}
	return finishForm(w, r, "/s/"+id, "stopped")
}

func (p *Pages) fork(w http.ResponseWriter, r *http.Request, by operation.Caller) error {
	at, err := strconv.ParseInt(r.PostFormValue("at"), 10, 64)
	if err != nil {
		return operation.Errorf(operation.Invalid, "the request does not say which message to fork from")
	}
	made, err := operations.Fork.Call(r.Context(), p.Executor, by, operations.ForkRequest{ID: r.PathValue("id"), AtSeq: at, Key: forkKey(r)})
	if err != nil {
		return err
	}
	http.Redirect(w, r, "/s/"+made.SessionID, http.StatusSeeOther)
	return nil
}

// answer approves or denies an approval.
func (p *Pages) answer(w http.ResponseWriter, r *http.Request, by operation.Caller) error {
	verdict := r.PostFormValue("verdict")
	if verdict != "approve" && verdict != "deny" {
		return operation.Errorf(operation.Invalid, "the verdict must be approve or deny")
	}
	in := operations.Answer{ID: r.PathValue("id"), Approved: verdict == "approve", Note: r.PostFormValue("note"), Always: r.PostForm["always"]}
	given := filled(r)
	if in.Approved && given != nil {
		in.Note = approval.AnswerText(given)
	}
	a, err := operations.AnswerApproval.Call(r.Context(), p.Executor, by, in)
	if err != nil {
		if shown, aerr := p.askAgain(w, r, by, given, err); shown {
			return aerr
		}
		return err
	}
	back := "/s/" + a.Session
	if r.PostFormValue("back") == "approvals" {
		back = "/approvals"
	}
	return finishForm(w, r, back, a.State)
}

// finishForm ends a form: our scripts get a message, browsers are redirected.
func finishForm(w http.ResponseWriter, r *http.Request, next, word string) error {
	if fromScript(r) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, err := io.WriteString(w, word)
		return err
	}
	http.Redirect(w, r, next, http.StatusSeeOther)
	return nil
}

// blob serves an image or a file. Nothing in it can run: known image types are shown, all other files are downloaded.
func (p *Pages) blob(w http.ResponseWriter, r *http.Request, by operation.Caller) error {
	f, err := operations.Blob.Call(r.Context(), p.Executor, by, operations.BlobRef{ID: r.PathValue("id"), Hash: r.PathValue("hash")})
	if err != nil {
		return err
	}
	defer f.Close()
	media := "application/octet-stream"
	if slices.Contains([]string{"image/png", "image/jpeg", "image/gif", "image/webp"}, f.MediaType) {
		media = f.MediaType
	} else {
		w.Header().Set("Content-Disposition", "attachment")
	}
	w.Header().Set("Content-Type", media)
	w.Header().Set("Content-Security-Policy", "default-src 'none'; sandbox")
	w.Header().Set("Cache-Control", "private, max-age=86400, immutable")
	if f.Size > 0 {
		w.Header().Set("Content-Length", strconv.FormatInt(f.Size, 10))
	}
	_, err = io.Copy(w, f)
	if err != nil {
		p.Log.Debug("download was not finished", "component", "web", "error", err)
	}
	return nil
}
