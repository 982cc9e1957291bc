package guard

import (
	"net/http"
	"net/url"
	"strings"
	"time"

	"chorus/internal/operation"
)

// keepEnded is longer than any link or cookie is valid.
const keepEnded = cookieLife + 24*time.Hour

// maxForm is far more than a token and a path need.
const maxForm = 16 << 10

// SignIn serves /sign-in and /sign-out. page shows the form, with the reason why the last
// attempt failed ("" at first) and the path to continue with.
func (g *Guard) SignIn(page func(w http.ResponseWriter, r *http.Request, status int, problem, next string)) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /sign-in", func(w http.ResponseWriter, r *http.Request) {
		next := safePath(r.URL.Query().Get("next"))
		code := r.URL.Query().Get("code")
		if code == "" {
			page(w, r, http.StatusOK, "", next)
			return
		}
		s, ok := verify(g.Key, "link", code, g.Now())
		first := false
		if ok {
			var err error
			if first, err = g.Tokens.EndSignIn(r.Context(), s.nonce, keepEnded); err != nil {
				g.Log.Error("a sign-in link could not be marked as used", "component", "http", "error", err)
				page(w, r, http.StatusServiceUnavailable, "The link could not be checked. Try again.", next)
				return
			}
		}
		if !first {
			page(w, r, http.StatusUnauthorized, "This link was used before or has expired. Run `chorus token link` for a new one.", next)
			return
		}
		if _, err := g.Tokens.TokenByID(r.Context(), s.token); err != nil {
			page(w, r, http.StatusUnauthorized, "The token behind this link was revoked. Run `chorus token link` for a new one.", next)
			return
		}
		g.setCookie(w, s.token)
		http.Redirect(w, r, next, http.StatusSeeOther)
	})
	mux.HandleFunc("POST /sign-in", func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
		next := safePath(r.PostFormValue("next"))
		from := g.clientAddr(r)
		token, err := g.Tokens.TokenByText(r.Context(), strings.TrimSpace(r.PostFormValue("token")))
		switch {
		case operation.KindOf(err) == operation.NotFound:
			if wait := g.throttle.failed(from, g.Now()); wait > 0 {
				page(w, r, http.StatusTooManyRequests, tooManyFailures(w, wait).Error(), next)
				return
			}
			page(w, r, http.StatusUnauthorized, "This token is wrong, expired or revoked.", next)
		case err != nil:
			g.Log.Error("a token could not be checked", "component", "http", "error", err)
			page(w, r, http.StatusServiceUnavailable, "The token could not be checked. Try again.", next)
		default:
			g.setCookie(w, token.ID)
			http.Redirect(w, r, next, http.StatusSeeOther)
		}
	})
	mux.HandleFunc("POST /sign-out", func(w http.ResponseWriter, r *http.Request) {
		g.clearCookie(w)
		if cookie, err := r.Cookie(g.cookieName()); err == nil {
			if s, ok := verify(g.Key, "cookie", cookie.Value, g.Now()); ok {
				if _, err := g.Tokens.EndSignIn(r.Context(), s.nonce, keepEnded); err != nil {
					g.Log.Error("a cookie could not be ended", "component", "http", "error", err)
					page(w, r, http.StatusServiceUnavailable, "You could not be signed out everywhere. Try again.", "/")
					return
				}
				g.open.signedOut(s.nonce)
			}
		}
		http.Redirect(w, r, "/sign-in", http.StatusSeeOther)
	})
	return mux
}

// safePath returns the path to continue with after signing in: one on this server, or "/".
func safePath(next string) string {
	u, err := url.Parse(next)
	if err != nil || u.IsAbs() || u.Host != "" || !strings.HasPrefix(u.Path, "/") || strings.HasPrefix(u.Path, "//") ||
		strings.ContainsAny(next, "\\\r\n\t") || strings.HasPrefix(u.Path, "/sign-") {
		return "/"
	}
	return u.RequestURI()
}
