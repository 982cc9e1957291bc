package notice_test

import (
	"slices"
	"testing"

	"chorus/internal/notice"
)

func TestWarningsReachTheSessionOrTheFallback(t *testing.T) {
	t.Parallel()
	var fallback []string
	b := &notice.Board{Fallback: func(text string) { fallback = append(fallback, text) }}
	b.WarnOnce("no sandbox")
	b.WarnOnce("no sandbox")
	if !slices.Equal(fallback, []string{"no sandbox"}) {
		t.Errorf("the fallback heard %q, want it once", fallback)
	}

	notices, cancel := b.Subscribe()
	b.WarnOnce("no git")
	if n := <-notices; n.Text != "no git" || !n.Bad {
		t.Errorf("the session heard %+v", n)
	}
	cancel()
	if b.Post(notice.Notice{Text: "late"}) {
		t.Error("somebody heard a notice after the last session had ended")
	}
}

func TestPostNeverWaits(t *testing.T) {
	t.Parallel()
	var b notice.Board
	notices, cancel := b.Subscribe()
	defer cancel()
	for range 1000 {
		b.Post(notice.Notice{Text: "again"})
	}
	if n := len(notices); n == 0 || n > 100 {
		t.Errorf("%d notices wait for a session that reads none", n)
	}
}
