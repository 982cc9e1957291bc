package connector

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"chorus/internal/await"
	"chorus/internal/chat"
	"chorus/internal/journal"
	"chorus/internal/outbox"
	"chorus/internal/platform"
	"chorus/internal/room"
	"chorus/internal/room/split"
)

// Opening is a conversation that starts with words of ours in a channel, instead of somebody's message: they are
// posted, a thread is opened on the post, and the agent works there.
type Opening struct {
	Key     string           `json:"key"` // the same key is posted, and answered, once
	Channel string           `json:"channel"`
	Agent   string           `json:"agent"`
	By      chat.Principal   `json:"by"` // on whose authority the agent works
	From    chat.Participant `json:"from"`
	Post    string           `json:"post"`  // what is posted
	Words   string           `json:"words"` // what the agent is told
}

// openings is the kind of memo for a bot's unfinished openings.
func (b *Bot) openings() string { return "opening/" + b.transport + "/" + b.Name }

// Open starts a conversation in a channel. If it returns no error, the conversation is certain to start, even if the program is
// killed: pending steps are stored, and every step has a key. It does not wait for the
// platform; Backend.Opened receives the result.
func (b *Bot) Open(ctx context.Context, o Opening) error {
	data, err := json.Marshal(o)
	if err != nil {
		return err
	}
	if err := b.Backend.Remember(ctx, b.openings(), o.Key, data); err != nil {
		return err
	}
	if err := b.postOpening(ctx, o); err != nil {
		return err
	}
	b.inBackground(func(ctx context.Context) { b.finishOpening(ctx, o) })
	return nil
}

func (b *Bot) postOpening(ctx context.Context, o Opening) error {
	text := split.Clip(b.Backend.Redact(o.Post), b.maxText())
	return b.SetDesired(ctx, journal.Desired{Lane: b.Lane(o.Channel), Key: o.Key, Body: platform.Post{Text: text}.Body(), Final: true})
}

// resumeOpenings continues what an earlier process did not finish.
func (b *Bot) resumeOpenings(ctx context.Context) {
	memos, err := b.Backend.Memos(ctx, b.openings())
	if err != nil && ctx.Err() == nil {
		b.Log.Error("could not look for conversations that were to be opened", "event", "opening_failed", "error", err)
	}
	for _, memo := range memos {
		var o Opening
		if err := json.Unmarshal(memo.Value, &o); err != nil {
			b.Log.Error("a conversation that was to be opened cannot be read", "event", "opening_failed", "key", memo.Key, "error", err)
			continue
		}
		b.work.Go(func() {
			if err := b.postOpening(ctx, o); err != nil { // it may have been stored and not posted
				b.Log.Error("a conversation cannot be opened now", "event", "opening_failed", "key", o.Key, "error", err)
				return
			}
			b.finishOpening(ctx, o)
		})
	}
}

// finishOpening waits for the post, and starts the conversation on it.
func (b *Bot) finishOpening(ctx context.Context, o Opening) {
	if !b.claimOpening(o.Key) {
		return
	}
	defer b.releaseOpening(o.Key)
	for wait := b.FirstBackoff; ; wait = min(2*wait, b.BackoffMax) {
		err := b.tryOpening(ctx, o)
		if err == nil || ctx.Err() != nil {
			return
		}
		b.Log.Warn("a conversation could not be opened; trying again", "event", "opening_failed", "key", o.Key, "error", err)
		if !await.For(ctx, wait) {
			return
		}
	}
}

// claimOpening reports whether nobody else is working on it.
func (b *Bot) claimOpening(key string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.opening[key] {
		return false
	}
	b.opening[key] = true
	return true
}

func (b *Bot) releaseOpening(key string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.opening, key)
}

