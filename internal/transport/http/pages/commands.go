package pages

import (
	"net/http"
	"strings"
	"unicode"

	"chorus/internal/operation"
	"chorus/internal/operations"
)

// answered is the result of a typed command, for its fragment.
type answered struct {
	Session, Line, Text, Confirm string
}

// command runs a command that was typed into a conversation. It answers with a fragment, which is empty if the line was
// a message for the agent: those arrive over the stream.
func (p *Pages) command(w http.ResponseWriter, r *http.Request, by operation.Caller) error {
	id, line := r.PathValue("id"), strings.TrimSpace(r.PostFormValue("message"))
	answer, err := operations.RunCommand.Call(r.Context(), p.Executor, by, operations.CommandLine{ID: id, Line: line})
	if err != nil {
		return err
	}
	data := answered{Session: id, Line: line, Text: answer.Text, Confirm: answer.Confirm}
	switch {
	case fromScript(r) && answer.Said:
		return finishForm(w, r, "/s/"+id, "")
	case fromScript(r):
		return p.writeFragment(w, "command", data)
	case answer.Said:
		http.Redirect(w, r, "/s/"+id, http.StatusSeeOther)
		return nil
	}
	return p.render(w, http.StatusOK, "command.html", map[string]any{"Layout": p.layout(r, by, line), "Answer": data})
}

// isCommand reports whether a text is for Chorus and not for the agent. A path is not: its first word has a second slash.
func isCommand(words string) bool {
	first, isSlash := strings.CutPrefix(words, "/")
	if at := strings.IndexFunc(first, unicode.IsSpace); at >= 0 {
		first = first[:at]
	}
	return isSlash && !strings.ContainsAny(first, "/:")
}

// complete completes a command.
func (p *Pages) complete(w http.ResponseWriter, r *http.Request, by operation.Caller) error {
	list, err := operations.CompleteCommand.Call(r.Context(), p.Executor, by, operations.CommandStart{ID: r.PathValue("id"), Line: r.URL.Query().Get("line")})
	if err != nil {
		return err
	}
	return p.completions(w, list)
}

// completeFirst completes the first line of a new conversation.
func (p *Pages) completeFirst(w http.ResponseWriter, r *http.Request, by operation.Caller) error {
	q := r.URL.Query()
	list, err := operations.CompleteFirst.Call(r.Context(), p.Executor, by, operations.FirstLineStart{Line: q.Get("line"), Agent: q.Get("agent"), WorkspacePath: q.Get("workspacePath")})
	if err != nil {
		return err
	}
	return p.completions(w, list)
}

func (p *Pages) completions(w http.ResponseWriter, list operation.List[operations.Completion]) error {
	return p.writeFragment(w, "completed-commands", list.Items)
}
