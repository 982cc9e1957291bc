package pages

import (
	"io"
	"net/http"
	"slices"

	"chorus/internal/command"
)

// doctor says what is missing on this machine and how to get it. To look takes seconds,
// so the page comes at once and what was found is put into it; whoever has no script asks
// for the whole and waits.
func (p *Pages) doctor(w http.ResponseWriter, r *http.Request, by command.Caller) error {
	data := map[string]any{"Frame": p.frame(r, by, "This machine")}
	if r.URL.Query().Get("wait") != "" {
		checks, err := p.Service.Health(r.Context(), by)
		if err != nil {
			return err
		}
		data["Checks"] = checks.Items
	}
	return p.render(w, http.StatusOK, "doctor.html", data)
}

// checks is what was found, as a fragment: all of it, or one section for the first page.
func (p *Pages) checks(w http.ResponseWriter, r *http.Request, by command.Caller) error {
	checks, err := p.Service.Health(r.Context(), by)
	if err != nil {
		return err
	}
	look, items := "checks", checks.Items
	if section := r.URL.Query().Get("section"); section != "" {
		look, items = "found", slices.DeleteFunc(slices.Clone(items), func(c command.Check) bool { return c.Section != section })
	}
	made, err := p.piece(look, items)
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, err = io.WriteString(w, made)
	return err
}
