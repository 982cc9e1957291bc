package gate

import (
	"net/url"
	"strings"

	"chorus/internal/approval"
	"chorus/internal/permit"
	"chorus/internal/transcript"
)

// redirects says which addresses a page that is fetched may not lead to: those for which a call of their own would be
// denied, or asked for. Whoever allows a page of a host allows that the host sends the reader on to another of its pages.
func (g *Judge) redirects(asked []permit.Request, checks []check, senders []transcript.Sender, own bool) func(address string) bool {
	return func(address string) bool {
		j := g.judge(checks, []permit.Request{{Tool: "web_fetch", Detail: address}})
		if j.Verdict == permit.Ask && len(asked) == 1 && sameSite(asked[0].Detail, address) {
			return false
		}
		return g.rule(j, senders, own).Verdict != approval.Allow
	}
}

// sameSite reports two addresses of one host, perhaps with and without www, the second not less protected than the first.
func sameSite(from, to string) bool {
	a, err := url.Parse(from)
	if err != nil {
		return false
	}
	b, err := url.Parse(to)
	if err != nil || a.Scheme == "https" && b.Scheme != "https" {
		return false
	}
	return strings.TrimPrefix(a.Hostname(), "www.") == strings.TrimPrefix(b.Hostname(), "www.") && (a.Port() == b.Port() || a.Scheme != b.Scheme && a.Port() == "")
}
