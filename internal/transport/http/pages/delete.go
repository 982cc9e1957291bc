package pages

import (
	"net/http"

	"chorus/internal/operation"
	"chorus/internal/operations"
)

// askDelete asks for confirmation and says what deleting a conversation means.
func (p *Pages) askDelete(w http.ResponseWriter, r *http.Request, by operation.Caller) error {
	s, err := operations.GetSession.Call(r.Context(), p.Executor, by, operations.SessionRef{ID: r.PathValue("id")})
	if err != nil {
		return err
	}
	return p.render(w, http.StatusOK, "delete.html", map[string]any{"Layout": p.layout(r, by, "Delete"), "ID": s.ID, "Title": s.Title, "Status": s.Status, "Gone": false, "Days": p.KeepDeleted})
}

// askErase asks whether to remove a deleted conversation now instead of later.
func (p *Pages) askErase(w http.ResponseWriter, r *http.Request, by operation.Caller) error {
	return p.render(w, http.StatusOK, "erase.html", map[string]any{"Layout": p.layout(r, by, "Remove for good"), "ID": r.PathValue("id")})
}

func (p *Pages) eraseSession(w http.ResponseWriter, r *http.Request, by operation.Caller) error {
	if _, err := operations.DeleteSession.Call(r.Context(), p.Executor, by, operations.SessionDeletion{ID: r.PathValue("id"), Now: true}); err != nil {
		return err
	}
	return finishForm(w, r, "/search?listing=deleted", "erased")
}

// deleteSession deletes a conversation and offers to restore it.
func (p *Pages) deleteSession(w http.ResponseWriter, r *http.Request, by operation.Caller) error {
	gone, err := operations.DeleteSession.Call(r.Context(), p.Executor, by, operations.SessionDeletion{ID: r.PathValue("id")})
	if err != nil {
		return err
	}
	return p.render(w, http.StatusOK, "delete.html", map[string]any{"Layout": p.layout(r, by, "Deleted"), "ID": gone.ID, "Title": gone.Title, "Gone": true, "Until": gone.Until})
}

func (p *Pages) restoreSession(w http.ResponseWriter, r *http.Request, by operation.Caller) error {
	s, err := operations.RestoreSession.Call(r.Context(), p.Executor, by, operations.DeletedSessionRef{ID: r.PathValue("id")})
	if err != nil {
		return err
	}
	return finishForm(w, r, "/s/"+s.ID, "restored")
}
