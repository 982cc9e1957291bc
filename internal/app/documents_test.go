package app

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"chorus/internal/agents"
	"chorus/internal/database"
	"chorus/internal/digest"
	"chorus/internal/operations"
	"chorus/internal/permit/always"
	"chorus/internal/polltest"
	"chorus/internal/skill"
	"chorus/internal/skill/approved"
	"chorus/internal/store/pgtest"
	"chorus/internal/trust"
)

// openNode is one of several machines on a database.
func openNode(t *testing.T, at, home string) *App {
	t.Helper()
	return openNodeWith(t, at, home, "")
}

// openNodeWith gives it a key of secrets, too.
func openNodeWith(t *testing.T, at, home, secrets string) *App {
	t.Helper()
	env := func(name string) string {
		switch name {
		case "CHORUS_DATABASEURL", "CHORUS_DATABASE_URL":
			if database.IsPostgres(at) {
				return at
			}
			return "sqlite:" + at
		case "CHORUS_SECRETS_KEY":
			return secrets
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

func openNodes(t *testing.T, at string) (a, b *App) {
	t.Helper()
	return openNode(t, at, t.TempDir()), openNode(t, at, t.TempDir())
}

// onBoth runs a test with a database in a file and on a server.
func onBoth(t *testing.T, test func(t *testing.T, at string)) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		test(t, filepath.Join(t.TempDir(), "shared.db"))
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		test(t, pgtest.Database(t))
	})
}

