package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"chorus/internal/operations"
	"chorus/internal/permit/always"
	"chorus/internal/polltest"
)

// openNode is one of several machines on a database.
func openNode(t *testing.T, database, home string) *App {
	t.Helper()
	env := func(name string) string {
		switch name {
		case "CHORUS_DATABASEURL", "CHORUS_DATABASE_URL":
			return "sqlite:" + database
		case "USER":
			return "ada"
		case "PATH":
			return os.Getenv("PATH")
		}
		return ""
	}
	a, err := Open(t.Context(), Options{Home: home, Env: env, Environ: []string{"PATH=" + os.Getenv("PATH")}, Warn: func(text string) { t.Log(text) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	return a
}

func openNodes(t *testing.T) (a, b *App) {
	t.Helper()
	database := filepath.Join(t.TempDir(), "shared.db")
	return openNode(t, database, t.TempDir()), openNode(t, database, t.TempDir())
}

// bell is what a ring or the sweep does on a machine.
func (a *App) bell(t *testing.T) {
	t.Helper()
	if err := a.Settings.Documents.SyncAll(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// What is set on one machine, by a command or in a file, holds on the other.
func TestSettingsOfTwoMachines(t *testing.T) {
	t.Parallel()
	a, b := openNodes(t)
	if _, err := a.Service.Handler().SetSetting(t.Context(), a.Service.LocalCaller(), operations.SettingValue{Key: "maxTokens", Value: "1234"}); err != nil {
		t.Fatal(err)
	}
	b.bell(t)
	if bot, err := b.Settings.Bot(""); err != nil || bot.MaxTokens != 1234 {
		t.Errorf("the other machine: %v (%v)", bot.MaxTokens, err)
	}
	if data, err := os.ReadFile(b.Home.Settings()); err != nil || !strings.Contains(string(data), "1234") {
		t.Errorf("its file: %q (%v)", data, err)
	}
	write(t, filepath.Join(b.Home.Config(), "shared.yaml"), "temperature: 0.5\n")
	b.bell(t)
	a.bell(t)
	if bot, err := a.Settings.Bot(""); err != nil || bot.Temperature == nil || *bot.Temperature != 0.5 {
		t.Errorf("from a file of the other machine: %+v (%v)", bot.Temperature, err)
	}
	// A mistake stays where it was made.
	write(t, filepath.Join(b.Home.Config(), "shared.yaml"), "temprature: 0.7\n")
	b.bell(t)
	a.bell(t)
	if data, err := os.ReadFile(filepath.Join(a.Home.Config(), "shared.yaml")); err != nil || string(data) != "temperature: 0.5\n" {
		t.Errorf("a mistake travelled: %q (%v)", data, err)
	}
	if err := a.Settings.SetGuild("123", "maxTokens", 99); err != nil {
		t.Fatal(err)
	}
	b.bell(t)
	if bot, err := b.Settings.BotIn("", "123"); err != nil || bot.MaxTokens != 99 {
		t.Errorf("a server's settings: %v (%v)", bot.MaxTokens, err)
	}
	if err := b.Settings.SetGuild("123", "maxTokens", nil); err != nil {
		t.Fatal(err)
	}
	a.bell(t)
	if bot, err := a.Settings.BotIn("", "123"); err != nil || bot.MaxTokens != 1234 {
		t.Errorf("taken away: %v (%v)", bot.MaxTokens, err)
	}
}

// A machine that joins begins with what holds on the others.
func TestMachineJoins(t *testing.T) {
	t.Parallel()
	database := filepath.Join(t.TempDir(), "shared.db")
	a := openNode(t, database, t.TempDir())
	write(t, filepath.Join(a.Home.Config(), "shared.yaml"), "permissions: locked\ndefaultModel: demo/echo\n")
	a.bell(t)
	b := openNode(t, database, t.TempDir())
	if b.Shared.Permissions != "locked" || b.Shared.DefaultModel != "demo/echo" {
		t.Errorf("it begins with %q and %q", b.Shared.Permissions, b.Shared.DefaultModel)
	}
}

// What somebody allows for good, or takes back, holds everywhere.
func TestAllowedOnTwoMachines(t *testing.T) {
	t.Parallel()
	a, b := openNodes(t)
	entry := always.Entry{By: a.Me().String(), Agent: "chorus", Dir: "/work", Means: "go test", Rules: []string{`tool:bash:go test .*`}, At: time.Now().UTC().Truncate(time.Second)}
	if err := a.Gate.AddAllowed(t.Context(), entry, a.Me()); err != nil {
		t.Fatal(err)
	}
	b.bell(t)
	list := b.Gate.AllowedRules().List()
	if len(list) != 1 {
		t.Fatalf("the other machine knows %v", list)
	}
	other := entry
	other.Dir = "/elsewhere"
	if err := b.Gate.AddAllowed(t.Context(), other, b.Me()); err != nil { // before a's file knows: nothing of the other's is lost
		t.Fatal(err)
	}
	if _, err := a.Gate.RemoveAllowed(t.Context(), []string{list[0].ID}); err != nil {
		t.Fatal(err)
	}
	b.bell(t)
	for _, n := range []*App{a, b} {
		if left := n.Gate.AllowedRules().List(); len(left) != 1 || left[0].Dir != "/elsewhere" {
			t.Errorf("left: %v", left)
		}
	}
}

// Machines that run notice by themselves, in both directions.
func TestRunningMachines(t *testing.T) {
	t.Parallel()
	a, b := openNodes(t)
	a.StartBackground()
	b.StartBackground()
	began := time.Now()
	write(t, filepath.Join(a.Home.Config(), "shared.yaml"), "maxTokens: 777\n")
	polltest.Until(t, "an edited file holds on the other machine", func() bool {
		bot, err := b.Settings.Bot("")
		return err == nil && bot.MaxTokens == 777
	})
	t.Logf("an edited file held on the other machine after %v", time.Since(began))
	began = time.Now()
	if _, err := b.Service.Handler().SetSetting(t.Context(), b.Service.LocalCaller(), operations.SettingValue{Key: "llmRetries", Value: "3"}); err != nil {
		t.Fatal(err)
	}
	polltest.Until(t, "a setting holds on the other machine", func() bool {
		bot, err := a.Settings.Bot("")
		return err == nil && bot.LLMRetries == 3
	})
	t.Logf("a command held on the other machine after %v", time.Since(began))
}
