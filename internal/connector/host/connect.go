package host

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"chorus/internal/chat"
	"chorus/internal/connector"
	"chorus/internal/connector/commands"
	"chorus/internal/connector/publish"
	"chorus/internal/connector/workcards"
	"chorus/internal/owner"
	"chorus/internal/platform"
	"chorus/internal/room"
	"chorus/internal/service/agents"
)

// Platform is a chat platform with its configured bot accounts.
type Platform struct {
	Name     string // the first part of the ids of its threads
	Label    string // its name for people
	Accounts func() ([]Account, error)
}

// Account is a bot account on a platform.
type Account struct {
	Name       string      // of its file, and of its own agent
	User       room.Author // who it is, as far as known before it has connected
	Elsewhere  bool        // another process runs it: this process must not answer for it
	BackoffMax time.Duration
	Open       func(o BotOptions) (platform.Platform, error)
}

// BotOptions are the options of a bot and its connection; tests change them.
type BotOptions struct {
	connector.Options
	HTTP  *http.Client
	Nonce time.Duration
}

// Connect connects every bot account of this process. stop ends the connections and waits
// for them. An account that fails later is reported and does not affect others.
func (h *Host) Connect() (stop func(), err error) {
	ctx, cancel := context.WithCancel(context.Background())
	var work sync.WaitGroup
	stop = func() {
		cancel()
		work.Wait()
		h.mu.Lock()
		clear(h.backends)
		h.mu.Unlock()
	}
	for _, p := range h.Platforms {
		if err := h.connect(ctx, &work, p); err != nil {
			stop()
			return nil, err
		}
	}
	return stop, nil
}

func (h *Host) connect(ctx context.Context, work *sync.WaitGroup, p Platform) error {
	accounts, err := p.Accounts()
	if err != nil {
		return fmt.Errorf("connect to %s: %w", p.Label, err)
	}
	handler := h.Service.Handler()
	b := &Backend{DB: h.DB, App: h, Platform: p, handler: handler, agents: agents.New(h.Service, handler), selves: map[string]room.Author{}, live: map[string]*connector.Bot{}, has: map[string]context.Context{}}
	for _, a := range accounts {
		if a.Elsewhere {
			b.elsewhere = append(b.elsewhere, a)
		} else {
			b.Bots = append(b.Bots, a)
		}
	}
	h.mu.Lock()
	if h.backends == nil {
		h.backends = map[string]*Backend{}
	}
	h.backends[p.Name] = b
	h.mu.Unlock()
	for _, a := range b.Bots {
		if err := h.connectBot(ctx, work, b, a); err != nil {
			return fmt.Errorf("connect bot %s to %s: %w", a.Name, p.Label, err)
		}
	}
	if len(b.Bots) > 0 {
		work.Go(func() { b.watchIdle(ctx) })
	}
	return nil
}

// Backend is the backend of a connected platform; nil: it is not connected.
func (h *Host) Backend(platform string) *Backend {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.backends[platform]
}

// HasBot reports whether this process is connected to a platform.
func (h *Host) HasBot(platform string) bool { return h.Backend(platform) != nil }

// BotNames returns the bots that this process connects, each with its platform.
func (h *Host) BotNames() []string {
	var out []string
	for _, p := range h.Platforms {
		if b := h.Backend(p.Name); b != nil {
			for _, a := range b.Bots {
				out = append(out, a.Name+" on "+p.Label)
			}
		}
	}
	return out
}

// madeBot is a bot that is not connected yet.
type madeBot struct {
	*connector.Bot
	cards *workcards.Cards
}

// connectBot connects a bot as soon as this process owns it. On one home only one process may want it. Among nodes all do, and those
// that do not own it wait.
func (h *Host) connectBot(ctx context.Context, work *sync.WaitGroup, b *Backend, a Account) error {
	bot, err := h.makeBot(b, a)
	if err != nil {
		return err
	}
	if _, shared := h.Owner.(owner.Shared); shared {
		work.Go(func() { h.whileOwner(ctx, b, a, bot) })
		return nil
	}
	held, err := h.Owner.Take(ctx, owner.Bot(b.Platform.Name, a.Name))
	if errors.Is(err, owner.ErrHeld) {
		return errors.New("another process on this home already runs it; stop that process first")
	}
	if err != nil {
		return err
	}
	b.setLive(ctx, a.Name, bot.Bot)
	work.Go(func() {
		defer held.Release()
		h.runBot(ctx, b, a, bot)
	})
	return nil
}

// ownerLook is how often to check whether another node has released a bot.
const ownerLook = 2 * time.Second

// whileOwner connects a bot whenever this process owns it, each time as a new one.
func (h *Host) whileOwner(ctx context.Context, b *Backend, a Account, made *madeBot) {
	failed := func(err error) { h.botFailed(b, a, err) }
	owner.While(ctx, h.Owner, owner.Bot(b.Platform.Name, a.Name), ownerLook, failed, func(ctx context.Context) {
		bot := made
		if made = nil; bot == nil {
			var err error
			if bot, err = h.makeBot(b, a); err != nil {
				failed(err)
				return
			}
		}
		b.setLive(ctx, a.Name, bot.Bot)
		defer b.setLive(ctx, a.Name, nil)
		h.runBot(ctx, b, a, bot)
	})
}

// runBot keeps a bot connected until ctx ends.
func (h *Host) runBot(ctx context.Context, b *Backend, a Account, bot *madeBot) {
	ctx, cancel := context.WithCancel(ctx)
	var cards sync.WaitGroup
	cards.Go(func() { bot.cards.Run(ctx) })
	if err := bot.Run(ctx); err != nil {
		h.botFailed(b, a, err)
	}
	cancel()
	cards.Wait()
}

func (h *Host) botFailed(b *Backend, a Account, err error) {
	text := "bot " + a.Name + " is not on " + b.Platform.Label + ": " + err.Error()
	h.Log.Error(text, "component", b.Platform.Name, "event", "bot_failed", "bot", a.Name)
	h.Warn(text)
}

// setLive sets a bot's current connection until ctx ends; nil: none here.
func (h *Backend) setLive(ctx context.Context, name string, bot *connector.Bot) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if bot == nil {
		delete(h.live, name)
		delete(h.has, name)
		return
	}
	h.live[name], h.has[name] = bot, ctx
}

// makeBot makes the bot of an account.
func (h *Host) makeBot(b *Backend, a Account) (*madeBot, error) {
	if !chat.ValidAgentName(a.Name) {
		return nil, fmt.Errorf("%q cannot be an agent's name: 2 to 32 of a–z, 0–9 and hyphens", a.Name)
	}
	derived, err := h.derivedCommands()
	if err != nil {
		return nil, err
	}
	made := &madeBot{}
	o := BotOptions{Options: connector.Options{Name: a.Name, BackoffMax: a.BackoffMax, Backend: b.backend(), Log: h.Log,
		Commands: func(bot *connector.Bot) []connector.Commands {
			own := commands.New(bot)
			around := b.surroundings(bot, own)
			made.cards = workcards.New(bot, workcards.Options{Work: h.Work, Caller: around.Caller})
			return []connector.Commands{own, made.cards, derived.As(around)}
		},
		ShownIn: func(ctx context.Context, thread chat.ThreadID) (publish.Shown, error) {
			return made.cards.ShownIn(ctx, thread)
		}}}
	if a.Name != b.Bots[0].Name {
		o.CommandPrefix = a.Name
	}
	if h.Tune != nil {
		h.Tune(&o)
	}
	if o.Platform, err = a.Open(o); err != nil {
		return nil, err
	}
	made.Bot, err = connector.New(o.Options)
	return made, err
}
