package gate

import (
	"testing"

	"chorus/internal/agent"
	"chorus/internal/approval"
	"chorus/internal/chat"
	"chorus/internal/config"
	"chorus/internal/transcript"
)

// TestRedirects: a page may lead only to where a call would be allowed, or, where its host was asked for, within that host.
func TestRedirects(t *testing.T) {
	t.Parallel()
	mine := config.Profile{
		Allow: []string{`tool:web_fetch:https://docs\.example/.*`},
		Ask:   []string{`tool:web_fetch:.*`},
		Deny:  []string{`tool:web_fetch:https?://[^/]*/admin.*`},
	}
	for _, c := range []struct {
		profile  string
		yes      bool
		from, to string
		want     bool
	}{
		{"mine", false, "https://docs.example/a", "https://docs.example/b", false},
		{"mine", false, "https://docs.example/a", "https://docs.example/admin", true},
		{"mine", false, "https://docs.example/a", "https://other.example/", true},
		{"mine", true, "https://docs.example/a", "https://other.example/", false}, // every question is answered yes
		{"mine", true, "https://docs.example/a", "https://other.example/admin", true},
		{"mine", false, "https://other.example/", "https://docs.example/b", false},
		{"standard", false, "https://a.example/", "https://a.example/en", false},
		{"standard", false, "http://a.example/", "https://www.a.example/", false},
		{"standard", false, "https://a.example/", "http://a.example/", true},
		{"standard", false, "https://a.example/", "https://a.example:8443/", true},
		{"standard", false, "https://a.example/", "https://b.example/", true},
		{"open", false, "https://a.example/", "https://b.example/", false},
	} {
		bot := &config.Bot{Permissions: c.profile, Profiles: map[string]config.Profile{"mine": mine}}
		touch := toucher{{Tool: "web_fetch", Detail: c.from}}
		q := agent.ProposedCall{Tool: named{touch, "web_fetch"}, Touches: touch, Senders: []transcript.Sender{said(ada, chat.Terms{Yes: c.yes})}}
		ruling := newGate(bot, true).Judge(q, chat.Principal{})
		if ruling.Verdict == approval.Deny || ruling.Hides == nil {
			t.Fatalf("%+v: %+v", c, ruling)
		}
		if got := ruling.Hides(c.to); got != c.want {
			t.Errorf("%+v: %t", c, got)
		}
	}
}
