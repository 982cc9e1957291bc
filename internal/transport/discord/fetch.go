package discord

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/disgoorg/disgo/discord"
	"github.com/disgoorg/disgo/rest"

	"chorus/internal/chat"
	"chorus/internal/connector"
	"chorus/internal/journal"
	"chorus/internal/room"
)

// fetch is a message whose files are to be had.
type fetch struct{ channel, message string }

// fetcher has the files that are still to be fetched, one at a time and in the order in
// which they were announced. A store that hangs costs nobody but those who wait for a file.
type fetcher struct {
	client   *http.Client
	patience time.Duration // for the next file: less after each one that hung

	mu   sync.Mutex
	list []fetch
	bell chan struct{}
}

func newFetcher(o Options) *fetcher {
	client := *o.HTTP
	client.Timeout = 0 // each call has its own
	client.CheckRedirect = func(req *http.Request, _ []*http.Request) error {
		if !trusted(o.API, req.URL.String()) {
			return connector.Refusal("its link leads away from Discord")
		}
		return nil
	}
	return &fetcher{client: &client, patience: o.Fetch, bell: make(chan struct{}, 1)}
}

// put adds a message; one that waits already is not added again.
func (f *fetcher) put(w fetch) {
	f.mu.Lock()
	if !slices.Contains(f.list, w) {
		f.list = append(f.list, w)
	}
	f.mu.Unlock()
	select {
	case f.bell <- struct{}{}:
	default:
	}
}

// next waits for a message; false: ctx ended.
func (f *fetcher) next(ctx context.Context) (fetch, bool) {
	for {
		f.mu.Lock()
		if len(f.list) > 0 {
			w := f.list[0]
			f.list = f.list[1:]
			f.mu.Unlock()
			return w, ctx.Err() == nil
		}
		f.mu.Unlock()
		select {
		case <-f.bell:
		case <-ctx.Done():
			return fetch{}, false
		}
	}
}

func (b *Bot) fetches() string { return room.Transport + "-files/" + b.Name }

// wants notes, before a message is written down, that files of it are to be fetched.
// One that was heard before has its note, or its files.
func (b *Bot) wants(ctx context.Context, m discord.Message) (bool, error) {
	if len(m.Attachments) == 0 {
		return false, nil
	}
	places, err := b.Backend.Places(ctx, room.Transport, m.ID.String())
	if err != nil {
		return false, err
	}
	for _, p := range places {
		if !p.Ours && b.Backend.Serves(b.Name, p.Thread) {
			return false, nil
		}
	}
	return true, b.Backend.Remember(ctx, b.fetches(), m.ID.String(), []byte(`"`+m.ChannelID.String()+`"`))
}

// fetchAll fetches until ctx ends, beginning with what an earlier process left.
func (b *Bot) fetchAll(ctx context.Context) {
	left, err := b.Backend.Memos(ctx, b.fetches())
	if err != nil && ctx.Err() == nil {
		b.Log.Error("could not look for files that are still to be fetched", "event", "files_failed", "error", err)
	}
	for _, memo := range left {
		var channel string
		if json.Unmarshal(memo.Value, &channel) == nil {
			b.files.put(fetch{channel, memo.Key})
		}
	}
	for {
		w, ok := b.files.next(ctx)
		if !ok {
			return
		}
		if err := b.fetched(ctx, w); err != nil && ctx.Err() == nil {
			// The note stays, and the next start tries again.
			b.Log.Error("the files of a message could not be written down", "event", "files_failed", "message", w.message, "error", err)
		}
	}
}

// heardFiles is a message with files as one thread heard it.
type heardFiles struct {
	journal.Place
	files []chat.File
}

// waiting are the threads that wait for the files of a message.
func (b *Bot) waiting(ctx context.Context, message string) ([]heardFiles, error) {
	places, err := b.Backend.Places(ctx, room.Transport, message)
	if err != nil {
		return nil, err
	}
	var out []heardFiles
	for _, p := range places {
		if p.Ours || !b.Backend.Serves(b.Name, p.Thread) {
			continue
		}
		ev, err := b.Backend.Event(ctx, p.Thread, p.Seq)
		if err != nil {
			return nil, err
		}
		h := heardFiles{Place: p}
		if said, ok := ev.Body.(chat.Received); ok {
			for _, block := range said.Blocks {
				if f, ok := block.(chat.File); ok && f.Wanted {
					h.files = append(h.files, f)
				}
			}
		}
		if len(h.files) > 0 {
			out = append(out, h)
		}
	}
	return out, nil
}

