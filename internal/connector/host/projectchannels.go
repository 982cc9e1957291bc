package host

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"chorus/internal/chat"
	"chorus/internal/connector"
	"chorus/internal/journal"
	"chorus/internal/operation"
	"chorus/internal/platform"
	"chorus/internal/room"
	"chorus/internal/work"
)

// ProjectChannels returns the channels of the connected platforms for commands about projects.
func (h *Host) ProjectChannels() *ProjectChannels { return &ProjectChannels{h} }

// ProjectChannels finds channels, and limits people to what they could do with them themselves.
type ProjectChannels struct{ host *Host }

// spot is a place on a platform: the bot that is there, the guild and the channel.
type spot struct {
	backend *Backend
	bot     *connector.Bot
	guild   string
	channel string // "": none in particular
}

// errNowhere is the answer to somebody who is on no server, if there are several or none.
func errNowhere() error {
	err := operation.Errorf(operation.Invalid, "Cannot resolve channel name without guild context. Use set_project_channel with a channel_id instead, or ask for it in the channel itself.")
	err.Field = "channelName"
	return err
}

// spotOf is a caller's place. For somebody at a terminal it is the only guild there is.
func (p *ProjectChannels) spotOf(by operation.Caller) (spot, error) {
	transport, place, _ := strings.Cut(by.Here, ":")
	if by.Session.OnPlatform() {
		transport, place = by.Session.Transport(), by.Session.Place()
	}
	if b := p.host.Backend(transport); b != nil {
		guild, home, _ := room.PlaceParts(place)
		if bot := b.leader(); bot != nil && guild != "" && guild != room.Direct {
			return spot{b, bot, guild, home}, nil
		}
		return spot{}, errNowhere()
	}
	var found []spot
	for _, at := range p.host.Platforms {
		b := p.host.Backend(at.Name)
		if b == nil || b.leader() == nil {
			continue
		}
		if names, ok := b.leader().Platform.(platform.Names); ok {
			for guild := range names.Guilds() {
				if guild != "" && guild != room.Direct {
					found = append(found, spot{b, b.leader(), guild, ""})
				}
			}
		}
	}
	if len(found) != 1 {
		return spot{}, errNowhere()
	}
	return found[0], nil
}

// leader is the bot for tasks that belong to no particular agent; nil: it is not connected.
func (h *Backend) leader() *connector.Bot {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.Bots) == 0 {
		return nil
	}
	return h.live[h.Bots[0].Name]
}

// NamedChannels returns the channels with a name in the caller's place that they can read.
func (p *ProjectChannels) NamedChannels(ctx context.Context, by operation.Caller, name string) (ids []string, err error) {
	at, err := p.spotOf(by)
	if err != nil {
		return nil, err
	}
	channels, ok := at.bot.Platform.(platform.Channels)
	if !ok {
		return nil, errNowhere()
	}
	list, err := channels.ChannelsOf(ctx, at.guild)
	if err != nil {
		return nil, p.explained(at, err)
	}
	for _, c := range list {
		if c.Name != name {
			continue
		}
		if err := p.mayRead(ctx, by, at, c.ID); err == nil {
			ids = append(ids, c.ID)
		} else if operation.KindOf(err) != operation.Forbidden {
			return nil, err
		}
	}
	return ids, nil
}

// explained is a platform's error for people.
func (p *ProjectChannels) explained(at spot, err error) error {
	return operation.Errorf(operation.Unavailable, "%s", at.bot.UserMessage(err))
}

// mayRead refuses a channel to people who cannot read it themselves.
func (p *ProjectChannels) mayRead(ctx context.Context, by operation.Caller, at spot, channel string) error {
	if by.May(operation.Admin) {
		return nil
	}
	if string(by.Principal.Kind) == at.bot.Transport() {
		may, err := at.bot.MayRead(ctx, at.guild, channel, by.Principal.ID)
		if err != nil {
			return p.explained(at, err)
		}
		if may {
			return nil
		}
	}
	return operation.Errorf(operation.Forbidden, "you cannot read this channel on %s, so nothing is posted there for you", at.backend.Platform.Label)
}

// CheckChannel reports why a caller may not have things posted in a channel.
func (p *ProjectChannels) CheckChannel(ctx context.Context, by operation.Caller, channel string) error {
	if by.May(operation.Admin) {
		return nil
	}
	at, err := p.spotOf(by)
	if err != nil {
		return nil // no connected bot could post there
	}
	return p.mayRead(ctx, by, at, channel)
}

