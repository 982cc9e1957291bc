package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"time"

	"github.com/disgoorg/disgo"
	"github.com/disgoorg/disgo/bot"
	"github.com/disgoorg/disgo/discord"
	"github.com/disgoorg/disgo/events"
	"github.com/disgoorg/disgo/gateway"
	"github.com/disgoorg/disgo/rest"

	"chorus/internal/chat"
	"chorus/internal/journal"
	"chorus/internal/sim/discordsim"
	"chorus/internal/store"
)

// The bars on Discord.
const (
	barKnown = 60.0 // MB more than empty, with everything below known
	barHeard = 5.0  // ms from the event to the request to the model, in a thread that is warm
)

// What is known and idle.
const (
	knownChannels = 1_000
	knownThreads  = 10_000
)

// warmTurns is how many replies are measured, and how many go before them.
const (
	warmTurns = 60
	coldTurns = 5
)

// discordTime is how long a measurement may take before it counts as stuck.
const discordTime = 5 * time.Minute

// discordRows measure the connector: how soon a model is asked, beside a bot that only
// echoes, and what it costs to know a large guild.
func (b *stand) discordRows(ctx context.Context, q float64) ([]row, error) {
	if err := b.prepare(ctx); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, discordTime)
	defer cancel()
	echoed, err := b.echoTimes(ctx)
	if err != nil {
		return nil, fmt.Errorf("echo bot: %w", err)
	}
	empty, heard, err := b.inGuild(ctx, "guild-empty", 1, 0, warmTurns)
	if err != nil {
		return nil, fmt.Errorf("a small guild: %w", err)
	}
	full, busy, err := b.inGuild(ctx, "guild-full", knownChannels, knownThreads, warmTurns)
	if err != nil {
		return nil, fmt.Errorf("a large guild: %w", err)
	}
	e, h := quantile(echoed, q), quantile(heard, q)
	return []row{
		{what: "from the gateway's event to the model's request, warm thread (beside: disgo echoes)", unit: "ms", floor: e, chorus: h, value: h, bar: barHeard, how: "%.1f ms"},
		{what: "… as a ratio to the echo", unit: "×", chorus: h / e},
		{what: fmt.Sprintf("… in a guild of %d channels and %d threads", knownChannels, knownThreads), unit: "ms", floor: e, chorus: quantile(busy, q), value: quantile(busy, q), bar: barHeard, how: "%.1f ms"},
		{what: fmt.Sprintf("memory with %d channels and %d threads known but idle, more than empty", knownChannels, knownThreads), unit: "MB",
			floor: empty, chorus: full, value: full - empty, bar: barKnown, how: "%.1f MB"},
	}, nil
}

// guildOf is a guild with so many channels and threads.
func guildOf(ctx context.Context, channels, threads int) (*discordsim.Sim, error) {
	o := discordsim.Options{NoRateLimits: true}
	for i := range channels {
		o.Channels = append(o.Channels, discordsim.ChannelSpec{Name: fmt.Sprintf("channel-%d", i)})
	}
	s, err := discordsim.Start(ctx, o)
	if err != nil {
		return nil, err
	}
	for i := range threads {
		on, err := s.Say("bob", fmt.Sprintf("channel-%d", i%channels), fmt.Sprintf("thread %d", i))
		if err == nil {
			_, err = s.OpenThread("bob", on, fmt.Sprintf("thread %d", i))
		}
		if err != nil {
			s.Stop()
			return nil, err
		}
	}
	return s, nil
}

