package pages

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"chorus/internal/command"
)

// more are the pages behind the first ones.
func (p *Pages) more() {
	p.page("GET /approvals", p.approvals)
	p.page("GET /agents", p.agents)
	p.page("GET /agents/{name}", p.agent)
	p.page("GET /agents/{name}/files/{path...}", p.agentFile)
	p.page("GET /s/{id}/journal", p.journal)
	p.page("GET /s/{id}/requests/{seq}", p.request)
	p.page("GET /costs", p.costs)
	p.page("GET /audit", p.audit)
	p.page("GET /settings", p.settings)
	p.page("POST /settings", p.setSetting)
	p.page("POST /settings/tokens", p.createToken)
	p.page("POST /settings/tokens/revoke", p.revokeToken)
	p.page("GET /search", p.search)
	p.page("GET /doctor", p.doctor)
	p.page("GET /doctor/checks", p.checks)
}

func (p *Pages) agents(w http.ResponseWriter, r *http.Request, by command.Caller) error {
	list, err := p.Service.ListAgents(r.Context(), by)
	if err != nil {
		return err
	}
	return p.render(w, http.StatusOK, "agents.html", map[string]any{"Frame": p.frame(r, by, "Agents"), "List": list})
}

// agent shows all that shapes an agent's answers.
func (p *Pages) agent(w http.ResponseWriter, r *http.Request, by command.Caller) error {
	a, err := p.Service.GetAgent(r.Context(), by, r.PathValue("name"))
	if err != nil {
		return err
	}
	return p.render(w, http.StatusOK, "agent.html", map[string]any{"Frame": p.frame(r, by, a.Name), "A": a})
}

func (p *Pages) agentFile(w http.ResponseWriter, r *http.Request, by command.Caller) error {
	name := r.PathValue("name")
	e, err := p.Service.AgentFile(r.Context(), by, name, r.PathValue("path"))
	if err != nil {
		return err
	}
	up := ""
	if at := strings.LastIndexByte(strings.TrimSuffix(e.Path, "/"), '/'); at >= 0 {
		up = e.Path[:at]
	}
	return p.render(w, http.StatusOK, "file.html", map[string]any{"Frame": p.frame(r, by, firstOf(e.Path, "Files")), "Agent": name, "E": e, "Up": up,
		"Lang": e.Path[strings.LastIndexByte(e.Path, '.')+1:]})
}

// manyEvents is how much of a journal one page shows.
const manyEvents = 200

// journal shows everything that happened in a session, in order.
func (p *Pages) journal(w http.ResponseWriter, r *http.Request, by command.Caller) error {
	s, err := p.Service.GetSession(r.Context(), by, r.PathValue("id"))
	if err != nil {
		return err
	}
	after, _ := strconv.ParseInt(r.URL.Query().Get("after"), 10, 64)
	events, err := p.Service.Events(r.Context(), by, s.ID, command.Span{After: after, Limit: manyEvents})
	if err != nil {
		return err
	}
	requests, err := p.Service.Requests(r.Context(), by, s.ID, command.Span{After: after, Limit: manyEvents})
	if err != nil {
		return err
	}
	audit, err := p.Service.Audit(r.Context(), by, command.AuditQuery{Session: s.ID, Limit: manyEvents})
	if err != nil {
		return err
	}
	bySeq := map[int64]*command.Request{}
	for i, q := range requests.Items {
		bySeq[q.Seq] = &requests.Items[i]
	}
	return p.render(w, http.StatusOK, "journal.html", map[string]any{"Frame": p.frame(r, by, "Journal"), "Session": s, "Events": events, "Requests": bySeq, "Audit": audit.Items, "Names": p.names(r.Context(), by)})
}

// request shows what a model was sent, and which of it the provider had seen before.
func (p *Pages) request(w http.ResponseWriter, r *http.Request, by command.Caller) error {
	seq, err := strconv.ParseInt(r.PathValue("seq"), 10, 64)
	if err != nil {
		return command.Errorf(command.NotFound, "there is no such request")
	}
	list, err := p.Service.Requests(r.Context(), by, r.PathValue("id"), command.Span{After: seq - 1, Limit: 1})
	if err != nil {
		return err
	}
	if len(list.Items) == 0 || list.Items[0].Seq != seq {
		return command.Errorf(command.NotFound, "there is no such request")
	}
	return p.render(w, http.StatusOK, "request.html", map[string]any{"Frame": p.frame(r, by, "Request"), "Session": r.PathValue("id"), "Q": list.Items[0]})
}

// costs shows what was spent, as a picture and as a table.
func (p *Pages) costs(w http.ResponseWriter, r *http.Request, by command.Caller) error {
	q := command.CostQuery{By: firstOf(r.URL.Query().Get("by"), "model"), Since: firstOf(r.URL.Query().Get("since"), "30d")}
	sums, err := p.Service.Costs(r.Context(), by, q)
	if err != nil {
		return err
	}
	days, err := p.Service.Costs(r.Context(), by, command.CostQuery{By: "day", Since: q.Since})
	if err != nil {
		return err
	}
	most := 0.0
	for _, row := range sums.Rows {
		most = max(most, row.Dollars)
	}
	return p.render(w, http.StatusOK, "costs.html", map[string]any{"Frame": p.frame(r, by, "Costs"), "C": sums, "Query": q, "Most": most, "Names": p.names(r.Context(), by),
		"Chart": dayChart(days, p.Now()), "Bys": []string{"model", "agent", "person", "channel", "day"}, "Sinces": []string{"24h", "7d", "30d", "month"}})
}

