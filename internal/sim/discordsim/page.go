package discordsim

import (
	"embed"
	"io/fs"
	"net/http"
	"path"
	"slices"
	"strings"
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
		at, _ := ParseID(q.Get("channel"))
		s.locked(w, func() any { return s.pageState(q.Get("token"), at) })
	})
	s.mux.HandleFunc("GET /sim/calls", func(w http.ResponseWriter, r *http.Request) {
		about, _ := ParseID(r.URL.Query().Get("message"))
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
	_, _ = w.Write(data) // who went away sees nothing
}

// pageState is what the page draws: the places a person sees, and one of them in full. Who
// says no token, or no place, gets the first.
func (s *Sim) pageState(token string, at ID) any {
	me := find(s.w.accounts, func(a *account) bool { return a.token == token && !a.Bot })
	people, members, commands := []object{}, []object{}, []*Command{}
	for _, a := range s.w.accounts {
		if !a.Bot {
			people = append(people, object{"name": a.Username, "token": a.token})
			if me == nil {
				me = a
			}
		}
		online := find(s.sessions, func(n *session) bool { return n.who == a && n.socket != nil }) != nil
		members = append(members, object{"id": a.ID, "name": a.Username, "bot": a.Bot, "online": online})
		commands = append(commands, a.commands...)
	}
	if me == nil {
		return object{"message": "there are no people in this guild"}
	}
	places := s.places(me)
	var here *Channel
	for _, c := range places {
		if c.ID == at || here == nil && c.Type != TypeCategory {
			here = c
		}
	}
	out := object{
		"guild": object{"id": s.w.guild, "name": s.w.name}, "people": people, "members": members, "commands": commands,
		"channels": places, "channel": "", "messages": []Message{}, "me": object{"id": me.ID, "name": me.Username, "token": me.token},
	}
	roles := []object{}
	for _, r := range s.w.roles {
		roles = append(roles, object{"id": r.ID, "name": r.Name})
	}
	out["roles"] = roles
	if here != nil {
		out["channel"], out["messages"] = here.ID, s.w.shown(here, me)
		out["commands"] = slices.DeleteFunc(commands, func(c *Command) bool { return !s.w.offered(me, s.w.channel(here.ID), c) })
	}
	return out
}

// offered reports whether Discord shows a command to somebody in a channel.
func (w *world) offered(a *account, in *Channel, c *Command) bool {
	context := 0 // a guild
	if in.GuildID == 0 {
		context = 1
	}
	have := w.rights(a, in)
	return have.Has(PermUseCommands) && (c.Contexts == nil || slices.Contains(c.Contexts, context)) &&
		(c.Permissions == nil || *c.Permissions == 0 && have.Has(PermAdministrator) || *c.Permissions != 0 && have.Has(*c.Permissions))
}

// places are the channels that a person sees, each with its threads behind it.
func (s *Sim) places(me *account) []*Channel {
	out := []*Channel{}
	for _, c := range s.w.channels {
		if c.thread() || !s.w.sees(me, c) {
			continue
		}
		shown := dmSeenBy(c, me.ID)
		if c.Type == TypeDM {
			copied := *shown
			copied.Name = strings.TrimSpace(copied.Recipients[0].Username)
			shown = &copied
		}
		out = append(out, shown)
		for _, t := range s.w.channels {
			if t.thread() && t.ParentID != nil && *t.ParentID == c.ID && !t.Metadata.Archived && s.w.sees(me, t) {
				out = append(out, t)
			}
		}
	}
	return out
}

// shown are the newest messages of a channel, oldest first, as one person sees them.
func (w *world) shown(c *Channel, me *account) []Message {
	if real := w.channel(c.ID); real != nil {
		c = real // the page's copy of a direct channel has another name
	}
	out := []Message{}
	for i := max(0, len(c.messages)-pageShows); i < len(c.messages); i++ {
		if m := c.messages[i]; m.seenBy == 0 || m.seenBy == me.ID {
			out = append(out, w.view(m, me.ID, true))
		}
	}
	return out
}
