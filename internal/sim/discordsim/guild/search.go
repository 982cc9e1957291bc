package guild

import (
	"net/url"
	"slices"
	"strings"
)

// Search returns the messages that match the filters of a query, between two ids (0: no bound), in every channel whose
// history the caller can read; and the threads of some of them.
func (g *Guild) Search(a *Account, q url.Values, after, before ID) (hits []*Message, threads []*Channel) {
	for _, in := range g.Channels {
		if in.GuildID == 0 || !asked(q, "channel_id", in.ID.String()) || !g.Sees(a, in) || !g.Rights(a, in).Has(PermReadHistory) {
			continue
		}
		n := len(hits)
		for _, m := range in.messages {
			if m.seenBy == 0 && m.ID > after && (before == 0 || m.ID < before) && m.fits(q) {
				hits = append(hits, m)
			}
		}
		if len(hits) > n && in.IsThread() {
			threads = append(threads, in)
		}
	}
	return hits, threads
}

// asked reports whether a filter accepts one of the values; a missing filter accepts all.
func asked(q url.Values, name string, values ...string) bool {
	wanted := q[name]
	return len(wanted) == 0 || slices.ContainsFunc(values, func(v string) bool { return slices.Contains(wanted, v) })
}

// fits checks a message against the filters of a search.
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