func (p *Pages) audit(w http.ResponseWriter, r *http.Request, by command.Caller) error {
	v := r.URL.Query()
	q := command.AuditQuery{Session: v.Get("session"), Agent: v.Get("agent"), Who: v.Get("who"), Decision: v.Get("decision"), Cursor: v.Get("cursor"), Limit: 100}
	list, err := p.Service.Audit(r.Context(), by, q)
	if err != nil {
		return err
	}
	data := map[string]any{"Frame": p.frame(r, by, "Audit"), "List": list, "Names": p.names(r.Context(), by), "Query": q, "More": more(v, list.Next), "Decisions": []string{"allow", "ask_approved", "ask_denied", "deny", "changed"}}
	if v.Get("verify") != "" {
		check, err := p.Service.VerifyAudit(r.Context(), by, "")
		if err != nil {
			return err
		}
		data["Check"] = check
	}
	return p.render(w, http.StatusOK, "audit.html", data)
}

// more is the address of the next page; "": there is none.
func more(v url.Values, next string) string {
	if next == "" {
		return ""
	}
	v.Set("cursor", next)
	return "?" + v.Encode()
}

func (p *Pages) settings(w http.ResponseWriter, r *http.Request, by command.Caller) error {
	return p.showSettings(w, r, by, nil)
}

// showSettings shows the configuration and the tokens, and a token that was just made.
func (p *Pages) showSettings(w http.ResponseWriter, r *http.Request, by command.Caller, made *command.Token) error {
	settings, err := p.Service.Settings(r.Context(), by)
	if err != nil {
		return err
	}
	models, err := p.Service.Models(r.Context(), by)
	if err != nil {
		return err
	}
	data := map[string]any{"Frame": p.frame(r, by, "Settings"), "Settings": settings.Items, "Models": models.Items, "Admin": by.May(command.Admin), "Made": made, "Scopes": command.Scopes()}
	if by.May(command.Admin) {
		tokens, err := p.Service.ListTokens(r.Context(), by)
		if err != nil {
			return err
		}
		data["Tokens"] = tokens.Items
	}
	return p.render(w, http.StatusOK, "settings.html", data)
}

func mayAdmin(by command.Caller) error {
	if !by.May(command.Admin) {
		return command.Errorf(command.Forbidden, "your token lacks the scope admin")
	}
	return nil
}

func (p *Pages) setSetting(w http.ResponseWriter, r *http.Request, by command.Caller) error {
	if err := mayAdmin(by); err != nil {
		return err
	}
	if err := form(w, r); err != nil {
		return err
	}
	if _, err := p.Service.SetSetting(r.Context(), by, r.PostFormValue("key"), r.PostFormValue("value")); err != nil {
		return err
	}
	return done(w, r, "/settings", "set")
}

func (p *Pages) createToken(w http.ResponseWriter, r *http.Request, by command.Caller) error {
	if err := mayAdmin(by); err != nil {
		return err
	}
	if err := form(w, r); err != nil {
		return err
	}
	in := command.NewToken{Name: r.PostFormValue("name")}
	for _, s := range r.PostForm["scopes"] {
		in.Scopes = append(in.Scopes, command.Scope(s))
	}
	made, err := p.Service.CreateToken(r.Context(), by, in)
	if err != nil {
		return err
	}
	return p.showSettings(w, r, by, &made)
}

func (p *Pages) revokeToken(w http.ResponseWriter, r *http.Request, by command.Caller) error {
	if err := mayAdmin(by); err != nil {
		return err
	}
	if err := form(w, r); err != nil {
		return err
	}
	if err := p.Service.RevokeToken(r.Context(), by, r.PostFormValue("id")); err != nil {
		return err
	}
	return done(w, r, "/settings", "revoked")
}

// search looks through everything that was said; without words it lists conversations.
func (p *Pages) search(w http.ResponseWriter, r *http.Request, by command.Caller) error {
	v := r.URL.Query()
	text, agent := strings.TrimSpace(v.Get("q")), v.Get("agent")
	data := map[string]any{"Frame": p.frame(r, by, "Search"), "Text": text, "Agent": agent, "Names": p.names(r.Context(), by)}
	if text != "" {
		hits, err := p.Service.Search(r.Context(), by, command.SearchQuery{Text: text, Agent: agent, Cursor: v.Get("cursor"), Limit: 50})
		if err != nil {
			return err
		}
		data["Hits"], data["More"] = hits.Items, more(v, hits.Next)
	} else {
		list, err := p.Service.ListSessions(r.Context(), by, command.SessionQuery{Agent: agent, Cursor: v.Get("cursor"), Limit: 100})
		if err != nil {
			return err
		}
		data["Sessions"], data["More"] = list.Items, more(v, list.Next)
	}
	return p.render(w, http.StatusOK, "search.html", data)
}
