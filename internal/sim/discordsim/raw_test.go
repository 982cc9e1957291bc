package discordsim

import (
	"bytes"
	"compress/zlib"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"chorus/internal/sim/discordsim/guild"
)

// wire is a gateway client of a few lines, which says exactly what a test wants.
type wire struct {
	t   *testing.T
	ws  *websocket.Conn
	ctx context.Context
}

type packet struct {
	Op int             `json:"op"`
	S  int             `json:"s"`
	T  string          `json:"t"`
	D  json.RawMessage `json:"d"`
}

func dial(t *testing.T, url string) *wire {
	t.Helper()
	ctx := within(t)
	ws, res, err := websocket.Dial(ctx, url+"?v=10&encoding=json", nil)
	ok(t, err)
	if res.Body != nil {
		_ = res.Body.Close()
	}
	ws.SetReadLimit(1 << 24)
	t.Cleanup(func() { _ = ws.CloseNow() })
	return &wire{t: t, ws: ws, ctx: ctx}
}

func (c *wire) send(op int, d any) {
	c.t.Helper()
	raw, err := json.Marshal(object{"op": op, "d": d})
	ok(c.t, err)
	ok(c.t, c.ws.Write(c.ctx, websocket.MessageText, raw))
}

func (c *wire) read() packet {
	c.t.Helper()
	_, raw, err := c.ws.Read(c.ctx)
	ok(c.t, err)
	var p packet
	ok(c.t, json.Unmarshal(raw, &p))
	return p
}

// until reads up to an event of that name.
func (c *wire) until(name string) packet {
	c.t.Helper()
	for {
		if p := c.read(); p.T == name {
			return p
		}
	}
}

// closed reads up to the end and returns its code.
func (c *wire) closed() int {
	c.t.Helper()
	for {
		if _, _, err := c.ws.Read(c.ctx); err != nil {
			return int(websocket.CloseStatus(err))
		}
	}
}

// identified is a client with a session, and the session's id.
func identified(t *testing.T, s *Sim, name string, intents int) (*wire, string) {
	t.Helper()
	c := dial(t, s.Gateway())
	if p := c.read(); p.Op != opHello {
		t.Fatalf("the first packet is %+v", p)
	}
	c.send(opIdentify, object{"token": s.Token(name), "intents": intents, "properties": object{}})
	var ready struct {
		ID string `json:"session_id"`
	}
	ok(t, json.Unmarshal(c.until("READY").D, &ready))
	return c, ready.ID
}

const talkative = guild.IntentGuilds | guild.IntentMessages | guild.IntentContent | guild.IntentReactions

func contentOf(t *testing.T, p packet) string {
	t.Helper()
	var m struct {
		Content string `json:"content"`
	}
	ok(t, json.Unmarshal(p.D, &m))
	return m.Content
}

func TestGatewayResumesFromAnyNumber(t *testing.T) {
	t.Parallel()
	s := StartT(t, Options{})
	c, id := identified(t, s, "chorus", talkative)
	start := c.until("GUILD_CREATE").S
	for i := range 5 {
		must[guild.ID](t)(s.Say("ada", "general", fmt.Sprint("m", i)))
	}
	ok(t, c.ws.CloseNow())
	for skip := range 6 {
		again := dial(t, s.Gateway()+"/resume")
		again.send(opResume, object{"token": s.Token("chorus"), "session_id": id, "seq": start + skip})
		for i := skip; i < 5; i++ {
			if got := contentOf(t, again.until("MESSAGE_CREATE")); got != fmt.Sprint("m", i) {
				t.Fatalf("resumed from %d: %q instead of m%d", skip, got, i)
			}
		}
		again.until("RESUMED")
		ok(t, again.ws.CloseNow())
	}
}