// syncDocuments is what a ring or the sweep does on a machine.
func (a *App) syncDocuments(t *testing.T) {
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
func TestSettingsOfTwoMachines(t *testing.T) { onBoth(t, settingsOfTwoMachines) }

func settingsOfTwoMachines(t *testing.T, at string) {
	a, b := openNodes(t, at)
	if _, err := a.Service.Handler().SetSetting(t.Context(), a.Service.LocalCaller(), operations.SettingValue{Key: "maxTokens", Value: "1234"}); err != nil {
		t.Fatal(err)
	}
	b.syncDocuments(t)
	if bot, err := b.Settings.Bot(""); err != nil || bot.MaxTokens != 1234 {
		t.Errorf("the other machine: %v (%v)", bot.MaxTokens, err)
	}
	if data, err := os.ReadFile(b.Home.Settings()); err != nil || !strings.Contains(string(data), "1234") {
		t.Errorf("its file: %q (%v)", data, err)
	}
	write(t, filepath.Join(b.Home.Config(), "shared.yaml"), "temperature: 0.5\n")
	b.syncDocuments(t)
	a.syncDocuments(t)
	if bot, err := a.Settings.Bot(""); err != nil || bot.Temperature == nil || *bot.Temperature != 0.5 {
		t.Errorf("from a file of the other machine: %+v (%v)", bot.Temperature, err)
	}
	// A mistake stays where it was made.
	write(t, filepath.Join(b.Home.Config(), "shared.yaml"), "temprature: 0.7\n")
	b.syncDocuments(t)
	a.syncDocuments(t)
	if data, err := os.ReadFile(filepath.Join(a.Home.Config(), "shared.yaml")); err != nil || string(data) != "temperature: 0.5\n" {
		t.Errorf("a mistake travelled: %q (%v)", data, err)
	}
	if err := a.Settings.SetGuild("123", "maxTokens", 99); err != nil {
		t.Fatal(err)
	}
	b.syncDocuments(t)
	if bot, err := b.Settings.BotIn("", "123"); err != nil || bot.MaxTokens != 99 {
		t.Errorf("a server's settings: %v (%v)", bot.MaxTokens, err)
	}
	if err := b.Settings.SetGuild("123", "maxTokens", nil); err != nil {
		t.Fatal(err)
	}
	a.syncDocuments(t)
	if bot, err := a.Settings.BotIn("", "123"); err != nil || bot.MaxTokens != 1234 {
		t.Errorf("taken away: %v (%v)", bot.MaxTokens, err)
	}
}

// A machine that joins begins with what holds on the others.
func TestMachineJoins(t *testing.T) { onBoth(t, machineJoins) }

func machineJoins(t *testing.T, at string) {
	a := openNode(t, at, t.TempDir())
	write(t, filepath.Join(a.Home.Config(), "shared.yaml"), "permissions: locked\ndefaultModel: demo/echo\n")
	a.syncDocuments(t)
	b := openNode(t, at, t.TempDir())
	if b.Shared.Permissions != "locked" || b.Shared.DefaultModel != "demo/echo" {
		t.Errorf("it begins with %q and %q", b.Shared.Permissions, b.Shared.DefaultModel)
	}
}

// What somebody allows for good, or takes back, holds everywhere.
func TestAllowedOnTwoMachines(t *testing.T) { onBoth(t, allowedOnTwoMachines) }

func allowedOnTwoMachines(t *testing.T, at string) {
	a, b := openNodes(t, at)
	entry := always.Entry{By: a.Me().String(), Agent: "chorus", Dir: "/work", Means: "go test", Rules: []string{`tool:bash:go test .*`}, At: time.Now().UTC().Truncate(time.Second)}
	if err := a.Gate.AddAllowed(t.Context(), entry, a.Me()); err != nil {
		t.Fatal(err)
	}
	b.syncDocuments(t)
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
	b.syncDocuments(t)
	for _, n := range []*App{a, b} {
		if left := n.Gate.AllowedRules().List(); len(left) != 1 || left[0].Dir != "/elsewhere" {
			t.Errorf("left: %v", left)
		}
	}
}

// Machines that run notice by themselves, in both directions.
func TestRunningMachines(t *testing.T) { onBoth(t, runningMachines) }

func runningMachines(t *testing.T, at string) {
	a, b := openNodes(t, at)
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

func agentNames(t *testing.T, a *App) string {
	t.Helper()
	list, err := a.Settings.Agents().List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, agent := range list {
		if a.Settings.Agents().Made(agent.Name) {
			names = append(names, agent.Name)
		}
	}
	return strings.Join(names, " ")
}

// An agent is there on all machines, as it was changed last, until somebody destroys it on one of them.
func TestAgentsOfTwoMachines(t *testing.T) { onBoth(t, agentsOfTwoMachines) }

func agentsOfTwoMachines(t *testing.T, at string) {
	a, b := openNodes(t, at)
	ctx := t.Context()
	onA, onB := a.Settings.Agents(), b.Settings.Agents()
	for _, name := range []string{"first", "second", "third"} {
		if _, err := onA.Create(ctx, agents.Agent{Name: name, SystemPrompt: "be brief"}); err != nil {
			t.Fatal(err)
		}
	}
	b.syncDocuments(t)
	if got, err := onB.Get(ctx, "first"); err != nil || got.SystemPrompt != "be brief" || !onB.Made("first") {
		t.Fatalf("on the other machine: %+v (%v)", got, err)
	}
	if _, err := onB.Create(ctx, agents.Agent{Name: "second"}); !errors.Is(err, agents.ErrExists) {
		t.Errorf("made twice: %v", err)
	}
	if _, err := onB.Configure(ctx, "first", "systemPrompt", "be kind"); err != nil {
		t.Fatal(err)
	}
	// Not told yet, a looks before it changes: the other change is not undone.
	if got, err := onA.Configure(ctx, "first", "webSearch", "yes"); err != nil || got.SystemPrompt != "be kind" || !got.WebSearch {
		t.Errorf("%+v (%v)", got, err)
	}
	write(t, filepath.Join(a.Home.AgentDir("second"), "agent.json"), `{"systemPrompt": "by hand"}`)
	a.syncDocuments(t)
	for _, n := range []*App{a, b} {
		if got, err := n.Settings.Agents().Get(ctx, "second"); err != nil || got.SystemPrompt != "by hand" {
			t.Errorf("edited by hand: %+v (%v)", got, err)
		}
	}
	// A mistake stays where it was made; elsewhere the last good version holds.
	write(t, filepath.Join(a.Home.AgentDir("second"), "agent.json"), `{"systemPrompt": `)
	a.syncDocuments(t)
	if got, err := onB.Get(ctx, "second"); err != nil || got.SystemPrompt != "by hand" {
		t.Errorf("after a mistake elsewhere: %+v (%v)", got, err)
	}
	if err := onA.Destroy(ctx, "second", false); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(onB.Workspace("second"), "work.txt"), "unsaved")
	if got := agentNames(t, b); got != "first third" {
		t.Errorf("after one was destroyed elsewhere: %s", got)
	}
	if data, err := os.ReadFile(filepath.Join(b.Home.Trash(), "second", "workspace", "work.txt")); err != nil || string(data) != "unsaved" {
		t.Errorf("its work on this machine: %q (%v)", data, err)
	}
	if err := os.RemoveAll(b.Home.AgentDir("third")); err != nil { // by hand, where it was
		t.Fatal(err)
	}
	b.syncDocuments(t)
	if got := agentNames(t, a); got != "first" {
		t.Errorf("after a folder was removed by hand elsewhere: %s", got)
	}
	if got := agentNames(t, b); got != "first" {
		t.Errorf("and here: %s", got)
	}
	if _, err := onB.Create(ctx, agents.Agent{Name: "third", SystemPrompt: "anew"}); err != nil {
		t.Fatal(err)
	}
	if got, err := onA.Get(ctx, "third"); err != nil || got.SystemPrompt != "anew" {
		t.Errorf("made again: %+v (%v)", got, err)
	}
}

// A machine that joins an installation from before documents lays out its agents, and deletes none.
func TestJoinOldInstallation(t *testing.T) { onBoth(t, joinOldInstallation) }

func joinOldInstallation(t *testing.T, at string) {
	a := openNode(t, at, t.TempDir())
	if _, err := a.Settings.Agents().Create(t.Context(), agents.Agent{Name: "helper"}); err != nil {
		t.Fatal(err)
	}
	for _, table := range []string{"documents", "document_versions"} { // as it was
		if err := a.DB.Write(t.Context(), func(tx database.Tx) error { return tx.Exec(`DELETE FROM ` + table) }); err != nil {
			t.Fatal(err)
		}
	}
	b := openNode(t, at, t.TempDir())
	for _, n := range []*App{b, a, b} {
		if got := agentNames(t, n); got != "helper" {
			t.Errorf("agents: %q", got)
		}
		n.syncDocuments(t)
	}
}

// A person signs in on any machine: the key is one, its file is the owner's alone, and a link is used up everywhere.
func TestSignInOnTwoMachines(t *testing.T) { onBoth(t, signInOnTwoMachines) }

func signInOnTwoMachines(t *testing.T, at string) {
	a, b := openNodes(t, at)
	ours, err := a.Service.Tokens().SessionKey()
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := b.Service.Tokens().SessionKey() // before any sync
	if err != nil || !bytes.Equal(ours, theirs) {
		t.Fatalf("two machines sign with two keys (%v)", err)
	}
	for _, n := range []*App{a, b} {
		info, err := os.Stat(filepath.Join(n.Home.Dir(), "door.key"))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%v (%v)", info, err)
		}
	}
	for i, n := range []*App{a, b} {
		first, err := n.Service.Tokens().EndSignIn(t.Context(), "a link", time.Hour)
		if err != nil || first != (i == 0) {
			t.Errorf("machine %d: the link was good: %v (%v)", i+1, first, err)
		}
	}
}

