package discordtest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"chorus/internal/chat"
	"chorus/internal/connector"
	connect "chorus/internal/connector/host"
	"chorus/internal/journal"
	"chorus/internal/sim/discordsim"
)

// sick is a Discord that fails on one path, as long as it is told to.
type sick struct {
	at   atomic.Pointer[string] // the end of "GET /path"; nil: all is well
	hits atomic.Int32
}

func (s *sick) RoundTrip(r *http.Request) (*http.Response, error) {
	if at := s.at.Load(); at != nil && strings.HasSuffix(r.Method+" "+r.URL.Path, *at) {
		s.hits.Add(1)
		return &http.Response{StatusCode: 500, Status: "500 Internal Server Error", Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
			Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(`{"message":"500","code":0}`))}, nil
	}
	return http.DefaultTransport.RoundTrip(r)
}

// vanishing takes ada's message away in the moment in which a thread is to be opened on it.
type vanishing struct {
	g    *guildT
	once sync.Once
}

func (v *vanishing) RoundTrip(r *http.Request) (*http.Response, error) {
	if message, ok := strings.CutSuffix(r.URL.Path, "/threads"); ok && r.Method == http.MethodPost {
		v.once.Do(func() {
			id, err := discordsim.ParseID(path.Base(message))
			if err == nil {
				err = v.g.Delete("ada", id)
			}
			if err != nil {
				v.g.Error(err)
			}
		})
	}
	return http.DefaultTransport.RoundTrip(r)
}

// A channel whose history Discord fails to give holds up no other, and nothing that is said in it; what was missed there is
// heard when it is well again.
func TestDiscordOneSickChannelHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	ill := &sick{}
	hasten := func(o *connect.BotOptions) {
		o.HTTP = &http.Client{Transport: ill, Timeout: 30 * time.Second}
		o.CallWait, o.Recheck, o.FirstBackoff, o.BackoffMax = 200*time.Millisecond, 300*time.Millisecond, 20*time.Millisecond, 100*time.Millisecond
	}
	g := inOldGuild(t, discordsim.Options{}, map[string]string{}, func(g *guildT) { g.tune = hasten })
	for _, channel := range []string{"general", "random"} {
		g.hasReaction(g.say("ada", channel, "say here"), "✅")
	}
	g.end()
	missed := []discordsim.ID{g.say("ada", "general", "say missed in general"), g.say("ada", "random", "say missed in random")}
	broken := "GET /api/v10/channels/" + g.Channel("general").String() + "/messages"
	ill.at.Store(&broken)
	g.start()
	g.hasReaction(missed[1], "✅")
	g.hasReaction(g.say("bob", "general", "say live in general"), "✅")
	ill.at.Store(nil)
	g.hasReaction(missed[0], "✅")
	if n := g.countOwn("general") + g.countOwn("random"); n != 5 {
		t.Errorf("five answers, not %d:\n%s", n, g.transcript())
	}
}

// To a bot that may not read a channel's history Discord shows an empty one: that is no reason to forget what was said.
func TestDiscordWithoutHistoryForgetsNothing(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{Channels: []discordsim.ChannelSpec{{Name: "general", Deny: map[string][]string{"chorus": {"read_message_history"}}}, {Name: "random"}}},
		map[string]string{"bots/chorus.yaml": "routing: room\n"})
	g.ask("ada", "general", "chorus", "one")
	before := len(g.events(g.room("general", "chorus")))
	g.end()
	g.start()
	g.hasReaction(g.say("ada", "random", g.mention("chorus")+"\n!say compared by now"), "✅")
	g.end()
	g.start()
	g.ask("ada", "general", "chorus", "two")
	for _, ev := range g.events(g.room("general", "chorus"))[before:] {
		if gone, ok := ev.Body.(chat.Deleted); ok {
			t.Errorf("event %d is taken for deleted", gone.Seq)
		}
	}
}

