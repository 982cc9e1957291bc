package discordsim

import (
	"cmp"
	"slices"

	"chorus/internal/sim/discordsim/apierror"
	"chorus/internal/sim/discordsim/guild"
)

func (s *Sim) routesSearch() {
	s.route("GET /guilds/{guild}/messages/search", withAccount, searchMessages)
}

// foundMessage is a message that a search found.
type foundMessage struct {
	guild.Message
	Hit bool `json:"hit"`
}

// searchMessages searches every channel whose history the caller can read, newest first.
func searchMessages(c *call) (any, error) {
	q := c.URL.Query()
	limit, err1 := c.query("limit", 25, 1, 25)
	offset, err2 := c.query("offset", 0, 0, 9975)
	after, err3 := c.queryID("min_id")
	before, err4 := c.queryID("max_id")
	if err := cmp.Or(c.inGuild(), err1, err2, err3, err4); err != nil {
		return nil, err
	}
	if c.who.Bot && c.who.Privileged&guild.IntentContent == 0 {
		return nil, apierror.NoAccess()
	}
	if order := q.Get("sort_order"); order != "" && order != "asc" && order != "desc" {
		return nil, apierror.Wrong("sort_order", "BASE_TYPE_CHOICES", "Value must be one of {'desc', 'asc'}.")
	}
	hits, threads := c.guild.Search(c.who, q, after, before)
	if threads == nil {
		threads = []*guild.Channel{}
	}
	slices.SortFunc(hits, func(a, b *guild.Message) int {
		if q.Get("sort_order") == "asc" {
			return cmp.Compare(a.ID, b.ID)
		}
		return cmp.Compare(b.ID, a.ID)
	})
	total := len(hits)
	hits = hits[min(offset, total):min(offset+limit, total)]
	groups := [][]foundMessage{} // of each hit and its surroundings, which Discord leaves out now
	for _, m := range hits {
		groups = append(groups, []foundMessage{{c.guild.ViewMessage(m, c.who.ID, false), true}})
	}
	return object{"doing_deep_historical_index": false, "documents_indexed": total, "total_results": total, "messages": groups,
		"threads": threads, "members": c.joinedIn(threads)}, nil
}