func TestGatewayRefuses(t *testing.T) {
	t.Parallel()
	s := StartT(t, Options{Replay: 2, Bots: []guild.BotSpec{{Name: "chorus", Intents: &[]string{"content"}}}})
	identify := func(d object) func(*wire) { return func(c *wire) { c.send(opIdentify, d) } }
	token := s.Token("chorus")
	for _, tt := range []struct {
		name string
		do   func(*wire)
		code int
	}{
		{"a wrong token", identify(object{"token": "test-key", "intents": 1}), closeAuthFailed},
		{"an intent that there is not", identify(object{"token": token, "intents": 1 << 40}), closeIntents},
		{"an intent that is not switched on", identify(object{"token": token, "intents": guild.IntentMembers}), closeDisallowed},
		{"a shard that there is not", identify(object{"token": token, "intents": 1, "shard": []int{2, 2}}), closeShard},
		{"speaking before identifying", func(c *wire) { c.send(opPresence, object{}) }, closeNotAuth},
		{"an operation that there is not", func(c *wire) { c.send(99, nil) }, closeUnknownOp},
		{"identifying twice", func(c *wire) {
			c.send(opIdentify, object{"token": token, "intents": 1})
			c.send(opIdentify, object{"token": token, "intents": 1})
		}, closeAlreadyAuth},
		{"no JSON", func(c *wire) { ok(c.t, c.ws.Write(c.ctx, websocket.MessageText, []byte("{"))) }, closeDecode},
		{"too much", func(c *wire) {
			for range commandsPerMinute + 1 {
				c.send(opHeartbeat, 0)
			}
		}, closeRate},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := dial(t, s.Gateway())
			tt.do(c)
			if got := c.closed(); got != tt.code {
				t.Fatalf("closed with %d, not %d", got, tt.code)
			}
		})
	}
	t.Run("a session that is too old", func(t *testing.T) {
		_, id := identified(t, s, "chorus", talkative)
		for range 8 {
			must[guild.ID](t)(s.Say("ada", "general", "x"))
		}
		c := dial(t, s.Gateway())
		c.read()
		c.send(opResume, object{"token": token, "session_id": id, "seq": 1})
		if p := c.read(); p.Op != opInvalidSession || string(p.D) != "false" {
			t.Fatalf("got %+v", p)
		}
	})
}

func TestGatewayDropsWhoDoesNotBeat(t *testing.T) {
	t.Parallel()
	s := StartT(t, Options{TimeScale: 1000}) // a beat in 250 ms
	c := dial(t, s.Gateway())
	c.send(opIdentify, object{"token": s.Token("chorus"), "intents": talkative, "properties": object{}}) // without waiting to be greeted: it may be too late by then
	if got := c.closed(); got != closeTimedOut {
		t.Fatalf("closed with %d", got)
	}
}

func TestFaultsOfEvents(t *testing.T) {
	t.Parallel()
	clock := newHandClock()
	s := StartT(t, Options{Clock: clock})
	c, _ := identified(t, s, "chorus", talkative)
	say := func(text string) { must[guild.ID](t)(s.Say("ada", "general", text)) }
	hear := func(want ...string) {
		t.Helper()
		for _, w := range want {
			if got := contentOf(t, c.until("MESSAGE_CREATE")); got != w {
				t.Fatalf("heard %q, not %q", got, w)
			}
		}
	}
	must[int](t)(s.Inject(Fault{Kind: FaultLose, Event: "MESSAGE_CREATE", Count: 1}))
	say("lost")
	must[int](t)(s.Inject(Fault{Kind: FaultDuplicate, Bot: "chorus", Count: 1}))
	say("twice")
	hear("twice", "twice")
	must[int](t)(s.Inject(Fault{Kind: FaultDelay, Count: 1, Millis: 20}))
	say("late")
	say("early")
	hear("early")
	clock.pass(20 * time.Millisecond)
	hear("late")
	mute := must[int](t)(s.Inject(Fault{Kind: FaultMute}))
	say("unheard")
	c.send(opHeartbeat, 1)
	if p := c.read(); p.Op != opAck {
		t.Fatalf("a mute gateway answers a beat with %+v", p)
	}
	s.Clear(mute)
	must[int](t)(s.Inject(Fault{Kind: FaultReconnect}))
	if p := c.read(); p.Op != opReconnect {
		t.Fatalf("got %+v", p)
	}
	must[int](t)(s.Inject(Fault{Kind: FaultInvalidate, Resumable: true}))
	if p := c.read(); p.Op != opInvalidSession || string(p.D) != "true" {
		t.Fatalf("got %+v", p)
	}
	must[int](t)(s.Inject(Fault{Kind: FaultDrop, Code: 4000}))
	if code := c.closed(); code != 4000 {
		t.Fatalf("closed with %d", code)
	}
	if _, err := s.Inject(Fault{Kind: "earthquake"}); err == nil {
		t.Fatal("a fault that there is not was taken")
	}
}