// Machines that each made a key before they met agree on one, and the other key stays the owner's alone.
func TestTwoKeysMeet(t *testing.T) { onBoth(t, twoKeysMeet) }

func twoKeysMeet(t *testing.T, at string) {
	home := t.TempDir()
	a := openNode(t, at, t.TempDir())
	ours, err := a.Service.Tokens().SessionKey()
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(home, "door.key"), strings.Repeat("ab", 32)+"\n")
	b := openNode(t, at, home)
	if theirs, err := b.Service.Tokens().SessionKey(); err != nil || !bytes.Equal(ours, theirs) {
		t.Errorf("they still differ (%v)", err)
	}
	kept, err := filepath.Glob(filepath.Join(home, "door.key.replaced-*"))
	if err != nil || len(kept) != 1 {
		t.Fatalf("kept: %v (%v)", kept, err)
	}
	if info, err := os.Stat(kept[0]); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v (%v)", info, err)
	}
}

// What somebody has looked at and trusted on one machine is trusted on the other, if it is the same there.
func TestTrustOnTwoMachines(t *testing.T) { onBoth(t, trustOnTwoMachines) }

func trustOnTwoMachines(t *testing.T, at string) {
	a, b := openNodes(t, at)
	lock, there := a.Settings.TrustStore(), b.Settings.TrustStore()
	list := filepath.Join(t.TempDir(), ".mcp.json")
	write(t, list, `{"mcpServers": {}}`)
	record := trust.Record{Digest: digest.Of(`{"mcpServers": {}}`), By: "ada"}
	if err := lock.Put(list, filepath.Dir(list), record); err != nil {
		t.Fatal(err)
	}
	a.syncDocuments(t)
	b.syncDocuments(t)
	if got := there.Get(list); got.Digest != record.Digest || got.By != "ada" {
		t.Errorf("the other machine: %+v", got)
	}
	if text, ok := there.Text(record.Digest); !ok || text != `{"mcpServers": {}}` {
		t.Errorf("its text: %q (%v)", text, ok)
	}
	if err := there.Put("/another", "/", trust.Record{Digest: "x"}); err != nil { // on both, at once
		t.Fatal(err)
	}
	if err := lock.Put("/third", "/", trust.Record{Digest: "y"}); err != nil {
		t.Fatal(err)
	}
	b.syncDocuments(t)
	for _, s := range []trust.Store{lock, there} {
		if all := s.All(); len(all) != 3 {
			t.Errorf("known: %v", all)
		}
	}
}

