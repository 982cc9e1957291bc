// Package discord implements package platform for Discord: its events in
// neutral terms, its calls, its limits and its formatting. Package connector decides what to do
// with what people say.
//
// It promises that no type of the library leaves it, that every click and command is
// acknowledged before Discord gives up on it, that nothing a model writes notifies anybody,
// and that the gateway never has to wait.
package discord

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/disgoorg/disgo/discord"
	wire "github.com/disgoorg/disgo/gateway"
	"github.com/disgoorg/disgo/rest"

	"chorus/internal/await"
	"chorus/internal/platform"
	"chorus/internal/room"
	"chorus/internal/room/mention"
	"chorus/internal/transport/discord/gateway"
)

// Name is the first part of the ids of Discord's threads.
const Name = "discord"

// DefaultAPI is Discord's REST root.
const DefaultAPI = "https://discord.com/api/v10"

// Options configure a client.
type Options struct {
	Bot     string // used in messages to people
	Token   string
	API     string // REST root; "": Discord's own
	Guild   string // register commands only in this guild; "": everywhere
	HTTP    *http.Client
	Log     *slog.Logger
	Version string

	// Times; zero: the defaults below.
	FirstBackoff, BackoffMax time.Duration
	CallWait                 time.Duration // how long one unanswered call delays others
	Nonce                    time.Duration // how long Discord is sure to remember a nonce
}

const (
	firstBackoff   = time.Second
	longestBackoff = 32 * time.Second
	callWait       = 30 * time.Second
	nonceWindow    = time.Minute // Discord promises a few minutes
	callTime       = 30 * time.Second
	identifyEvery  = 5 * time.Second // the interval Discord requires between rounds of identifying
)

func (o Options) filled() (Options, error) {
	if o.Token == "" {
		return o, fmt.Errorf("bot %s has no token; set DISCORD_BOT_TOKEN, or discordToken in its file", o.Bot)
	}
	o.Token = strings.TrimPrefix(strings.TrimSpace(o.Token), "Bot ")
	o.API = strings.TrimRight(cmp.Or(o.API, DefaultAPI), "/")
	if strings.HasSuffix(o.API, "/api") {
		o.API += "/v10" // both are called the root
	}
	o.FirstBackoff, o.BackoffMax = cmp.Or(o.FirstBackoff, firstBackoff), cmp.Or(o.BackoffMax, longestBackoff)
	o.CallWait, o.Nonce = cmp.Or(o.CallWait, callWait), cmp.Or(o.Nonce, nonceWindow)
	o.HTTP = cmp.Or(o.HTTP, &http.Client{Timeout: callTime})
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	return o, nil
}

// Client is one bot account on Discord.
type Client struct {
	platform.Numbers // snowflakes
	Options
	rest   *gateway.REST
	cache  *gateway.Cache
	files  *http.Client
	events *platform.Queue[any]
	work   sync.WaitGroup

	mu      sync.Mutex
	sink    platform.Sink
	running context.Context
	self    room.Author
	app     string // our application
	shards  []*gateway.Shard
	pending map[string]bool      // guilds that have not reported their channels yet
	hooks   map[string]hook      // by channel
	tried   []string             // nonces of messages started through webhooks, newest last
	closed  map[string]bool      // posts of forums that we closed
	tagless map[string]time.Time // until when tags are not created in a forum
}

var (
	_ platform.Platform   = (*Client)(nil)
	_ platform.History    = (*Client)(nil)
	_ platform.Threads    = (*Client)(nil)
	_ platform.Pins       = (*Client)(nil)
	_ platform.Reactions  = (*Client)(nil)
	_ platform.Readers    = (*Client)(nil)
	_ platform.Typing     = (*Client)(nil)
	_ platform.Direct     = (*Client)(nil)
	_ platform.Names      = (*Client)(nil)
	_ platform.Channels   = (*Client)(nil)
	_ platform.Downloads  = (*Client)(nil)
	_ platform.Links      = (*Client)(nil)
	_ platform.Reconnects = (*Client)(nil)
	_ platform.Commander  = (*Client)(nil)
	_ platform.BotRoles   = (*Client)(nil)
)

