package schedules

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"chorus/internal/chat"
	"chorus/internal/eventfile"
	"chorus/internal/journal"
	"chorus/internal/ledger"
	"chorus/internal/operation"
	"chorus/internal/runsetup"
	"chorus/internal/schedule"
	"chorus/internal/schedule/clock"
	"chorus/internal/text"
)

// Channels are the channels of chat platforms, for conversations that no person starts.
type Channels interface {
	// CheckTarget finds who posts in a channel, and whether the caller may use them. An *operation.Error says what is wrong;
	// any other error means that this is unknown now.
	CheckTarget(ctx context.Context, t schedule.Target, by operation.Caller) (Place, error)
	// OpenThread posts a message in a channel, opens a thread on it and lets an agent work there, once per key, even if the
	// program is killed meanwhile. It does not wait for the platform.
	OpenThread(ctx context.Context, o Opening) error
	// Announce posts a message in a channel, once per key.
	Announce(ctx context.Context, t schedule.Target, key, text string) error
	// WakeRoom lets an agent speak in its room, once per key. An *operation.Error says why it never will.
	WakeRoom(ctx context.Context, w RoomWake) error
}

// Place is a target with its agent, and the thread of its channel. Without a thread, the platform is not connected here,
// and the rest is not known yet.
type Place struct {
	schedule.Target
	Thread chat.ThreadID
}

// Opening is a conversation that Chorus starts with a message.
type Opening struct {
	Key    string
	Target schedule.Target
	By     chat.Principal
	From   chat.Participant
	Post   string // the posted text
	Words  string // the text for the agent
}

// RoomWake is a timer in a room, or an agent's wish to speak again there.
type RoomWake struct {
	Kind   schedule.Kind
	Key    string
	Thread chat.ThreadID
	By     chat.Principal
	Text   string // the text for the agent; "": none
}

// OpeningKey is the key of what a schedule posts at a due time.
func OpeningKey(id string, due time.Time) string { return "schedule/" + dueKey(id, due) }

// dueKey is the key of a due time of a schedule.
func dueKey(id string, due time.Time) string { return id + "/" + strconv.FormatInt(due.Unix(), 10) }

// ReadOpeningKey parses the result of OpeningKey; false: it is something else.
func ReadOpeningKey(key string) (id string, due time.Time, ok bool) {
	rest, ok := strings.CutPrefix(key, "schedule/")
	id, at, found := strings.Cut(rest, "/")
	seconds, err := strconv.ParseInt(at, 10, 64)
	return id, time.Unix(seconds, 0), ok && found && err == nil
}

// everything is the authority of the program itself: what it does for a schedule was checked for its owner before.
var everything = operation.Caller{Scopes: operation.Scopes()}

// sayInChannel posts a schedule's message in its channel, with a thread on it.
func (o *Handler) sayInChannel(ctx context.Context, s schedule.Schedule, due time.Time) (clock.Said, error) {
	place, err := o.Channels.CheckTarget(ctx, s.Target, everything)
	if wrong := (*operation.Error)(nil); errors.As(err, &wrong) {
		return clock.Said{Refused: wrong.Message}, nil
	}
	if err == nil && place.Thread == "" {
		err = fmt.Errorf("%s is not connected in this process", s.Target.Adapter)
	}
	if err != nil {
		return clock.Said{}, err
	}
	row := journal.Thread{ID: place.Thread, Agent: place.Agent, Place: place.Thread.Place()}
	why, err := o.spent(ctx, row, s.Owner.Person())
	if err != nil {
		return clock.Said{}, err
	}
	if why != "" {
		if !s.Told {
			err = o.Channels.Announce(ctx, place.Target, OpeningKey(s.ID, due)+"/budget", budgetNotice(s, why))
		}
		return clock.Said{Refused: why, Told: true}, err
	}
	return clock.Said{}, o.Channels.OpenThread(ctx, Opening{Key: OpeningKey(s.ID, due), Target: place.Target, By: actsFor(s), From: fromSchedule(s), Post: eventfile.Text(s.File, s.Words), Words: s.Words})
}

func fromSchedule(s schedule.Schedule) chat.Participant {
	return chat.Participant{ID: s.ID, Name: "schedule", Kind: chat.System}
}

