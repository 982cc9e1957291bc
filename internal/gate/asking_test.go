package gate

import (
	"testing"
	"time"

	"chorus/internal/chat"
	"chorus/internal/config"
	"chorus/internal/journal"
)

// The terminal waits as long as it takes unless somebody set an end; elsewhere there is one.
func TestAsking(t *testing.T) {
	t.Parallel()
	a := &Gate{}
	a.Environ = []string{"PATH=/bin", "SECRET_KEY=test-key"}
	for _, c := range []struct {
		thread      chat.ThreadID
		env         map[string]string
		ends, shows time.Duration
		who         string
	}{
		{"cli:here:1@helper", nil, 0, 0, "asker, local"},
		{"discord:here:1@helper", nil, 24 * time.Hour, time.Hour, "asker, local"},
		{"cli:here:1@helper", map[string]string{"CHORUS_APPROVALS_DEADLINE": "5m", "CHORUS_APPROVALS_BY": "two"}, 5 * time.Minute, 0, "two"},
		{"discord:here:1@helper", map[string]string{"CHORUS_APPROVALS_DEADLINE": "none"}, 0, time.Hour, "asker, local"},
	} {
		bot, problems := config.Load(config.Options{Dir: t.TempDir(), Env: func(name string) string { return c.env[name] }}, config.Ask{Bot: "x"})
		if err := problems.Err(); err != nil {
			t.Fatal(err)
		}
		got, err := a.Asking(journal.Thread{ID: c.thread}, bot, "standard")
		if err != nil || got.For != c.ends || got.Remind != c.shows || got.Who != c.who {
			t.Errorf("%s with %v: %+v, %v", c.thread, c.env, got, err)
		}
		for _, name := range got.Env {
			if name == "SECRET_KEY" {
				t.Error("a variable that commands never get is counted")
			}
		}
		if len(got.Env) == 0 || got.Env[len(got.Env)-1] == "" {
			t.Errorf("%q", got.Env)
		}
	}
}
