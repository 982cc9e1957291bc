package gate_test

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"chorus/internal/app"
	"chorus/internal/app/apptest"
	"chorus/internal/approval"
	"chorus/internal/chat"
	"chorus/internal/datadir"
	"chorus/internal/journal"
	"chorus/internal/permit"
	"chorus/internal/permit/always"
	"chorus/internal/store/audit"
	"chorus/internal/store/storetest"
	"chorus/internal/transcript"
)

// keeper is an App on a home, and what it warned of.
func keeper(t *testing.T, dir string) (*app.App, *[]string) {
	t.Helper()
	var said []string
	a, err := app.Open(t.Context(), app.Options{Env: apptest.Env("USER", "ada", "HOME", dir), Environ: []string{}, Home: dir, Warn: func(text string) { said = append(said, text) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	return a, &said
}

func terminal(t *testing.T) journal.Thread {
	t.Helper()
	id, err := chat.NewThreadID("cli", "place", "session", "helper")
	if err != nil {
		t.Fatal(err)
	}
	return journal.Thread{ID: id, Agent: "helper", Place: "place", Dir: "/repo"}
}

func makes(rule string) always.Entry {
	return always.Entry{By: "local:ada", Agent: "helper", Dir: "/repo", Rules: []string{rule}}
}

func askedFor(t *testing.T, command string) permit.Judgement {
	t.Helper()
	p, err := permit.Preset("standard")
	if err != nil {
		t.Fatal(err)
	}
	return p.Judge([]permit.Request{{Tool: "bash", Command: command}}, permit.JudgeOptions{})
}

// What somebody allowed for good is no use to anybody else, and none to a run that has
// taken others' words too.
func TestKeptNeedsItsGiverAlone(t *testing.T) {
	t.Parallel()
	a, _ := keeper(t, storetest.FreshHome(t))
	ada := chat.Principal{Kind: chat.LocalUser, ID: "ada"}
	eve := chat.Principal{Kind: "discord", ID: "eve"}
	acts := chat.Principal{Kind: chat.LocalUser, ID: "ada", For: &eve}
	if err := a.Gate.AddAllowed(t.Context(), makes("tool:bash:make deploy"), ada); err != nil {
		t.Fatal(err)
	}
	row := terminal(t)
	elsewhere, room := row, row
	elsewhere.Dir = "/other"
	var err error
	if room.ID, err = chat.NewThreadID("discord", "guild/ops", "thread", "helper"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name    string
		row     journal.Thread
		command string
		who     []chat.Principal
		want    bool
	}{
		{"the giver", row, "make deploy", []chat.Principal{ada}, true},
		{"the giver twice", row, "make deploy", []chat.Principal{ada, ada}, true},
		{"somebody else", row, "make deploy", []chat.Principal{eve}, false},
		{"both", row, "make deploy", []chat.Principal{ada, eve}, false},
		{"both, the other first", row, "make deploy", []chat.Principal{eve, ada}, false},
		{"for somebody else", row, "make deploy", []chat.Principal{acts}, false},
		{"nobody", row, "make deploy", nil, false},
		{"another command", row, "make publish", []chat.Principal{ada}, false},
		{"in another directory", elsewhere, "make deploy", []chat.Principal{ada}, false},
		{"in a channel", room, "make deploy", []chat.Principal{ada}, false},
	} {
		var senders []transcript.Sender
		for _, p := range c.who {
			senders = append(senders, transcript.Sender{Principal: p})
		}
		how := a.Gate.AllowedFor(c.row)(askedFor(t, c.command), senders)
		if (how != "") != c.want {
			t.Errorf("%s: %q", c.name, how)
		}
		if c.want && !strings.Contains(how, "tool:bash:make deploy") {
			t.Errorf("%s does not name the rule", how)
		}
	}
}

// A file that breaks leaves the last good version in force; each mistake is said once,
// and nothing is written over it.
func TestKeptFileThatBreaks(t *testing.T) {
	t.Parallel()
	a, said := keeper(t, storetest.FreshHome(t))
	save := func(text string) {
		if err := datadir.WriteFile(a.Gate.AllowedFile(), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	holds := func(want int, sentences int) {
		t.Helper()
		for range 2 {
			if got := len(a.Gate.AllowedRules().List()); got != want {
				t.Errorf("%d hold, want %d", got, want)
			}
		}
		if len(*said) != sentences {
			t.Errorf("said %q", *said)
		}
	}
	save("- [")
	holds(0, 1)
	save("- {by: a, agent: b, dir: /c, rules: [x]}")
	holds(1, 1)
	save("- {by: a, agent: b, dir: /c, rules: ['(?!x)']}")
	holds(1, 2)
	if err := a.Gate.AddAllowed(t.Context(), makes("x"), a.Me()); err == nil || !strings.Contains(err.Error(), "has an error") {
		t.Errorf("kept over a mistake: %v", err)
	}
	if err := os.Remove(a.Gate.AllowedFile()); err != nil {
		t.Fatal(err)
	}
	holds(0, 2)
}

// Two processes keep things at the same time, and all of it is there; removing is
// written down.
func TestKeptByTwoProcesses(t *testing.T) {
	t.Parallel()
	dir := storetest.FreshHome(t)
	one, _ := keeper(t, dir)
	two, _ := keeper(t, dir)
	var work sync.WaitGroup
	for i, a := range []*app.App{one, two} {
		work.Go(func() {
			for n := range 8 {
				if err := a.Gate.AddAllowed(t.Context(), makes(fmt.Sprintf("tool:bash:make %d-%d", i, n)), a.Me()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	work.Wait()
	if err := one.Gate.AddAllowed(t.Context(), makes("tool:bash:make 0-0"), one.Me()); err != nil {
		t.Error(err)
	}
	list, err := two.Gate.ListAllowed()
	if err != nil || len(list) != 16 {
		t.Fatalf("%d kept, %v", len(list), err)
	}
	if _, err := one.Gate.RemoveAllowed(t.Context(), []string{list[0].ID, "none"}); err == nil {
		t.Error("removed what is not there")
	}
	if gone, err := one.Gate.RemoveAllowed(t.Context(), []string{list[0].ID, list[3].ID}); err != nil || len(gone) != 2 {
		t.Errorf("%v %v", gone, err)
	}
	if list, err = two.Gate.ListAllowed(); err != nil || len(list) != 14 {
		t.Errorf("%d kept, %v", len(list), err)
	}
	lines, err := two.DB.AuditLog(t.Context(), audit.Filter{Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for _, l := range lines {
		count[l.Action]++
	}
	if count["permit allowed add"] != 16 || count["permit allowed remove"] != 2 {
		t.Errorf("%v", count)
	}
}

func TestNeverKept(t *testing.T) {
	t.Parallel()
	a, _ := keeper(t, storetest.FreshHome(t))
	ada, eve := chat.Principal{Kind: chat.LocalUser, ID: "ada"}, chat.Principal{Kind: "discord", ID: "eve"}
	for _, c := range []struct {
		q    approval.Approval
		want string
	}{
		{approval.Approval{AskedBy: ada, Actions: []string{"tool:bash:make"}}, ""},
		{approval.Approval{AskedBy: ada, Who: "two"}, "two people"},
		{approval.Approval{AskedBy: ada, Who: "role:admin"}, "may not answer"},
		{approval.Approval{AskedBy: eve}, "somebody else asked for it"},
		{approval.Approval{AskedBy: ada, Actions: []string{"tool:bash:curl -H 'Authorization: Bearer sk-ant-api03-" + strings.Repeat("aB3dE5fG7h", 9) + "'"}}, "a secret"},
	} {
		if got := a.Gate.Never(c.q, ada); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%+v: %q, want %q", c.q, got, c.want)
		}
	}
}