// MayManage reports why a caller may not have channels created and archived, and returns the place where they would be created: "" if this
// process is not connected, and the process that is decides.
func (p *ProjectChannels) MayManage(ctx context.Context, by operation.Caller, channel string) (string, error) {
	at, err := p.spotOf(by)
	if err != nil {
		if by.May(operation.Admin) {
			return "", nil
		}
		return "", operation.Errorf(operation.Forbidden, "channels are created and archived on a server; ask in one of its channels")
	}
	place := at.bot.Transport() + ":" + at.guild + "/" + at.channel
	if by.May(operation.Admin) {
		return place, nil
	}
	if managers, ok := at.bot.Platform.(platform.Managers); ok && string(by.Principal.Kind) == at.bot.Transport() {
		may, err := managers.MayManageChannels(ctx, at.guild, by.Principal.ID)
		if err != nil {
			return "", p.explained(at, err)
		}
		if in, known := at.bot.Platform.Known(channel); may && (channel == "" || known && in.Guild == at.guild) {
			return place, nil
		}
	}
	return "", operation.Errorf(operation.Forbidden, "you may not manage channels on this server, so none is created or archived for you; ask somebody who may, or leave it out")
}

// OpenThreadFor opens a thread below a channel, or in the caller's place.
func (p *ProjectChannels) OpenThreadFor(ctx context.Context, by operation.Caller, channel, name string) (string, error) {
	at, err := p.spotOf(by)
	if err != nil {
		return "", operation.Errorf(operation.Unavailable, "threads are opened on a chat platform; ask in a channel there, or link the project to one first")
	}
	in := cmp.Or(channel, at.channel)
	if in == "" {
		return "", operation.Errorf(operation.Unavailable, "the project has no channel for a thread; link one with set_project_channel")
	}
	threads, ok := at.bot.Platform.(platform.Threads)
	if !ok {
		return "", operation.Errorf(operation.Unavailable, "%s has no threads", at.backend.Platform.Label)
	}
	if err := p.mayRead(ctx, by, at, in); err != nil {
		return "", err
	}
	made, err := threads.Open(ctx, in, name)
	if err != nil {
		return "", p.explained(at, err)
	}
	return made.ID, nil
}

// answersAll reports whether a bot answers messages for nobody in particular in a project's channel or one for its notes: it is the bot of the
// agent that answers for projects, otherwise the leading one.
func (h *Backend) answersAll(ctx context.Context, bot string, in room.Channel) bool {
	if len(h.Bots) == 0 || !h.ofProject(ctx, in) {
		return false
	}
	if agent := h.projectAgent(ctx, in); agent != "" {
		return h.speaksFor(bot, agent)
	}
	return bot == h.Bots[0].Name
}

// ofProject reports whether a channel is a project's, is below one, or takes a project's notes.
func (h *Backend) ofProject(ctx context.Context, in room.Channel) bool {
	if h.App.Work == nil {
		return false
	}
	_, err := h.App.Work.OfChannel(ctx, in.Home())
	if err == nil {
		return true
	}
	var notes []byte
	if errors.Is(err, journal.ErrUnknown) {
		notes, err = h.Recall(ctx, work.MemoNotesThread, in.ID)
	}
	h.unknownPlace(ctx, in, err)
	return len(notes) > 0
}

// projectAgent is the agent that answers for projects in a project's channel; "": none is configured.
func (h *Backend) projectAgent(ctx context.Context, in room.Channel) string {
	if len(h.Bots) == 0 || !h.ofProject(ctx, in) {
		return ""
	}
	settings, err := h.App.Settings.BotIn(h.Bots[0].Name, in.Guild)
	if err != nil {
		h.unknownPlace(ctx, in, err)
		return ""
	}
	if name := settings.ProjectAgent; name != "" && (h.isBot(name) || h.App.Settings.Agents().Exists(name) && h.lives(name, in)) {
		return name
	}
	return ""
}

// taskAgent is the agent whose task is shown in a platform thread; "": none.
func (h *Backend) taskAgent(ctx context.Context, in room.Channel) string {
	if in.Parent == "" {
		return ""
	}
	places, err := h.Places(ctx, h.Platform.Name, in.ID) // the thread belongs to its card
	h.unknownPlace(ctx, in, err)
	for _, p := range places {
		if p.Ours && p.Thread.Transport() == chat.WorkTransport {
			return p.Thread.Agent()
		}
	}
	return ""
}

func (h *Backend) unknownPlace(ctx context.Context, in room.Channel, err error) {
	if err != nil && ctx.Err() == nil {
		h.App.Log.Warn("it is not known whether a channel is a project's", "component", h.Platform.Name, "event", "project_channel", "channel", in.ID, "error", err)
	}
}
