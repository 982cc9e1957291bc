package host

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"chorus/internal/await"
	"chorus/internal/chat"
	"chorus/internal/config"
	"chorus/internal/engine"
	"chorus/internal/id"
	"chorus/internal/journal"
	"chorus/internal/room"
	"chorus/internal/room/split"
	"chorus/internal/service/savedcontext"
	"chorus/internal/settings"
	"chorus/internal/store"
)

// IdleScope is the kind of memo for the progress with idle places.
const IdleScope = "quiet"

// SeenIdle is the progress in one place.
type SeenIdle struct {
	Since time.Time `json:"since"`           // the idle time that was handled last
	Until time.Time `json:"until,omitzero"`  // activity up to here is no reason to look again
	Saved string    `json:"saved,omitempty"` // what was saved and is not cleared yet
	Count int       `json:"count,omitempty"`
	Text  string    `json:"text,omitempty"`
}

// watchIdle summarizes idle conversations where that is wanted, until ctx
// ends. One clock serves all of them, and it uses the journal: conversations that became idle
// while nobody was running are handled at the next start.
func (h *Backend) watchIdle(ctx context.Context) {
	for {
		wait, err := h.SummarizeIdle(ctx, time.Now())
		if err != nil && ctx.Err() == nil {
			h.App.Log.Warn("could not deal with idle places", "component", "contexts", "event", "quiet_failed", "error", err)
		}
		if !await.For(ctx, wait) {
			return
		}
	}
}

// idleMinute is a minute, except in tests.
func (h *Host) idleMinute() time.Duration { return cmp.Or(h.IdleMinute, time.Minute) }

// IdlePlace is a place where summaries are wanted.
type IdlePlace struct {
	store.PlaceActivity
	platform string
	after    time.Duration
}

// Key is the name of a place's progress memo.
func (p IdlePlace) Key() string { return p.Agent + " " + p.Place }

// thread is the id of some conversation of the place.
func (p IdlePlace) thread() chat.ThreadID {
	return chat.ThreadID(p.platform + ":" + p.Place + ":quiet@" + p.Agent)
}

// SummarizeIdle summarizes what is due and returns when to look again: in a minute at the
// latest, because new messages change the time.
func (h *Backend) SummarizeIdle(ctx context.Context, now time.Time) (time.Duration, error) {
	wait := h.App.idleMinute()
	places, err := h.idlePlaces(ctx)
	if err != nil || len(places) == 0 {
		return wait, err
	}
	keys := make([]string, len(places))
	for i, p := range places {
		keys[i] = p.Key()
	}
	states, err := h.SettingsOf(ctx, IdleScope, keys)
	if err != nil {
		return wait, err
	}
	var errs []error
	for _, p := range places {
		var seen SeenIdle
		if text := states[p.Key()]; text != "" {
			if err := json.Unmarshal([]byte(text), &seen); err != nil {
				errs = append(errs, fmt.Errorf("what is known of the idle time in %s: %w", p.Key(), err))
			}
		}
		switch due := p.Last.Add(p.after); {
		case seen.Saved != "":
			errs = append(errs, h.whileLive(ctx, p, func(ctx context.Context) error { return h.beginAnew(ctx, p, seen) })) // it was interrupted halfway
		case p.Active > 0 || !p.Last.After(seen.Until):
		case due.After(now):
			wait = min(wait, due.Sub(now))
		default:
			errs = append(errs, h.whileLive(ctx, p, func(ctx context.Context) error { return h.summarize(ctx, p) }))
		}
	}
	return max(wait, time.Millisecond), errors.Join(errs...)
}

// idlePlaces are places where summaries are wanted and a bot of ours posts.
func (h *Backend) idlePlaces(ctx context.Context) ([]IdlePlace, error) {
	activity, err := h.LastActivity(ctx, h.Platform.Name)
	if err != nil {
		return nil, err
	}
	known := map[string]*config.Bot{}
	var out []IdlePlace
	for _, s := range activity {
		p := IdlePlace{PlaceActivity: s, platform: h.Platform.Name}
		guild := settings.GuildOf(p.thread())
		bot, ok := known[s.Agent+" "+guild]
		if !ok {
			if bot, err = h.App.Settings.BotIn(s.Agent, guild); err != nil {
				h.App.Logs.LogOnce(err.Error(), "config")
				bot = &config.Bot{}
			}
			known[s.Agent+" "+guild] = bot
		}
		if p.after = time.Duration(bot.IdleSummaryAfterMinutes) * h.App.idleMinute(); bot.IdleSummaryEnabled && h.speaks(p) != "" {
			out = append(out, p)
		}
	}
	return out, nil
}

