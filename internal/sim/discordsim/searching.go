package discordsim

import (
	"cmp"
	"net/url"
	"slices"
	"strings"
)

func (s *Sim) routesSearch() {
	s.route("GET /guilds/{guild}/messages/search", withAccount, searchMessages)
}

// foundMessage is a message that a search found.
type foundMessage struct {
	Message
	Hit bool `json:"hit"`
}

// searchMessages looks through every channel that the asker can read the history of, the newest first.
func searchMessages(c *call) (any, error) {
	q := c.URL.Query()
	limit, err1 := c.query("limit", 25, 1, 25)
	offset, err2 := c.query("offset", 0, 0, 9975)
	after, err3 := c.queryID("min_id")
	before, err4 := c.queryID("max_id")
	if err := firstOf(c.guild(), err1, err2, err3, err4); err != nil {
		return nil, err
	}
	if c.who.Bot && c.who.privileged&intentContent == 0 {
		return nil, noAccess()
	}
	if order := q.Get("sort_order"); order != "" && order != "asc" && order != "desc" {
		return nil, wrong("sort_order", "BASE_TYPE_CHOICES", "Value must be one of {'desc', 'asc'}.")
	}
	var hits []*Message
	threads := []*Channel{}
	for _, in := range c.w.channels {
		if in.GuildID == 0 || !asked(q, "channel_id", in.ID.String()) || !c.w.sees(c.who, in) || !c.w.rights(c.who, in).Has(PermReadHistory) {
			continue
		}
		n := len(hits)
		for _, m := range in.messages {
			if m.seenBy == 0 && m.ID > after && (before == 0 || m.ID < before) && m.fits(q) {
				hits = append(hits, m)
			}
		}
		if len(hits) > n && in.thread() {
			threads = append(threads, in)
		}
	}
	slices.SortFunc(hits, func(a, b *Message) int {
		if q.Get("sort_order") == "asc" {
			return cmp.Compare(a.ID, b.ID)
		}
		return cmp.Compare(b.ID, a.ID)
	})
	total := len(hits)
	hits = hits[min(offset, total):min(offset+limit, total)]
	groups := [][]foundMessage{} // of each hit and what stands around it, which Discord leaves out now
	for _, m := range hits {
		groups = append(groups, []foundMessage{{c.w.view(m, c.who.ID, false), true}})
	}
	return object{"doing_deep_historical_index": false, "documents_indexed": total, "total_results": total, "messages": groups,
		"threads": threads, "members": c.joinedIn(threads)}, nil
}

// asked reports whether a filter lets one of the values through; one that is not there lets all.
func asked(q url.Values, name string, values ...string) bool {
	wanted := q[name]
	return len(wanted) == 0 || slices.ContainsFunc(values, func(v string) bool { return slices.Contains(wanted, v) })
}

// fits holds a message against the filters of a search.
func (m *Message) fits(q url.Values) bool {
	text := strings.ToLower(m.Content)
	for word := range strings.FieldsSeq(strings.ToLower(q.Get("content"))) {
		if !strings.Contains(text, word) {
			return false
		}
	}
	kind := "user"
	switch {
	case m.WebhookID != 0:
		kind = "webhook"
	case m.Author.Bot:
		kind = "bot"
	}
	mentioned := make([]string, 0, len(m.mentions))
	for _, id := range m.mentions {
		mentioned = append(mentioned, id.String())
	}
	if !asked(q, "author_id", m.Author.ID.String()) || !asked(q, "author_type", kind) || !asked(q, "mentions", mentioned...) {
		return false
	}
	if pinned := q.Get("pinned"); pinned != "" && (pinned == "true") != m.Pinned {
		return false
	}
	has := map[string]bool{"file": len(m.Attachments) > 0, "embed": len(m.Embeds) > 0, "poll": m.Poll != nil, "snapshot": len(m.Snapshots) > 0,
		"link": strings.Contains(text, "http://") || strings.Contains(text, "https://")}
	for _, a := range m.Attachments {
		for _, media := range []string{"image", "video", "sound"} {
			has[media] = has[media] || strings.HasPrefix(strings.Replace(a.ContentType, "audio/", "sound/", 1), media+"/")
		}
	}
	for _, what := range q["has"] {
		if no, isNo := strings.CutPrefix(what, "-"); has[no] == isNo {
			return false
		}
	}
	return true
}
