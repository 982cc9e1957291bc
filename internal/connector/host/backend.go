package host

import (
	"cmp"
	"context"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"chorus/internal/chat"
	"chorus/internal/config"
	"chorus/internal/connector"
	"chorus/internal/connector/publish"
	"chorus/internal/engine"
	"chorus/internal/journal"
	"chorus/internal/room"
	"chorus/internal/room/activate"
	"chorus/internal/room/route"
	"chorus/internal/runsetup"
	"chorus/internal/service"
	"chorus/internal/service/agents"
	"chorus/internal/store"
)

// Backend is the program as the bots of one platform see it.
type Backend struct {
	*store.DB
	App       *Host
	Platform  Platform
	handler   *service.Handler
	agents    *agents.Handler
	Bots      []Account
	elsewhere []Account // those that run in other processes

	mu     sync.Mutex
	selves map[string]room.Author // who the connected bots are, by name
	live   map[string]*connector.Bot
	has    map[string]context.Context // ends when this process loses the bot
	owners channelOwners

	digests turns // one summary of a channel at a time
}

// backend returns the backend's interfaces.
func (h *Backend) backend() connector.Backend {
	return connector.Backend{Runner: h, Approver: h, Agents: h, Journal: h, Outbox: h, Openings: h, ReadState: h, Executor: h.App.Service.Operations(), Admin: h,
		BotNames: h, Conversations: h, Pins: h, Files: h}
}

func (h *Backend) engine() *engine.Engine { return h.handler.Engine }

// Arrive implements connector.Runner.
func (h *Backend) Arrive(ctx context.Context, a journal.Arrival) (journal.Arrived, error) {
	forgotten := h.forgottenFiles(ctx, a)
	done, err := h.engine().Arrive(ctx, a)
	if err != nil {
		return done, err
	}
	h.retitle(ctx, a)
	h.unarchive(ctx, a)
	for _, address := range forgotten {
		if err := h.App.Images.Drop(address); err != nil {
			h.App.Log.Warn("a fetched picture of a deleted message could not be removed", "event", "image_cache", "error", err)
		}
	}
	return done, nil
}

// ArriveQuietly implements connector.Runner.
func (h *Backend) ArriveQuietly(ctx context.Context, a journal.Arrival) (journal.Arrived, func(), error) {
	done, wake, err := h.engine().ArriveQuietly(ctx, a)
	if err == nil {
		h.unarchive(ctx, a)
	}
	return done, wake, err
}

// Watch implements connector.Runner.
func (h *Backend) Watch(ctx context.Context, thread chat.ThreadID, after int64) iter.Seq2[publish.Item, error] {
	return func(yield func(publish.Item, error) bool) {
		for item, err := range h.engine().Watch(ctx, thread, after) {
			if !yield(publish.Item{Event: item.Event, Live: item.Live}, err) {
				return
			}
		}
	}
}

// Abort implements connector.Runner.
func (h *Backend) Abort(ctx context.Context, thread chat.ThreadID, by string, all bool) (bool, error) {
	return h.engine().Abort(ctx, thread, by, all)
}

// Answer implements connector.Approver.
func (h *Backend) Answer(ctx context.Context, id string, by chat.Principal, ok bool, note string) error {
	return h.engine().Answer(ctx, id, by, ok, note)
}

// ThreadsIn implements connector.Journal.
func (h *Backend) ThreadsIn(ctx context.Context, place string, limit int) ([]journal.Thread, error) {
	return h.Threads(ctx, store.ThreadFilter{Transport: h.Platform.Name, Place: place, Limit: limit})
}

// isBot reports whether an agent has its own bot.
func (h *Backend) isBot(agent string) bool {
	return slices.ContainsFunc(h.Bots, func(b Account) bool { return b.Name == agent })
}

// Serves implements connector.Agents: a bot posts for its own agent, and the first one also for
// all agents without a bot.
func (h *Backend) Serves(bot string, thread chat.ThreadID) bool {
	return h.speaksFor(bot, thread.Agent())
}

// Greets implements connector.Agents.
func (h *Backend) Greets(bot string) bool {
	settings, err := h.App.Settings.Bot(bot)
	if err != nil {
		h.App.Logs.LogOnce(err.Error(), "config")
		return false
	}
	return settings.Greeting
}

func (h *Backend) speaksFor(bot, agent string) bool {
	return agent == bot || !h.isBot(agent) && !h.runsElsewhere(agent) && len(h.Bots) > 0 && h.Bots[0].Name == bot
}

// runsElsewhere reports whether an agent has a bot in another process.
func (h *Backend) runsElsewhere(agent string) bool {
	return slices.ContainsFunc(h.elsewhere, func(b Account) bool { return b.Name == agent })
}

