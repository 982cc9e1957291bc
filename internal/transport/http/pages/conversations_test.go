package pages

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"chorus/internal/feed"
	"chorus/internal/operations"
)

// The list beside the pages is by days: those of the reader's clock, and the pinned ones first, wherever they belong.
func TestConversationsByDay(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 4, 0, 30, 0, 0, time.UTC) // half an hour after midnight
	at := func(title string, ago time.Duration, listing string) operations.Session {
		return operations.Session{Title: title, MovedAt: now.Add(-ago), Listing: listing}
	}
	const day = 24 * time.Hour
	old := at("old and pinned", 90*day, "pinned")
	var got []string
	for _, g := range groupSessions([]operations.Session{old}, []operations.Session{at("now", 0, ""), at("before midnight", time.Hour, ""), at("days ago", 5*day, ""), at("last year", 300*day, ""), old}, now) {
		for _, s := range g.Sessions {
			got = append(got, g.Name+": "+s.Title)
		}
	}
	want := "Pinned: old and pinned\nToday: now\nYesterday: before midnight\nLast seven days: days ago\nEarlier: last year"
	if strings.Join(got, "\n") != want {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
	if groups := groupSessions(nil, nil, now); len(groups) != 0 {
		t.Errorf("days without conversations: %v", groups)
	}
}

// What a running call prints comes in pieces and is shown as one text, its end when it is long.
func TestPrintedSoFar(t *testing.T) {
	t.Parallel()
	s := &stream{}
	piece := func(tool, text string) string {
		return s.printed(feed.ToolProgress{CallID: tool, Tool: tool, Message: text})
	}
	piece("bash", "one\ntw")
	if got := piece("bash", "o\n"); got != "one\ntwo\n" {
		t.Errorf("a command printed %q", got)
	}
	piece("spawn_agent", "helper: reads")
	if got := piece("spawn_agent", "helper: writes"); got != "helper: reads\nhelper: writes" {
		t.Errorf("an agent did %q", got)
	}
	var got string
	for i := range 1000 {
		got = piece("bash", fmt.Sprintf("line %d é\n", i))
	}
	if len(got) > maxPrinted || !strings.HasSuffix(got, "line 999 é\n") || !strings.HasPrefix(got, "line ") {
		t.Errorf("%d bytes: %.40q … %q", len(got), got, got[len(got)-20:])
	}
	if got := piece("bash", strings.Repeat("é", maxPrinted)); len(got) > maxPrinted || strings.Trim(got, "é") != "" {
		t.Errorf("a line without an end: %.40q", got)
	}
}