// inGuild holds a conversation in a guild and gives what the server had in memory after
// it, idle, and how long it took each time until the model was asked.
func (b *stand) inGuild(ctx context.Context, name string, channels, threads, turns int) (megabytes float64, times []float64, err error) {
	g, err := guildOf(ctx, channels, threads)
	if err != nil {
		return 0, nil, err
	}
	defer g.Stop()
	if err := b.fill(ctx, name, g, threads); err != nil {
		return 0, nil, err
	}
	s, err := b.serve(ctx, name, openConfig, "DISCORD_API_URL="+g.API(), "DISCORD_BOT_TOKEN="+g.Token("chorus"))
	if err != nil {
		return 0, nil, err
	}
	defer func() {
		_, stopped := s.stop()
		err = errors.Join(err, stopped)
	}()
	if err := g.WaitConnected(ctx, "chorus"); err != nil {
		return 0, nil, err
	}
	if times, err = b.talk(ctx, g, turns); err != nil {
		return 0, nil, err
	}
	select {
	case <-time.After(idleTime):
	case <-ctx.Done():
		return 0, nil, ctx.Err()
	}
	return float64(residentNow(s.cmd.Process.Pid)) / 1e6, times, nil
}

// idleTime is how long a server is idle before its memory is measured.
const idleTime = 10 * time.Second

// fill writes idle conversations into the journal of a data directory; all of them are delivered.
func (b *stand) fill(ctx context.Context, name string, g *discordsim.Sim, threads int) error {
	home := filepath.Join(b.dir, name)
	if err := os.MkdirAll(home, 0o700); err != nil {
		return err
	}
	db, err := store.Open(ctx, store.Options{Path: filepath.Join(home, "chorus.db")})
	if err != nil {
		return err
	}
	by := chat.Principal{Kind: "discord", ID: g.User("bob").String(), Name: "bob"}
	for i := range threads {
		place := g.Guild().String() + "/" + g.Channel(fmt.Sprintf("channel-%d", i%knownChannels)).String()
		thread := chat.ThreadID(fmt.Sprintf("discord:%s:%d@chorus", place, 1_000_000+i))
		row := journal.Thread{ID: thread, Agent: "chorus", Place: place, Owner: by, Title: "idle"}
		_, err := db.Arrive(ctx, journal.Arrival{Platform: "discord", Bot: "chorus", What: "message", PlatformID: fmt.Sprint(1_000_000 + i), Commits: []journal.Commit{{
			Thread: thread, Create: &row, Events: []chat.Event{{Thread: thread, Who: by.String(), Platform: "discord", PlatformID: fmt.Sprint(1_000_000 + i),
				Body: chat.Received{Principal: by, Blocks: chat.TextBlocks("said long ago"), Channel: "1"}}}}}})
		if err == nil {
			err = db.MoveReader(ctx, "discord", thread, 1)
		}
		if err != nil {
			return errors.Join(err, db.Close())
		}
	}
	return db.Close()
}

// talk replies to each answer and gives how long it took, in milliseconds, until the
// model was asked.
func (b *stand) talk(ctx context.Context, g *discordsim.Sim, turns int) ([]float64, error) {
	if err := expect(ctx, b.url, 0); err != nil {
		return nil, err
	}
	e := followGuild(ctx, g)
	defer e.stop()
	var began []time.Time
	var last discordsim.ID
	for i := range turns + coldTurns {
		began = append(began, time.Now())
		id, err := g.Post("ada", "channel-0", discordsim.Said{Text: fmt.Sprintf("go on %d", i), Reply: last})
		if err != nil {
			return nil, err
		}
		if last, err = e.answer(ctx, id); err != nil {
			return nil, err
		}
	}
	saw, err := sightings(ctx, b.url)
	if err != nil {
		return nil, err
	}
	if len(saw.Times) != len(began) {
		return nil, fmt.Errorf("%d requests for %d messages", len(saw.Times), len(began))
	}
	var out []float64
	for i := coldTurns; i < len(began); i++ {
		out = append(out, ms(saw.Times[i]-began[i].UnixNano()))
	}
	return out, nil
}

// follower reads what happens in a guild, as it happens: searching all messages for one
// would slow the guild down, which is what is measured.
type follower struct {
	events chan discordsim.Happening
	ended  chan struct{}
	cancel context.CancelFunc
}

