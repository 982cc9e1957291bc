package connector

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"chorus/internal/await"
	"chorus/internal/chat"
	"chorus/internal/connector/approvalcard"
	"chorus/internal/connector/publish"
	"chorus/internal/outbox"
	"chorus/internal/platform"
	"chorus/internal/room"
	"chorus/internal/room/people"
)

// Options configure a bot.
type Options struct {
	Name     string // of the bot: part of its arrivals, cursors and lanes
	Platform platform.Platform
	Backend  Backend
	// CommandPrefix precedes the names of the bot's commands; "": none.
	CommandPrefix string
	// ShownIn returns where this platform shows a conversation that is held elsewhere; nil: it shows none.
	ShownIn  func(ctx context.Context, thread chat.ThreadID) (publish.Shown, error)
	Commands func(*Bot) []Commands // of two commands with one name the first counts; may be nil
	Log      *slog.Logger          // nil: no log

	// Times; zero: the defaults below.
	BackoffMax           time.Duration // the longest wait between two tries
	FirstBackoff         time.Duration // the first one
	Typing               time.Duration // between two typing notices
	Preview              time.Duration // between two edits of a message that is being written
	Recheck              time.Duration // how long a connection that reports nothing can go unnoticed
	Idle                 time.Duration // after which a conversation without news is no longer watched
	Grace                time.Duration // how late the platform may report a message
	Fetch                time.Duration // time limit for one file
	CallWait             time.Duration // how long one unanswered call delays others
	GiveUp, GiveUpUnsure time.Duration // how long failing calls are retried; zero: the outbox's default
}

// The defaults of those times.
const (
	defaultBackoffMax   = 32 * time.Second
	defaultFirstBackoff = time.Second
	defaultTyping       = 8 * time.Second // platforms show it for about ten seconds
	defaultPreview      = 1100 * time.Millisecond
	defaultRecheck      = 3 * time.Minute
	defaultIdle         = time.Minute
	defaultGrace        = 20 * time.Second
	defaultFetch        = 20 * time.Second
	defaultCallWait     = 30 * time.Second

	callTime = 30 * time.Second // for one try of a call
)

func (o Options) filled() (Options, error) {
	if o.Platform == nil {
		return o, errors.New("connector: no platform")
	}
	if o.Backend.Runner == nil {
		return o, errors.New("connector: no backend")
	}
	for at, d := range map[*time.Duration]time.Duration{&o.BackoffMax: defaultBackoffMax, &o.FirstBackoff: defaultFirstBackoff, &o.Typing: defaultTyping,
		&o.Preview: defaultPreview, &o.Recheck: defaultRecheck, &o.Idle: defaultIdle, &o.Grace: defaultGrace, &o.Fetch: defaultFetch, &o.CallWait: defaultCallWait} {
		*at = cmp.Or(*at, d)
	}
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	o.Log = o.Log.With("component", o.Platform.Name(), "bot", o.Name)
	return o, nil
}

// Bot is one bot account with its connection. Create it with New, run it with Run.
type Bot struct {
	Options
	transport string // the platform's name
	caps      platform.Caps
	cards     approvalcard.Writer
	publisher *publish.Publisher
	can       abilities
	outbox    *outbox.Engine
	people    *people.People
	recent    *recent
	queue     *queue
	renames   chan struct{} // sends when a name may have changed
	greeted   chan struct{} // closed when we know who we are
	files     *downloads
	commands  []Commands
	cooldowns cooldowns
	work      sync.WaitGroup

	removing   sync.Mutex             // one deleted channel is handled at a time
	taking     sync.Mutex             // one message is taken at a time
	introduced map[chat.ThreadID]bool // rooms whose history was read; guarded by taking

	mu         sync.Mutex
	pins       pinCache
	self       room.Author          // who we are, once connected
	active     map[string]time.Time // channels with messages since they were last read
	running    context.Context      // ends with the bot; nil: it does not run
	registered bool                 // commands
	listed     bool                 // the platform has listed all of its channels since it connected
	opening    map[string]bool      // conversations that are being opened
	comparing  bool                 // a search for missed edits and deletions is running
}

// abilities are a platform's optional features; nil: not supported.
type abilities struct {
	history   platform.History
	threads   platform.Threads
	pins      platform.Pins
	reactions platform.Reactions
	readers   platform.Readers
	direct    platform.Direct
	names     platform.Names
	channels  platform.Channels
	downloads platform.Downloads
	links     platform.Links
	reconnect platform.Reconnects
	commands  platform.Commander
}

func abilitiesOf(p platform.Platform) (a abilities) {
	a.history, _ = p.(platform.History)
	a.threads, _ = p.(platform.Threads)
	a.pins, _ = p.(platform.Pins)
	a.reactions, _ = p.(platform.Reactions)
	a.readers, _ = p.(platform.Readers)
	a.direct, _ = p.(platform.Direct)
	a.names, _ = p.(platform.Names)
	a.channels, _ = p.(platform.Channels)
	a.downloads, _ = p.(platform.Downloads)
	a.links, _ = p.(platform.Links)
	a.reconnect, _ = p.(platform.Reconnects)
	a.commands, _ = p.(platform.Commander)
	return a
}

