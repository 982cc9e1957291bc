// Package discord connects Chorus to Discord: what people say there becomes arrivals of
// the journal, and what the journal says of a conversation becomes messages, reactions and cards.
//
// It promises that a message is heard once, however often the platform tells of it and
// however often the connection breaks (cursors and history reads close the gaps); that an answer is
// posted once and ends in one authoritative text; that nobody is rung by what a model wrote; that
// every command is acknowledged before the platform loses patience; and that no type of
// the library leaves this package.
package discord

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	"chorus/internal/chat"
	"chorus/internal/connector"
	"chorus/internal/outbox"
	"chorus/internal/room"
)

// DefaultAPI is Discord's own REST root.
const DefaultAPI = "https://discord.com/api/v10"

// Options are what a connector is made of.
type Options struct {
	Name  string // of the bot: its file, and its part of arrivals and cursors
	Token string
	API   string // REST root; "": Discord's own
	Guild string // commands are registered in this guild alone; "": everywhere
	// BackoffMax is the longest wait between two tries; 0: 32 s.
	BackoffMax time.Duration
	Backend    connector.Backend
	HTTP       *http.Client // nil: one of its own
	Log        *slog.Logger
	Version    string

	// Times, for tests; zero: as below.
	Typing, Preview, Patrol, Idle, Grace time.Duration
	FirstBackoff                         time.Duration
	Fetch                                time.Duration // how long one file may take
	Nonce                                time.Duration // how long Discord surely knows a nonce again
	Patience                             time.Duration // how long one thing that is not answered holds up others
	GiveUp, GiveUpUnsure                 time.Duration // how long what Discord fails on is tried; zero: as the outbox does
}

// The times of a connector.
const (
	typingEvery    = 8 * time.Second         // Discord shows it for ten
	previewEvery   = 1100 * time.Millisecond // edits of a channel are limited to five in five seconds
	patrolEvery    = 3 * time.Minute         // how long a deaf connection stays unnoticed
	idleAfter      = time.Minute             // a conversation without news needs no watcher
	firstBackoff   = time.Second
	callTime       = 30 * time.Second
	longestBackoff = 32 * time.Second
)

