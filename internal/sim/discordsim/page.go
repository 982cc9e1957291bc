package discordsim

import "net/http"

func (s *Sim) routesPage() {
	s.mux.HandleFunc("GET /sim/events", s.events)
	s.mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) { http.NotFound(w, r) })
}
