// Package mirror keeps the files that people open with an editor up to date with the
// journal: log.jsonl and context.jsonl of a thread, the hourly files of tool calls, and
// the session file of a terminal. The journal is read once for all of them, and a file
// that cannot be written does not hold up the others.
package mirror

import (
	"context"
	"errors"
	"iter"
	"path/filepath"
	"slices"
	"time"

	"chorus/internal/chat"
	"chorus/internal/datadir"
	"chorus/internal/journal"
	"chorus/internal/mirror/conversation"
	"chorus/internal/mirror/session"
	"chorus/internal/mirror/toollog"
	"chorus/internal/settings"
)

// Writer writes files that follow the events of one thread.
type Writer interface {
	// LastSeq returns the number of the last event in the files.
	LastSeq() int64
	// Apply writes the events. It skips those up to LastSeq; the others must follow
	// without a gap. After an error the same events may be applied again.
	Apply(events []chat.Event) error
}

var (
	_ Writer = (*conversation.Writer)(nil)
	_ Writer = (*toollog.Writer)(nil)
	_ Writer = (*session.Writer)(nil)
)

// Journal is the source of the files.
type Journal interface {
	Thread(context.Context, chat.ThreadID) (journal.Thread, error)
	AllEvents(ctx context.Context, thread chat.ThreadID, after int64) iter.Seq2[chat.Event, error]
	Blob(ctx context.Context, hash string) ([]byte, error)
}

// Follower follows the journal.
type Follower struct {
	DB       Journal
	Env      func(string) string
	Home     *datadir.Home
	Settings *settings.Settings
}

// BatchSize is how many events are applied at once, and how far behind the files of a long run may be.
const BatchSize = 200

// CatchUp brings the files of a thread, and those of further writers, up to date with the journal.
func (f *Follower) CatchUp(ctx context.Context, thread chat.ThreadID, further ...Writer) error {
	if row, err := f.DB.Thread(ctx, thread); err != nil || row.Listing == journal.Erased {
		return nil // nothing was said in it, or it was erased
	}
	writers, failed := f.open(thread)
	writers = append(writers, further...)
	if len(writers) == 0 {
		return failed
	}
	for again := true; again; {
		again = false
		after := writers[0].LastSeq()
		for _, w := range writers[1:] {
			after = min(after, w.LastSeq())
		}
		for batch, err := range batches(f.DB.AllEvents(ctx, thread, after)) {
			if err != nil {
				return errors.Join(failed, err)
			}
			restarted, err := forget(writers, batch)
			failed = errors.Join(failed, err)
			if again = restarted; again {
				break
			}
			writers = slices.DeleteFunc(writers, func(w Writer) bool {
				err := w.Apply(batch)
				failed = errors.Join(failed, err)
				return err != nil
			})
		}
	}
	return failed
}

// batches groups events into batches. The last batch may be smaller or empty; it writes what waited for more.
func batches(events iter.Seq2[chat.Event, error]) iter.Seq2[[]chat.Event, error] {
	return func(yield func([]chat.Event, error) bool) {
		batch := make([]chat.Event, 0, BatchSize)
		for ev, err := range events {
			if err != nil {
				yield(nil, err)
				return
			}
			if batch = append(batch, ev); len(batch) == BatchSize {
				if !yield(batch, nil) {
					return
				}
				batch = batch[:0]
			}
		}
		yield(batch, nil)
	}
}

// forget rewrites files if the journal has forgotten words in them.
func forget(writers []Writer, batch []chat.Event) (restarted bool, failed error) {
	for _, w := range writers {
		files, ok := w.(*conversation.Writer)
		if !ok {
			continue
		}
		for _, ev := range slices.Backward(batch) {
			if ev.Seq <= files.LastSeq() {
				break
			}
			if d, ok := ev.Body.(chat.Deleted); ok && d.Forget {
				done, err := files.Restart(ev.Seq)
				restarted, failed = restarted || done, errors.Join(failed, err)
				break
			}
		}
	}
	return restarted, failed
}

// open opens the files that every thread has. It also opens those of tool calls if the
// thread's agent takes part in rooms or TOOLS_PATH names a directory for them.
func (f *Follower) open(thread chat.ThreadID) (writers []Writer, failed error) {
	files, err := conversation.Open(f.Home.ThreadDir(thread))
	if err == nil {
		files.Blobs = f.blob
		writers = append(writers, files)
	}
	failed = err
	dir := f.Env("TOOLS_PATH")
	if dir == "" {
		bot, err := f.Settings.Bot(thread.Agent())
		if err != nil || !settings.NamesParticipants(bot) {
			return writers, failed // a mistake in the configuration is reported elsewhere
		}
		dir = filepath.Join(f.Home.Dir(), "tools")
	}
	agent, channel := toollog.Dir(thread)
	tools, err := toollog.Open(dir, agent, channel)
	if err == nil {
		writers = append(writers, tools)
	}
	return writers, errors.Join(failed, err)
}

func (f *Follower) blob(hash string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	return f.DB.Blob(ctx, hash)
}
