package pages

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	template "github.com/DataDog/datadog-agent/pkg/template/html"

	"chorus/internal/chat"
	"chorus/internal/eventline"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/transport/http/charts"
	"chorus/internal/transport/http/display"
)

// moreRoutes registers the pages about agents, journals, costs, audit, settings and search.
func (p *Pages) moreRoutes() {
	p.page("GET /approvals", p.approvals)
	p.page("GET /agents", p.agents)
	p.page("POST /agents", needs(operation.Admin, form(p.saveAgent)))
	p.page("GET /new-agent", needs(operation.Admin, p.newAgent))
	p.page("GET /agents/{name}", p.agent)
	p.page("GET /agents/{name}/edit", needs(operation.Admin, p.editAgent))
	p.page("POST /agents/{name}/edit", needs(operation.Admin, form(p.saveAgent)))
	p.page("POST /agents/{name}/docs", needs(operation.Admin, form(p.addDoc)))
	p.page("GET /agents/{name}/files/{path...}", p.agentFile)
	p.page("GET /s/{id}/journal", p.journal)
	p.page("GET /s/{id}/requests/{seq}", p.request)
	p.page("GET /s/{id}/runs/{seq}", p.run)
	p.page("GET /costs", p.costs)
	p.page("GET /audit", p.audit)
	p.page("GET /work", p.work)
	p.page("POST /work", form(p.addTask))
	p.page("POST /work/projects", form(p.addProject))
	p.mux.HandleFunc("GET /work/live", p.boardEvents)
	p.page("GET /work/{id}", p.task)
	p.page("GET /work/{id}/diff", p.taskDiff)
	p.page("POST /work/{id}", form(p.changeTask))
	p.page("GET /projects", p.projects)
	p.page("GET /projects/{id}", p.project)
	p.page("POST /projects/{id}", form(p.changeProject))
	p.page("GET /projects/{id}/graph", p.projectGraph)
	p.page("GET /workers", p.workers)
	p.page("POST /workers", form(p.controlWork))
	p.page("GET /processes", p.processes)
	p.page("GET /processes/{id}", p.process)
	p.page("POST /processes/{id}", form(p.killProcess))
	p.page("POST /processes/{id}/hooks", form(p.hookProcess))
	p.mux.HandleFunc("GET /processes/{id}/live", p.processLive)
	p.page("GET /schedules", p.schedules)
	p.page("POST /schedules", form(p.addSchedule))
	p.page("GET /schedules/{id}", p.schedule)
	p.page("POST /schedules/{id}", form(p.changeSchedule))
	p.page("GET /hooks", p.hooks)
	p.page("GET /hooks/new", p.newHook)
	p.page("POST /hooks", form(p.addHook))
	p.page("GET /hooks/{id}", p.hook)
	p.page("GET /hooks/{id}/edit", p.editHook)
	p.page("POST /hooks/{id}/edit", form(p.saveHook))
	p.page("GET /hook-runs/{id}", p.hookRun)
	p.page("POST /hooks/{id}", form(p.changeHook))
	p.page("GET /skills", p.skills)
	p.page("GET /skills/{id}", p.skill)
	p.page("POST /skills/{id}", form(p.decideSkill))
	p.page("GET /servers", p.servers)
	p.page("POST /servers", form(p.changeServer))
	p.page("POST /servers/login", form(p.finishServerLogin))
	p.page("GET /memory", p.memory)
	p.page("POST /memory", form(p.changeMemory))
	p.page("GET /permissions", needs(operation.Admin, p.profiles))
	p.page("GET /permissions/{name}", needs(operation.Admin, p.profile))
	p.page("POST /permissions/{name}", needs(operation.Admin, form(p.saveProfile)))
	p.page("GET /new-profile", needs(operation.Admin, p.newProfile))
	p.page("POST /new-profile", needs(operation.Admin, form(p.saveProfile)))
	p.page("GET /settings", p.settings)
	p.page("POST /settings", needs(operation.Admin, form(p.setSetting)))
	p.page("POST /settings/rules/remove", needs(operation.Admin, form(p.removeRule)))
	p.page("POST /settings/tokens", needs(operation.Admin, form(p.createToken)))
	p.page("POST /settings/tokens/revoke", needs(operation.Admin, form(p.revokeToken)))
	p.page("GET /search", p.search)
	p.page("GET /doctor", p.doctor)
	p.page("GET /doctor/checks", p.checks)
}