// New makes a client. It does not connect.
func New(o Options) (*Client, error) {
	o, err := o.filled()
	if err != nil {
		return nil, err
	}
	return &Client{Options: o, rest: gateway.NewREST(o.Token, o.API, o.Version, o.HTTP, o.Log), cache: gateway.NewCache(), files: downloader(o),
		events: platform.NewQueue[any](), pending: map[string]bool{}, hooks: map[string]hook{}, closed: map[string]bool{}, tagless: map[string]time.Time{}}, nil
}

// Name implements platform.Platform.
func (*Client) Name() string { return Name }

// Caps implements platform.Platform.
func (c *Client) Caps() platform.Caps {
	return platform.Caps{Label: "Discord", MaxText: maxText, Nonce: c.Nonce, Edits: true, Reactions: true, Buttons: true, Forms: true, MaxPanel: maxPanelText, Hints: platform.Hints{
		Write:       "A server manager can allow it: Send Messages, and in threads Send Messages in Threads.",
		OpenThread:  "the bot needs the permission Create Public Threads",
		MakeChannel: "Give my role the permission **Manage Channels**,",
		Rename:      "give my role the permission Change Nickname, or name me yourself",
		CopyLink:    "Discord gives one under \"Copy Message Link\".",
	}}
}

// Run implements platform.Platform. It fails on a wrong token, or on an intent that is not
// turned on.
func (c *Client) Run(ctx context.Context, to platform.Sink) error {
	ctx, cancel := context.WithCancel(ctx)
	c.mu.Lock()
	c.running, c.sink = ctx, to
	c.mu.Unlock()
	c.work.Go(func() { c.convertAll(ctx) })
	err := c.connect(ctx)
	cancel()
	c.work.Wait()
	c.HTTP.CloseIdleConnections()
	return err
}

// connect finds the gateway and keeps every shard connected to it.
func (c *Client) connect(ctx context.Context) error {
	info, err := platform.Again(ctx, c.retry(), "gateway", func(ctx context.Context) (*discord.GatewayBot, error) {
		info, err := c.rest.GetGatewayBot(rest.WithCtx(ctx))
		return info, gateway.Trouble(err)
	})
	if gateway.Status(err) == http.StatusUnauthorized {
		return gateway.ErrToken
	}
	if err != nil {
		return err
	}
	count := max(1, info.Shards)
	failed := make(chan error, count)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var running sync.WaitGroup
	for i := range count {
		s := &gateway.Shard{Token: c.Token, URL: info.URL, Index: i, Count: count, FirstBackoff: c.FirstBackoff, BackoffMax: c.BackoffMax,
			Log: c.Log.With("shard", i), Dispatch: c.dispatch}
		c.mu.Lock()
		c.shards = append(c.shards, s)
		c.mu.Unlock()
		running.Go(func() {
			// Discord lets a limited number identify at once and disconnects the others.
			if at := i / max(1, info.SessionStartLimit.MaxConcurrency); at > 0 && !await.For(ctx, time.Duration(at)*identifyEvery) {
				return
			}
			if err := s.Run(ctx); err != nil {
				failed <- err
				cancel()
			}
		})
	}
	running.Wait()
	select {
	case err := <-failed:
		return err
	default:
		return nil
	}
}

// Reconnect implements platform.Reconnects. It is not known which shard reports nothing.
func (c *Client) Reconnect() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.shards {
		s.Resync()
	}
}

func (c *Client) retry() platform.Retry {
	return platform.Retry{First: c.FirstBackoff, Max: c.BackoffMax, Call: callTime, Log: c.Log}
}

