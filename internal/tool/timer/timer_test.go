package timer

import (
	"context"
	"strings"
	"testing"
	"time"

	"chorus/internal/chat"
	"chorus/internal/tool"
)

// book remembers what was asked of it.
type book struct {
	set       []New
	cancelled string
	wrong     error
}

func (b *book) Set(_ context.Context, n New) (Timer, error) {
	b.set = append(b.set, n)
	return Timer{ID: "t1", Due: time.Date(2026, 12, 24, 18, 0, 0, 0, time.UTC)}, b.wrong
}

func (b *book) Cancel(_ context.Context, id string) error {
	b.cancelled = id
	return b.wrong
}

func TestTools(t *testing.T) {
	t.Parallel()
	b := &book{}
	ada := chat.Principal{Kind: "discord", ID: "1"}
	ctx := tool.WithCall(t.Context(), tool.Call{Key: "call", Senders: []chat.Principal{ada}})
	run := func(name, args string) (string, bool) {
		t.Helper()
		for _, one := range Tools(b) {
			if one.Spec().Name == name {
				got, err := one.Run(ctx, []byte(args))
				if err != nil {
					t.Fatal(err)
				}
				return got.Blocks.Text(), got.Failed
			}
		}
		t.Fatalf("there is no tool %s", name)
		return "", false
	}
	if text, failed := run("set_timer", `{"when":"at 6pm","note":"the tree"}`); failed || !strings.Contains(text, "Thursday, 2026-12-24 18:00 UTC (id t1)") {
		t.Errorf("set: %q", text)
	}
	if text, failed := run("activate_self", `{"after":"in 5 minutes"}`); failed || !strings.Contains(text, "t1") {
		t.Errorf("activated: %q", text)
	}
	if len(b.set) != 2 || b.set[0].Note != "the tree" || b.set[1].Note != "" || b.set[0].Key != "call" || !b.set[0].For[0].Same(ada) {
		t.Errorf("set were %+v", b.set)
	}
	if _, failed := run("set_timer", `{"when":"at 6pm","note":" "}`); !failed || len(b.set) != 2 {
		t.Error("a timer without a note was set")
	}
	if text, failed := run("cancel_timer", `{"id":"t1"}`); failed || b.cancelled != "t1" {
		t.Errorf("cancelled %q: %q", b.cancelled, text)
	}
	b.wrong = tool.Mistake("There are too many.")
	if text, failed := run("set_timer", `{"when":"at 6pm","note":"x"}`); !failed || !strings.Contains(text, "too many") {
		t.Errorf("too many: %q", text)
	}
}
