package pages

import (
	"errors"
	"net/http"
	"net/url"
	"strconv"

	"chorus/internal/operation"
	"chorus/internal/operations"
)

// memory lists memory files, or shows one file with its history.
func (p *Pages) memory(w http.ResponseWriter, r *http.Request, by operation.Caller) error {
	path := r.URL.Query().Get("path")
	if path == "" {
		list, err := operations.ListMemory.Call(r.Context(), p.Executor, by, operation.None{})
		if err != nil {
			return err
		}
		return p.render(w, http.StatusOK, "memory.html", map[string]any{"Layout": p.layout(r, by, "Memory"), "List": list, "File": (*operations.MemoryText)(nil), "May": by.May(operation.Admin)})
	}
	return p.showMemory(w, r, by, path, memoryDraft{}, http.StatusOK)
}

// memoryDraft is a text that was not saved because somebody else had changed the file.
type memoryDraft struct {
	Text       string
	Version    int64  // of the file as it is now
	Difference string // from the current file; "": there was no conflict
}

// showMemory shows a file with its history, and the text that could not be saved.
func (p *Pages) showMemory(w http.ResponseWriter, r *http.Request, by operation.Caller, path string, draft memoryDraft, status int) error {
	ref := operations.MemoryRef{Path: path}
	file, err := operations.GetMemory.Call(r.Context(), p.Executor, by, ref)
	if err != nil {
		return err
	}
	history, err := operations.MemoryHistory.Call(r.Context(), p.Executor, by, ref)
	if err != nil {
		return err
	}
	if draft.Difference == "" {
		draft.Text, draft.Version = file.Text, file.Version
	}
	layout := p.layout(r, by, "Memory")
	layout.Path, layout.Style = "/memory", "editor.css"
	return p.render(w, status, "memory.html", map[string]any{"Layout": layout, "Draft": draft, "File": &file, "History": history, "May": by.May(operation.Chat)})
}

// changeMemory edits, forgets or restores a file.
func (p *Pages) changeMemory(w http.ResponseWriter, r *http.Request, by operation.Caller) error {
	path := r.PostFormValue("path")
	version, err := strconv.ParseInt(r.PostFormValue("version"), 10, 64)
	if err != nil {
		version = 0
	}
	switch do := r.PostFormValue("do"); do {
	case "edit":
		_, err = operations.EditMemory.Call(r.Context(), p.Executor, by, operations.MemoryEdit{Path: path, Text: r.PostFormValue("text"), Seen: version})
	case "forget":
		_, err = operations.ForgetMemory.Call(r.Context(), p.Executor, by, operations.MemoryForget{Path: path})
	case "restore":
		_, err = operations.RestoreMemory.Call(r.Context(), p.Executor, by, operations.MemoryRestore{Path: path, Version: version})
	default:
		err = operation.Errorf(operation.Invalid, "memory can be edited, forgotten or restored, not %.20q", do)
	}
	var known *operation.Error
	if errors.As(err, &known) && !fromScript(r) {
		if about, ok := known.About.(operations.MemoryConflict); ok {
			return p.showMemory(w, r, by, path, memoryDraft{r.PostFormValue("text"), about.Version, about.Difference}, http.StatusConflict)
		}
	}
	if err != nil {
		return err
	}
	return finishForm(w, r, "/memory?path="+url.QueryEscape(path), "done")
}
