// Package guard stands at the door of the HTTP server. It says who comes in, and
// turns away what does not come from whom it seems.
//
// It promises:
//   - nothing behind it is reached without a token that is good now, except the paths
//     that are open by name;
//   - a request must name a host that is ours, so a page elsewhere cannot lead a browser
//     here under a name of its own (DNS rebinding);
//   - what changes something is taken from a browser only when our own page sent it;
//   - guessing is slow: who fails too often waits, and is told how long;
//   - neither a token nor a cookie is ever written to a log or sent back.
package guard

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"chorus/internal/command"
)

// Keeper knows the tokens.
type Keeper interface {
	// TokenByText finds the token that is good now; an error of kind NotFound: there is none.
	TokenByText(ctx context.Context, text string) (command.Token, error)
	// TokenByID does the same by its id.
	TokenByID(ctx context.Context, id string) (command.Token, error)
}

// Options are what a guard is made of.
type Options struct {
	Keeper Keeper
	Key    []byte // signs cookies and sign-in links; at least 32 bytes
	// Hosts are the names under which we are reached besides those of the loopback.
	Hosts       []string
	BehindProxy bool // a proxy of ours stands before us and says who comes
	TLS         bool // people see https
	// Open says which paths need no token; wrong ones are turned away there too.
	Open func(*http.Request) bool
	Log  *slog.Logger
	Now  func() time.Time
}

// Guard checks requests. Make it with New.
type Guard struct {
	Options
	cross *http.CrossOriginProtection
	slow  *slowness
	used  *once
}

// keySize is what an HMAC with SHA-256 is best given.
const keySize = 32

// New makes a guard.
func New(o Options) (*Guard, error) {
	if len(o.Key) < keySize {
		return nil, errors.New("guard: the key is too short")
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Open == nil {
		o.Open = func(*http.Request) bool { return false }
	}
	g := &Guard{Options: o, cross: http.NewCrossOriginProtection(), slow: newSlowness(), used: newOnce()}
	for _, h := range o.Hosts {
		if err := g.cross.AddTrustedOrigin(g.scheme() + "://" + h); err != nil {
			return nil, err
		}
	}
	return g, nil
}

func (g *Guard) scheme() string {
	if g.TLS {
		return "https"
	}
	return "http"
}

// Wrap lets through what may come in, with its caller in the context.
func (g *Guard) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.headers(w, r)
		if !g.ours(r.Host) {
			refuse(w, r, command.Errorf(command.Forbidden, "this server does not answer to the name %q; use 127.0.0.1 or localhost, or name it with --host", r.Host))
			return
		}
		if err := g.sameOrigin(r); err != nil {
			refuse(w, r, command.Errorf(command.Forbidden, "a page of another site may not do this here"))
			return
		}
		caller, known, err := g.caller(w, r)
		switch {
		case err != nil:
			refuse(w, r, err)
			return
		case known:
			r = r.WithContext(command.WithCaller(r.Context(), caller))
		case !g.Open(r):
			g.turnAway(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// turnAway shows people the way in, and programs what they lack.
func (g *Guard) turnAway(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet && strings.Contains(r.Header.Get("Accept"), "text/html") {
		http.Redirect(w, r, "/sign-in?next="+url.QueryEscape(r.URL.RequestURI()), http.StatusSeeOther)
		return
	}
	w.Header().Set("WWW-Authenticate", `Bearer realm="chorus"`)
	refuse(w, r, command.Errorf(command.Unsigned, "a token is needed: send it as \"Authorization: Bearer …\"; `chorus token create` makes one"))
}

// sameOrigin turns away what a page of another site makes a browser send. Programs
// send neither Origin nor Sec-Fetch-Site.
func (g *Guard) sameOrigin(r *http.Request) error {
	if origin := r.Header.Get("Origin"); origin != "" && origin != "null" {
		u, err := url.Parse(origin)
		if err != nil || !g.ours(u.Host) {
			return errors.New("foreign origin")
		}
	}
	return g.cross.Check(r)
}

// ours reports whether a Host or Origin names us.
func (g *Guard) ours(host string) bool {
	name := host
	if h, _, err := net.SplitHostPort(host); err == nil {
		name = h
	}
	name = strings.TrimSuffix(strings.ToLower(strings.Trim(name, "[]")), ".")
	if name == "localhost" || strings.HasSuffix(name, ".localhost") {
		return true
	}
	if ip, err := netip.ParseAddr(name); err == nil && ip.IsLoopback() {
		return true
	}
	for _, h := range g.Hosts {
		if strings.EqualFold(h, host) || strings.EqualFold(h, name) {
			return true
		}
	}
	return false
}

// policy lets a page load and do what comes from us, and nothing inline.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; connect-src 'self'; " +
	"manifest-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

func (g *Guard) headers(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()")
	if g.TLS {
		h.Set("Strict-Transport-Security", "max-age=31536000")
	}
	if !strings.HasPrefix(r.URL.Path, "/static/") {
		h.Set("Cache-Control", "no-store")
	}
}

// caller says who sends a request. An error is somebody who shows something wrong.
func (g *Guard) caller(w http.ResponseWriter, r *http.Request) (command.Caller, bool, error) {
	text, shown := bearer(r)
	cookie, cerr := r.Cookie(g.cookieName())
	if !shown && cerr != nil {
		return command.Caller{}, false, nil
	}
	from := g.remote(r)
	if shown {
		if wait := g.slow.wait(from, g.Now()); wait > 0 {
			return command.Caller{}, false, tooOften(w, wait)
		}
		token, err := g.Keeper.TokenByText(r.Context(), text)
		if command.KindOf(err) == command.NotFound {
			g.slow.failed(from, g.Now())
			w.Header().Set("WWW-Authenticate", `Bearer realm="chorus", error="invalid_token"`)
			return command.Caller{}, false, command.Errorf(command.Unsigned, "this token is not valid: it is wrong, has expired or was revoked; `chorus token create` makes a new one")
		}
		return callerOf(token), err == nil, err
	}
	id, ok := g.readCookie(cookie.Value)
	if !ok {
		g.dropCookie(w)
		return command.Caller{}, false, nil
	}
	token, err := g.Keeper.TokenByID(r.Context(), id)
	if command.KindOf(err) == command.NotFound {
		g.dropCookie(w)
		return command.Caller{}, false, nil
	}
	return callerOf(token), err == nil, err
}

func callerOf(t command.Token) command.Caller {
	return command.Caller{Principal: t.Holder(), Scopes: t.Scopes}
}

func bearer(r *http.Request) (string, bool) {
	scheme, text, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return "", r.Header.Get("Authorization") != "" // some other scheme opens nothing
	}
	return strings.TrimSpace(text), true
}

// remote is from where a request comes; a proxy before us appends it.
func (g *Guard) remote(r *http.Request) string {
	if g.BehindProxy {
		hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
		if last := strings.TrimSpace(hops[len(hops)-1]); last != "" {
			return last
		}
	}
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}
