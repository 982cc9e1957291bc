package webhook

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"
)

const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

var at = time.Unix(1_614_265_330, 0)

// The example of the Standard Webhooks libraries.
func TestStandard(t *testing.T) {
	t.Parallel()
	body := []byte(`{"test": 2432232314}`)
	h := http.Header{"Webhook-Id": {"msg_p5jXN8AQM9LWM0D4loKWxJek"}, "Webhook-Timestamp": {"1614265330"}, "Webhook-Signature": {"v1,AAAA v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="}}
	got, err := Verify(secret, h, body, at.Add(time.Minute))
	if err != nil || got.Key != "standard/msg_p5jXN8AQM9LWM0D4loKWxJek" {
		t.Fatal(got, err)
	}
	if made, err := signStandard(secret, got.ID, at, body); err != nil || !strings.Contains(h.Get("Webhook-Signature"), made) {
		t.Error(made, err)
	}
	svix := http.Header{"Svix-Id": h["Webhook-Id"], "Svix-Timestamp": h["Webhook-Timestamp"], "Svix-Signature": h["Webhook-Signature"]}
	if _, err := Verify(secret, svix, body, at); err != nil {
		t.Error(err)
	}
	for name, c := range map[string]struct {
		change func(http.Header)
		body   string
		now    time.Time
		want   string
	}{
		"old":          {func(http.Header) {}, string(body), at.Add(12 * time.Minute), "is 12m0s old, and the limit is 5m0s: send the request again"},
		"future":       {func(http.Header) {}, string(body), at.Add(-time.Hour), "in the future"},
		"another body": {func(http.Header) {}, `{"test": 1}`, at, "does not match"},
		"another id":   {func(h http.Header) { h.Set("Webhook-Id", "msg_2") }, string(body), at, "does not match"},
		"another time": {func(h http.Header) { h.Set("Webhook-Timestamp", strconv.FormatInt(at.Unix()+600, 10)) }, string(body), at.Add(10 * time.Minute), "does not match"},
		"no id":        {func(h http.Header) { h.Del("Webhook-Id") }, string(body), at, "webhook-id"},
		"no number":    {func(h http.Header) { h.Set("Webhook-Timestamp", "now") }, string(body), at, "seconds since 1970"},
		"no signature": {func(h http.Header) { h.Del("Webhook-Signature") }, string(body), at, "is not signed"},
		"v2 only":      {func(h http.Header) { h.Set("Webhook-Signature", "v2,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=") }, string(body), at, "does not match"},
	} {
		h := h.Clone()
		c.change(h)
		if _, err := Verify(secret, h, []byte(c.body), c.now); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The example of GitHub's documentation.
func TestGitHub(t *testing.T) {
	t.Parallel()
	h := http.Header{"X-Hub-Signature-256": {"sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"}, "X-Github-Event": {"push"}, "X-Github-Delivery": {"1"}}
	got, err := Verify("It's a Secret to Everybody", h, []byte("Hello, World!"), at)
	if err != nil || got.Event != "push" || got.ID != "1" {
		t.Fatal(got, err)
	}
	h.Set("X-GitHub-Delivery", "2")
	if again, err := Verify("It's a Secret to Everybody", h, []byte("Hello, World!"), at); err != nil || again.Key != got.Key {
		t.Error("the same request with another id is another delivery", err)
	}
	for _, c := range []struct{ secret, signature, body string }{
		{"It's a Secret to Everybody", "sha256=757107", "Hello, World!"}, {"It's a Secret to Everybody", "sha1=757107ea", "Hello, World!"},
		{"other", h.Get("X-Hub-Signature-256"), "Hello, World!"}, {"It's a Secret to Everybody", h.Get("X-Hub-Signature-256"), "Hello, World"}, {"", signGitHub("", nil), ""},
	} {
		if _, err := Verify(c.secret, http.Header{"X-Hub-Signature-256": {c.signature}}, []byte(c.body), at); err == nil {
			t.Errorf("%+v passes", c)
		}
	}
}

// signGitHub signs a body as GitHub does.
func signGitHub(secret string, body []byte) string {
	return "sha256=" + hex.EncodeToString(digest([]byte(secret), body))
}

// signStandard signs a request as Standard Webhooks says.
func signStandard(secret, id string, at time.Time, body []byte) (string, error) {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil {
		return "", fmt.Errorf("the secret is not one of Standard Webhooks: %w", err)
	}
	return "v1," + base64.StdEncoding.EncodeToString(digest(key, []byte(id+"."+strconv.FormatInt(at.Unix(), 10)+"."), body)), nil
}
