package gate

import (
	"net/url"
	"strings"

	"chorus/internal/approval"
	"chorus/internal/permit"
	"chorus/internal/transcript"
)

// redirects returns a function that reports which addresses a fetched page must not
// redirect to: those where a separate call would be denied or need approval. Approving one
// page of a host covers redirects to other pages of that host.
func (g *Judge) redirects(asked []permit.Request, checks []check, senders []transcript.Sender, own bool) func(address string) bool {
	return func(address string) bool {
		j := g.judge(checks, []permit.Request{{Tool: "web_fetch", Detail: address}})
		if j.Verdict == permit.Ask && len(asked) == 1 && sameSite(asked[0].Detail, address) {
			return false
		}
		return g.rule(j, senders, own).Verdict != approval.Allow
	}
}

// sameSite reports whether two addresses have the same host, ignoring "www.",
// and the second is not less protected than the first.
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