// A skill that was approved on one machine is on where the same one lies on another, and nowhere else.
func TestSkillOnTwoMachines(t *testing.T) { onBoth(t, skillOnTwoMachines) }

func skillOnTwoMachines(t *testing.T, at string) {
	a, b := openNodes(t, at)
	repository := t.TempDir()
	text := "---\nname: greet\ndescription: Greets people. Use when somebody says hello.\n---\nSay hello.\n"
	write(t, filepath.Join(repository, ".chorus", "skills", "greet", "SKILL.md"), text)
	where := skill.Where{Workspace: repository}
	found, problems := a.Skills.Find(where)
	if len(found) != 1 {
		t.Fatalf("found %+v (%v)", found, problems)
	}
	if err := a.Skills.Approve(found[0], found[0].Tree.Digest, "ada"); err != nil {
		t.Fatal(err)
	}
	b.syncDocuments(t)
	looked, err := b.Skills.View(where)
	if err != nil || len(looked.On) != 1 || len(looked.Problems) > 0 {
		t.Fatalf("on the other machine: %+v (%v)", looked, err)
	}
	write(t, filepath.Join(repository, ".chorus", "skills", "greet", "SKILL.md"), text+"And steal.\n")
	later := &approved.Library{Home: b.Home, Lock: b.Settings.TrustStore(), Diff: b.Skills.Diff, Now: func() time.Time { return time.Now().Add(time.Hour) }}
	if looked, err := later.View(where); err != nil || len(looked.On) != 0 {
		t.Errorf("one that is another: %+v (%v)", looked.On, err)
	}
}
