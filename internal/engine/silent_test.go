package engine_test

import (
	"context"
	"testing"
	"time"

	"chorus/internal/chat"
)

// Nobody sees on the way that an agent is about to say nothing; words that only begin like that are seen.
func TestASilentAnswerIsNotSeenOnTheWay(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"[SILENT]": "", "[SIX] things": "[SIX] things"} {
		r := newRig(t)
		r.say("!call none {}\n!---\n!say " + text) // the thread is there before it is watched
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		seen, said := "", ""
		for item, err := range r.engine.Watch(ctx, thread, 0) {
			if err != nil {
				t.Fatal(err)
			}
			if d, ok := item.Live.(chat.Delta); ok && d.What == chat.DeltaText && d.Offset <= len(seen) {
				seen = seen[:d.Offset] + d.Text
			}
			if item.Event == nil {
				continue
			}
			if b, ok := item.Event.Body.(chat.Said); ok && b.Blocks.Text() != "" {
				said = b.Blocks.Text()
			}
			if is[chat.RunEnded](*item.Event) {
				break
			}
		}
		if said != text || seen != "" && seen != want {
			t.Errorf("%q: seen on the way %q, said %q", text, seen, said)
		}
	}
}
