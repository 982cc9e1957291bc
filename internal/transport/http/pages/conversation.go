package pages

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	template "github.com/DataDog/datadog-agent/pkg/template/html"

	"chorus/internal/chat"
	"chorus/internal/command"
	"chorus/internal/feed"
)

// manyItems is how much of a conversation a page shows at once; the rest is one click away.
const manyItems = 200

// conversation shows a session: its newest part, which moves, or an earlier one.
func (p *Pages) conversation(w http.ResponseWriter, r *http.Request, by command.Caller) error {
	ctx := r.Context()
	s, err := p.Service.GetSession(ctx, by, r.PathValue("id"))
	if err != nil {
		return err
	}
	// What the page shows ends with what the session was; the stream goes on from there.
	span := command.Span{Before: s.Seq + 1, Limit: manyItems}
	t := talkOf(s, by)
	t.Names = p.names(ctx, by)
	if before, err := strconv.ParseInt(r.URL.Query().Get("before"), 10, 64); err == nil && before > 0 && before <= s.Seq {
		span.Before, t.Past = before, true
	}
	items, err := p.Service.Messages(ctx, by, s.ID, span)
	if err != nil {
		return err
	}
	html, err := p.rows(t, items.Items)
	if err != nil {
		return err
	}
	f := p.frame(r, by, firstOf(s.Title, "Conversation"))
	if !t.Past {
		f.Script = "live.js"
	}
	return p.render(w, http.StatusOK, "conversation.html", map[string]any{
		"Frame": f, "Session": s, "Rows": html, "After": s.Seq, "Earlier": items.Next, "Talk": t, "State": p.stateOf(s),
	})
}

func talkOf(s command.Session, by command.Caller) talk {
	return talk{Session: s.ID, Agent: s.Agent, May: by.May(command.Chat), Answer: by.May(command.Approve), Fork: by.May(command.Chat)}
}

func (p *Pages) stateOf(s command.Session) state {
	return state{Session: s.ID, Status: s.Status, Words: statusWords(s.Status), Queue: s.Queue, Tokens: count(s.Usage.InputTokens + s.Usage.OutputTokens), Cost: usd(s.Cost),
		Title: firstOf(s.Title, "Conversation"), Model: modelOf(s), At: s.MovedAt}
}

// modelOf is the whole name of what answers.
func modelOf(s command.Session) string {
	if s.Provider == "" || s.Model == "" || strings.Contains(s.Model, "/") {
		return s.Model
	}
	return s.Provider + "/" + s.Model
}

// rows renders items for a page that is made at once: results go into their calls.
func (p *Pages) rows(t talk, items []feed.Item) (template.HTML, error) {
	var order []*row
	made := map[string]*row{}
	add := func(r row) {
		if old, ok := made[r.ID]; ok {
			*old = r
			return
		}
		made[r.ID] = &r
		order = append(order, &r)
	}
	asks := map[string]string{} // by call, the row that asks for it
	for _, item := range items {
		if ask, ok := item.(feed.ApprovalRequired); ok {
			asks[ask.CallID] = "ask-" + ask.ApprovalID
		}
		for _, r := range t.rowsOf(item) {
			owner, part := r.inside()
			if call, ok := strings.CutPrefix(owner, "ask of "); ok { // what has its result needs no answer
				if owner = asks[call]; made[owner] == nil {
					continue
				}
			}
			if r.Template == "nothing" {
				continue // nothing is in the making on a page that is whole
			}
			if owner == "" {
				add(r)
				continue
			}
			if made[owner] == nil {
				alone, ok := t.alone(item)
				if !ok {
					continue
				}
				add(alone)
			}
			html, err := p.piece(r.Template, r.Data)
			if err != nil {
				return "", err
			}
			made[owner].put(part, template.HTML(html))
		}
	}
	var out strings.Builder
	for _, r := range order {
		html, err := p.piece(r.Template, r.Data)
		if err != nil {
			return "", err
		}
		out.WriteString(html)
	}
	return template.HTML(out.String()), nil
}

