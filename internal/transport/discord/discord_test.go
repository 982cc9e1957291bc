package discord

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/disgoorg/disgo/rest"
	"github.com/gorilla/websocket"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"chorus/internal/chat"
	"chorus/internal/command"
	"chorus/internal/connector"
	"chorus/internal/journal"
	"chorus/internal/outbox"
	"chorus/internal/room/render"
	"chorus/internal/room/split"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestButtonsAreOpaqueAndVersioned(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in       string
		what, id string
		ok       bool
	}{
		{pressed(pressYes, "01ABC"), "yes", "01ABC", true},
		{pressed(pressStop, "a:b"), "stop", "a:b", true},
		{"c2:yes:01ABC", "", "", false},
		{"yes:01ABC", "", "", false},
		{"c1:yes:", "yes", "", false},
		{"c1", "", "", false},
		{"", "", "", false},
	} {
		what, id, ok := readPressed(c.in)
		if ok != c.ok || ok && (what != c.what || id != c.id) {
			t.Errorf("%q is read as %q, %q, %v", c.in, what, id, ok)
		}
	}
}

func TestHopelessEndsSayWhatToDo(t *testing.T) {
	t.Parallel()
	for code, want := range map[int]string{4004: "DISCORD_BOT_TOKEN", 4014: "Message Content Intent", 4013: "4013", 4000: "", 4009: "", 1006: ""} {
		err := hopeless(&websocket.CloseError{Code: code})
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("code %d: %v", code, err)
		}
	}
	if err := hopeless(errors.New("connection reset")); err != nil {
		t.Errorf("a broken line is no reason to give up: %v", err)
	}
}

// A card is a message of the platform's whatever it asks for.
func TestCardsFit(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		c := render.Card{
			Tool: rapid.StringN(0, 40, 60).Draw(t, "tool"), Actions: rapid.SliceOfN(rapid.StringN(0, 400, 800), 0, 8).Draw(t, "actions"),
			Preview: rapid.StringN(0, 2000, 4000).Draw(t, "preview"), Rule: rapid.StringN(0, 300, 600).Draw(t, "rule"),
			Open: rapid.Bool().Draw(t, "open"), OK: rapid.Bool().Draw(t, "ok"), Note: rapid.StringN(0, 500, 900).Draw(t, "note"),
			By:  rapid.SampledFrom([]string{"", "discord:1", "discord:1 and discord:2", "local:ada"}).Draw(t, "by"),
			Who: rapid.SampledFrom([]string{"", "two", "asker"}).Draw(t, "who"), FirstYes: rapid.SampledFrom([]string{"", "discord:1"}).Draw(t, "first"),
		}
		text, clipped := cardText(c)
		if n := split.Length(text); n == 0 || n > 2000 {
			t.Fatalf("a card of %d characters", n)
		}
		if whole := strings.Join(c.Actions, "\n"); !clipped && !strings.Contains(strings.ReplaceAll(text, "\n> ", "\n"), strings.TrimSpace(whole)) {
			t.Fatalf("a card that is not whole says so: %q of %q", text, whole)
		}
	})
}

// What stands on a card is what would be done: no mark of Discord's eats a part of it or hides
// it, and no character turns the others round.
func TestCardsHideNothing(t *testing.T) {
	t.Parallel()
	for _, action := range []string{"tool:bash:rm a*b*", "tool:bash:true ||rm -rf .||", "tool:bash:[ls](https://x.invalid)", "tool:bash:~~not~~ this", "tool:bash:echo _a_b"} {
		text, clipped := cardText(render.Card{Tool: "bash", Actions: []string{action}, Rule: "tool:bash:*", Open: true})
		if !strings.Contains(text, "```\n"+action+"\n```") || clipped || !strings.Contains(text, "rule: `tool:bash:*`") {
			t.Errorf("%q is shown as %q, %v", action, text, clipped)
		}
	}
	for action, want := range map[string]string{"tool:bash:rm \u202ea\u202c": `rm \u{202e}a\u{202c}`, "tool:bash:a\u200bb": `a\u{200b}b`, "tool:bash:```\n**yes**": "'''\n**yes**\n```"} {
		text, clipped := cardText(render.Card{Tool: "bash", Actions: []string{action}, Open: true})
		if !strings.Contains(text, want) || !clipped {
			t.Errorf("%q is shown as %q, %v", action, text, clipped)
		}
	}
}

func TestPeopleAreShownAsDiscordDoes(t *testing.T) {
	t.Parallel()
	if got := people("discord:12 and local:ada"); got != "<@12> and local:ada" {
		t.Errorf("%q", got)
	}
}

func TestDiceFallTheSameTwice(t *testing.T) {
	t.Parallel()
	hits := 0
	for i := range 4000 {
		id := strings.Repeat("1", 1+i%7) + string(rune('0'+i%10)) + time.Duration(i).String()
		a, b := diceOf(id, "helper")(8), diceOf(id, "helper")(8)
		if a != b || a < 0 || a > 7 {
			t.Fatalf("%d and %d", a, b)
		}
		if a == 0 {
			hits++
		}
	}
	if hits < 300 || hits > 700 {
		t.Errorf("one in eight of 4000 is about 500, not %d", hits)
	}
}

