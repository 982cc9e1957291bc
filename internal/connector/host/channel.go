package host

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"chorus/internal/chat"
	"chorus/internal/connector"
	"chorus/internal/journal"
	"chorus/internal/room"
	"chorus/internal/room/attach"
	"chorus/internal/service"
	"chorus/internal/store/search"
	"chorus/internal/tool"
	"chorus/internal/tool/channel"
	"chorus/internal/tool/files"
	"chorus/internal/tool/timer"
)

// platformChannel is a thread's channel for its tools.
type platformChannel struct {
	app    *Host
	thread chat.ThreadID
}

var _ channel.Channel = platformChannel{}

// ChannelTools returns the tools of a conversation that is held on a platform; otherwise none.
func (h *Host) ChannelTools(thread chat.ThreadID, roots *files.Roots) []tool.Tool {
	if !thread.OnPlatform() {
		return nil
	}
	tools := channel.Tools(platformChannel{h, thread}, roots)
	if b := h.Backend(thread.Transport()); b != nil && b.Display(thread).Room {
		tools = append(tools, timer.Tools(h.Timers(thread))...)
	}
	return tools
}

// bot is the bot that posts for the thread; nil: it is not connected.
func (c platformChannel) bot() *connector.Bot {
	h := c.app.Backend(c.thread.Transport())
	if h == nil {
		return nil
	}
	return h.botOf(c.thread.Agent())
}

// place is the guild and the channel of the thread.
func (c platformChannel) place() (guild, in string) {
	guild, _, in = room.PlaceParts(c.thread.Place())
	return guild, in
}

// Search implements channel.Channel. It searches what threads of this channel received or said, using the
// index, and then the channel's own history for older messages.
func (c platformChannel) Search(ctx context.Context, q channel.Query) ([]channel.Message, error) {
	guild, in := c.place()
	seen := map[string]bool{}
	var out []channel.Message
	if strings.TrimSpace(q.Text) != "" {
		list, err := c.searchJournal(ctx, q, seen)
		if err != nil {
			return nil, err
		}
		out = list
	}
	bot := c.bot()
	if len(out) >= q.Limit || !q.Older && strings.TrimSpace(q.Text) != "" || bot == nil {
		return out, nil
	}
	ctx, cancel := context.WithTimeout(ctx, olderTime)
	defer cancel()
	words := strings.Fields(strings.ToLower(strings.ReplaceAll(q.Text, `"`, " ")))
	older, err := bot.Older(ctx, in, "", q.Limit-len(out), func(f connector.Found) bool {
		text := strings.ToLower(f.Text)
		return !seen[f.ID] && byAuthor(f.Author, q.From) && !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, w) })
	})
	if err != nil && len(out)+len(older) == 0 {
		return nil, tool.Mistake("The channel's history cannot be read at the moment.")
	}
	for _, f := range older {
		out = append(out, channel.Message{Author: f.Author, At: f.At, Text: f.Text, Link: bot.LinkIn(guild, in, f.ID)})
	}
	return out, nil
}

// olderTime limits a search of the history.
const olderTime = 30 * time.Second

func byAuthor(name, from string) bool {
	return strings.Contains(strings.ToLower(name), strings.ToLower(from))
}

// searchJournal searches the journal.
func (c platformChannel) searchJournal(ctx context.Context, q channel.Query, seen map[string]bool) ([]channel.Message, error) {
	db := c.app.DB
	if _, err := db.IndexNew(ctx); err != nil {
		return nil, err
	}
	// A message that several agents received is found several times, and results of tools are found too.
	hits, err := db.Search(ctx, q.Text, search.Options{Prefix: c.thread.Transport() + ":" + c.thread.Place() + ":", Limit: 4 * q.Limit})
	if err != nil {
		return nil, err
	}
	guild, in := c.place()
	var out []channel.Message
	for _, h := range hits {
		if len(out) == q.Limit || !byAuthor(h.Who, q.From) {
			continue
		}
		ev, err := db.Event(ctx, h.Thread, h.Seq)
		if err != nil {
			return nil, err
		}
		m := channel.Message{Author: h.Who, At: ev.At}
		switch b := ev.Body.(type) {
		case chat.Received:
			if seen[ev.PlatformID] {
				continue
			}
			seen[ev.PlatformID] = true
			words, gone, err := c.app.wordsNow(ctx, h.Thread, h.Seq, b.Blocks)
			if err != nil {
				return nil, err
			}
			if gone {
				continue
			}
			m.Text = words.Text()
			if bot := c.bot(); bot != nil {
				m.Link = bot.LinkIn(guild, cmp.Or(b.Channel, in), ev.PlatformID)
			}
		case chat.Steered:
			m.Text = b.Blocks.Text()
		case chat.Said:
			m.Text = b.Blocks.Text()
		default:
			continue
		}
		m.Text = c.app.Logs.Redactor().Text(m.Text)
		out = append(out, m)
	}
	return out, nil
}

// uploadTime limits how long a call waits for its file to be posted.
const uploadTime = 45 * time.Second

// Post implements channel.Channel.
func (c platformChannel) Post(ctx context.Context, key string, f channel.File) (string, error) {
	if service.IsText(f.Data) && c.app.Logs.Redactor().Text(string(f.Data)) != string(f.Data) {
		return "", tool.Mistake("The file contains a secret and was not posted. Remove the secret first.")
	}
	bot := c.bot()
	if bot == nil {
		return "", tool.Mistake("The bot of this conversation is not connected here" + c.app.elsewhere(c.thread.Transport()) + ", so nothing was posted.")
	}
	row, err := c.app.DB.Thread(ctx, c.thread)
	if err != nil {
		return "", err
	}
	to, err := c.answersGo(ctx, row)
	if err != nil {
		return "", err
	}
	hash, err := c.app.DB.PutBlob(ctx, f.Data)
	if err != nil {
		return "", err
	}
	waiting, cancel := context.WithTimeout(ctx, uploadTime)
	defer cancel()
	link, err := bot.Upload(waiting, connector.Upload{Thread: c.thread, Seq: row.Next - 1, Channel: to, Key: key, Name: attach.Name(f.Name), Blob: hash,
		Text: service.Clipped(c.app.Logs.Redactor().Text(f.Text), maxUploadText)})
	if said, ok := errors.AsType[connector.Refusal](err); ok {
		return "", tool.Mistake("Not posted: " + said.Error() + ".")
	}
	return link, err
}

// maxUploadText is more than a line; a message may have 2,000 characters.
const maxUploadText = 1800

// answersGo is the channel for the answer to the newest prompt.
func (c platformChannel) answersGo(ctx context.Context, row journal.Thread) (string, error) {
	_, to := c.place()
	for ev, err := range c.app.DB.AllEvents(ctx, c.thread, max(0, row.Next-maxEvents)) {
		if err != nil {
			return "", err
		}
		if said, ok := ev.Body.(chat.Received); ok && said.Prompt && said.Channel != "" {
			to = cmp.Or(said.Post, said.Channel)
		}
	}
	return to, nil
}

// maxEvents is more than an ordinary run has.
const maxEvents = 1000