func followGuild(ctx context.Context, g *discordsim.Sim) *follower {
	ctx, cancel := context.WithCancel(ctx)
	a := &follower{events: make(chan discordsim.Happening, 1<<16), ended: make(chan struct{}), cancel: cancel}
	go func() {
		defer close(a.ended)
		_, _ = g.WaitEvent(ctx, func(h discordsim.Happening) bool { // until the end
			select {
			case a.events <- h:
			case <-ctx.Done():
			}
			return false
		})
	}()
	return a
}

func (a *follower) stop() {
	a.cancel()
	<-a.ended
}

// answer waits for the answer to a message and for the sign that it is done.
func (a *follower) answer(ctx context.Context, id discordsim.ID) (answer discordsim.ID, err error) {
	for {
		select {
		case h := <-a.events:
			var e struct {
				ID        discordsim.ID         `json:"id"`
				Message   discordsim.ID         `json:"message_id"`
				Reference *discordsim.Reference `json:"message_reference"`
				Emoji     struct{ Name string } `json:"emoji"`
			}
			if err := json.Unmarshal(h.Data, &e); err != nil {
				continue // not about a message
			}
			switch {
			case h.Name == "MESSAGE_CREATE" && e.Reference != nil && e.Reference.MessageID == id:
				answer = e.ID
			case h.Name == "MESSAGE_REACTION_ADD" && e.Message == id && e.Emoji.Name == "✅" && answer != 0:
				return answer, nil
			}
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
}

// echoTimes are how long a bot needs that does nothing but answer, on the same library.
func (b *stand) echoTimes(ctx context.Context) ([]float64, error) {
	g, err := guildOf(ctx, 1, 0)
	if err != nil {
		return nil, err
	}
	defer g.Stop()
	cmd := exec.CommandContext(ctx, b.self)
	cmd.Env = append(b.environ(), modeVariable+"=echo", "ECHO_API="+g.API(), "ECHO_GATEWAY="+g.Gateway(), "ECHO_TOKEN="+g.Token("chorus"))
	cmd.Stderr = os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	times, err := echoTalk(ctx, g)
	return times, errors.Join(err, in.Close(), cmd.Wait())
}

func echoTalk(ctx context.Context, g *discordsim.Sim) ([]float64, error) {
	if err := g.WaitConnected(ctx, "chorus"); err != nil {
		return nil, err
	}
	var out []float64
	for i := range warmTurns + coldTurns {
		began := time.Now()
		id, err := g.Say("ada", "channel-0", fmt.Sprintf("hello %d", i))
		if err == nil {
			_, err = g.WaitMessage(ctx, func(m discordsim.Message) bool { return m.Reference != nil && m.Reference.MessageID == id })
		}
		if err != nil {
			return nil, err
		}
		if i >= coldTurns {
			out = append(out, ms(time.Since(began).Nanoseconds()))
		}
	}
	return out, nil
}

// echo is the bot's process: it answers every message until its input ends.
func echo() error {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	c, err := disgo.New(os.Getenv("ECHO_TOKEN"), bot.WithLogger(slog.New(slog.DiscardHandler)),
		bot.WithRestClientConfigOpts(rest.WithURL(os.Getenv("ECHO_API"))),
		bot.WithGatewayConfigOpts(gateway.WithURL(os.Getenv("ECHO_GATEWAY")), gateway.WithCompression(gateway.CompressionNone),
			gateway.WithIntents(gateway.IntentGuilds|gateway.IntentGuildMessages|gateway.IntentMessageContent)),
		bot.WithEventListenerFunc(func(e *events.MessageCreate) {
			if !e.Message.Author.Bot {
				_, _ = e.Client().Rest.CreateMessage(e.ChannelID, discord.NewMessageCreate().WithContent(e.Message.Content).WithMessageReferenceByID(e.MessageID)) // whoever waits for it notices
			}
		}))
	if err != nil {
		return err
	}
	if err := c.OpenGateway(ctx); err != nil {
		return err
	}
	<-ctx.Done()
	ending, stop := context.WithTimeout(context.Background(), 5*time.Second)
	defer stop()
	c.Close(ending)
	return nil
}
