package guard

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// How long cookies and links are valid.
const (
	cookieLife = 30 * 24 * time.Hour
	linkLife   = 15 * time.Minute
)

// cookieName has the __Host- prefix with TLS: browsers then accept the cookie over https only.
func (g *Guard) cookieName() string {
	if g.TLS {
		return "__Host-chorus"
	}
	return "chorus"
}

func (g *Guard) setCookie(w http.ResponseWriter, token string) {
	http.SetCookie(w, &http.Cookie{Name: g.cookieName(), Value: Sign(g.Key, "cookie", token, g.Now().Add(cookieLife)), Path: "/",
		MaxAge: int(cookieLife / time.Second), HttpOnly: true, Secure: g.TLS, SameSite: http.SameSiteLaxMode})
}

func (g *Guard) clearCookie(w http.ResponseWriter) {
	http.SetCookie(w, &http.Cookie{Name: g.cookieName(), Path: "/", MaxAge: -1, HttpOnly: true, Secure: g.TLS, SameSite: http.SameSiteLaxMode})
}

// Link makes a sign-in link that works once and for 15 minutes. Any process with the key can make one, even while a server runs.
func Link(key []byte, base, token string, now time.Time) string {
	return strings.TrimSuffix(base, "/") + "/sign-in?code=" + Sign(key, "link", token, now.Add(linkLife))
}

// signedToken is the content of a cookie or a link.
type signedToken struct {
	token string
	until time.Time
	nonce string
}

// Sign makes a value that represents a token until a given time. purpose keeps a cookie from being used as a link and vice versa.
func Sign(key []byte, purpose, token string, until time.Time) string {
	body := strings.Join([]string{token, strconv.FormatInt(until.Unix(), 10), rand.Text()}, ".")
	return body + "." + signature(key, purpose, body)
}

func signature(key []byte, purpose, body string) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(purpose + "\x00" + body))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// verify parses what Sign wrote; false: the signature is wrong, or the time is over.
func verify(key []byte, purpose, text string, now time.Time) (signedToken, bool) {
	at := strings.LastIndexByte(text, '.')
	if at < 0 || len(text) > 512 {
		return signedToken{}, false
	}
	body, mac := text[:at], text[at+1:]
	if !hmac.Equal([]byte(signature(key, purpose, body)), []byte(mac)) {
		return signedToken{}, false
	}
	parts := strings.Split(body, ".")
	if len(parts) != 3 {
		return signedToken{}, false
	}
	until, err := strconv.ParseInt(parts[1], 10, 64)
	if err != nil || now.After(time.Unix(until, 0)) {
		return signedToken{}, false
	}
	return signedToken{parts[0], time.Unix(until, 0), parts[2]}, true
}
