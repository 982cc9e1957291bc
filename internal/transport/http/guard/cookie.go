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

// How long they are good.
const (
	cookieLife = 30 * 24 * time.Hour
	linkLife   = 15 * time.Minute
)

// cookieName keeps browsers from taking the cookie over plain HTTP where there is better.
func (g *Guard) cookieName() string {
	if g.TLS {
		return "__Host-chorus"
	}
	return "chorus"
}

func (g *Guard) setCookie(w http.ResponseWriter, token string) {
	http.SetCookie(w, &http.Cookie{Name: g.cookieName(), Value: Seal(g.Key, "cookie", token, g.Now().Add(cookieLife)), Path: "/",
		MaxAge: int(cookieLife / time.Second), HttpOnly: true, Secure: g.TLS, SameSite: http.SameSiteLaxMode})
}

func (g *Guard) dropCookie(w http.ResponseWriter) {
	http.SetCookie(w, &http.Cookie{Name: g.cookieName(), Path: "/", MaxAge: -1, HttpOnly: true, Secure: g.TLS, SameSite: http.SameSiteLaxMode})
}

func (g *Guard) readCookie(value string) (token string, ok bool) {
	s, ok := open(g.Key, "cookie", value, g.Now())
	return s.token, ok
}

// Link is a way in that is good once and for a quarter of an hour. It can be made
// by whoever has the key, beside a running server.
func Link(key []byte, base, token string, now time.Time) string {
	return strings.TrimSuffix(base, "/") + "/sign-in?code=" + Seal(key, "link", token, now.Add(linkLife))
}

// seal is what a cookie or a link says.
type seal struct {
	token string
	until time.Time
	nonce string
}

// Seal writes that whoever shows this may do what a token allows, until then.
// purpose keeps one kind from being taken for another.
func Seal(key []byte, purpose, token string, until time.Time) string {
	body := strings.Join([]string{token, strconv.FormatInt(until.Unix(), 10), rand.Text()}, ".")
	return body + "." + sign(key, purpose, body)
}

func sign(key []byte, purpose, body string) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(purpose + "\x00" + body))
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

// open reads what Seal wrote; false: it is not ours, was changed, or is over.
func open(key []byte, purpose, text string, now time.Time) (seal, bool) {
	at := strings.LastIndexByte(text, '.')
	if at < 0 || len(text) > 512 {
		return seal{}, false
	}
	body, mac := text[:at], text[at+1:]
	if !hmac.Equal([]byte(sign(key, purpose, body)), []byte(mac)) {
		return seal{}, false
	}
	parts := strings.Split(body, ".")
	if len(parts) != 3 {
		return seal{}, false
	}
	until, err := strconv.ParseInt(parts[1], 10, 64)
	if err != nil || now.After(time.Unix(until, 0)) {
		return seal{}, false
	}
	return seal{parts[0], time.Unix(until, 0), parts[2]}, true
}