// Listeners implements connector.Agents. In an agent's own channel, or one with its name, that agent listens; in a project's channel
// the agent for projects; in a task's thread its worker; everywhere else every bot's own agent. The agents of other
// bots are included, so that a message for one of them is nobody else's, even while that bot is not connected (yet).
func (h *Backend) Listeners(ctx context.Context, bot string, self room.Author, in room.Channel) ([]connector.Listener, error) {
	h.mu.Lock()
	if self.ID != "" {
		h.selves[bot] = self
	}
	selves := maps.Clone(h.selves)
	h.mu.Unlock()
	own := cmp.Or(h.taskAgent(ctx, in), h.ChannelAgent(in))
	var out []connector.Listener
	for _, b := range slices.Concat(h.Bots, h.elsewhere) {
		user, connected := selves[b.Name]
		if !connected {
			if user = b.User; user.ID == "" {
				continue
			}
		}
		name := h.answering(ctx, b.Name, in)
		l, settings, err := h.listener(ctx, name, user, in)
		if err != nil {
			return nil, err
		}
		if named(settings.ChannelsDeny, in) {
			continue
		}
		direct := in.Guild == "" || in.Guild == room.Direct
		l.Bound = direct && b.Name == bot || !direct && h.reads(b.Name, bot, in) && (name == own || named(settings.ChannelsAllow, in) || h.answersAll(ctx, b.Name, in))
		if own == "" || name == own || l.Routing == route.Room {
			out = append(out, l)
		}
	}
	return out, nil
}

// named reports whether a list contains a channel, or its parent, by name or id.
func named(list []string, in room.Channel) bool {
	return slices.ContainsFunc(list, func(name string) bool {
		return config.Channel{Name: strings.TrimPrefix(name, "#")}.Means(in.ID, in.Home(), in.Name, in.HomeName)
	})
}

// reads reports whether a bot is in a channel of a guild, as far as is known: the bot that asks
// is, and a bot that is not connected may be.
func (h *Backend) reads(bot, asks string, in room.Channel) bool {
	h.mu.Lock()
	live := h.live[bot]
	h.mu.Unlock()
	if bot == asks || live == nil {
		return true
	}
	_, known := live.Platform.Known(in.ID)
	return known
}

// answering is the agent that a bot speaks for in a channel: the one whose task is shown there, whose channel it is, or who answers for projects.
func (h *Backend) answering(ctx context.Context, bot string, in room.Channel) string {
	if own := cmp.Or(h.taskAgent(ctx, in), h.ChannelAgent(in), h.projectAgent(ctx, in)); own != "" && h.speaksFor(bot, own) {
		return own
	}
	return bot
}

func (h *Backend) listener(ctx context.Context, name string, self room.Author, in room.Channel) (connector.Listener, *config.Bot, error) {
	settings, _, err := h.App.Settings.BotAt(ctx, room.Agent{Name: name, User: self.ID, Username: self.Name}, in.Guild, in.ID)
	if err != nil {
		return connector.Listener{}, nil, err
	}
	l := connector.Listener{MaxChars: settings.MaxMessageChars, Waiting: settings.MaxQueuedReplies,
		Roles: settings.AuthorizedRoles, History: historyOf(settings), HistoryChars: settings.WindowCharacters}
	l.Agent = room.Agent{Name: name, User: self.ID, Username: self.Name, InnerName: settings.InnerName}
	l.Routing = route.Routing(settings.Routing)
	if settings.IsSet("intake") {
		l.Intake = chat.Intake(settings.Intake)
	}
	l.Rules = activate.Rules{ReplyOnRandom: settings.ReplyOnRandom, ReplyOnName: settings.ReplyOnName, AutoReplyOwnChannel: settings.AutoReplyOwnChannel,
		MaxBotReplyChainDepth: settings.MaxBotReplyChainDepth, ChainEmote: settings.BotReplyChainDepthEmote}
	l.Answer = route.Answer(settings.Answer)
	l.Blocked, l.Cooldown = settings.Blocked, time.Duration(settings.CooldownSeconds)*time.Second
	return l, settings, nil
}

// ChannelAgent is the agent whose own channel it is, or whose name it has; for a
// platform thread, that of its parent channel. "": none.
func (h *Backend) ChannelAgent(in room.Channel) string {
	name := strings.ToLower(in.HomeName)
	if in.HomeName == "" && in.Parent == "" {
		name = strings.ToLower(in.Name)
	}
	if owner := h.ownerOf(in.Guild, in.Home()); owner != "" {
		return owner
	}
	if !chat.ValidAgentName(name) {
		return ""
	}
	if h.isBot(name) || h.App.Settings.Agents().Exists(name) && h.lives(name, in) {
		return name
	}
	return ""
}

// NewThread implements connector.Agents: an agent works in its workspace, or in a folder for the conversation
// if it has none.
func (h *Backend) NewThread(_ context.Context, thread chat.ThreadID, owner chat.Principal, title string) (journal.Thread, error) {
	row := journal.Thread{ID: thread, Agent: thread.Agent(), Place: thread.Place(), Owner: owner, Title: title}
	row.Dir = h.handler.Scratch(thread)
	if runsetup.IsDir(h.App.Home.AgentDir(row.Agent)) {
		row.Dir = h.App.Settings.Agents().Workspace(row.Agent)
	}
	_, err := h.App.Home.Ensure(row.Dir)
	return row, err
}