// Where several connections share the guilds, one may read what another one's guild has not told of yet: roles count all the same.
func TestDiscordShardsKnowEachOthersRoles(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{Shards: 12, Roles: []discordsim.RoleSpec{{Name: "keeper"}},
		People: []discordsim.PersonSpec{{Name: "ada", Roles: []string{"keeper"}}}}, map[string]string{})
	g.seen(chat.DefaultAgent)
	g.hasReaction(g.say("ada", "general", "say here"), "✅")
	g.end()
	missed := g.say("ada", "general", "say heard late")
	g.start()
	g.hasReaction(missed, "✅")
	for _, ev := range g.events(g.threadOf("general", missed)) {
		if said, ok := ev.Body.(chat.Received); ok {
			if got := said.Principal.Roles; len(got) != 1 || got[0] != "keeper" {
				t.Errorf("it was said by somebody with the roles %q", got)
			}
		}
	}
}

// private opens direct messages between a person and a bot.
func (g *guildT) private(person, bot string) string {
	g.Helper()
	body, _ := json.Marshal(map[string]string{"recipient_id": g.User(bot).String()})
	req, err := http.NewRequestWithContext(g.soon(), http.MethodPost, g.API()+"/users/@me/channels", bytes.NewReader(body))
	if err != nil {
		g.Fatal(err)
	}
	req.Header.Set("Authorization", g.Token(person))
	req.Header.Set("Content-Type", "application/json")
	rs, err := http.DefaultClient.Do(req)
	if err != nil {
		g.Fatal(err)
	}
	defer rs.Body.Close()
	var c struct{ ID string }
	if err := json.NewDecoder(rs.Body).Decode(&c); err != nil || c.ID == "" {
		g.Fatalf("no direct messages: %s, %v", rs.Status, err)
	}
	return c.ID
}

// A guild that is not available keeps nobody from being heard who wrote in private while we were away.
func TestDiscordHearsPrivateWordsWithoutTheGuild(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{}, map[string]string{})
	at := g.private("bob", "chorus")
	g.hasReaction(g.say("bob", at, "say here"), "✅")
	g.end()
	missed := g.say("bob", at, "say heard late")
	g.fault(discordsim.Fault{Kind: discordsim.FaultAway})
	g.start()
	g.hasReaction(missed, "✅")
}

// A thread that Discord fails to open again just now is opened later: the card in it shows who said yes.
func TestDiscordArchivedThreadInBadTimes(t *testing.T) {
	t.Parallel()
	ill := &sick{}
	g := inOldGuild(t, discordsim.Options{}, map[string]string{"bots/chorus.yaml": "routing: thread\n"}, func(g *guildT) {
		g.tune = func(o *connect.BotOptions) {
			o.HTTP = &http.Client{Transport: ill, Timeout: 30 * time.Second}
			o.Preview, o.FirstBackoff, o.BackoffMax = 20*time.Millisecond, 20*time.Millisecond, 20*time.Millisecond
		}
	})
	asked := g.say("ada", "general", "call bash {\"command\":\"echo hi > x\"}\nend\nsay begun\nwait")
	card := g.message("card", func(m discordsim.Message) bool { return m.ChannelID == asked && isCard(m) })
	g.message("status", func(m discordsim.Message) bool { return m.ChannelID == asked && isStatus(m) })
	broken := "PATCH /api/v10/channels/" + asked.String()
	ill.at.Store(&broken)
	if err := g.Archive(asked, false); err != nil {
		t.Fatal(err)
	}
	g.click("ada", card.ID, "c1:yes:"+approvalOf(t, card))
	n := ill.hits.Load()
	g.until("tries to open the thread again", func() bool { return ill.hits.Load() > n+1 })
	ill.at.Store(nil)
	g.decided(card.ID, "**Allowed**")
	if err := g.React("ada", asked, "❌"); err != nil {
		t.Fatal(err)
	}
	g.hasReaction(asked, "❌")
	g.settledRows()
}

