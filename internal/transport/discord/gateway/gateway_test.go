package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/disgoorg/disgo/rest"
	"github.com/gorilla/websocket"
	"go.uber.org/goleak"

	"chorus/internal/outbox"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestPermanentErrorsSayWhatToDo(t *testing.T) {
	t.Parallel()
	for code, want := range map[int]string{4004: "DISCORD_BOT_TOKEN", 4014: "Message Content Intent", 4013: "4013", 4000: "", 4009: "", 1006: ""} {
		err := permanent(&websocket.CloseError{Code: code})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("code %d: %v", code, err)
		}
	}
	if err := permanent(errors.New("connection reset")); err != nil {
		t.Errorf("a broken line is no reason to give up: %v", err)
	}
}

func TestTroubleIsToldApart(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status int
		body   string
		want   outbox.Why
	}{
		{500, `{}`, outbox.Temporary}, {404, `{"code":10008}`, outbox.Gone}, {404, `{"code":10003}`, outbox.Nowhere}, {403, `{"code":50013}`, outbox.Forbidden},
		{400, `{"code":50083}`, outbox.Archived}, {400, `{"code":50035}`, outbox.Invalid},
	} {
		err := Trouble(said(t, c.status, c.body, nil))
		var got *outbox.Trouble
		if !errors.As(err, &got) || got.Why != c.want {
			t.Errorf("%d %s is %v", c.status, c.body, err)
		}
	}
	var limited *outbox.RateLimited
	err := Trouble(said(t, 429, `{}`, http.Header{"X-Ratelimit-Reset-After": {"1.5"}, "X-Ratelimit-Global": {"true"}}))
	if !errors.As(err, &limited) || limited.After != 1500*time.Millisecond || !limited.Global {
		t.Errorf("%v", err)
	}
}

// said is the error that the library makes of an answer.
func said(t *testing.T, status int, body string, header http.Header) error {
	t.Helper()
	e := &rest.Error{Response: &http.Response{StatusCode: status, Header: header}}
	if err := json.Unmarshal([]byte(body), e); err != nil {
		t.Fatal(err)
	}
	return e
}

func TestLimiterWaitsFractionsOfSeconds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := newLimiter(slog.New(slog.DiscardHandler))
		e := rest.CreateMessage.Compile(nil, 1)
		answer := &http.Response{StatusCode: 200, Header: http.Header{"X-Ratelimit-Remaining": {"0"}, "X-Ratelimit-Reset-After": {"0.25"}}}
		began := time.Now()
		for range 3 {
			if err := l.Wait(t.Context(), e); err != nil {
				t.Fatal(err)
			}
			_ = l.Unlock(e, answer)
		}
		if took := time.Since(began); took != 500*time.Millisecond {
			t.Errorf("three calls took %v", took)
		}
		other := rest.CreateMessage.Compile(nil, 2)
		if err := l.Wait(t.Context(), other); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took != 500*time.Millisecond {
			t.Errorf("another channel waited too: %v", took)
		}
		_ = l.Unlock(other, &http.Response{StatusCode: 429, Header: http.Header{"X-Ratelimit-Global": {"true"}, "Retry-After": {"2"}, "Via": {"1.1 x"}}})
		if err := l.Wait(t.Context(), other); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took != 2500*time.Millisecond {
			t.Errorf("the global limit was not kept: %v", took)
		}
		_ = l.Unlock(other, nil)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		_ = l.Wait(ctx, other)
		if err := l.Wait(ctx, other); err == nil {
			t.Error("two are in one bucket at once")
		}
	})
}

// Whoever looks into the log finds each rate limit that was hit.
func TestRateLimitsAreLogged(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	l := newLimiter(slog.New(slog.NewTextHandler(&out, nil)))
	e := rest.CreateMessage.Compile(nil, 1)
	if err := l.Wait(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	_ = l.Unlock(e, &http.Response{StatusCode: http.StatusTooManyRequests, Header: http.Header{"X-Ratelimit-Reset-After": {"0.1"}, "X-Ratelimit-Scope": {"user"}, "Via": {"1.1 x"}}})
	for _, want := range []string{"event=rate_limited", "scope=user", "/channels/{channel.id}/messages"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the log has no %s: %s", want, out.String())
		}
	}
}
