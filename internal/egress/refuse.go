package egress

import (
	"cmp"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strings"

	"chorus/internal/netguard"
)

// Kind says why something was refused.
type Kind string

// The reasons. The owner of the rules can allow the first two; the
// others are mistakes of the program, or attacks.
const (
	NotListed Kind = "not listed"        // no rule allows the host and port
	Inside    Kind = "not public"        // its address is private, and no rule names exactly this host and port
	WrongHost Kind = "secret not for it" // a placeholder was sent to a host that the secret is not for
	NoSecret  Kind = "no such secret"    // a placeholder names a secret that does not exist
)

// Refusal is one request that was refused.
type Refusal struct {
	Host   string // as written in the rules: with its port if it needs one
	Kind   Kind
	Secret string // its name, for WrongHost and NoSecret
}

// refused is a Refusal as an error.
type refused struct {
	Refusal
	detail string
}

func (r *refused) Error() string { return string(r.Kind) + ": " + r.Host }

// notListed refuses a target that no rule allows. A target whose address is not public is
// reported as such at once, so that nobody allows it unknowingly.
func notListed(t target) *refused {
	if addr, err := netip.ParseAddr(t.host); err == nil {
		if why := netguard.Closed(addr); why != "" {
			return notPublic(t, why)
		}
	}
	return &refused{Refusal: Refusal{Host: t.display(), Kind: NotListed}}
}

// notPublic refuses an address that is not public; only a rule with its port would allow it.
func notPublic(t target, why string) *refused {
	return &refused{Refusal{Host: t.String(), Kind: Inside}, why}
}

// refusalResponse returns the response to a refused request. Many programs
// show only the status line, so it contains the host too.
func (p *Proxy) refusalResponse(r *refused) *http.Response {
	if p.opt.OnRefused != nil {
		p.opt.OnRefused(r.Refusal)
	}
	var text string
	switch r.Kind {
	case NotListed:
		text = fmt.Sprintf("This sandbox may not reach %s. If it should, its owner adds %q to %s.", r.Host, r.Host, p.opt.Setting)
	case Inside:
		text = fmt.Sprintf("%s is not public: %s. If this sandbox should reach it all the same, its owner adds exactly %q to %s.",
			r.Host, r.detail, r.Host, p.opt.Setting)
	case WrongHost:
		text = fmt.Sprintf("The secret %q is not for %s%s, so nothing was sent. If it is, its owner adds the host to secrets.%s.hosts.",
			r.Secret, r.Host, r.detail, r.Secret)
	case NoSecret:
		text = fmt.Sprintf("There is no secret %q, so nothing was sent to %s. Its owner adds it under secrets.", r.Secret, r.Host)
	}
	return newResponse(http.StatusForbidden, "Refused by Chorus: "+r.Host+" "+string(r.Kind), text)
}

// newResponse returns a response of the proxy itself, which the X-Chorus-Egress header
// distinguishes from the host's. reason replaces the usual text of the status.
func newResponse(status int, reason, text string) *http.Response {
	reason = cmp.Or(reason, http.StatusText(status))
	body := "chorus: " + text + "\n"
	return &http.Response{
		StatusCode: status, Status: fmt.Sprintf("%d %s", status, reason),
		ProtoMajor: 1, ProtoMinor: 1,
		Header:        http.Header{"Content-Type": {"text/plain; charset=utf-8"}, "X-Chorus-Egress": {"proxy"}, "Cache-Control": {"no-store"}},
		Body:          io.NopCloser(strings.NewReader(body)),
		ContentLength: int64(len(body)),
	}
}
