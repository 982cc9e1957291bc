package discordsim

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"time"

	"chorus/internal/sim/discordsim/guild"
)

// callsKept is how many requests of bots the inspector stores.
const callsKept = 500

// Call is a request of a bot with its answer, for the page's inspector.
type Call struct {
	Number   int             `json:"number"`
	At       time.Time       `json:"at"`
	Bot      string          `json:"bot"`
	Method   string          `json:"method"`
	Path     string          `json:"path"`
	Request  json.RawMessage `json:"request,omitempty"`
	Files    []string        `json:"files,omitempty"`
	Status   int             `json:"status"` // 0: it got no answer
	Response json.RawMessage `json:"response,omitempty"`
	Messages []guild.ID      `json:"messages,omitempty"` // that it created, changed or was about
}

// recorder stores the answer.
type recorder struct {
	http.ResponseWriter
	status int
	body   []byte
}

func (r *recorder) WriteHeader(status int) {
	r.status = status
	r.ResponseWriter.WriteHeader(status)
}

func (r *recorder) Write(data []byte) (int, error) {
	r.body = append(r.body, data...)
	return r.ResponseWriter.Write(data)
}

// Unwrap gives access to the underlying writer.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// changes reports whether a bot's request changes something; reads are not stored.
func changes(method string) bool { return method != http.MethodGet && method != http.MethodHead }

// record stores a request with its answer.
func (s *Sim) record(c *call, by *guild.Account, answer *recorder) {
	if by == nil || !by.Bot || !changes(c.Method) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.called++
	one := Call{Number: s.called, At: s.guild.Now(), Bot: by.Username, Method: c.Method, Path: plainPath(c.URL.Path), Request: asJSON(c.body), Status: answer.status, Response: asJSON(answer.body)}
	for _, f := range c.files {
		one.Files = append(one.Files, f.Name)
	}
	one.Messages = s.about(c, one)
	s.calls = append(s.calls, one)
	if len(s.calls) > callsKept {
		s.calls = slices.Delete(s.calls, 0, len(s.calls)-callsKept)
	}
}

// plainPath is a path without the version of the API.
func plainPath(path string) string {
	for _, base := range []string{"/api/v10", "/api/v9", "/api"} {
		if rest, ok := strings.CutPrefix(path, base+"/"); ok {
			return "/" + rest
		}
	}
	return path
}

// asJSON returns a body if it is valid JSON; nil: there is none.
func asJSON(raw []byte) json.RawMessage {
	switch {
	case len(raw) == 0:
		return nil
	case json.Valid(raw):
		return slices.Clone(raw)
	}
	text, _ := json.Marshal(string(raw)) // a string always can be written
	return text
}

// about returns the messages that a request created, changed or answered.
func (s *Sim) about(c *call, one Call) []guild.ID {
	var out []guild.ID
	add := func(id guild.ID) {
		if id != 0 && !slices.Contains(out, id) {
			out = append(out, id)
		}
	}
	add(c.id("message"))
	var made struct {
		ID      guild.ID               `json:"id"`
		Channel guild.ID               `json:"channel_id"`
		Message *struct{ ID guild.ID } `json:"message"`
	}
	if json.Unmarshal(one.Response, &made) == nil {
		if made.Channel != 0 {
			add(made.ID)
		}
		if made.Message != nil {
			add(made.Message.ID) // a post in a forum
		}
	}
	for _, id := range s.guild.InteractionMessages(c.PathValue("token")) {
		add(id)
	}
	return out
}

// Calls returns the requests with which bots changed something, oldest first; about a message, or all if it is 0.
func (s *Sim) Calls(message guild.ID) []Call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.callsAbout(message)
}

func (s *Sim) callsAbout(message guild.ID) []Call {
	out := []Call{}
	for _, one := range s.calls {
		if message == 0 || slices.Contains(one.Messages, message) {
			out = append(out, one)
		}
	}
	return out
}
