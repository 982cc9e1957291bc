package discordsim

import (
	"net/http"

	"chorus/internal/sim/discordsim/apierror"
	"chorus/internal/sim/discordsim/guild"
	"chorus/internal/sim/discordsim/ratelimit"
)

// routes mounts all routes.
func (s *Sim) routes() {
	s.routesMessages()
	s.routesPolls()
	s.routesSearch()
	s.routesEmojis()
	s.routesChannels()
	s.routesThreads()
	s.routesGuild()
	s.routesMembers()
	s.routesApps()
	s.routesWebhooks()
	s.route("GET /gateway", withNobody, func(*call) (any, error) { return object{"url": s.Gateway()}, nil })
	s.route("GET /gateway/bot", withAccount, func(*call) (any, error) {
		return object{"url": s.Gateway(), "shards": s.opts.Shards, "session_start_limit": object{
			"total": 1000, "remaining": 1000, "reset_after": 0, "max_concurrency": s.opts.Shards}}, nil
	})
	s.mux.HandleFunc("/api/", func(w http.ResponseWriter, r *http.Request) {
		fail(w, ratelimit.Verdict{}, apierror.Refuse(http.StatusNotFound, 0, "404: Not Found"))
	})
	s.mux.HandleFunc(attachmentRoute, s.attachment)
	s.mux.HandleFunc("/gateway", s.socket)
	s.mux.HandleFunc("/gateway/", s.socket)
	s.routesSim()
	s.routesPage()
}

// attachmentRoute serves attachments, like Discord's CDN.
const attachmentRoute = "GET /attachments/{channel}/{id}/{name}"

func (s *Sim) attachment(w http.ResponseWriter, r *http.Request) {
	if s.faulty(w, r, attachmentRoute, "", nil) {
		return
	}
	id, _ := guild.ParseID(r.PathValue("id"))
	s.mu.Lock()
	data, ok := s.guild.File(id)
	s.mu.Unlock()
	if !ok {
		http.NotFound(w, r)
		return
	}
	// The bytes are untrusted: a browser must not treat them as a page of ours.
	w.Header().Set("Content-Security-Policy", "sandbox; default-src 'none'")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_, _ = w.Write(data) // the client is gone
}
