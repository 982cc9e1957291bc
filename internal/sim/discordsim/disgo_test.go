package discordsim

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/disgoorg/disgo"
	"github.com/disgoorg/disgo/bot"
	"github.com/disgoorg/disgo/discord"
	"github.com/disgoorg/disgo/events"
	"github.com/disgoorg/disgo/gateway"
	"github.com/disgoorg/disgo/rest"
	"github.com/disgoorg/snowflake/v2"

	"chorus/internal/sim/discordsim/guild"
)

// allIntents is what an agent needs.
const allIntents = gateway.IntentGuilds | gateway.IntentGuildMessages | gateway.IntentMessageContent | gateway.IntentGuildMessageReactions |
	gateway.IntentGuildMembers | gateway.IntentDirectMessages

// client is a disgo client of one bot, not connected.
func client(t *testing.T, s *Sim, name string, intents gateway.Intents, opts ...bot.ConfigOpt) *bot.Client {
	t.Helper()
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	c, err := disgo.New(s.Token(name), append([]bot.ConfigOpt{
		bot.WithLogger(quiet),
		bot.WithRestClientConfigOpts(rest.WithURL(s.API()), rest.WithHTTPClient(&http.Client{Transport: transport})),
		bot.WithGatewayConfigOpts(gateway.WithURL(s.Gateway()), gateway.WithCompression(gateway.CompressionNone), gateway.WithIntents(intents)),
	}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// connect opens a client's gateway and closes it at the end of the test.
func connect(t *testing.T, c *bot.Client) {
	t.Helper()
	if raceDetected {
		t.Skip("SKIPPED under -race: disgo's gateway races with itself when it closes (heartbeatCancel has no lock); raw_test.go covers the gateway there")
	}
	ok(t, c.OpenGateway(within(t)))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), longestWait)
		defer cancel()
		c.Close(ctx)
	})
}

func flake(id guild.ID) snowflake.ID { return snowflake.ID(id) }

func TestDisgoTalks(t *testing.T) {
	t.Parallel()
	s := StartT(t, Options{})
	heard := make(chan *events.MessageCreate, 16)
	reacted := make(chan *events.MessageReactionAdd, 16)
	guilds := make(chan *events.GuildReady, 1)
	c := client(t, s, "chorus", allIntents, bot.WithEventListenerFunc(func(e *events.MessageCreate) { heard <- e }),
		bot.WithEventListenerFunc(func(e *events.MessageReactionAdd) { reacted <- e }),
		bot.WithEventListenerFunc(func(e *events.GuildReady) { guilds <- e }))
	connect(t, c)
	if g := next(t, guilds, "guild"); g.Guild.Name != "Chorus" || len(g.Guild.Channels) != 3 || len(g.Guild.Members) != 3 {
		t.Fatalf("the guild is %q with %d channels and %d members", g.Guild.Name, len(g.Guild.Channels), len(g.Guild.Members))
	}
	id := must[guild.ID](t)(s.Say("ada", "general", "hello <@"+s.User("chorus").String()+">"))
	e := next(t, heard, "message")
	if e.Message.ID != flake(id) || !strings.HasPrefix(e.Message.Content, "hello") || e.Message.Author.Username != "ada" || len(e.Message.Mentions) != 1 {
		t.Fatalf("heard %+v", e.Message)
	}
	answer, err := c.Rest.CreateMessage(e.ChannelID, discord.NewMessageCreate().WithContent("hi").WithMessageReferenceByID(e.MessageID).WithNonce("n-1").WithEnforceNonce(true))
	ok(t, err)
	own := next(t, heard, "own message")
	if own.Message.Nonce != "n-1" || own.Message.ReferencedMessage == nil || own.Message.ReferencedMessage.ID != flake(id) {
		t.Fatalf("the gateway told of the answer as %+v", own.Message)
	}
	again, err := c.Rest.CreateMessage(e.ChannelID, discord.NewMessageCreate().WithContent("hi").WithNonce("n-1").WithEnforceNonce(true))
	ok(t, err)
	if again.ID != answer.ID {
		t.Fatal("the same nonce made another message")
	}
	back, err := c.Rest.GetMessage(e.ChannelID, answer.ID)
	ok(t, err)
	if back.Nonce != "" {
		t.Fatal("reading a message back tells its nonce")
	}
	ok(t, s.React("bob", guild.ID(answer.ID), "👀"))
	if r := next(t, reacted, "reaction"); *r.Emoji.Name != "👀" || r.UserID != flake(s.User("bob")) {
		t.Fatalf("reaction %+v", r)
	}
	ok(t, c.Rest.AddReaction(e.ChannelID, e.MessageID, "✅"))
	list, err := c.Rest.GetMessages(e.ChannelID, 0, 0, flake(id), 50)
	ok(t, err)
	if len(list) != 1 || list[0].ID != answer.ID || list[0].Reactions[0].Count != 1 {
		t.Fatalf("after the first message there are %+v", list)
	}
	edited, err := c.Rest.UpdateMessage(e.ChannelID, answer.ID, discord.NewMessageUpdate().WithContent("hi there"))
	ok(t, err)
	if edited.Content != "hi there" || edited.EditedTimestamp == nil {
		t.Fatalf("edited %+v", edited)
	}
	ok(t, c.Rest.DeleteMessage(e.ChannelID, answer.ID))
	_, err = c.Rest.GetMessage(e.ChannelID, answer.ID)
	if !rest.IsJSONErrorCode(err, rest.JSONErrorCodeUnknownMessage) {
		t.Fatalf("a deleted message: %v", err)
	}
}