// fetched has the files of a message, and tells every thread that heard it what came of
// each. Words never wait for it; it happens once, because an arrival does.
func (b *Bot) fetched(ctx context.Context, w fetch) error {
	threads, err := b.waiting(ctx, w.message)
	if err != nil {
		return err
	}
	if len(threads) == 0 {
		// Not written down yet: whoever hears it puts it here again. Nothing to do otherwise.
		return b.forgetOld(ctx, w)
	}
	a := journal.Arrival{Platform: room.Transport, Bot: b.Name, What: "files", PlatformID: w.message}
	said := make([]chat.Blocks, len(threads))
	var failed bool
	for i, file := range threads[0].files {
		data, why := b.load(ctx, w, i, file)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		for n, h := range threads {
			if i >= len(h.files) {
				continue
			}
			var blocks chat.Blocks
			reason := why
			if reason == nil {
				if blocks, reason = b.Backend.SaveFile(ctx, h.Thread, h.files[i], data); reason != nil {
					reason = errors.Join(errUnkept, reason)
				}
			}
			if reason != nil {
				failed = true
				b.Log.Warn("a file could not be had", "event", "attachment_failed", "thread", h.Thread, "name", file.Name, "error", reason)
				blocks = chat.Blocks{missing(h.files[i], reason)}
			}
			said[n] = append(said[n], blocks...)
		}
	}
	for n, h := range threads {
		a.Commits = append(a.Commits, journal.Commit{Thread: h.Thread, Events: []chat.Event{{Thread: h.Thread, Platform: room.Transport, PlatformID: w.message,
			Version: 1, Body: chat.Edited{Seq: h.Seq, Files: true, Blocks: said[n]}}}})
	}
	if _, err := b.Backend.Arrive(ctx, a); err != nil {
		return err
	}
	if failed {
		if err := b.sign(ctx, w.channel, w.message, signTrouble); err != nil {
			return err
		}
	}
	return b.Backend.Forget(ctx, b.fetches(), w.message)
}

// signTrouble stands on a message of which something could not be taken.
const signTrouble = "⚠️"

// sign puts a sign of ours on a message, once.
func (b *Bot) sign(ctx context.Context, channel, message, emoji string) error {
	body, _ := json.Marshal(post{Emoji: emoji}) // strings only
	err := b.Backend.Wish(ctx, journal.Desired{Lane: b.lane(channel), Key: "sign/" + message + "/" + emoji, Thing: journal.Reaction,
		Target: message, Body: body, Final: true})
	b.outbox.Wake(b.lane(channel))
	return err
}

// errUnkept: the file came, and its workspace did not take it.
var errUnkept = errors.New("not kept")

// missing is a file that could not be had, with a reason that people understand.
func missing(f chat.File, why error) chat.File {
	f.Wanted = false
	var said connector.Refusal
	switch {
	case errors.As(why, &said):
		f.Trouble = said.Error()
	case errors.Is(why, errUnkept):
		f.Trouble = "it came but could not be kept"
	case errors.Is(why, errStale):
		f.Trouble = "Discord does not have it any more; ask for it to be sent again"
	case errors.Is(why, context.DeadlineExceeded):
		f.Trouble = "Discord did not send it in time; ask for it to be sent again"
	default:
		f.Trouble = "it could not be fetched; ask for it to be sent again"
	}
	return f
}

// forgetOld drops the note of a message that nobody wrote down within a day.
func (b *Bot) forgetOld(ctx context.Context, w fetch) error {
	if time.Since(number(w.message).Time()) < 24*time.Hour {
		return nil
	}
	return b.Backend.Forget(ctx, b.fetches(), w.message)
}

// load has one file. An old link is asked for anew: Discord's end after a day.
func (b *Bot) load(ctx context.Context, w fetch, i int, f chat.File) ([]byte, error) {
	if f.Size > maxFile {
		return nil, tooLarge()
	}
	ctx, cancel := context.WithTimeout(ctx, b.files.patience)
	defer cancel()
	at := f.Source
	if b.trusts(at) && time.Since(number(w.message).Time()) > fetchedAgain {
		at = b.freshLink(ctx, w, i, at)
	}
	wait := b.FirstBackoff
	for try := 1; ; try++ {
		data, err := b.download(ctx, at)
		var said connector.Refusal
		switch {
		case err == nil:
			b.files.patience = b.Fetch
			return data, nil
		case errors.Is(err, context.DeadlineExceeded):
			b.files.patience = min(b.Fetch, max(b.files.patience/2, leastTime))
			return nil, err
		case errors.As(err, &said) || try == fetchTries:
			return nil, err
		case errors.Is(err, errStale):
			fresh := b.freshLink(ctx, w, i, at)
			if fresh == at {
				return nil, err
			}
			at = fresh
			continue
		}
		if !sleep(ctx, wait) {
			return nil, ctx.Err()
		}
		wait *= 2
	}
}

// freshLink asks for the message again, for where its file lies now; the old link where
// that is not to be had.
func (b *Bot) freshLink(ctx context.Context, w fetch, i int, old string) string {
	m, err := b.rest.GetMessage(number(w.channel), number(w.message), rest.WithCtx(ctx))
	if err != nil || i >= len(m.Attachments) {
		return old
	}
	return m.Attachments[i].URL
}
