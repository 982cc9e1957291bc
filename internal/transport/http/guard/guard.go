// Package guard authenticates HTTP requests and rejects forged ones.
//
// It promises:
//   - no handler behind it is reached without a valid token, except on public paths;
//   - a request must name one of our hosts, so that a foreign site cannot reach us through
//     its own name (DNS rebinding);
//   - a browser can change something only from our own pages;
//   - a sign-in link works once, and a cookie until its person signs out, even across restarts;
//   - clients that send wrong tokens too often must wait, and are told how long; a valid token
//     still passes, because one stale client must not lock out everybody at its address;
//   - neither tokens nor cookies are ever written to a log or sent back.
package guard

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"chorus/internal/operation"
	"chorus/internal/operations"
)

// TokenStore finds tokens.
type TokenStore interface {
	// TokenByText finds a valid token; an error of kind NotFound: there is none.
	TokenByText(ctx context.Context, text string) (operations.Token, error)
	// TokenByID does the same by id.
	TokenByID(ctx context.Context, id string) (operations.Token, error)
	// EndSignIn invalidates a link or a cookie with this nonce for the time keep, even across restarts. first is false if that was already done.
	EndSignIn(ctx context.Context, nonce string, keep time.Duration) (first bool, err error)
	// SignInEnded reports whether EndSignIn was called for the nonce.
	SignInEnded(ctx context.Context, nonce string) (bool, error)
}

// Options configure a Guard.
type Options struct {
	Tokens TokenStore
	Key    []byte // signs cookies and sign-in links; at least 32 bytes
	// Hosts are the names by which clients reach us, in addition to those of the loopback.
	Hosts       []string
	BehindProxy bool // a trusted proxy sets X-Forwarded-For
	TLS         bool // browsers use https
	// Public reports whether a request needs no token. A wrong token is rejected there too.
	Public func(*http.Request) bool
	Log    *slog.Logger
	Now    func() time.Time
}

// Guard checks requests. Make it with New.
type Guard struct {
	Options
	crossOrigin *http.CrossOriginProtection
	throttle    *throttle
	open        openRequests
}

// keySize is the recommended key size of HMAC-SHA-256.
const keySize = 32

// New makes a Guard.
func New(o Options) (*Guard, error) {
	if len(o.Key) < keySize {
		return nil, errors.New("guard: the key is too short")
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	if o.Public == nil {
		o.Public = func(*http.Request) bool { return false }
	}
	g := &Guard{Options: o, crossOrigin: http.NewCrossOriginProtection(), throttle: newThrottle()}
	for _, h := range o.Hosts {
		if err := g.crossOrigin.AddTrustedOrigin(g.scheme() + "://" + h); err != nil {
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

// Wrap passes authenticated and public requests on, with the caller in the context.
func (g *Guard) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.headers(w, r)
		if !g.isOwnHost(r.Host) {
			writeProblem(w, r, operation.Errorf(operation.Forbidden, "this server does not answer to the name %q; use 127.0.0.1 or localhost, or allow the name with --host", r.Host))
			return
		}
		if err := g.sameOrigin(r); err != nil {
			writeProblem(w, r, operation.Errorf(operation.Forbidden, "requests from pages of other sites are not allowed"))
			return
		}
		caller, nonce, known, err := g.caller(w, r)
		switch {
		case err != nil:
			writeProblem(w, r, err)
			return
		case known:
			ctx := operation.WithCaller(r.Context(), caller)
			if nonce != "" && r.URL.Path != "/sign-out" {
				var end func()
				ctx, end = g.open.begin(ctx, nonce)
				defer end()
			}
			r = r.WithContext(ctx)
		case !g.Public(r):
			g.unauthenticated(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// unauthenticated redirects browsers to the sign-in page and tells programs that a token is missing.
func (g *Guard) unauthenticated(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet && strings.Contains(r.Header.Get("Accept"), "text/html") {
		http.Redirect(w, r, "/sign-in?next="+url.QueryEscape(r.URL.RequestURI()), http.StatusSeeOther)
		return
	}
	w.Header().Set("WWW-Authenticate", `Bearer realm="chorus"`)
	writeProblem(w, r, operation.Errorf(operation.Unsigned, "a token is required: send it as \"Authorization: Bearer …\"; `chorus token create` makes one"))
}

// sameOrigin rejects requests that a page of another site made a browser send. Programs send neither Origin nor Sec-Fetch-Site.
func (g *Guard) sameOrigin(r *http.Request) error {
	if origin := r.Header.Get("Origin"); origin != "" && origin != "null" {
		u, err := url.Parse(origin)
		if err != nil || !g.isOwnHost(u.Host) {
			return errors.New("foreign origin")
		}
	}
	return g.crossOrigin.Check(r)
}

// isOwnHost reports whether a Host or Origin header names this server.
func (g *Guard) isOwnHost(host string) bool {
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
	return slices.ContainsFunc(g.Hosts, func(h string) bool { return strings.EqualFold(h, host) || strings.EqualFold(h, name) })
}

// policy lets pages load our own files only, and nothing inline.
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

// caller determines who sent a request, and by which cookie; false without an error: nobody signed in. Wrong credentials are an error.
func (g *Guard) caller(w http.ResponseWriter, r *http.Request) (_ operation.Caller, nonce string, known bool, _ error) {
	text, shown := bearer(r)
	cookie, cerr := r.Cookie(g.cookieName())
	if !shown && cerr != nil {
		return operation.Caller{}, "", false, nil
	}
	from := g.clientAddr(r)
	if shown {
		token, err := g.Tokens.TokenByText(r.Context(), text)
		if operation.KindOf(err) == operation.NotFound {
			if wait := g.throttle.failed(from, g.Now()); wait > 0 {
				return operation.Caller{}, "", false, tooManyFailures(w, wait)
			}
			w.Header().Set("WWW-Authenticate", `Bearer realm="chorus", error="invalid_token"`)
			return operation.Caller{}, "", false, operation.Errorf(operation.Unsigned, "this token is wrong, expired or revoked; `chorus token create` makes a new one")
		}
		return callerOf(token), "", err == nil, err
	}
	signed, ok := verify(g.Key, "cookie", cookie.Value, g.Now())
	if !ok {
		g.clearCookie(w)
		return operation.Caller{}, "", false, nil
	}
	ended, err := g.Tokens.SignInEnded(r.Context(), signed.nonce)
	if err != nil {
		return operation.Caller{}, "", false, err
	}
	if ended {
		g.clearCookie(w)
		return operation.Caller{}, "", false, nil
	}
	token, err := g.Tokens.TokenByID(r.Context(), signed.token)
	if operation.KindOf(err) == operation.NotFound {
		g.clearCookie(w)
		return operation.Caller{}, "", false, nil
	}
	return callerOf(token), signed.nonce, err == nil, err
}

func callerOf(t operations.Token) operation.Caller {
	return operation.Caller{Principal: t.Holder(), Scopes: t.Scopes}
}

func bearer(r *http.Request) (string, bool) {
	scheme, text, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return "", r.Header.Get("Authorization") != "" // any other scheme is a wrong token
	}
	return strings.TrimSpace(text), true
}

// clientAddr returns the address of the client. Behind a proxy it is the last hop, the only one that the proxy vouches for.
func (g *Guard) clientAddr(r *http.Request) string {
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
