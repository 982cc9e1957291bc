package pages

import (
	"cmp"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"chorus/internal/feed"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/transport/http/display"
)

// sharedPath is the path of shared conversations.
const sharedPath = "/shared/"

// shares lists, creates and revokes links to a conversation.
func (p *Pages) shares(w http.ResponseWriter, r *http.Request, by operation.Caller) error {
	return p.showShares(w, r, by, "")
}

func (p *Pages) showShares(w http.ResponseWriter, r *http.Request, by operation.Caller, made string) error {
	s, err := operations.GetSession.Call(r.Context(), p.Executor, by, operations.SessionRef{ID: r.PathValue("id")})
	if err != nil {
		return err
	}
	list, err := operations.ListShares.Call(r.Context(), p.Executor, by, operations.SessionRef{ID: s.ID})
	if err != nil {
		return err
	}
	return p.render(w, http.StatusOK, "share.html", map[string]any{"Layout": p.layout(r, by, "Share"), "Session": s, "List": list.Items, "Made": made, "May": by.May(operation.Chat), "Names": p.names(r.Context(), by)})
}

func (p *Pages) changeShare(w http.ResponseWriter, r *http.Request, by operation.Caller) error {
	id := r.PathValue("id")
	if end := r.PostFormValue("end"); end != "" {
		if _, err := operations.EndShare.Call(r.Context(), p.Executor, by, operations.ShareRef{ID: id, Share: end}); err != nil {
			return err
		}
		return finishForm(w, r, "/s/"+id+"/share", "ended")
	}
	days, err := strconv.Atoi(cmp.Or(r.PostFormValue("days"), "0"))
	if err != nil {
		return operation.Errorf(operation.Invalid, "the number of days must be a number")
	}
	made, err := operations.CreateShare.Call(r.Context(), p.Executor, by, operations.NewShare{ID: id, Days: days})
	if err != nil {
		return err
	}
	return p.showShares(w, r, by, origin(r)+made.Path)
}

// origin is this server's address in the browser, which the browser sends with a form.
func origin(r *http.Request) string {
	if from := r.Header.Get("Origin"); strings.HasPrefix(from, "http") {
		return from
	}
	scheme := "http://"
	if r.TLS != nil {
		scheme = "https://"
	}
	return scheme + r.Host
}

// shared shows a conversation to anyone with its link. There is no sign-in, and nothing on the page leads anywhere else.
func (p *Pages) shared(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Referrer-Policy", "no-referrer") // the address is the secret
	h.Set("X-Robots-Tag", "noindex, nofollow, noarchive")
	h.Set("Cache-Control", "no-store")
	show := func(status int, data map[string]any) {
		data["Layout"] = layout{Title: "A conversation", Plain: true, Body: "shared", Version: p.Version}
		if err := p.render(w, status, "shared.html", data); err != nil {
			p.Log.Error("shared page failed", "component", "web", "error", err)
		}
	}
	if wait := p.visits.wait(clientOf(r), p.Now()); wait > 0 {
		h.Set("Retry-After", strconv.Itoa(int(wait/time.Second)+1))
		show(http.StatusTooManyRequests, map[string]any{"Problem": "Too many requests from your address. Try again in a minute."})
		return
	}
	if p.Shared == nil {
		show(http.StatusNotFound, map[string]any{"Problem": "There is nothing here."})
		return
	}
	before, _ := strconv.ParseInt(r.URL.Query().Get("before"), 10, 64)
	c, err := p.Shared(r.Context(), r.PathValue("token"), before)
	if err != nil {
		problem := p.userMessage(err)
		if operation.KindOf(err) == operation.NotFound {
			problem = "This link does not work. It has expired, was revoked, or was not copied in full."
		}
		show(statusOf(err), map[string]any{"Problem": problem})
		return
	}
	whole, err := withCalls(operation.List[feed.Item]{Items: c.Items, Next: c.Next}, func(before int64) (operation.List[feed.Item], error) {
		earlier, err := p.Shared(r.Context(), r.PathValue("token"), before)
		return operation.List[feed.Item]{Items: earlier.Items, Next: earlier.Next}, err
	})
	if err != nil {
		show(statusOf(err), map[string]any{"Problem": p.userMessage(err)})
		return
	}
	c.Items, c.Next = whole.Items, whole.Next
	for i, item := range c.Items { // a text file is part of its message
		if said, ok := item.(feed.UserMessage); ok {
			said.Text, _ = display.SplitFiles(said.Text)
			c.Items[i] = said
		}
	}
	rows, err := p.rows(view{Agent: c.Agent, Past: true, Before: before, Split: r.URL.Query().Get("diff") == "split"}, c.Items)
	if err != nil {
		p.Log.Error("shared page failed", "component", "web", "error", err)
		show(http.StatusInternalServerError, map[string]any{"Problem": "This conversation cannot be shown now."})
		return
	}
	show(http.StatusOK, map[string]any{"C": c, "Rows": rows, "Earlier": c.Next})
}

// clientOf returns the address that a request came from.
func clientOf(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

// Limits for visitors with a link: more than anybody reads, and too little to guess a link or to keep the server busy.
const (
	visitsPerMinute = 60
	maxVisitors     = 4096 // addresses counted at once; beyond that all share one count
)

// visits counts the requests of each address in the current minute.
type visits struct {
	mu     sync.Mutex
	minute time.Time
	counts map[string]int
}

// wait is how long an address has to wait; 0: not at all.
func (v *visits) wait(from string, now time.Time) time.Duration {
	v.mu.Lock()
	defer v.mu.Unlock()
	if minute := now.Truncate(time.Minute); !minute.Equal(v.minute) || v.counts == nil {
		v.minute, v.counts = minute, map[string]int{}
	}
	if _, known := v.counts[from]; !known && len(v.counts) >= maxVisitors {
		from = "everybody else"
	}
	if v.counts[from] >= visitsPerMinute {
		return v.minute.Add(time.Minute).Sub(now)
	}
	v.counts[from]++
	return 0
}
