package settings_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"chorus/internal/app"
	"chorus/internal/chat"
	"chorus/internal/config"
	"chorus/internal/notice"
	"chorus/internal/settings"
	"chorus/internal/store/storetest"
)

// A process that stays sees a changed configuration, keeps the last good one when the
// next is broken, and goes on with the one after.
func TestLiveReload(t *testing.T) {
	t.Parallel()
	home := storetest.FreshHome(t)
	file := filepath.Join(home, "config", "shared.yaml")
	write := func(text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file+".new", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(file+".new", file); err != nil {
			t.Fatal(err)
		}
	}
	write("maxTokens: 1\n")
	a, err := app.Open(context.Background(), app.Options{Home: home, Env: func(string) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	said := make(chan string, 10)
	seen := make(chan struct{}, 10)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	done := make(chan error, 1)
	go func() {
		done <- a.Settings.Live.Watch(ctx, func() { seen <- struct{}{} }, func(r notice.Notice) { said <- r.Text })
	}()
	tokens := func() int {
		bot, err := a.Settings.Bot("chorus")
		if err != nil {
			t.Fatal(err)
		}
		return bot.MaxTokens
	}
	wait := func(what string, c <-chan string) string {
		t.Helper()
		select {
		case text := <-c:
			return text
		case <-time.After(time.Minute):
			t.Fatal("nobody said anything about " + what)
			return ""
		}
	}
	for _, step := range []struct {
		text string
		want int
	}{{"maxTokens: 2\n", 2}, {"maxTokens: none at all\n", 2}, {"maxTokens: 3\n", 3}} {
		write(step.text)
		wait(step.text, said)
		if got := tokens(); got != step.want {
			t.Fatalf("after %q: %d", step.text, got)
		}
	}
	if len(seen) != 2 {
		t.Errorf("%d good versions were seen", len(seen))
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// The models go by the version that holds, also when the files were broken before anybody asked for one.
func TestModelsOfTheVersionThatHolds(t *testing.T) {
	t.Parallel()
	home := storetest.FreshHome(t)
	file := filepath.Join(home, "config", "shared.yaml")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("maxTokens: 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	a, err := app.Open(context.Background(), app.Options{Home: home, Env: func(string) string { return "" }})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if err := os.WriteFile(file, []byte("maxTokens: none at all\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	a.Settings.Changed()
	if _, err := a.Models.Vendors(); err != nil {
		t.Error(err)
	}
}

// TestWindowAge: where nobody says otherwise only conversations by reply on a platform forget
// what is older than a day.
func TestWindowAge(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		config, thread string
		want           time.Duration
	}{
		{"", "discord:1:2@bot", 24 * time.Hour},
		{"routing: thread\n", "discord:1:2@bot", 0},
		{"routing: room\nmode: chat\n", "discord:1:2@bot", 0},
		{"", "cli:here:2@bot", 0},
		{"", "web:here:2@bot", 0},
		{"recencyWindow: {age: none}\n", "discord:1:2@bot", 0},
		{"recencyWindow: {age: 90m}\n", "cli:here:2@bot", 90 * time.Minute},
		{"rolling_window: 2h\nrouting: room\n", "discord:1:2@bot", 2 * time.Hour},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "shared.yaml"), []byte(c.config), 0o600); err != nil {
			t.Fatal(err)
		}
		files, found := config.ReadFiles(config.Options{Dir: dir})
		if err := found.Err(); err != nil {
			t.Fatal(err)
		}
		bot, found := files.Bot(config.Ask{Bot: "bot"})
		if err := found.Err(); err != nil {
			t.Fatal(err)
		}
		if got := settings.WindowAge(bot, chat.ThreadID(c.thread)); got != c.want {
			t.Errorf("%q in %s: %v, want %v", c.config, c.thread, got, c.want)
		}
	}
}
