package engine_test

import (
	"context"
	"testing"
	"time"

	"chorus/internal/chat"
	"chorus/internal/tool"
)

// Whoever comes while the next answer has not begun is not shown the one before as if it were in the making.
func TestLateWatcherGetsNoFinishedText(t *testing.T) {
	t.Parallel()
	began, goOn := make(chan struct{}), make(chan struct{})
	f := echo(true).(*fakeTool)
	f.run = func(ctx context.Context, args []byte) (tool.Result, error) {
		close(began)
		<-goOn
		return tool.OK(string(args)), nil
	}
	r := newRig(t, f)
	r.say("!say some words\n!call look {\"text\":\"x\"}\n!---\n!say others")
	<-began
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var text string
	first := true
	for item, err := range r.engine.Watch(ctx, thread, 0) {
		if err != nil {
			t.Fatal(err)
		}
		if first { // the watcher is there
			first = false
			close(goOn)
		}
		if d, ok := item.Live.(chat.Delta); ok {
			text += d.Text
		}
		if item.Event != nil && item.Event.Body.Kind() == chat.KindRunEnded {
			break
		}
	}
	if text != "others" {
		t.Errorf("in the making: %q", text)
	}
}

func TestLateWatcherGetsTheTextSoFar(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.say("!say some words\n!wait")
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	read := func() string {
		text := ""
		for item, err := range r.engine.Watch(ctx, thread, 0) {
			if err != nil {
				t.Fatal(err)
			}
			if d, ok := item.Live.(chat.Delta); ok {
				if d.Offset != len(text) {
					t.Fatalf("offset %d behind %q", d.Offset, text)
				}
				if text += d.Text; text == "some words" {
					return text
				}
			}
		}
		t.Fatalf("got only %q", text)
		return ""
	}
	read()
	read()
	if _, err := r.engine.Abort(ctx, thread, "ada", false); err != nil {
		t.Fatal(err)
	}
	r.untilEnds(1)
}