func (o Options) filled() (Options, error) {
	if o.Token == "" {
		return o, fmt.Errorf("bot %s has no token; set DISCORD_BOT_TOKEN, or discordToken in its file", o.Name)
	}
	if o.Backend.Runner == nil {
		return o, errors.New("discord: no backend to connect to")
	}
	o.Token = strings.TrimPrefix(strings.TrimSpace(o.Token), "Bot ")
	o.API = strings.TrimRight(cmp.Or(o.API, DefaultAPI), "/")
	if strings.HasSuffix(o.API, "/api") {
		o.API += "/v10" // both are called the root
	}
	o.BackoffMax = cmp.Or(o.BackoffMax, longestBackoff)
	o.Typing, o.Preview = cmp.Or(o.Typing, typingEvery), cmp.Or(o.Preview, previewEvery)
	o.Patrol, o.Idle = cmp.Or(o.Patrol, patrolEvery), cmp.Or(o.Idle, idleAfter)
	o.FirstBackoff, o.Grace = cmp.Or(o.FirstBackoff, firstBackoff), cmp.Or(o.Grace, grace)
	o.Fetch, o.Nonce = cmp.Or(o.Fetch, fetchTime), cmp.Or(o.Nonce, nonceWindow)
	o.Patience = cmp.Or(o.Patience, patience)
	if o.HTTP == nil {
		o.HTTP = &http.Client{Timeout: callTime}
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.Log = o.Log.With("component", "discord", "bot", o.Name)
	return o, nil
}

// Bot is one bot with its connection. Make it with New, run it with Run.
type Bot struct {
	Options
	rest    *calls
	outbox  *outbox.Engine
	world   *world
	tails   *tails
	queue   *queue
	names   chan struct{} // rings when a name may have changed
	greeted chan struct{} // closed when we know who we are
	files   *fetcher
	work    sync.WaitGroup

	making  sync.Mutex             // one agent is made at a time
	meeting sync.Mutex             // one message is heard at a time
	met     map[chat.ThreadID]bool // rooms whose past was read; guarded by meeting

	mu      sync.Mutex
	pins    pinboard
	hooks   map[string]hook // by channel
	tried   []string        // what was begun through them, the newest last
	self    room.Author     // who we are, once connected
	app     string          // our application
	tellers map[chat.ThreadID]*teller
	resync  map[int]func() // let go of a shard's connection for a new one
	stirred map[string]stirring
	running context.Context // ends with the bot; nil: it does not run
	synced  bool            // commands are registered
	guilds  map[string]bool // those that have not told of their channels yet
	// comparing: somebody looks for edits and deletions that we missed.
	comparing bool
}

// New makes a bot. Nothing is connected yet.
func New(o Options) (*Bot, error) {
	o, err := o.filled()
	if err != nil {
		return nil, err
	}
	b := &Bot{Options: o, rest: newCalls(o), world: newWorld(), tails: newTails(), hooks: map[string]hook{},
		pins: pinboard{map[string]time.Time{}, map[string][]string{}}, met: map[chat.ThreadID]bool{}, queue: newQueue(),
		names: make(chan struct{}, 1), greeted: make(chan struct{}), files: newFetcher(o), tellers: map[chat.ThreadID]*teller{}, resync: map[int]func(){}, stirred: map[string]stirring{}}
	b.outbox = outbox.New(outbox.Options{Store: o.Backend, Platform: sender{b}, Name: room.Transport, Bot: o.Name, Pace: o.Preview,
		BackoffMax: o.BackoffMax, NonceWindow: o.Nonce, GiveUp: o.GiveUp, GiveUpUnsure: o.GiveUpUnsure, Failed: b.untold, Log: o.Log})
	return b, nil
}

// identifyEvery is how long Discord wants to lie between two rounds of introductions.
const identifyEvery = 5 * time.Second

// nonceWindow is how long Discord surely knows a nonce again: it promises a few minutes.
const nonceWindow = time.Minute

// Run is connected until ctx ends, or until Discord says that it makes no sense to try
// again: a wrong token, an intent that is not switched on. It may be called once.
func (b *Bot) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	b.mu.Lock()
	b.running = ctx
	b.mu.Unlock()
	b.work.Go(func() { b.hearAll(ctx) })
	b.work.Go(func() { b.tellAll(ctx) })
	b.work.Go(func() { b.patrol(ctx) })
	b.work.Go(func() { b.followNames(ctx) })
	b.work.Go(func() { b.send(ctx) })
	b.work.Go(func() { b.fetchAll(ctx) })
	err := b.connect(ctx)
	cancel()
	b.work.Wait()
	b.HTTP.CloseIdleConnections()
	if ctx.Err() != nil && (err == nil || errors.Is(err, context.Canceled)) {
		return nil
	}
	return err
}

// connect finds the gateway and keeps every shard on it.
func (b *Bot) connect(ctx context.Context) error {
	info, err := b.gateway(ctx)
	if err != nil {
		return err
	}
	shards := max(1, info.Shards)
	failed := make(chan error, shards)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var running sync.WaitGroup
	for i := range shards {
		l := &link{bot: b, url: info.URL, shard: [2]int{i, shards}, log: b.Log.With("shard", i)}
		running.Go(func() {
			// Discord lets so many introduce themselves in five seconds, and throws out the others.
			if at := i / max(1, info.SessionStartLimit.MaxConcurrency); at > 0 && !sleep(ctx, time.Duration(at)*identifyEvery) {
				return
			}
			if err := l.run(ctx); err != nil {
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

// send runs the outbox until ctx ends. It begins when we know who we are: what may have been
// posted before a crash is looked for among our own messages.
func (b *Bot) send(ctx context.Context) {
	select {
	case <-b.greeted:
	case <-ctx.Done():
		return
	}
	b.untoldBefore(ctx)
	wait := b.FirstBackoff
	for {
		err := b.outbox.Run(ctx)
		if err == nil || ctx.Err() != nil {
			return
		}
		b.Log.Error("what is to be said cannot be read", "event", "outbox_failed", "error", err)
		if !sleep(ctx, wait) {
			return
		}
	}
}