// New makes a bot. It does not connect.
func New(o Options) (*Bot, error) {
	o, err := o.filled()
	if err != nil {
		return nil, err
	}
	caps := o.Platform.Caps()
	b := &Bot{Options: o, transport: o.Platform.Name(), caps: caps, cards: approvalcard.Writer{Platform: o.Platform.Name(), Caps: caps}, can: abilitiesOf(o.Platform),
		people: people.New(), recent: newRecent(o.Platform.Older), queue: newQueue(), files: newDownloads(o.Fetch),
		renames: make(chan struct{}, 1), greeted: make(chan struct{}), introduced: map[chat.ThreadID]bool{},
		pins:   pinCache{map[string]time.Time{}, map[string][]string{}},
		active: map[string]time.Time{}, opening: map[string]bool{}}
	if o.Commands != nil {
		b.commands = o.Commands(b)
	}
	b.outbox = outbox.New(outbox.Options{Store: o.Backend, Platform: sender{o.Platform, o.Backend.Files}, Name: b.transport, Bot: o.Name, Pace: o.Preview,
		BackoffMax: o.BackoffMax, NonceWindow: b.caps.Nonce, Late: b.caps.Late, GiveUp: o.GiveUp, GiveUpUnsure: o.GiveUpUnsure, Failed: b.undelivered, Log: o.Log})
	b.publisher = publish.New(publish.Options{Bot: o.Name, Platform: o.Platform, Backend: o.Backend, Outbox: b.outbox, ShownIn: o.ShownIn,
		Connected: func() bool { return b.Self().ID != "" }, Directory: b.directory, Notifies: b.notifies, Retry: b.retry(), Log: o.Log,
		Typing: o.Typing, Preview: o.Preview, Idle: o.Idle, CallWait: o.CallWait})
	return b, nil
}

// Run stays connected until ctx ends, or until the platform says that retrying makes
// no sense. It may be called once.
func (b *Bot) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	b.mu.Lock()
	b.running = ctx
	b.mu.Unlock()
	b.work.Go(func() { b.handleAll(ctx) })
	b.publisher.Start(ctx)
	b.work.Go(func() { b.recheck(ctx) })
	b.work.Go(func() { b.followNames(ctx) })
	b.work.Go(func() { b.send(ctx) })
	b.work.Go(func() { b.downloadAll(ctx) })
	err := b.Platform.Run(ctx, b)
	cancel()
	b.work.Wait()
	b.publisher.Wait()
	if ctx.Err() != nil && (err == nil || errors.Is(err, context.Canceled)) {
		return nil
	}
	return err
}

// send runs the outbox until ctx ends. It starts when we know who we are, because it looks for
// posts from before a crash among our own messages.
func (b *Bot) send(ctx context.Context) {
	select {
	case <-b.greeted:
	case <-ctx.Done():
		return
	}
	b.undeliveredBefore(ctx)
	b.resumeOpenings(ctx)
	b.inBackground(b.removeAll)
	for {
		err := b.outbox.Run(ctx)
		if err == nil || ctx.Err() != nil {
			return
		}
		b.Log.Error("the outbox cannot be read", "event", "outbox_failed", "error", err)
		if !await.For(ctx, b.FirstBackoff) {
			return
		}
	}
}

// sender posts for the outbox, adding the bytes of files that posts only name.
type sender struct {
	platform.Platform
	files Files
}

// Create implements outbox.Platform.
func (s sender) Create(ctx context.Context, c outbox.Call) (string, error) {
	c, err := s.withFile(ctx, c)
	if err != nil {
		return "", err
	}
	return s.Platform.Create(ctx, c)
}

// Edit implements outbox.Platform. Without edits a message stays as it was posted:
// an answer is posted when it is complete, and only a card would change.
func (s sender) Edit(ctx context.Context, c outbox.Call) error {
	if !s.Caps().Edits {
		return nil
	}
	c, err := s.withFile(ctx, c)
	if err != nil {
		return err
	}
	return s.Platform.Edit(ctx, c)
}

func (s sender) withFile(ctx context.Context, c outbox.Call) (outbox.Call, error) {
	p, err := platform.ReadPost(c.Body)
	if err != nil || p.File == "" {
		return c, err
	}
	if c.File = []byte(p.Content); p.Blob == "" {
		return c, nil
	}
	if c.File, err = s.files.Blob(ctx, p.Blob); err != nil {
		return c, &outbox.Trouble{Why: outbox.Invalid, Err: err}
	}
	return c, nil
}

// Transport is the platform's name, the first part of its threads' ids.
func (b *Bot) Transport() string { return b.transport }

// Caps returns the platform's features.
func (b *Bot) Caps() platform.Caps { return b.caps }

// Self is who we are, once connected.
func (b *Bot) Self() room.Author {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.self
}

// Called is an agent's name for people: for the bot's own agent the name that the platform shows.
func (b *Bot) Called(agent string) string {
	if agent == b.Name {
		return cmp.Or(b.Self().Name, agent)
	}
	return agent
}

// inBackground runs something until it ends or the bot does.
func (b *Bot) inBackground(do func(ctx context.Context)) {
	b.mu.Lock()
	ctx := b.running
	b.mu.Unlock()
	if ctx != nil {
		b.work.Go(func() { do(ctx) })
	}
}
