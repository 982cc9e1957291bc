package connector

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"chorus/internal/await"
	"chorus/internal/chat"
	"chorus/internal/journal"
	"chorus/internal/platform"
	"chorus/internal/room"
	"chorus/internal/room/attach"
)

// The limits for a message's files.
const (
	maxFile       = 25 << 20
	maxFiles      = 10
	leastTime     = 2 * time.Second // per file, after the store has hung before
	downloadTries = 3
	linkLifetime  = time.Hour // an older link is requested again: some platforms' links expire
)

// announced lists the files of a message before they are fetched: their names as
// their sender gave them, and the paths where they will be stored.
func announced(m room.Message) chat.Blocks {
	var out chat.Blocks
	taken := map[string]bool{}
	for _, f := range m.Files[:min(len(m.Files), maxFiles)] {
		at := attach.Path(m.At, f.Name, func(p string) bool { return taken[p] })
		taken[at] = true
		out = append(out, chat.File{Name: attach.Name(f.Name), Path: at, Size: f.Size, Source: f.URL, Wanted: true})
	}
	return out
}

// download is a message whose files are to be fetched.
type download struct {
	channel, message string
	at               time.Time // when it was sent; zero: unknown
}

// downloads are the files to fetch, one at a time and in the order in
// which they were announced. A store that hangs only delays those who wait for a file.
type downloads struct {
	timeout time.Duration // for the next file; shorter after each one that hung

	mu   sync.Mutex
	list []download
	wake chan struct{}
}

func newDownloads(timeout time.Duration) *downloads {
	return &downloads{timeout: timeout, wake: make(chan struct{}, 1)}
}

// put adds a message unless it is already waiting.
func (f *downloads) put(d download) {
	f.mu.Lock()
	if !slices.ContainsFunc(f.list, func(o download) bool { return o.message == d.message }) {
		f.list = append(f.list, d)
	}
	f.mu.Unlock()
	await.Notify(f.wake)
}

// next waits for a message; false: ctx ended.
func (f *downloads) next(ctx context.Context) (download, bool) {
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
		case <-f.wake:
		case <-ctx.Done():
			return download{}, false
		}
	}
}

// downloadNotes is the kind of the notes about pending downloads.
func (b *Bot) downloadNotes() string { return b.transport + "-files/" + b.Name }

// wants records, before a message is stored, that its files are to be fetched.
// A message that was received before has its note or its files.
func (b *Bot) wants(ctx context.Context, m room.Message) (bool, error) {
	if len(m.Files) == 0 {
		return false, nil
	}
	places, err := b.Backend.Places(ctx, b.transport, m.ID)
	if err != nil {
		return false, err
	}
	for _, p := range places {
		if !p.Ours && b.Backend.Serves(b.Name, p.Thread) {
			return false, nil
		}
	}
	note, err := json.Marshal(downloadNote{m.In.ID, m.At})
	if err != nil {
		return false, err
	}
	return true, b.Backend.Remember(ctx, b.downloadNotes(), m.ID, note)
}

// downloadNote is the note about a message whose files are to be fetched. In earlier versions
// it was the channel alone, as a string.
type downloadNote struct {
	Channel string    `json:"channel"`
	At      time.Time `json:"at"`
}

func readNote(data []byte) (n downloadNote, ok bool) {
	if json.Unmarshal(data, &n.Channel) == nil {
		return n, true
	}
	return n, json.Unmarshal(data, &n) == nil
}

// downloadAll fetches until ctx ends, starting with what an earlier process left.
func (b *Bot) downloadAll(ctx context.Context) {
	left, err := b.Backend.Memos(ctx, b.downloadNotes())
	if err != nil && ctx.Err() == nil {
		b.Log.Error("could not look for files that are still to be fetched", "event", "files_failed", "error", err)
	}
	for _, memo := range left {
		if note, ok := readNote(memo.Value); ok {
			b.files.put(download{note.Channel, memo.Key, note.At})
		}
	}
	for {
		w, ok := b.files.next(ctx)
		if !ok {
			return
		}
		if err := b.downloaded(ctx, w); err != nil && ctx.Err() == nil {
			// The note stays, and the next start retries.
			b.Log.Error("the files of a message could not be stored", "event", "files_failed", "message", w.message, "error", err)
		}
	}
}

// receivedFiles is a message with files as one thread received it.
type receivedFiles struct {
	journal.Place
	files []chat.File
}