func TestWishesOfOneMoment(t *testing.T) {
	t.Parallel()
	lane := journal.Lane{Platform: "discord", Bot: "b", Channel: "1"}
	got := newest([]journal.Desired{{Lane: lane, Key: "a", Seq: 1}, {Lane: lane, Key: "b", Seq: 2}, {Lane: lane, Key: "a", Seq: 3}})
	if len(got) != 2 || got[0].Key != "a" || got[0].Seq != 3 || got[1].Key != "b" {
		t.Errorf("%+v", got)
	}
}

func TestPlacesOfAnswers(t *testing.T) {
	t.Parallel()
	p := newPlaces("discord:9/100:200@helper")
	event := func(seq int64, body chat.Body) chat.Event {
		return chat.Event{Seq: seq, Body: body, Platform: "discord", PlatformID: "200"}
	}
	p.learn(event(1, chat.Received{Prompt: true, Channel: "100", Post: "200", Principal: chat.Principal{ID: "7"}}))
	p.learn(event(2, chat.RunStarted{Run: "r"}))
	p.learn(event(3, chat.Took{Run: "r", Seqs: []int64{1}}))
	p.learn(event(4, chat.ApprovalAsked{ID: "q"}))
	for key, want := range map[string]string{"r/0": "200", "ask/q": "200", "refused/1": "100", "other/0": "100"} {
		if got := p.ofKey(key); got != want {
			t.Errorf("%s stands in %s, not in %s", key, got, want)
		}
	}
	if p.ofMessage("200") != "100" || p.now() != "200" || len(p.askers()) != 1 || p.askers()[0] != "7" {
		t.Errorf("%+v", p)
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
		err := trouble(said(t, c.status, c.body, nil))
		var got *outbox.Trouble
		if !errors.As(err, &got) || got.Why != c.want {
			t.Errorf("%d %s is %v", c.status, c.body, err)
		}
	}
	var limited *outbox.RateLimited
	err := trouble(said(t, 429, `{}`, http.Header{"X-Ratelimit-Reset-After": {"1.5"}, "X-Ratelimit-Global": {"true"}}))
	if !errors.As(err, &limited) || limited.After != 1500*time.Millisecond || !limited.Global {
		t.Errorf("%v", err)
	}
}

func TestTheRootIsFound(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{"": DefaultAPI, "http://x/api": "http://x/api/v10", "http://x/api/": "http://x/api/v10", "http://x/api/v10": "http://x/api/v10"} {
		o, err := Options{Name: "b", Token: "Bot test-token", API: given, Backend: connector.Backend{Runner: struct{ connector.Runner }{}}}.filled()
		if err != nil || o.API != want || o.Token != "test-token" {
			t.Errorf("%q becomes %q, %v", given, o.API, err)
		}
	}
	if _, err := (Options{Name: "b", Backend: connector.Backend{Runner: struct{ connector.Runner }{}}}).filled(); err == nil || !strings.Contains(err.Error(), "DISCORD_BOT_TOKEN") {
		t.Errorf("without a token: %v", err)
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

// Files and pictures are fetched from Discord alone, whatever a message says.
func TestOnlyDiscordsOwnStoreIsAsked(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(server.Close)
	b := &Bot{Options: Options{API: server.URL + "/api/v10"}}
	for at, want := range map[string]bool{
		"https://cdn.discordapp.com/attachments/1/2/a.png": true, "http://cdn.discordapp.com/a.png": false, "https://cdn.discordapp.com.evil.example/a.png": false,
		"http://169.254.169.254/latest": false, server.URL + "/attachments/a.png": true, "file:///etc/passwd": false, "": false,
	} {
		if got := b.trusts(at); got != want {
			t.Errorf("%s: %v", at, got)
		}
	}
}

// Whatever goes wrong, people are told whose fault it is and what to do.
func TestErrorsAreToldPlainly(t *testing.T) {
	t.Parallel()
	answered := func(code int, message string) error {
		return fmt.Errorf("post: %w", &rest.Error{Response: &http.Response{StatusCode: code, Status: "x"}, Message: message})
	}
	for _, c := range []struct {
		err  error
		want string
	}{
		{connector.Refusal("there is none"), "there is none"},
		{command.Errorf(command.NotFound, "not here"), "not here"},
		{fmt.Errorf("list: %w", context.DeadlineExceeded), "took too long"},
		{answered(403, "Missing Permissions"), "Discord refused it: Missing Permissions"},
		{answered(503, ""), "Discord does not answer as it should"},
		{errors.New("disk I/O error"), "something failed inside Chorus (disk I/O error); say it again"},
	} {
		if got := plainly(c.err); !strings.Contains(got, c.want) || !strings.HasPrefix(got, render.SignNot) || split.Length(got) > 510 {
			t.Errorf("%v is told as %q", c.err, got)
		}
	}
}