func (p *Pages) agents(w http.ResponseWriter, r *http.Request, by operation.Caller) error {
	list, err := operation.CallWhole(r.Context(), operations.ListAgents, p.Executor, by, operations.AgentQuery{})
	if err != nil {
		return err
	}
	return p.render(w, http.StatusOK, "agents.html", map[string]any{"Layout": p.layout(r, by, "Agents"), "List": list, "May": by.May(operation.Admin)})
}

// agent shows an agent's prompt, tools, documents and settings.
func (p *Pages) agent(w http.ResponseWriter, r *http.Request, by operation.Caller) error {
	a, err := operations.GetAgent.Call(r.Context(), p.Executor, by, operations.AgentRef{Name: r.PathValue("name")})
	if err != nil {
		return err
	}
	memory, skills := p.knowledge(r, by, a.Name)
	return p.render(w, http.StatusOK, "agent.html", map[string]any{"Layout": p.layout(r, by, a.Name), "A": a, "Memory": memory, "Skills": skills, "May": by.May(operation.Admin)})
}

func (p *Pages) agentFile(w http.ResponseWriter, r *http.Request, by operation.Caller) error {
	name := r.PathValue("name")
	e, err := operations.AgentFile.Call(r.Context(), p.Executor, by, operations.AgentFileRef{Name: name, Path: r.PathValue("path")})
	if err != nil {
		return err
	}
	up := ""
	if at := strings.LastIndexByte(strings.TrimSuffix(e.Path, "/"), '/'); at >= 0 {
		up = e.Path[:at]
	}
	return p.render(w, http.StatusOK, "file.html", map[string]any{"Layout": p.layout(r, by, cmp.Or(e.Path, "Files")), "Agent": name, "E": e, "Up": up,
		"Lang": e.Path[strings.LastIndexByte(e.Path, '.')+1:]})
}

// maxEvents is how many events of a journal one page shows.
const maxEvents = 200

// journal shows the events of a session in order.
func (p *Pages) journal(w http.ResponseWriter, r *http.Request, by operation.Caller) error {
	s, err := operations.GetSession.Call(r.Context(), p.Executor, by, operations.SessionRef{ID: r.PathValue("id")})
	if err != nil {
		return err
	}
	v := r.URL.Query()
	after, _ := strconv.ParseInt(v.Get("after"), 10, 64)
	q := operations.EventQuery{ID: s.ID, After: after, Limit: maxEvents, Kind: v.Get("kind"), Run: v.Get("run")}
	events, err := operations.Events.Call(r.Context(), p.Executor, by, q)
	if err != nil {
		return err
	}
	requests, err := operations.Requests.Call(r.Context(), p.Executor, by, operations.EventRange{ID: s.ID, After: after, Limit: maxEvents})
	if err != nil {
		return err
	}
	audit, err := operations.ListAudit.Call(r.Context(), p.Executor, by, operations.AuditQuery{Session: s.ID, Run: q.Run, Limit: maxEvents})
	if err != nil {
		return err
	}
	bySeq := map[int64]*operations.Request{}
	for i, q := range requests.Items {
		bySeq[q.Seq] = &requests.Items[i]
	}
	return p.render(w, http.StatusOK, "journal.html", map[string]any{"Layout": p.layout(r, by, "Journal"), "Session": s, "Events": events, "Requests": bySeq, "Audit": audit.Items, "Names": p.names(r.Context(), by),
		"Query": q, "Kinds": eventKinds(), "More": link(v, "after", events.Next), "Export": exportLink("/api/sessions/"+url.PathEscape(s.ID)+"/export", v, "kind", "run"), "ExportAudit": exportLink("/api/audit/export", url.Values{"session": {s.ID}, "run": v["run"]}, "session", "run")})
}

// request shows what was sent to a model, and which part of it the provider could read from its cache.
func (p *Pages) request(w http.ResponseWriter, r *http.Request, by operation.Caller) error {
	seq, err := strconv.ParseInt(r.PathValue("seq"), 10, 64)
	if err != nil {
		return operation.Errorf(operation.NotFound, "there is no such request")
	}
	list, err := operations.Requests.Call(r.Context(), p.Executor, by, operations.EventRange{ID: r.PathValue("id"), After: seq - 1, Limit: 1})
	if err != nil {
		return err
	}
	if len(list.Items) == 0 || list.Items[0].Seq != seq {
		return operation.Errorf(operation.NotFound, "there is no such request")
	}
	return p.render(w, http.StatusOK, "request.html", map[string]any{"Layout": p.layout(r, by, "Request"), "Session": r.PathValue("id"), "Q": list.Items[0]})
}