// ask is one request of a bot or a person, without a library.
func ask(t *testing.T, s *Sim, who, method, path string, body any) (int, object, http.Header) {
	t.Helper()
	raw, err := json.Marshal(body)
	ok(t, err)
	req, err := http.NewRequestWithContext(within(t), method, s.API()+path, bytes.NewReader(raw))
	ok(t, err)
	token := s.Token(who)
	if strings.Contains(token, ".sim-bot.") {
		token = "Bot " + token
	}
	req.Header.Set("Authorization", token)
	req.Header.Set("Content-Type", "application/json")
	tr := &http.Transport{DisableKeepAlives: true}
	res, err := (&http.Client{Transport: tr}).Do(req)
	if err != nil {
		return 0, nil, nil
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	ok(t, err)
	var out any
	if len(data) > 0 {
		ok(t, json.Unmarshal(data, &out))
	}
	o, _ := out.(map[string]any)
	return res.StatusCode, o, res.Header
}

func TestFaultsOfREST(t *testing.T) {
	t.Parallel()
	s := StartT(t, Options{})
	path := "/channels/" + s.Channel("general").String() + "/messages"
	hi := object{"content": "hi"}
	must[int](t)(s.Inject(Fault{Kind: FaultError, Status: 503, Count: 1, Route: "POST /channels"}))
	if status, _, _ := ask(t, s, "chorus", "POST", path, hi); status != 503 {
		t.Fatalf("status %d", status)
	}
	must[int](t)(s.Inject(Fault{Kind: FaultHangup, Count: 1, After: true}))
	if status, _, _ := ask(t, s, "chorus", "POST", path, hi); status != 0 {
		t.Fatalf("status %d instead of a connection that breaks", status)
	}
	if list := must[[]guild.Message](t)(s.Messages("general")); len(list) != 1 {
		t.Fatalf("the first must not have been made, the second must: there are %d", len(list))
	}
	must[int](t)(s.Inject(Fault{Kind: FaultLimit, Count: 1, Millis: 1500, Global: true}))
	status, body, header := ask(t, s, "chorus", "POST", path, hi)
	if status != 429 || header.Get("Via") == "" || header.Get("Retry-After") != "2" || header.Get("X-RateLimit-Global") != "true" || body["retry_after"] != 1.5 {
		t.Fatalf("%d %v %v", status, body, header)
	}
	must[int](t)(s.Inject(Fault{Kind: FaultError, Rate: 0.5, Seed: 7}))
	failed := 0
	for range 20 {
		if status, _, _ := ask(t, s, "chorus", "GET", "/users/@me", nil); status == 500 {
			failed++
		}
		if status, _, _ := ask(t, s, "ada", "GET", "/users/@me", nil); status != 200 {
			t.Fatal("a person ran into a fault")
		}
	}
	if failed < 3 || failed > 17 {
		t.Fatalf("half of twenty is %d", failed)
	}
}

func TestRateLimitHeaders(t *testing.T) {
	t.Parallel()
	s := StartT(t, Options{Clock: newHandClock()}) // all of it in one moment
	path := "/channels/" + s.Channel("general").String() + "/messages"
	for i := range 5 {
		status, _, h := ask(t, s, "chorus", "POST", path, object{"content": "x"})
		if status != 200 || h.Get("X-RateLimit-Remaining") != fmt.Sprint(4-i) || h.Get("X-RateLimit-Limit") != "5" || h.Get("X-RateLimit-Bucket") == "" {
			t.Fatalf("%d: %d %v", i, status, h)
		}
	}
	status, body, h := ask(t, s, "chorus", "POST", path, object{"content": "x"})
	if status != 429 || body["global"] != false || h.Get("X-RateLimit-Scope") != "user" || h.Get("Retry-After") == "" {
		t.Fatalf("%d %v %v", status, body, h)
	}
	other := "/channels/" + s.Channel("random").String() + "/messages"
	if status, _, _ := ask(t, s, "chorus", "POST", other, object{"content": "x"}); status != 200 {
		t.Fatal("another channel shares the bucket")
	}
	if status, _, _ := ask(t, s, "ada", "POST", path, object{"content": "x"}); status != 200 {
		t.Fatal("a person is limited by a bot's bucket")
	}
}

func TestStopEndsEverything(t *testing.T) {
	t.Parallel()
	s := must[*Sim](t)(Start(t.Context(), Options{Script: []Step{{As: "ada", In: "general", Say: "never", After: Span(time.Hour)}}}))
	c, _ := identified(t, s, "chorus", talkative)
	done := make(chan error, 1)
	go func() {
		_, err := s.WaitMessage(context.Background(), func(guild.Message) bool { return false })
		done <- err
	}()
	s.Stop()
	s.Stop()
	if err := next(t, done, "end of the wait"); err == nil || errors.Is(err, context.Canceled) {
		t.Fatalf("the wait ended with %v", err)
	}
	c.closed()
}

func TestWaitsSeeEveryChange(t *testing.T) {
	t.Parallel()
	s := StartT(t, Options{})
	id := must[guild.ID](t)(s.Say("ada", "general", "one"))
	for _, step := range []struct {
		do   func() error
		fits func(guild.Message) bool
	}{
		{func() error { return s.Edit("ada", id, "two") }, func(m guild.Message) bool { return m.Content == "two" && m.Edited != nil }},
		{func() error { return s.React("bob", id, "👀") }, func(m guild.Message) bool { return len(m.Reactions) == 1 }},
		{func() error { return s.Unreact("bob", id, "👀") }, func(m guild.Message) bool { return m.Content == "two" && len(m.Reactions) == 0 }},
		{func() error { return s.Unfurl(id, "a page") }, func(m guild.Message) bool { return len(m.Embeds) == 1 }},
		{func() error { return s.Pin("ada", id, true) }, func(m guild.Message) bool { return m.Pinned }},
	} {
		began, done := make(chan struct{}), make(chan error, 1)
		go func() {
			first := true
			_, err := s.WaitMessage(within(t), func(m guild.Message) bool {
				if first {
					first = false
					close(began)
				}
				return step.fits(m)
			})
			done <- err
		}()
		next(t, began, "look")
		ok(t, step.do())
		ok(t, next(t, done, "end of the wait"))
	}
}

func TestSessionsThatNobodyResumesAreForgotten(t *testing.T) {
	t.Parallel()
	s := StartT(t, Options{})
	for range 3 * awayMost {
		c, _ := identified(t, s, "chorus", talkative)
		ok(t, c.ws.CloseNow())
		ok(t, s.wait(within(t), "the socket to end", func() bool {
			for _, n := range s.sessions {
				if n.socket != nil {
					return false
				}
			}
			return true
		}))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.sessions); n > awayMost+1 {
		t.Fatalf("%d sessions are kept", n)
	}
}

// compress=zlib-stream was refused, with which some libraries begin.
func TestZlibStream(t *testing.T) {
	t.Parallel()
	s := StartT(t, Options{})
	ctx := within(t)
	ws, res, err := websocket.Dial(ctx, s.Gateway()+"?v=10&encoding=json&compress=zlib-stream", nil)
	ok(t, err)
	if res.Body != nil {
		_ = res.Body.Close()
	}
	ws.SetReadLimit(1 << 24)
	defer func() { _ = ws.CloseNow() }()
	// One decompressor reads the whole connection: what was said before is its dictionary.
	in, out := io.Pipe()
	defer func() { _ = in.Close() }()
	go func() {
		for {
			kind, raw, err := ws.Read(ctx)
			if err == nil && (kind != websocket.MessageBinary || !bytes.HasSuffix(raw, []byte{0, 0, 0xff, 0xff})) {
				err = fmt.Errorf("a frame of kind %v ends with % x", kind, raw[max(0, len(raw)-4):])
			}
			if err == nil {
				_, err = out.Write(raw)
			}
			if err != nil {
				_ = out.CloseWithError(err)
				return
			}
		}
	}()
	plain, err := zlib.NewReader(in)
	ok(t, err)
	packets := json.NewDecoder(plain)
	read := func() (p packet) {
		t.Helper()
		ok(t, packets.Decode(&p))
		return p
	}
	if p := read(); p.Op != opHello {
		t.Fatalf("it begins with %+v", p)
	}
	raw, err := json.Marshal(object{"op": opIdentify, "d": object{"token": s.Token("chorus"), "intents": guild.IntentGuilds | guild.IntentMessages | guild.IntentContent}})
	ok(t, err)
	ok(t, ws.Write(ctx, websocket.MessageText, raw))
	for read().T != "GUILD_CREATE" {
	}
	must[guild.ID](t)(s.Say("ada", "general", "pressed"))
	if p := read(); p.T != "MESSAGE_CREATE" || !strings.Contains(string(p.D), "pressed") {
		t.Errorf("then came %s %s", p.T, p.D)
	}
}

// A forward takes the words along, and only those that whoever forwards can read.
func TestForward(t *testing.T) {
	t.Parallel()
	s := StartT(t, Options{NoRateLimits: true, Channels: []guild.ChannelSpec{{Name: "general"}, {Name: "hidden", Deny: map[string][]string{"@everyone": {"view_channel"}}}}})
	words := must[guild.ID](t)(s.Say("ada", "general", "the first words"))
	secret := must[guild.ID](t)(s.Say("ada", "hidden", "secret")) // she owns the guild
	post := func(ref guild.Reference, content string) (int, guild.Message) {
		t.Helper()
		raw, err := json.Marshal(object{"content": content, "message_reference": ref})
		ok(t, err)
		req, err := http.NewRequestWithContext(within(t), http.MethodPost, s.API()+"/channels/"+s.Channel("general").String()+"/messages", bytes.NewReader(raw))
		ok(t, err)
		req.Header.Set("Authorization", "Bot "+s.Token("chorus"))
		req.Header.Set("Content-Type", "application/json")
		res, err := http.DefaultClient.Do(req)
		ok(t, err)
		defer func() { _ = res.Body.Close() }()
		var m guild.Message
		_ = json.NewDecoder(res.Body).Decode(&m) // an error is no message
		return res.StatusCode, m
	}
	code, m := post(guild.Reference{Type: forward, MessageID: words, ChannelID: s.Channel("general")}, "")
	if code != http.StatusOK || len(m.Snapshots) != 1 || m.Snapshots[0].Message.Content != "the first words" || m.Flags&guild.FlagHasSnapshot == 0 || m.Content != "" {
		t.Errorf("%d %+v", code, m)
	}
	if code, m := post(guild.Reference{Type: forward, MessageID: m.ID, ChannelID: s.Channel("general")}, ""); code != http.StatusOK || len(m.Snapshots) != 1 || m.Snapshots[0].Message.Content != "the first words" {
		t.Errorf("a forward of a forward: %d %+v", code, m)
	}
	if code, _ := post(guild.Reference{Type: forward, MessageID: words, ChannelID: s.Channel("general")}, "and more"); code != http.StatusBadRequest {
		t.Errorf("with words of its own: %d", code)
	}
	if code, _ := post(guild.Reference{Type: forward, MessageID: secret, ChannelID: s.Channel("hidden")}, ""); code != http.StatusForbidden {
		t.Errorf("of a channel that it cannot see: %d", code)
	}
}
