// Package webhook checks the signatures of incoming webhooks. It is pure.
//
// It supports two ways of signing: GitHub's (X-Hub-Signature-256, over the body) and that of
// Standard Webhooks (webhook-id, webhook-timestamp and webhook-signature, over id, time and body).
// Nothing passes without the secret. Comparing takes the same time whatever differs. Each delivery
// has a key by which repeated deliveries are recognised.
package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Tolerance is how far a signature's time may differ from ours.
const Tolerance = 5 * time.Minute

// Delivery is a request with a valid signature.
type Delivery struct {
	Key   string // the same for every repetition of a delivery
	ID    string // as named by the sender; "" if it gives none
	Event string // what happened, if the sender says so outside the body
}

// RefusedError says why a request is refused, and what to do.
type RefusedError struct{ Why string }

func (e *RefusedError) Error() string { return e.Why }

func refused(format string, args ...any) error { return &RefusedError{fmt.Sprintf(format, args...)} }

// maxID is longer than any sender's ids.
const maxID = 256

// Verify checks a request with the secret that its sender uses.
func Verify(secret string, h http.Header, body []byte, now time.Time) (Delivery, error) {
	standard := first(h, "Webhook-Signature", "Svix-Signature")
	github := h.Get("X-Hub-Signature-256")
	switch {
	case secret == "":
		return Delivery{}, refused("the hook has no secret; make one: chorus hook edit ID --new-secret")
	case standard != "":
		return verifyStandard(secret, standard, h, body, now)
	case github != "":
		return verifyGitHub(secret, github, h, body)
	default:
		return Delivery{}, refused("the request is not signed; sign it with the hook's secret: webhook-id, webhook-timestamp and webhook-signature (Standard Webhooks), or X-Hub-Signature-256 (GitHub)")
	}
}

func first(h http.Header, names ...string) string {
	for _, name := range names {
		if value := h.Get(name); value != "" {
			return value
		}
	}
	return ""
}

const wrong = "the signature does not match the body and the secret; check that the sender has the hook's secret (chorus hook edit ID --new-secret makes a new one) and sends the body unchanged"

func verifyGitHub(secret, given string, h http.Header, body []byte) (Delivery, error) {
	text, ok := strings.CutPrefix(given, "sha256=")
	sum, err := hex.DecodeString(text)
	if !ok || err != nil || !hmac.Equal(sum, digest([]byte(secret), body)) {
		return Delivery{}, refused("%s", wrong)
	}
	// The id is not signed: whoever repeats the request could change it.
	return Delivery{Key: "github/" + hex.EncodeToString(sum), ID: clipped(h.Get("X-GitHub-Delivery")), Event: clipped(h.Get("X-GitHub-Event"))}, nil
}

func verifyStandard(secret, given string, h http.Header, body []byte, now time.Time) (Delivery, error) {
	id, stamp := first(h, "Webhook-Id", "Svix-Id"), first(h, "Webhook-Timestamp", "Svix-Timestamp")
	if id == "" || len(id) > maxID || stamp == "" {
		return Delivery{}, refused("webhook-id (at most %d bytes) and webhook-timestamp belong to webhook-signature", maxID)
	}
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil {
		return Delivery{}, refused("webhook-timestamp must be seconds since 1970, not %.40q", stamp)
	}
	key := []byte(secret)
	if text, ok := strings.CutPrefix(secret, "whsec_"); ok {
		if key, err = base64.StdEncoding.DecodeString(text); err != nil {
			return Delivery{}, refused("the hook's secret is broken; make a new one: chorus hook edit ID --new-secret")
		}
	}
	want := digest(key, []byte(id+"."+stamp+"."), body)
	fits := false
	for part := range strings.FieldsSeq(given) {
		text, ok := strings.CutPrefix(part, "v1,")
		sum, err := base64.StdEncoding.DecodeString(text)
		fits = ok && err == nil && hmac.Equal(sum, want) || fits
	}
	if !fits {
		return Delivery{}, refused("%s", wrong)
	}
	// Checked only now: an unsigned request gets no explanation about its age.
	switch age := now.Sub(time.Unix(seconds, 0)); {
	case age > Tolerance:
		return Delivery{}, refused("the signature is %s old, and the limit is %s: send the request again with the current time and a new signature, and check the sender's clock", age.Round(time.Second), Tolerance)
	case age < -Tolerance:
		return Delivery{}, refused("the signature is from %s in the future, and the limit is %s: check the sender's clock and ours", (-age).Round(time.Second), Tolerance)
	}
	return Delivery{Key: "standard/" + id, ID: id, Event: ""}, nil
}

func digest(key []byte, parts ...[]byte) []byte {
	mac := hmac.New(sha256.New, key)
	for _, part := range parts {
		mac.Write(part)
	}
	return mac.Sum(nil)
}

func clipped(text string) string { return text[:min(len(text), maxID)] }