// An edit whose receipt is lost is made again, and its file stands there once.
func TestDiscordFileOfAnEditStandsOnce(t *testing.T) {
	t.Parallel()
	g := inOldGuild(t, discordsim.Options{}, map[string]string{}, func(g *guildT) {
		g.tune = func(o *connect.BotOptions) {
			o.Preview, o.FirstBackoff, o.BackoffMax = 20*time.Millisecond, 20*time.Millisecond, 20*time.Millisecond
		}
	})
	goOn := g.pauseModel(1)
	script := "!say begun\n" + strings.Repeat("!say "+strings.Repeat("heron ", 8)+"\n", 400)
	asked := g.post("ada", "general", discordsim.Said{Text: "play this", Files: map[string][]byte{"script.txt": []byte(script)}})
	g.message("preview", works(asked))
	g.fault(discordsim.Fault{Kind: discordsim.FaultHangup, Route: "PATCH /channels/{channel}/messages/{message}", After: true, Rate: 0.7, Seed: 3})
	goOn()
	g.message("file", func(m discordsim.Message) bool { return answers(asked)(m) && len(m.Attachments) > 0 })
	g.settledRows()
	g.hasReaction(asked, "✅")
	if m := g.message("answer", answers(asked)); len(m.Attachments) != 1 {
		t.Errorf("%d files", len(m.Attachments))
	}
}

// forgetful is an outbox that does not take what is to be said in a channel, as if the program had died before.
type forgetful struct {
	connector.Outbox
	channel string
}

func (h forgetful) SetDesired(ctx context.Context, desired ...journal.Desired) error {
	for _, w := range desired {
		if w.Lane.Channel == h.channel && w.Thing != journal.Reaction {
			return errors.New("the program is not there any more")
		}
	}
	return h.Outbox.SetDesired(ctx, desired...)
}

// An answer that could not be said where it belongs is said in the channel, also by the next program if this one died right then.
func TestDiscordNextProgramSaysWhatCouldNotBeSaid(t *testing.T) {
	t.Parallel()
	dies := true
	g := inOldGuild(t, discordsim.Options{}, map[string]string{"bots/chorus.yaml": "routing: thread\n"}, func(g *guildT) {
		g.tune = func(o *connect.BotOptions) {
			o.HTTP = &http.Client{Transport: &vanishing{g: g}, Timeout: 30 * time.Second}
			if dies {
				o.Backend.Outbox = forgetful{o.Backend.Outbox, g.Channel("general").String()}
			}
		}
	})
	g.fault(discordsim.Fault{Kind: discordsim.FaultLose, Event: "MESSAGE_DELETE"})
	g.say("ada", "general", "say "+strings.Repeat("long words ", 170)+"\nsay and the end")
	g.until("an answer that cannot be said", func() bool {
		list, err := g.app.DB.FailedSince(t.Context(), "discord", chat.DefaultAgent, time.Now().Add(-time.Minute))
		behind, _, berr := g.app.DB.BehindSince(t.Context(), "discord", "discord", 0, nil)
		open, oerr := g.app.DB.OpenLanes(t.Context(), "discord", chat.DefaultAgent)
		return err == nil && berr == nil && oerr == nil && len(list) > 0 && list[0].Final && len(behind) == 0 && len(open) == 0
	})
	g.end()
	dies = false
	for range 2 { // and the one after that does not say it again
		g.start()
		general := g.Channel("general")
		g.message("last part in the channel", func(m discordsim.Message) bool {
			return m.ChannelID == general && strings.HasSuffix(m.Text(), "and the end")
		})
		g.settledRows()
		g.end()
	}
	if n := g.countOwn("general"); n != 2 {
		t.Errorf("two parts, not %d:\n%s", n, g.transcript())
	}
}

// A sign that somebody put on a card while nobody listened answers its question.
func TestDiscordSignPutOnACardMeanwhile(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{Roles: []discordsim.RoleSpec{{Name: "keeper"}},
		People: []discordsim.PersonSpec{{Name: "ada"}, {Name: "bob"}, {Name: "carol", Roles: []string{"keeper"}}}}, map[string]string{"shared.yaml": "approvals: {by: \"role:keeper\"}\n"})
	asked, card := g.asks("ada", "echo one > one.txt")
	g.end()
	for person, sign := range map[string]string{"bob": "❌", "carol": "✅"} { // bob may not
		if err := g.React(person, card.ID, sign); err != nil {
			t.Fatal(err)
		}
	}
	g.start()
	g.decided(card.ID, "**Allowed** by <@"+g.User("carol").String()+">")
	g.hasReaction(asked, "✅")
}
