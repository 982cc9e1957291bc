package pages

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	template "github.com/DataDog/datadog-agent/pkg/template/html"

	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/transport/http/charts"
)

// run shows what one run did, as a timeline and as a table.
func (p *Pages) run(w http.ResponseWriter, r *http.Request, by operation.Caller) error {
	s, err := operations.GetSession.Call(r.Context(), p.Executor, by, operations.SessionRef{ID: r.PathValue("id")})
	if err != nil {
		return err
	}
	at, err := strconv.ParseInt(r.PathValue("seq"), 10, 64)
	if err != nil || at < 1 {
		return operation.Errorf(operation.NotFound, "there is no such run")
	}
	t, err := operations.GetTimeline.Call(r.Context(), p.Executor, by, operations.RunAt{ID: s.ID, At: at})
	if err != nil {
		return err
	}
	// Callers who may read but not run commands see the rest of the page.
	why, _ := operations.RunCommand.Call(r.Context(), p.Executor, by, operations.CommandLine{ID: s.ID, Line: fmt.Sprintf("/why #e%d", at)})
	return p.render(w, http.StatusOK, "run.html", map[string]any{"Layout": p.layout(r, by, "Run"), "Session": s, "T": t, "Why": strings.Trim(why.Text, "`\n"), "Sums": charts.SpanSums(t.Spans), "Cut": charts.CutsWaits(t.Spans),
		"Timeline": template.HTML(charts.Timeline(t.Spans)), "SmallTimeline": template.HTML(charts.NarrowTimeline(t.Spans))})
}