// costs shows what was spent, as a chart and as a table.
func (p *Pages) costs(w http.ResponseWriter, r *http.Request, by operation.Caller) error {
	q := operations.CostQuery{By: cmp.Or(r.URL.Query().Get("by"), "model"), Since: cmp.Or(r.URL.Query().Get("since"), "30d")}
	sums, err := operations.GetCosts.Call(r.Context(), p.Executor, by, q)
	if err != nil {
		return err
	}
	days, err := operations.GetCosts.Call(r.Context(), p.Executor, by, operations.CostQuery{By: "day", Since: q.Since})
	if err != nil {
		return err
	}
	month, err := operations.GetCosts.Call(r.Context(), p.Executor, by, operations.CostQuery{By: "day", Since: "month"})
	if err != nil {
		return err
	}
	most, mostTokens, fresh, cached := 0.0, 0, 0, 0
	for i, row := range sums.Rows {
		most, mostTokens = max(most, row.Dollars), max(mostTokens, row.InputTokens+row.CacheWriteTokens+row.OutputTokens)
		fresh, cached = fresh+row.InputTokens+row.CacheWriteTokens, cached+row.CacheReadTokens
		sums.Rows[i].InputTokens += row.CacheWriteTokens // as `chorus cost` counts them
	}
	return p.render(w, http.StatusOK, "costs.html", map[string]any{"Layout": p.layout(r, by, "Costs"), "C": sums, "Query": q, "Most": most, "MostTokens": mostTokens, "CachedShare": display.Percent(cached, fresh+cached), "Month": month.Total, "Forecast": charts.Forecast(month, p.Now()), "Names": p.names(r.Context(), by), "Free": charts.Free(days),
		"Chart": template.HTML(charts.Costs(days, charts.Full, p.Now())), "SmallChart": template.HTML(charts.Costs(days, charts.Phone, p.Now())), "Bys": []string{"model", "agent", "person", "channel", "day"}, "Sinces": []string{"24h", "7d", "30d", "month"}})
}

func (p *Pages) audit(w http.ResponseWriter, r *http.Request, by operation.Caller) error {
	v := r.URL.Query()
	q := operations.AuditQuery{Session: v.Get("session"), Agent: v.Get("agent"), Who: v.Get("who"), Decision: v.Get("decision"), Run: v.Get("run"), Cursor: v.Get("cursor"), Limit: 100}
	var err error
	if q.Since, err = day(v.Get("since"), 0); err == nil {
		q.Until, err = day(v.Get("until"), 1)
	}
	if err != nil {
		return err
	}
	list, err := operations.ListAudit.Call(r.Context(), p.Executor, by, q)
	if err != nil {
		return err
	}
	names := p.names(r.Context(), by)
	data := map[string]any{"Layout": p.layout(r, by, "Audit"), "List": list, "Names": names, "Query": q, "Filtered": q != operations.AuditQuery{Cursor: q.Cursor, Limit: q.Limit}, "Since": v.Get("since"), "Until": v.Get("until"), "More": more(v, list.Next),
		"Agents": p.agentNames(r, by), "People": people(list.Items, names),
		"Export": exportLink("/api/audit/export", exportDays(v, q), "session", "agent", "who", "decision", "run", "since", "until"), "Decisions": []string{"allow", "ask_approved", "ask_denied", "deny", "changed"}}
	if v.Get("verify") != "" {
		check, err := operations.VerifyAudit.Call(r.Context(), p.Executor, by, operations.VerifyRequest{})
		if err != nil {
			return err
		}
		data["Check"] = check
	}
	return p.render(w, http.StatusOK, "audit.html", data)
}

// agentNames lists all agents to choose from; none if they cannot be listed now.
func (p *Pages) agentNames(r *http.Request, by operation.Caller) []string {
	list, err := operation.CallWhole(r.Context(), operations.ListAgents, p.Executor, by, operations.AgentQuery{})
	if err != nil {
		return nil
	}
	var out []string
	for _, a := range list {
		out = append(out, a.Name)
	}
	return out
}