// alone is the row of a call whose beginning is on an earlier page.
func (t talk) alone(item feed.Item) (row, bool) {
	it, ok := item.(feed.ToolResult)
	if !ok {
		return row{}, false
	}
	call := feed.ToolCall{Head: it.Head, CallID: it.CallID, Tool: it.Tool}
	return row{ID: "call-" + it.CallID, Template: "call", Data: shown{Talk: t, Item: call}}, true
}

// put gives a row one of its parts.
func (r *row) put(part string, html template.HTML) {
	s, ok := r.Data.(shown)
	if !ok {
		return
	}
	if s.Parts == nil {
		s.Parts = map[string]template.HTML{}
	}
	s.Parts[part] = html
	r.Data = s
}

// newSession shows what a conversation can be begun with.
func (p *Pages) newSession(w http.ResponseWriter, r *http.Request, by command.Caller) error {
	agents, err := p.Service.ListAgents(r.Context(), by)
	if err != nil {
		return err
	}
	models, err := p.Service.Models(r.Context(), by)
	if err != nil {
		return err
	}
	ready := slices.DeleteFunc(slices.Clone(models.Items), func(m command.Model) bool { return !m.Ready })
	return p.render(w, http.StatusOK, "new.html", map[string]any{"Frame": p.frame(r, by, "New conversation"), "Agents": agents.Items, "Models": ready,
		"Agent": r.URL.Query().Get("agent"), "Profiles": []string{"standard", "guarded", "locked", "open"}})
}

// maxForm bounds a form with words; files come another way.
const maxForm = 1 << 20

func form(w http.ResponseWriter, r *http.Request) error {
	r.Body = http.MaxBytesReader(w, r.Body, maxUploads)
	if strings.HasPrefix(r.Header.Get("Content-Type"), "multipart/form-data") {
		if err := r.ParseMultipartForm(maxForm); err != nil {
			return command.Errorf(command.Invalid, "the form cannot be read: it is too large or was cut off")
		}
		return nil
	}
	if err := r.ParseForm(); err != nil {
		return command.Errorf(command.Invalid, "the form cannot be read: it is too large or was cut off")
	}
	return nil
}

// createSession begins a conversation, with its first words where there are any.
func (p *Pages) createSession(w http.ResponseWriter, r *http.Request, by command.Caller) error {
	if !by.May(command.Chat) {
		return command.Errorf(command.Forbidden, "your token lacks the scope chat")
	}
	if err := form(w, r); err != nil {
		return err
	}
	message := strings.TrimSpace(r.PostFormValue("message"))
	made, err := p.Service.CreateSession(r.Context(), by, command.NewSession{WorkspacePath: strings.TrimSpace(r.PostFormValue("workspacePath")),
		Agent: r.PostFormValue("agent"), Model: r.PostFormValue("model"), Permissions: r.PostFormValue("permissions"), Key: r.PostFormValue("key")})
	if err != nil {
		return err
	}
	if message != "" {
		if _, err := p.sayIn(w, r, by, made.ID, message); err != nil {
			return err
		}
	}
	http.Redirect(w, r, "/s/"+made.ID, http.StatusSeeOther)
	return nil
}

// maxUploads bounds all files of one form together.
const maxUploads = 64 << 20