func (b *Bot) tryOpening(ctx context.Context, o Opening) error {
	row, err := b.outbox.WaitDelivered(ctx, b.Lane(o.Channel), o.Key)
	if err != nil {
		return err
	}
	if row.State != journal.Sent {
		if err := b.Backend.Opened(ctx, o.Key, "", 0, b.whyNotOpened(row)); err != nil {
			return err
		}
		return b.Backend.Forget(ctx, b.openings(), o.Key)
	}
	thread, seq, err := b.beginOn(ctx, o, row.ID)
	if err != nil {
		return err
	}
	if err := b.Backend.PlaceMessage(ctx, b.Lane(o.Channel), o.Key, thread, seq); err != nil {
		return err
	}
	if err := b.Backend.Opened(ctx, o.Key, thread, seq, ""); err != nil {
		return err
	}
	b.publisher.Wake(ctx, thread)
	return b.Backend.Forget(ctx, b.openings(), o.Key)
}

// beginOn starts the conversation on a post of ours. Its thread is opened when it is published, as on anybody
// else's message.
func (b *Bot) beginOn(ctx context.Context, o Opening, post string) (chat.ThreadID, int64, error) {
	in, err := b.channelOf(ctx, o.Channel)
	if err != nil {
		return "", 0, err
	}
	listeners, err := b.listeners(ctx, in)
	if err != nil {
		return "", 0, err
	}
	root := post
	body := chat.Received{From: o.From, Principal: o.By, Blocks: chat.TextBlocks(o.Words), Intake: chat.Queue, Prompt: true, Channel: in.ID,
		Together: ListenerOf(listeners, o.Agent).IsRoom()}
	switch {
	case in.Parent != "": // threads cannot be nested: it continues there
		root = in.ID
	case b.can.threads != nil && in.Guild != "" && in.Guild != room.Direct:
		body.Post = post
	}
	thread, err := chat.NewThreadID(b.transport, in.Place(), root, o.Agent)
	if err != nil {
		return "", 0, err
	}
	row, err := b.Backend.NewThread(ctx, thread, o.By, split.Clip(o.Post, 80))
	if err != nil {
		return "", 0, err
	}
	done, err := b.Backend.Arrive(ctx, journal.Arrival{Platform: b.transport, Bot: b.Name, What: "opening", PlatformID: post, Decision: "opened",
		Commits: []journal.Commit{{Thread: thread, Create: &row, MaxWaiting: roomWaiting,
			Events: []chat.Event{{Thread: thread, Who: o.By.String(), Body: body, Platform: b.transport, PlatformID: post}}}}})
	if err != nil {
		return "", 0, err
	}
	if !done.Again {
		return thread, done.Commits[0].Events[0].Seq, nil
	}
	places, err := b.Backend.Places(ctx, b.transport, post)
	for _, p := range places {
		if p.Thread == thread && !p.Ours {
			return thread, p.Seq, err
		}
	}
	return thread, 0, err
}

// whyNotOpened says why nothing was posted.
func (b *Bot) whyNotOpened(row journal.Outgoing) string {
	switch outbox.Why(row.Why) {
	case outbox.Forbidden:
		return "the bot may not write in the channel"
	case outbox.Gone, outbox.Nowhere:
		return "the channel no longer exists"
	default:
		return b.caps.Label + " did not accept the message: " + cmp.Or(row.Error, row.Why, string(row.State))
	}
}

// checkTime limits how long the platform may take to say whether a channel exists.
const checkTime = 10 * time.Second

// FindChannel finds a channel for a new conversation, with the agents that read it. A Refusal means that
// there is none; any other error that nobody knows.
func (b *Bot) FindChannel(ctx context.Context, channel string) (room.Channel, []Listener, error) {
	asked, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	if err := b.waitConnected(asked); err != nil {
		return room.Channel{}, nil, err
	}
	in, err := b.channelOf(asked, channel)
	if platform.Closed(err) || platform.Is(err, outbox.Invalid) {
		return in, nil, Refusal("there is no channel " + channel + " that the bot " + b.Name + " can see")
	}
	if err != nil {
		return in, nil, err
	}
	list, err := b.listeners(ctx, in)
	return in, list, err
}

// waitConnected waits until we know who we are.
func (b *Bot) waitConnected(ctx context.Context) error {
	select {
	case <-b.greeted:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("the bot %s is not connected to %s yet: %w", b.Name, b.caps.Label, ctx.Err())
	}
}