// waiting returns the threads that wait for the files of a message.
func (b *Bot) waiting(ctx context.Context, message string) ([]receivedFiles, error) {
	places, err := b.Backend.Places(ctx, b.transport, message)
	if err != nil {
		return nil, err
	}
	var out []receivedFiles
	for _, p := range places {
		if p.Ours || !b.Backend.Serves(b.Name, p.Thread) {
			continue
		}
		ev, err := b.Backend.Event(ctx, p.Thread, p.Seq)
		if err != nil {
			return nil, err
		}
		h := receivedFiles{Place: p}
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

// downloaded fetches the files of a message, and informs every thread that received it of the result for
// each. Text never waits for it. It happens once, because an arrival does.
func (b *Bot) downloaded(ctx context.Context, w download) error {
	threads, err := b.waiting(ctx, w.message)
	if err != nil {
		return err
	}
	if len(threads) == 0 {
		// Not in the journal yet: the process that takes the message adds it here again. Otherwise there is nothing to do.
		return b.forgetOld(ctx, w)
	}
	a := journal.Arrival{Platform: b.transport, Bot: b.Name, What: "files", PlatformID: w.message}
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
					reason = errors.Join(errNotSaved, reason)
				}
			}
			if reason != nil {
				failed = true
				b.Log.Warn("a file could not be had", "event", "attachment_failed", "thread", h.Thread, "name", file.Name, "error", reason)
				blocks = chat.Blocks{b.unavailable(h.files[i], reason)}
			}
			said[n] = append(said[n], blocks...)
		}
	}
	for n, h := range threads {
		a.Commits = append(a.Commits, journal.Commit{Thread: h.Thread, Events: []chat.Event{{Thread: h.Thread, Platform: b.transport, PlatformID: w.message,
			Version: 1, Body: chat.Edited{Seq: h.Seq, Files: true, Blocks: said[n]}}}})
	}
	if _, err := b.Backend.Arrive(ctx, a); err != nil {
		return err
	}
	if failed {
		if err := b.react(ctx, w.channel, w.message, signTrouble); err != nil {
			return err
		}
	}
	return b.Backend.Forget(ctx, b.downloadNotes(), w.message)
}

// signTrouble marks a message that could not be taken completely.
const signTrouble = "⚠️"

// errNotSaved means that the file arrived but could not be saved in the workspace.
var errNotSaved = errors.New("not saved")

// unavailable is a file that could not be fetched, with a reason for people.
func (b *Bot) unavailable(f chat.File, why error) chat.File {
	f.Wanted = false
	var said platform.Refusal
	switch {
	case errors.As(why, &said):
		f.Trouble = said.Error()
	case errors.Is(why, platform.ErrTooLarge):
		f.Trouble = "it is larger than the limit of " + attach.Size(maxFile)
	case errors.Is(why, errNotSaved):
		f.Trouble = "it arrived but could not be saved"
	case errors.Is(why, platform.ErrStale):
		f.Trouble = b.caps.Label + " no longer has it; ask for it to be sent again"
	case errors.Is(why, context.DeadlineExceeded):
		f.Trouble = b.caps.Label + " did not send it in time; ask for it to be sent again"
	default:
		f.Trouble = "it could not be fetched; ask for it to be sent again"
	}
	return f
}

// forgetOld drops the note of a message that was not journalled within a day.
func (b *Bot) forgetOld(ctx context.Context, w download) error {
	if time.Since(w.at) < 24*time.Hour {
		return nil
	}
	return b.Backend.Forget(ctx, b.downloadNotes(), w.message)
}

// load fetches one file. It first renews an old link.
func (b *Bot) load(ctx context.Context, w download, i int, f chat.File) ([]byte, error) {
	if b.can.downloads == nil {
		return nil, platform.Refusal("files cannot be fetched from " + b.caps.Label)
	}
	if f.Size > maxFile {
		return nil, platform.ErrTooLarge
	}
	if data, ok := b.Backend.CachedImage(f.Source); ok {
		return data, nil
	}
	ctx, cancel := context.WithTimeout(ctx, b.files.timeout)
	defer cancel()
	at := f.Source
	if time.Since(w.at) > linkLifetime {
		at = b.freshLink(ctx, w, i, at)
	}
	wait := b.FirstBackoff
	for try := 1; ; try++ {
		data, err := b.can.downloads.Download(ctx, at, maxFile)
		var said platform.Refusal
		switch {
		case err == nil:
			b.files.timeout = b.Fetch
			b.Backend.CacheImage(f.Source, data)
			return data, nil
		case errors.Is(err, context.DeadlineExceeded):
			b.files.timeout = min(b.Fetch, max(b.files.timeout/2, leastTime))
			return nil, err
		case errors.As(err, &said) || errors.Is(err, platform.ErrTooLarge) || try == downloadTries:
			return nil, err
		case errors.Is(err, platform.ErrStale):
			fresh := b.freshLink(ctx, w, i, at)
			if fresh == at {
				return nil, err
			}
			at = fresh
			continue
		}
		if !await.For(ctx, wait) {
			return nil, ctx.Err()
		}
		wait *= 2
	}
}

// freshLink fetches the message again for the current address of its file, or returns the old link if that
// fails.
func (b *Bot) freshLink(ctx context.Context, w download, i int, old string) string {
	if b.can.history == nil {
		return old
	}
	m, err := b.can.history.Message(ctx, w.channel, w.message)
	if err != nil || i >= len(m.Files) {
		return old
	}
	return m.Files[i].URL
}