// ask makes a call that delays others.
func ask[T any](ctx context.Context, c *Client, what string, call func(context.Context) (T, error)) (T, error) {
	return platform.CallWithin(ctx, c.retry(), c.CallWait, c.Answers, what, func(ctx context.Context) (T, error) {
		got, err := call(ctx)
		return got, gateway.Trouble(err)
	})
}

func (c *Client) me() room.Author {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.self
}

// Known implements platform.Platform.
func (c *Client) Known(id string) (room.Channel, bool) { return c.cache.Known(id) }

// Directory implements platform.Platform.
func (c *Client) Directory(guild string) mention.Directory { return c.cache.Directory(guild) }

// BotRole implements platform.BotRoles.
func (c *Client) BotRole(guild, user string) string { return c.cache.BotRole(guild, user) }

// Channel implements platform.Platform. For a thread it also fetches the parent channel.
func (c *Client) Channel(ctx context.Context, id string) (room.Channel, error) {
	in, ok := c.cache.Known(id)
	if !ok {
		if err := c.learnChannel(ctx, id); err != nil {
			return room.Channel{}, err
		}
		in, _ = c.cache.Known(id)
	}
	if in.Parent != "" && in.HomeName == "" {
		if err := c.learnChannel(ctx, in.Parent); err != nil {
			return room.Channel{}, err
		}
		in, _ = c.cache.Known(id)
	}
	return in, nil
}

func (c *Client) learnChannel(ctx context.Context, id string) error {
	got, err := c.rest.GetChannel(gateway.ID(id), rest.WithCtx(ctx))
	if err == nil {
		c.cache.Learn(got)
	}
	return gateway.Trouble(err)
}

// Member implements platform.Platform.
func (c *Client) Member(ctx context.Context, guild string, who room.Author) (room.Author, error) {
	m, err := c.rest.GetMember(gateway.ID(guild), gateway.ID(who.ID), rest.WithCtx(ctx))
	if err != nil {
		return who, absent(gateway.Trouble(err))
	}
	return c.author(guild, m.User, m, who.Webhook), nil
}

// learnGuild stores a guild's owner and roles.
func (c *Client) learnGuild(guild, owner string, roles []discord.Role) {
	c.cache.SetOwner(guild, owner)
	for _, r := range roles {
		c.cache.LearnRole(guild, r)
	}
}

// learnRoles fetches the roles and the owner of a guild that has not reported its channels, because it is about to
// or because another shard gets its events. Without the names of roles nobody would have any.
func (c *Client) learnRoles(ctx context.Context, guild string) error {
	if guild == "" || guild == room.Direct || c.cache.HasRoles(guild) {
		return nil
	}
	g, err := ask(ctx, c, "roles", func(ctx context.Context) (*discord.RestGuild, error) {
		return c.rest.GetGuild(gateway.ID(guild), false, rest.WithCtx(ctx))
	})
	if err != nil && !platform.Passing(err) {
		return nil // we cannot see the guild: nobody has roles
	}
	if g != nil {
		c.learnGuild(guild, g.OwnerID.String(), g.Roles)
	}
	return err
}

// Answers implements outbox.Platform. It asks for something that Discord must look up, because static
// answers (such as the gateway's address) work even during outages.
func (c *Client) Answers(ctx context.Context) bool {
	_, err := c.rest.Once.GetUser(gateway.ID(c.me().ID), rest.WithCtx(ctx))
	return err == nil || !platform.Passing(gateway.Trouble(err))
}

// dispatch takes gateway events. Clicks and commands cannot wait for a history
// read, so they are handled separately.
func (c *Client) dispatch(data wire.EventData) {
	e, ok := data.(wire.EventInteractionCreate)
	if !ok {
		c.events.Put(data)
		return
	}
	c.mu.Lock()
	ctx := c.running
	c.mu.Unlock()
	c.work.Go(func() { c.interact(ctx, e.Interaction) })
}