func TestDisgoResumesAfterADrop(t *testing.T) {
	t.Parallel()
	s := StartT(t, Options{})
	heard := make(chan string, 64)
	resumed := make(chan struct{}, 4)
	c := client(t, s, "chorus", allIntents, bot.WithEventListenerFunc(func(e *events.MessageCreate) { heard <- e.Message.Content }),
		bot.WithEventListenerFunc(func(*events.Resumed) { resumed <- struct{}{} }))
	connect(t, c)
	must[guild.ID](t)(s.Say("ada", "general", "one"))
	if got := next(t, heard, "message"); got != "one" {
		t.Fatal(got)
	}
	must[int](t)(s.Inject(Fault{Kind: FaultDrop}))
	must[guild.ID](t)(s.Say("ada", "general", "two"))
	must[guild.ID](t)(s.Say("ada", "general", "three"))
	next(t, resumed, "resume")
	for _, want := range []string{"two", "three"} {
		if got := next(t, heard, "message"); got != want {
			t.Fatalf("heard %q instead of %q", got, want)
		}
	}
}

func TestDisgoLeavesADeafGateway(t *testing.T) {
	t.Parallel()
	s := StartT(t, Options{TimeScale: 10}) // a heartbeat in 4 s; whoever is two late with it has lost its session, and what was said meanwhile
	heard := make(chan string, 64)
	c := client(t, s, "chorus", allIntents, bot.WithEventListenerFunc(func(e *events.MessageCreate) { heard <- e.Message.Content }))
	connect(t, c)
	id := must[int](t)(s.Inject(Fault{Kind: FaultDeaf}))
	must[guild.ID](t)(s.Say("ada", "general", "anybody?"))
	ok(t, s.wait(within(t), "the client to leave", func() bool { return len(s.sessions) == 0 || s.sessions[0].socket == nil }))
	s.Clear(id)
	if got := next(t, heard, "message"); got != "anybody?" {
		t.Fatal(got)
	}
}

func TestDisgoWaitsForRateLimits(t *testing.T) {
	t.Parallel()
	s := StartT(t, Options{TimeScale: 5}) // five messages in one second
	c := client(t, s, "chorus", allIntents)
	began := time.Now()
	for range 7 {
		_, err := c.Rest.CreateMessage(flake(s.Channel("general")), discord.NewMessageCreate().WithContent("quick"))
		ok(t, err)
	}
	if took := time.Since(began); took < 900*time.Millisecond {
		t.Fatalf("seven messages went through in %v", took)
	}
	must[int](t)(s.Inject(Fault{Kind: FaultLimit, Count: 1, Millis: 10, Route: "typing"}))
	ok(t, c.Rest.SendTyping(flake(s.Channel("general"))))
}

