package runsetup

import (
	"testing"
	"time"

	"chorus/internal/chat"
	"chorus/internal/config"
	"chorus/internal/journal"
)

// Who sits at a terminal, or waits at /v1, is told of a failure; everybody else is answered late.
func TestWhoWaitsForAnOutage(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		thread chat.ThreadID
		ms     int
		terms  chat.Terms
		want   time.Duration
	}{
		"a channel":     {"discord:1:2@helper", 900_000, chat.Terms{}, 15 * time.Minute},
		"the web":       {"web:a:b@helper", 60_000, chat.Terms{}, time.Minute},
		"the default":   {"web:a:b@helper", 0, chat.Terms{}, 15 * time.Minute},
		"/v1":           {"web:a:b@helper", 900_000, chat.Terms{Attended: true}, 0},
		"at a terminal": {"cli:a:b@helper", 900_000, chat.Terms{}, 0},
	} {
		if got := outage(journal.Thread{ID: c.thread}, &config.Bot{OutageMS: c.ms}, c.terms); got != c.want {
			t.Errorf("%s: %s", name, got)
		}
	}
}