// speaks is the bot that posts for the agent; "": none in this process. So only the process with a bot summarizes its places.
func (h *Backend) speaks(p IdlePlace) string {
	for _, b := range h.Bots {
		if h.Serves(b.Name, p.thread()) {
			h.mu.Lock()
			defer h.mu.Unlock()
			if h.live[b.Name] == nil {
				return ""
			}
			return b.Name
		}
	}
	return ""
}

// whileLive works on a place until this process loses its bot. Then another process continues; two would pay for two summaries.
func (h *Backend) whileLive(ctx context.Context, p IdlePlace, do func(context.Context) error) error {
	name := h.speaks(p)
	h.mu.Lock()
	has := h.has[name]
	h.mu.Unlock()
	if has == nil {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(has, cancel)()
	err := do(ctx)
	if has.Err() != nil {
		return nil // the process that now has the bot handles it
	}
	return err
}

// summarize saves what was said before a place became idle: a summary, a file and a row, once
// for each time. A crash before the row costs another summary, one after it nothing.
func (h *Backend) summarize(ctx context.Context, p IdlePlace) error {
	seen := SeenIdle{Since: p.Last, Until: p.Last}
	rows, err := h.IdleRows(ctx, p)
	if err != nil {
		return err
	}
	found, err := h.DB.SavedContexts(ctx, store.ContextFilter{Agent: p.Agent, Transport: h.Platform.Name, Place: p.Place, Quiet: p.Last, Limit: 1})
	if err != nil {
		return err
	}
	if len(found) == 0 {
		run := "quiet-" + id.Of(p.Agent, p.Place, p.Last.Format(time.RFC3339Nano))
		saved, err := h.App.Contexts.Save(ctx, savedcontext.Saving{Rows: rows, By: chat.Principal{Kind: chat.TheSystem, ID: p.Agent}, Quiet: p.Last, Run: run})
		if errors.Is(err, savedcontext.ErrEmpty) {
			return h.seenTo(ctx, p, seen)
		}
		if err != nil {
			return err
		}
		found = []store.SavedContext{saved}
	}
	seen.Saved, seen.Count, seen.Text = found[0].ID, found[0].Messages, found[0].Summary
	if err := h.seenTo(ctx, p, seen); err != nil {
		return err
	}
	return h.beginAnew(ctx, p, seen)
}

// IdleRows returns the conversations of a place; if there are none there is nothing to save.
func (h *Backend) IdleRows(ctx context.Context, p IdlePlace) ([]journal.Thread, error) {
	rows, err := h.Threads(ctx, store.ThreadFilter{Agent: p.Agent, Transport: h.Platform.Name, Place: p.Place, Limit: 1000})
	if err == nil && len(rows) == 0 {
		err = savedcontext.ErrEmpty
	}
	return rows, err
}

func (h *Backend) seenTo(ctx context.Context, p IdlePlace, seen SeenIdle) error {
	data, err := json.Marshal(seen)
	if err != nil {
		return err
	}
	return h.SetSetting(ctx, IdleScope, p.Key(), string(data))
}

// beginAnew clears what was saved, tells the channel, and records that it is done. Every step
// can be repeated. A conversation that somebody has continued meanwhile stays as it is.
func (h *Backend) beginAnew(ctx context.Context, p IdlePlace, seen SeenIdle) error {
	rows, err := h.IdleRows(ctx, p)
	if err != nil {
		return err
	}
	for _, row := range rows {
		if row.LastActive.After(seen.Since) {
			continue
		}
		n, err := h.engine().Clear(ctx, row.ID, "system:"+p.Agent)
		if errors.Is(err, engine.ErrBusy) || err == nil && n == 0 {
			continue
		}
		if err != nil {
			return err
		}
		after, err := h.Thread(ctx, row.ID)
		if err != nil {
			return err
		}
		if after.Next == row.Next+1 && after.LastActive.After(seen.Until) {
			seen.Until = after.LastActive // our own work does not count as activity
		}
	}
	_, _, channel := room.PlaceParts(p.Place)
	speaks := h.speaks(p)
	h.mu.Lock()
	bot := h.live[speaks]
	h.mu.Unlock()
	if bot != nil {
		if err := bot.Announce(ctx, channel, "quiet/"+seen.Saved, idleText(p, seen)); err != nil {
			return err
		}
	}
	seen.Saved, seen.Text, seen.Count = "", "", 0
	return h.seenTo(ctx, p, seen)
}

func idleText(p IdlePlace, seen SeenIdle) string {
	messages := fmt.Sprintf("%d messages", seen.Count)
	if seen.Count == 1 {
		messages = "1 message"
	}
	short := seen.Saved[:min(8, len(seen.Saved))]
	return fmt.Sprintf("It has been quiet here since <t:%d:t>. I saved the conversation (%s) as `%s` and start over.\n> %s\n-# Bring it back with `/context restore %s`",
		seen.Since.Unix(), messages, short, strings.ReplaceAll(split.Clip(seen.Text, 1200), "\n", "\n> "), short)
}