func TestDisgoIsToldWhatIsWrong(t *testing.T) {
	t.Parallel()
	s := StartT(t, Options{NoRateLimits: true, Channels: []guild.ChannelSpec{
		{Name: "general"}, {Name: "secret", Deny: map[string][]string{"chorus": {"view_channel"}}},
		{Name: "read-only", Deny: map[string][]string{"chorus": {"send_messages"}}}}})
	c := client(t, s, "chorus", allIntents)
	general := flake(s.Channel("general"))
	his := must[guild.ID](t)(s.Say("ada", "general", "mine"))
	thread := must[guild.ID](t)(s.OpenThread("ada", his, "side"))
	post := func(channel snowflake.ID, m discord.MessageCreate) error {
		_, err := c.Rest.CreateMessage(channel, m)
		return err
	}
	text := discord.NewMessageCreate().WithContent("x")
	edit := func() error {
		_, err := c.Rest.UpdateMessage(general, flake(his), discord.NewMessageUpdate().WithContent("y"))
		return err
	}
	_, err := c.Rest.CreateThreadFromMessage(general, flake(his), discord.ThreadCreateFromMessage{Name: "again"})
	for _, tt := range []struct {
		name string
		err  error
		code rest.JSONErrorCode
	}{
		{"unknown channel", post(1, text), rest.JSONErrorCodeUnknownChannel},
		{"hidden channel", post(flake(s.Channel("secret")), text), rest.JSONErrorCodeMissingAccess},
		{"read-only channel", post(flake(s.Channel("read-only")), text), rest.JSONErrorCodeLackPermissionsToPerformAction},
		{"nothing to say", post(general, discord.NewMessageCreate()), rest.JSONErrorCodeCannotSendEmptyMessage},
		{"too long", post(general, text.WithContent(strings.Repeat("x", 2001))), rest.JSONErrorCodeInvalidFormBody},
		{"reply to nothing", post(general, text.WithMessageReferenceByID(5)), rest.JSONErrorCodeInvalidFormBody},
		{"somebody else's message", edit(), rest.JSONErrorCodeCannotEditMessageAuthoredByAnotherUser},
		{"second thread", err, rest.JSONErrorCodeThreadAlreadyCreatedForMessage},
		{"reaction that is none", c.Rest.AddReaction(general, flake(his), "nonsense"), rest.JSONErrorCodeUnknownEmoji},
	} {
		if !rest.IsJSONErrorCode(tt.err, tt.code) {
			t.Errorf("%s: %v, not %d", tt.name, tt.err, tt.code)
		}
	}
	ok(t, s.Archive(thread, true))
	_, err = c.Rest.UpdateChannel(flake(thread), discord.GuildThreadUpdate{Name: new(string)})
	if !rest.IsJSONErrorCode(err, rest.JSONErrorCodeOperationOnArchivedThread) {
		t.Errorf("an archived thread: %v", err)
	}
}

func TestDisgoIntentsAreEnforced(t *testing.T) {
	t.Parallel()
	s := StartT(t, Options{Bots: []guild.BotSpec{{Name: "chorus", Intents: &[]string{}}}})
	heard := make(chan discord.Message, 8)
	c := client(t, s, "chorus", gateway.IntentGuilds|gateway.IntentGuildMessages,
		bot.WithEventListenerFunc(func(e *events.MessageCreate) { heard <- e.Message }))
	connect(t, c)
	must[guild.ID](t)(s.Say("ada", "general", "whisper"))
	must[guild.ID](t)(s.Say("ada", "general", "hey <@"+s.User("chorus").String()+">"))
	if m := next(t, heard, "message"); m.Content != "" {
		t.Fatalf("without the intent it reads %q", m.Content)
	}
	if m := next(t, heard, "message"); m.Content == "" {
		t.Fatal("a mention does not show its text")
	}
	greedy := client(t, s, "chorus", allIntents)
	if err := greedy.OpenGateway(within(t)); err == nil || !strings.Contains(err.Error(), "4014") {
		t.Fatalf("an intent that is not switched on: %v", err)
	}
}