// spent says why a thread cannot spend on somebody's account; "": it can.
func (o *Handler) spent(ctx context.Context, row journal.Thread, payer chat.Principal) (string, error) {
	bot, err := o.app.Settings.BotFor(row)
	if err != nil {
		return "", err
	}
	under := runsetup.BudgetOf(bot, true).For(row.ID, row.Agent, payer, "")
	if under == nil {
		return "", nil
	}
	models, err := o.app.Models.For(bot.Vendors)
	if err != nil {
		return "", err
	}
	made, err := o.sessions.Standing(ctx, row.ID)
	if err != nil {
		return "", err
	}
	name := made.Terms.Model
	if name == "" {
		name = o.sessions.Defaults(row.Agent).Model
	}
	price, out := runsetup.PriceOf(models, bot)(name)
	if bot.MaxTokens > 0 && (out == 0 || bot.MaxTokens < out) {
		out = bot.MaxTokens
	}
	limits := slices.DeleteFunc(under.Limits, func(l ledger.Limit) bool { return l.Scope == ledger.Task })
	stands, err := o.app.DB.Standing(ctx, limits)
	if err != nil || !price.Known() {
		return "", err // the run itself reports a missing price
	}
	// No call is cheaper than this, so every call would be refused.
	if r := ledger.Judge(stands, 0, max(price.Worst(0, out), 1), o.app.Now()); r != nil {
		return r.Error(), nil
	}
	return "", nil
}

// budgetNotice is the message for a schedule that did not run.
func budgetNotice(s schedule.Schedule, why string) string {
	return fmt.Sprintf("The schedule %s (%q) was not kept: %s This is said once; each later time is in `chorus schedule show %s`.", s.ID, text.Clip(s.Words, 80), why, s.ID)
}

// overBudget skips a due time if its owner's budget is used up, and says so in the thread the first time.
func (o *Handler) overBudget(ctx context.Context, s schedule.Schedule, row journal.Thread, due time.Time) (said clock.Said, over bool, err error) {
	why, err := o.spent(ctx, row, s.Owner.Person())
	if err != nil || why == "" {
		return said, false, err
	}
	if !s.Told {
		at, err := o.sessions.AnsweredIn(ctx, row)
		if err != nil {
			return said, false, err
		}
		_, err = o.sessions.Engine.Deliver(ctx, chat.Inbound{Threads: []chat.ThreadID{row.ID}, Principal: actsFor(s), From: fromSchedule(s), Blocks: chat.TextBlocks(budgetNotice(s, why)),
			Platform: schedulePlatform, PlatformID: dueKey(s.ID, due) + "/budget", Channel: at.Channel, Post: at.Post}, nil)
		if err != nil {
			return said, false, err
		}
	}
	return clock.Said{Refused: why, Told: true}, true, nil
}

// wakeRoom delivers a timer, or an agent's wish to speak again, to its room.
func (o *Handler) wakeRoom(ctx context.Context, s schedule.Schedule, due time.Time) (clock.Said, error) {
	key := schedulePlatform + "/" + dueKey(s.ID, due)
	err := o.Channels.WakeRoom(ctx, RoomWake{Kind: s.Kind, Key: key, Thread: s.Thread, By: actsFor(s), Text: s.Words})
	if no := (*operation.Error)(nil); errors.As(err, &no) {
		return clock.Said{Refused: no.Message}, nil
	}
	if err != nil {
		return clock.Said{}, err
	}
	// A connector uses this name for what has no message; see connector.Bot.
	ev, err := o.app.DB.Find(ctx, s.Thread, s.Thread.Transport()+"/order", key, chat.KindReceived, 0)
	if errors.Is(err, journal.ErrUnknown) {
		return clock.Said{}, nil
	}
	return clock.Said{Seq: ev.Seq}, err
}

// maxLooked is how many events are searched for how a run ended.
const maxLooked = 2000

// outcome says how the run of a prompt ended: done, silent if it had nothing to say, failed and so on; "": it has not
// ended, or that is unknown.
func (o *Handler) outcome(ctx context.Context, thread chat.ThreadID, seq int64) (string, error) {
	if seq == 0 {
		return "", nil
	}
	run, answer, looked := "", "", 0
	for ev, err := range o.app.DB.AllEvents(ctx, thread, seq) {
		if looked++; err != nil || looked > maxLooked {
			return "", err
		}
		switch b := ev.Body.(type) {
		case chat.Took:
			if slices.Contains(b.Seqs, seq) {
				run = b.Run
			}
		case chat.Refused:
			if b.Seq == seq {
				return string(b.Kind()), nil
			}
		case chat.Said:
			if b.Error == nil {
				answer = b.Blocks.Text()
			}
		case chat.RunEnded:
			switch {
			case b.Run != run || run == "":
			case b.Reason == chat.EndDone && chat.IsSilent(answer):
				return "silent", nil
			default:
				return string(b.Reason), nil
			}
		}
	}
	return "", nil
}
