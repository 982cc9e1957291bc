package discordsim

import (
	"embed"
	"io/fs"
	"net/http"
	"path"
	"slices"
	"strings"

	"chorus/internal/sim/discordsim/guild"
)

//go:embed page
var pageFiles embed.FS

// pageShows is how many messages of a channel the page gets.
const pageShows = 100

// routesPage mounts the page: the guild as one person sees it.
func (s *Sim) routesPage() {
	s.mux.HandleFunc("GET /sim/events", s.events)
	s.mux.HandleFunc("GET /sim/page", func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		at, _ := guild.ParseID(q.Get("channel"))
		s.locked(w, func() any { return s.pageState(q.Get("token"), at) })
	})
	s.mux.HandleFunc("GET /sim/calls", func(w http.ResponseWriter, r *http.Request) {
		about, _ := guild.ParseID(r.URL.Query().Get("message"))
		s.locked(w, func() any { return object{"calls": s.callsAbout(about)} })
	})
	s.mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) { servePage(w, "index.html") })
	s.mux.HandleFunc("GET /page/{file}", func(w http.ResponseWriter, r *http.Request) { servePage(w, r.PathValue("file")) })
}

func servePage(w http.ResponseWriter, name string) {
	data, err := fs.ReadFile(pageFiles, path.Join("page", path.Base(name)))
	if err != nil {
		http.Error(w, "there is no such page", http.StatusNotFound)
		return
	}
	kinds := map[string]string{".html": "text/html", ".css": "text/css", ".js": "text/javascript"}
	w.Header().Set("Content-Type", kinds[path.Ext(name)]+"; charset=utf-8")
	w.Header().Set("Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "+
		"form-action 'none'; base-uri 'none'; frame-ancestors 'none'")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(data) // the client is gone
}

// pageState is the data of the page: the places that a person sees, and one of them in full. Without a token or place, it uses the first.
func (s *Sim) pageState(token string, at guild.ID) any {
	me := s.guild.AccountByToken(token)
	if me != nil && me.Bot {
		me = nil
	}
	people, members, commands := []object{}, []object{}, []*guild.Command{}
	for _, a := range s.guild.Accounts {
		if !a.Bot {
			people = append(people, object{"name": a.Username, "token": a.Token})
			if me == nil {
				me = a
			}
		}
		if a.Member == nil { // it was not invited yet
			continue
		}
		online := slices.ContainsFunc(s.sessions, func(n *session) bool { return n.who == a && n.socket != nil })
		members = append(members, object{"id": a.ID, "name": a.Username, "bot": a.Bot, "online": online})
		commands = append(commands, a.Commands...)
	}
	if me == nil {
		return object{"message": "there are no people in this guild"}
	}
	places := s.places(me)
	var here *guild.Channel
	for _, c := range places {
		if c.ID == at || here == nil && c.Type != guild.TypeCategory {
			here = c
		}
	}
	out := object{
		"guild": object{"id": s.guild.ID, "name": s.guild.Name}, "people": people, "members": members, "commands": commands,
		"channels": places, "channel": "", "messages": []guild.Message{}, "me": object{"id": me.ID, "name": me.Username, "token": me.Token},
	}
	roles := []object{}
	for _, r := range s.guild.Roles {
		roles = append(roles, object{"id": r.ID, "name": r.Name})
	}
	out["roles"] = roles
	if here != nil {
		out["channel"], out["messages"] = here.ID, s.guild.RecentMessages(here, me, pageShows)
		out["commands"] = slices.DeleteFunc(commands, func(c *guild.Command) bool { return !s.guild.Offered(me, s.guild.Channel(here.ID), c) })
	}
	return out
}

// places returns the channels that a person sees, each followed by its threads.
func (s *Sim) places(me *guild.Account) []*guild.Channel {
	out := []*guild.Channel{}
	for _, c := range s.guild.Channels {
		if c.IsThread() || !s.guild.Sees(me, c) {
			continue
		}
		shown := guild.DirectSeenBy(c, me.ID)
		if c.Type == guild.TypeDM {
			copied := *shown
			copied.Name = strings.TrimSpace(copied.Recipients[0].Username)
			shown = &copied
		}
		out = append(out, shown)
		for _, t := range s.guild.Channels {
			if t.IsThread() && t.ParentID != nil && *t.ParentID == c.ID && !t.Metadata.Archived && s.guild.Sees(me, t) {
				out = append(out, t)
			}
		}
	}
	return out
}