// people maps the keys of filters to the names of people in the audit log.
func people(lines []operations.AuditLine, names map[string]string) map[string]string {
	out := map[string]string{}
	for _, line := range lines {
		if line.Who != "" {
			out[line.Who] = display.Who(names, line.Who)
		}
	}
	return out
}

// more is the link to the next page; "": there is none.
func more(v url.Values, next string) string { return link(v, "cursor", next) }

// link returns the address of this page with another value; "": without it.
func link(v url.Values, key, value string) string {
	if value == "" {
		return ""
	}
	v = maps.Clone(v)
	v.Set(key, value)
	return "?" + v.Encode()
}

// exportLink returns the address of the filtered records as a file: with the current filters, and ready for the format to be appended.
func exportLink(path string, v url.Values, filters ...string) string {
	out := url.Values{}
	for _, name := range filters {
		if v.Get(name) != "" {
			out.Set(name, v.Get(name))
		}
	}
	return path + "?" + strings.TrimPrefix(out.Encode()+"&format=", "&")
}

// exportDays converts the days in the filters of the audit log to moments, as the API expects.
func exportDays(v url.Values, q operations.AuditQuery) url.Values {
	v = maps.Clone(v)
	for name, at := range map[string]time.Time{"since": q.Since, "until": q.Until} {
		if v.Del(name); !at.IsZero() {
			v.Set(name, at.Format(time.RFC3339))
		}
	}
	return v
}

// day returns the start of a day in UTC, or of the one so many days later; zero: no day is given.
func day(text string, later int) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	at, err := time.Parse(time.DateOnly, text)
	if err != nil {
		return at, operation.Errorf(operation.Invalid, "%.40q is not a date; write one like 2026-11-17", text)
	}
	return at.AddDate(0, 0, later), nil
}

// countWords says how many matches there are. It does not count beyond the first page, because common words would take long.
func countWords(n int, more bool) string {
	switch {
	case more:
		return fmt.Sprintf("More than %d matches, newest first. Add a word to narrow the search.", n)
	case n == 1:
		return "1 match"
	case n > 1:
		return fmt.Sprintf("%d matches", n)
	}
	return ""
}

// mostTitles limits the conversations with matching titles above the matching messages: somebody who knows a title finds it among few.
const mostTitles = 10

// titled returns the conversations with matching titles, including archived ones.
func (p *Pages) titled(r *http.Request, by operation.Caller, text, agent string) ([]operations.Session, error) {
	if utf8.RuneCountInString(text) > 200 { // no title is that long
		return nil, nil
	}
	list, err := operations.ListSessions.Call(r.Context(), p.Executor, by, operations.SessionQuery{Search: text, Agent: agent, Listing: "all", Limit: mostTitles})
	return list.Items, err
}

// search searches the messages and titles of all conversations; without a query it lists them.
func (p *Pages) search(w http.ResponseWriter, r *http.Request, by operation.Caller) error {
	v := r.URL.Query()
	text, agent := strings.TrimSpace(v.Get("q")), v.Get("agent")
	data := map[string]any{"Layout": p.layout(r, by, "Search"), "Text": text, "Agent": agent, "Names": p.names(r.Context(), by), "Listing": v.Get("listing")}
	if text != "" {
		hits, err := operations.Search.Call(r.Context(), p.Executor, by, operations.SearchQuery{Text: text, Agent: agent, Cursor: v.Get("cursor"), Limit: 50})
		if err != nil {
			return err
		}
		data["Hits"], data["More"] = hits.Items, more(v, hits.Next)
		if v.Get("cursor") == "" {
			data["Count"] = countWords(len(hits.Items), hits.Next != "")
			if data["Titled"], err = p.titled(r, by, text, agent); err != nil {
				return err
			}
		}
	} else {
		list, err := operations.ListSessions.Call(r.Context(), p.Executor, by, operations.SessionQuery{Agent: agent, Listing: v.Get("listing"), Cursor: v.Get("cursor"), Limit: 100})
		if err != nil {
			return err
		}
		data["Sessions"], data["More"] = list.Items, more(v, list.Next)
	}
	return p.render(w, http.StatusOK, "search.html", data)
}

// eventKind is a kind of event to filter by.
type eventKind struct{ Kind, Title string }

func eventKinds() []eventKind {
	out := make([]eventKind, 0, len(chat.Kinds()))
	for _, kind := range chat.Kinds() {
		out = append(out, eventKind{kind, eventline.Title(kind)})
	}
	return out
}
