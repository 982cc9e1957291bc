package discordsim

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"chorus/internal/sim/discordsim/components"
	"chorus/internal/sim/discordsim/guild"
)

// routesSim mounts the routes beyond Discord: faults, state, waiting, acting.
func (s *Sim) routesSim() {
	s.mux.HandleFunc("GET /sim/state", func(w http.ResponseWriter, r *http.Request) { s.locked(w, s.state) })
	s.mux.HandleFunc("GET /sim/faults", func(w http.ResponseWriter, r *http.Request) {
		s.locked(w, func() any { return object{"faults": append([]*Fault{}, s.faults...)} })
	})
	s.mux.HandleFunc("POST /sim/faults", func(w http.ResponseWriter, r *http.Request) {
		var f Fault
		if !readJSON(w, r, &f) {
			return
		}
		id, err := s.Inject(f)
		if err != nil {
			complain(w, err)
			return
		}
		show(w, http.StatusOK, object{"id": id})
	})
	s.mux.HandleFunc("DELETE /sim/faults", func(w http.ResponseWriter, r *http.Request) {
		s.Clear(0)
		show(w, http.StatusOK, object{})
	})
	s.mux.HandleFunc("GET /sim/wait", s.simWait)
	s.mux.HandleFunc("POST /sim/act", func(w http.ResponseWriter, r *http.Request) {
		var step Step
		if !readJSON(w, r, &step) {
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), time.Minute)
		defer cancel()
		id, err := s.act(ctx, step)
		if err != nil {
			complain(w, err)
			return
		}
		show(w, http.StatusOK, object{"id": id})
	})
}

func complain(w http.ResponseWriter, err error) {
	show(w, http.StatusBadRequest, object{"message": err.Error()})
}

// readJSON parses a body of ours; an unknown key is an error.
func readJSON(w http.ResponseWriter, r *http.Request, into any) bool {
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		complain(w, err)
		return false
	}
	return true
}

// locked returns something that is read and encoded under the lock.
func (s *Sim) locked(w http.ResponseWriter, read func() any) {
	s.mu.Lock()
	raw, err := json.Marshal(read())
	s.mu.Unlock()
	if err != nil {
		complain(w, err)
		return
	}
	write(w, http.StatusOK, raw)
}

// Listing is the output of the command: all addresses, and everybody's token.
type Listing struct {
	API      string              `json:"api"`
	Page     string              `json:"page"`
	Gateway  string              `json:"gateway"`
	Guild    guild.ID            `json:"guild"`
	Channels map[string]guild.ID `json:"channels"`
	Bots     map[string]string   `json:"bots"`
	People   map[string]string   `json:"people"`
}

// List returns all addresses and tokens.
func (s *Sim) List() Listing {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := Listing{API: s.API(), Page: s.url + "/", Gateway: s.Gateway(), Guild: s.guild.ID,
		Channels: map[string]guild.ID{}, Bots: map[string]string{}, People: map[string]string{}}
	for _, c := range s.guild.Channels {
		if c.GuildID != 0 {
			l.Channels[c.Name] = c.ID
		}
	}
	for _, a := range s.guild.Accounts {
		if a.Bot {
			l.Bots[a.Username] = a.Token
		} else {
			l.People[a.Username] = a.Token
		}
	}
	return l
}

// state is the whole state, for tests and for the page.
func (s *Sim) state() any {
	channels := []object{}
	for _, c := range s.guild.Channels {
		channels = append(channels, object{"channel": c, "messages": s.guild.AllMessages(c)})
	}
	accounts := []object{}
	for _, a := range s.guild.Accounts {
		accounts = append(accounts, object{"user": a.User, "member": a.Member, "token": a.Token, "commands": append([]*guild.Command{}, a.Commands...)})
	}
	sessions := []object{}
	for _, n := range s.sessions {
		sessions = append(sessions, object{"id": n.id, "bot": n.who.Username, "intents": n.intents, "shard": n.shard, "seq": n.seq, "connected": n.socket != nil})
	}
	roles := []guild.Role{}
	for _, r := range s.guild.Roles {
		roles = append(roles, guild.ViewRole(r))
	}
	return object{"guild": object{"id": s.guild.ID, "name": s.guild.Name, "owner_id": s.guild.Owner}, "roles": roles, "accounts": accounts,
		"channels": channels, "sessions": sessions, "interactions": s.guild.InteractionsView(), "webhooks": append([]*guild.Webhook{}, s.guild.Webhooks...),
		"faults": append([]*Fault{}, s.faults...), "script": s.script}
}

// simWait waits for a message: ?from=NAME&in=CHANNEL&contains=TEXT&after=ID&timeout=10s, or for a bot and a
// command of its: ?connected=BOT&command=NAME.
func (s *Sim) simWait(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	within := 10 * time.Second
	if text := q.Get("timeout"); text != "" {
		d, err := time.ParseDuration(text)
		if err != nil || d > 10*time.Minute {
			http.Error(w, `{"message":"timeout must be like 10s, and 10m at most"}`, http.StatusBadRequest)
			return
		}
		within = d
	}
	ctx, cancel := context.WithTimeout(r.Context(), within)
	defer cancel()
	if bot := q.Get("connected"); bot != "" {
		err := s.WaitConnected(ctx, bot)
		if name := q.Get("command"); err == nil && name != "" {
			err = s.WaitCommand(ctx, bot, name)
		}
		if err != nil {
			show(w, http.StatusRequestTimeout, object{"message": err.Error()})
			return
		}
		show(w, http.StatusOK, object{"connected": bot})
		return
	}
	after, _ := guild.ParseID(q.Get("after"))
	m, err := s.waitFor(ctx, q.Get("from"), q.Get("in"), q.Get("contains"), after)
	if err != nil {
		show(w, http.StatusRequestTimeout, object{"message": err.Error()})
		return
	}
	show(w, http.StatusOK, m)
}

// waitFor waits for a message by author, channel and contents; empty fields match anything.
func (s *Sim) waitFor(ctx context.Context, from, in, contains string, after guild.ID) (guild.Message, error) {
	var place guild.ID
	if in != "" {
		s.mu.Lock()
		c, err := s.guild.FindChannel(in)
		if err == nil {
			place = c.ID
		}
		s.mu.Unlock()
		if err != nil {
			return guild.Message{}, err
		}
	}
	return s.WaitMessage(ctx, func(m guild.Message) bool {
		return m.ID > after && (from == "" || m.Author.Username == from) && (place == 0 || m.ChannelID == place) &&
			strings.Contains(m.Content+components.Displayed(m.Components), contains)
	})
}
