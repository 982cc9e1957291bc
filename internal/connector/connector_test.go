package connector

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"chorus/internal/operation"
	"chorus/internal/outbox"
	"chorus/internal/platform"
	"chorus/internal/room"
	"chorus/internal/room/mention"
	"chorus/internal/room/render"
	"chorus/internal/room/split"
)

// fakePlatform is one that can nothing.
type fakePlatform struct {
	platform.Platform
	platform.Numbers
	channels map[string]room.Channel
}

func (fakePlatform) Name() string { return "discord" }

func (fakePlatform) Caps() platform.Caps {
	return platform.Caps{Label: "Discord", MaxText: 2000, Edits: true, Reactions: true, Buttons: true}
}

func (fakePlatform) Older(a, b string) bool  { return room.Older(a, b) }
func (fakePlatform) Before(id string) string { return platform.Numbers{}.Before(id) }
func (fakePlatform) After(id string) string  { return platform.Numbers{}.After(id) }

func (f fakePlatform) Known(id string) (room.Channel, bool) { c, ok := f.channels[id]; return c, ok }

func (fakePlatform) Directory(string) mention.Directory { return mention.Directory{} }

// fakeBot is a bot on it.
func fakeBot(t testing.TB, backend Backend) *Bot {
	t.Helper()
	if backend.Runner == nil {
		backend.Runner = struct{ Runner }{}
	}
	b, err := New(Options{Name: "b", Platform: fakePlatform{channels: map[string]room.Channel{"200": {ID: "200"}}}, Backend: backend})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestDiceFallTheSameTwice(t *testing.T) {
	t.Parallel()
	hits := 0
	for i := range 4000 {
		id := strings.Repeat("1", 1+i%7) + string(rune('0'+i%10)) + time.Duration(i).String()
		a, b := diceOf(id, "helper")(8), diceOf(id, "helper")(8)
		if a != b || a < 0 || a > 7 {
			t.Fatalf("%d and %d", a, b)
		}
		if a == 0 {
			hits++
		}
	}
	if hits < 300 || hits > 700 {
		t.Errorf("one in eight of 4000 is about 500, not %d", hits)
	}
}

// Whatever goes wrong, people are told whose fault it is and what to do.
func TestErrorsAreToldPlainly(t *testing.T) {
	t.Parallel()
	answered := func(why outbox.Why, said string) error {
		return fmt.Errorf("post: %w", &outbox.Trouble{Why: why, Said: said, Err: errors.New("x")})
	}
	for _, c := range []struct {
		err  error
		want string
	}{
		{Refusal("there is none"), "there is none"},
		{operation.Errorf(operation.NotFound, "not here"), "not here"},
		{fmt.Errorf("list: %w", context.DeadlineExceeded), "took too long"},
		{answered(outbox.Forbidden, "Missing Permissions"), "Discord refused: Missing Permissions"},
		{answered(outbox.Temporary, ""), "Discord is not answering properly"},
		{errors.New("disk I/O error"), "something failed inside Chorus, and its log says why; try again"},
	} {
		if got := fakeBot(t, Backend{}).UserMessage(c.err); !strings.Contains(got, c.want) || !strings.HasPrefix(got, render.SignNot) || split.Length(got) > 510 {
			t.Errorf("%v is told as %q", c.err, got)
		}
	}
}

// TestRecentKeepsOrder: whatever order messages come in, and however often, the newest are
// there once and in order.
func TestRecentKeepsOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var most []int
		for id := range rapid.IntRange(1, 60).Draw(t, "how many") {
			most = append(most, id+1)
		}
		all := append(rapid.Permutation(most).Draw(t, "ids"), rapid.SliceOf(rapid.SampledFrom(most)).Draw(t, "again")...)
		tails := newRecent(room.Older)
		for _, id := range all {
			tails.add("c", recentMessage{id: fmt.Sprint(id)})
		}
		list, _ := tails.before("c", "61")
		different := map[int]bool{}
		for _, id := range all {
			different[id] = true
		}
		if want := min(len(different), maxRecent); len(list) != want {
			t.Fatalf("%d are kept, not %d", len(list), want)
		}
		for i := 1; i < len(list); i++ {
			if !room.Older(list[i].id, list[i-1].id) {
				t.Fatalf("%v is before %v", list[i-1].id, list[i].id)
			}
		}
		if newest := fmt.Sprint(slices.Max(all)); tails.newest("c") != newest {
			t.Fatalf("the newest is %s, not %s", tails.newest("c"), newest)
		}
	})
}

func TestEventsOfChannels(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		data any
		kind room.Kind
	}{
		{platform.Said{}, room.Said}, {platform.Edited{}, room.Edited}, {platform.Deleted{}, room.Deleted}, {platform.Reacted{}, room.Reacted},
		{platform.Cleared{}, room.Reacted}, {Trigger{Kind: room.Timer}, room.Timer}, {platform.Connected{}, ""}, {platform.Listed{}, ""}, {platform.Pinned{}, ""},
	} {
		if e, is := eventOf(c.data); is != (c.kind != "") || e.Kind != c.kind {
			t.Errorf("%T is %q, %v", c.data, e.Kind, is)
		}
	}
}
