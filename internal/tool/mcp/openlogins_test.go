package mcp

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"chorus/internal/tool/mcp/oauthtest"
)

// redirectHere is where browsers are sent back to in these tests. Nothing listens there.
const redirectHere = "http://127.0.0.1:1/mcp-login"

// loginFixture is a server's open logins, and how each of them ended.
type loginFixture struct {
	*testing.T
	*OpenLogins
	logins *Logins
	server Server
	ended  chan error
}

func newLoginFixture(t *testing.T, a *oauthtest.Server, life time.Duration) *loginFixture {
	t.Helper()
	d := &loginFixture{T: t, OpenLogins: &OpenLogins{Life: life}, logins: NewLogins(t.TempDir(), nil), server: Server{Name: "far", URL: a.URL + "/mcp"}, ended: make(chan error, 10)}
	t.Cleanup(d.Close)
	return d
}

func (d *loginFixture) begin() *OpenLogin {
	d.Helper()
	one, err := d.Begin(d.Context(), d.logins, d.server, LoginOptions{Version: "test"}, redirectHere, func(err error) { d.ended <- err })
	if err != nil {
		d.Fatal(err)
	}
	return one
}

// answered is what a browser comes back with after a person has opened the page.
func answered(t *testing.T, page string) url.Values {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Get(page)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	back, err := url.Parse(resp.Header.Get("Location"))
	if err != nil || !strings.HasPrefix(back.String(), redirectHere) {
		t.Fatalf("%d %s %v", resp.StatusCode, back, err)
	}
	return back.Query()
}

func TestALoginFromAnotherMachine(t *testing.T) {
	t.Parallel()
	d := newLoginFixture(t, newAuthorization(t), 0)
	one := d.begin()
	if left := time.Until(one.Until); left < 9*time.Minute || left > 10*time.Minute {
		t.Errorf("%s to say yes", left)
	}
	soon, cancel := context.WithCancel(t.Context())
	cancel()
	if _, over, err := d.Wait(soon, one.ID); over || err != nil {
		t.Errorf("%v %v", over, err)
	}
	q := answered(t, one.Page)
	// Somebody who knows the code but not the state gets nowhere, and does not spoil it.
	for _, state := range []string{"", "guessed"} {
		if _, err := d.Return(t.Context(), url.Values{"code": q["code"], "state": {state}}); !errors.Is(err, ErrUnknownLogin) {
			t.Errorf("%q: %v", state, err)
		}
	}
	if name, err := d.Return(t.Context(), q); name != "far" || err != nil || !d.logins.Has(d.server) {
		t.Fatal(name, err)
	}
	if _, over, err := d.Wait(t.Context(), one.ID); !over || err != nil || <-d.ended != nil {
		t.Errorf("%v %v", over, err)
	}
	// The same address once more is worth nothing, also where the login was forgotten since.
	if err := d.logins.Remove(d.server); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Return(t.Context(), q); !errors.Is(err, ErrFinishedLogin) || d.logins.Has(d.server) {
		t.Errorf("%v", err)
	}
	if _, _, err := d.Wait(t.Context(), "unknown"); !errors.Is(err, ErrUnknownLogin) {
		t.Errorf("%v", err)
	}
}

func TestLoginsThatNobodyFinishes(t *testing.T) {
	t.Parallel()
	a := newAuthorization(t)
	t.Run("refused", func(t *testing.T) {
		d := newLoginFixture(t, a, 0)
		one := d.begin()
		q := url.Values{"error": {"access_denied"}, "state": {pageState(t, one.Page)}}
		if _, err := d.Return(t.Context(), q); err == nil || !strings.Contains(err.Error(), "the login was refused: access_denied") {
			t.Errorf("%v", err)
		}
		if _, err := d.Return(t.Context(), answered(t, one.Page)); !errors.Is(err, ErrFinishedLogin) {
			t.Errorf("after a no: %v", err)
		}
	})
	t.Run("too late", func(t *testing.T) {
		d := newLoginFixture(t, a, 100*time.Millisecond)
		one, err := d.Begin(t.Context(), d.logins, d.server, LoginOptions{}, redirectHere, func(err error) { d.ended <- err })
		for ; errors.Is(err, errLoginOver); d.Life *= 2 { // on a busy machine it is over before it was begun
			one, err = d.Begin(t.Context(), d.logins, d.server, LoginOptions{}, redirectHere, func(err error) { d.ended <- err })
		}
		if err != nil {
			t.Fatal(err)
		}
		q := answered(t, one.Page)
		if err := <-d.ended; !errors.Is(err, errLoginOver) {
			t.Errorf("%v", err)
		}
		if _, err := d.Return(t.Context(), q); !errors.Is(err, ErrUnknownLogin) || d.logins.Has(d.server) {
			t.Errorf("%v", err)
		}
	})
	t.Run("a wrong code", func(t *testing.T) {
		d := newLoginFixture(t, a, 0)
		q := answered(t, d.begin().Page)
		q.Set("code", "code-of-somebody-else")
		if _, err := d.Return(t.Context(), q); err == nil || !strings.Contains(err.Error(), "invalid_grant") || d.logins.Has(d.server) {
			t.Errorf("%v", err)
		}
	})
	t.Run("begun twice", func(t *testing.T) {
		d := newLoginFixture(t, a, 0)
		first := d.begin()
		second := d.begin()
		if _, over, err := d.Wait(t.Context(), first.ID); !over || !errors.Is(err, errLoginReplaced) {
			t.Errorf("%v %v", over, err)
		}
		if _, err := d.Return(t.Context(), answered(t, second.Page)); err != nil {
			t.Error(err)
		}
	})
	t.Run("a server without logins", func(t *testing.T) {
		d := newLoginFixture(t, a, 0)
		d.server.URL = a.URL + "/nothing"
		if _, err := d.Begin(t.Context(), d.logins, d.server, LoginOptions{}, redirectHere, func(error) {}); err == nil {
			t.Error("it was begun")
		}
	})
	t.Run("the server stops", func(t *testing.T) {
		d := newLoginFixture(t, a, 0)
		one := d.begin()
		d.Close()
		if _, over, err := d.Wait(t.Context(), one.ID); !over || !errors.Is(err, errStopping) {
			t.Errorf("%v %v", over, err)
		}
	})
}

func pageState(t *testing.T, page string) string {
	t.Helper()
	u, err := url.Parse(page)
	if err != nil {
		t.Fatal(err)
	}
	return u.Query().Get("state")
}