// sayIn gives words and what is attached to them.
func (p *Pages) sayIn(_ http.ResponseWriter, r *http.Request, by command.Caller, id, message string) (command.Said, error) {
	words := command.Words{Message: message, Key: r.PostFormValue("key")}
	if r.MultipartForm != nil {
		for _, head := range r.MultipartForm.File["files"] {
			f, err := head.Open()
			if err != nil {
				return command.Said{}, err
			}
			kept, err := p.Service.Attach(r.Context(), by, id, head.Filename, f)
			f.Close()
			if err != nil {
				return command.Said{}, err
			}
			words.Attachments = append(words.Attachments, kept.ID)
		}
	}
	if words.Message == "" && len(words.Attachments) == 0 {
		return command.Said{}, command.Errorf(command.Invalid, "the message is empty")
	}
	if mode := r.PostFormValue("mode"); mode == string(chat.Inject) || mode == string(chat.Interrupt) {
		words.Mode = chat.Intake(mode)
		return p.Service.Steer(r.Context(), by, id, words)
	}
	return p.Service.Say(r.Context(), by, id, words)
}

func (p *Pages) say(w http.ResponseWriter, r *http.Request, by command.Caller) error {
	if !by.May(command.Chat) {
		return command.Errorf(command.Forbidden, "your token lacks the scope chat")
	}
	if err := form(w, r); err != nil {
		return err
	}
	id := r.PathValue("id")
	said, err := p.sayIn(w, r, by, id, strings.TrimSpace(r.PostFormValue("message")))
	if err != nil {
		return err
	}
	return done(w, r, "/s/"+id, fmt.Sprint(said.Seq))
}

func (p *Pages) stop(w http.ResponseWriter, r *http.Request, by command.Caller) error {
	if !by.May(command.Chat) {
		return command.Errorf(command.Forbidden, "your token lacks the scope chat")
	}
	if err := form(w, r); err != nil {
		return err
	}
	id := r.PathValue("id")
	if _, err := p.Service.Abort(r.Context(), by, id, r.PostFormValue("all") != ""); err != nil {
		return err
	}
	return done(w, r, "/s/"+id, "stopped")
}

func (p *Pages) fork(w http.ResponseWriter, r *http.Request, by command.Caller) error {
	if !by.May(command.Chat) {
		return command.Errorf(command.Forbidden, "your token lacks the scope chat")
	}
	if err := form(w, r); err != nil {
		return err
	}
	at, err := strconv.ParseInt(r.PostFormValue("at"), 10, 64)
	if err != nil {
		return command.Errorf(command.Invalid, "the number of the message to fork from is missing")
	}
	made, err := p.Service.Fork(r.Context(), by, r.PathValue("id"), at)
	if err != nil {
		return err
	}
	http.Redirect(w, r, "/s/"+made.ID, http.StatusSeeOther)
	return nil
}

// answer says yes or no to a question.
func (p *Pages) answer(w http.ResponseWriter, r *http.Request, by command.Caller) error {
	if !by.May(command.Approve) {
		return command.Errorf(command.Forbidden, "your token lacks the scope approve")
	}
	if err := form(w, r); err != nil {
		return err
	}
	verdict := r.PostFormValue("verdict")
	if verdict != "approve" && verdict != "deny" {
		return command.Errorf(command.Invalid, "the verdict must be approve or deny")
	}
	a, err := p.Service.Answer(r.Context(), by, r.PathValue("id"), command.Verdict{Approved: verdict == "approve", Note: r.PostFormValue("note")})
	if err != nil {
		return err
	}
	back := "/s/" + a.Session
	if r.PostFormValue("back") == "approvals" {
		back = "/approvals"
	}
	return done(w, r, back, a.State)
}

// done ends a form: a script reads a word, a browser goes on.
func done(w http.ResponseWriter, r *http.Request, next, word string) error {
	if fromScript(r) {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		_, err := io.WriteString(w, word)
		return err
	}
	http.Redirect(w, r, next, http.StatusSeeOther)
	return nil
}

// blob shows a picture or hands out a file. Nothing of it runs: pictures are shown as
// what their bytes are, all else is saved.
func (p *Pages) blob(w http.ResponseWriter, r *http.Request, by command.Caller) error {
	f, err := p.Service.Blob(r.Context(), by, r.PathValue("id"), r.PathValue("hash"))
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
		p.Log.Debug("a file was not taken to its end", "component", "web", "error", err)
	}
	return nil
}
