package gate_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"chorus/internal/chat"
	"chorus/internal/engine"
	"chorus/internal/journal"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/sandbox"
	"chorus/internal/store/storetest"
	"chorus/internal/transcript"
)

// Whoever has an agent work, also by a schedule or through another agent, works where they may; only the person at the
// terminal and admins work anywhere.
func TestWhereWorkIsDone(t *testing.T) {
	t.Parallel()
	home, open, other := storetest.FreshHome(t), t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(home, "settings.json"), []byte(`{"workspaces":["`+open+`"]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	a, _ := keeper(t, home)
	holder := func(scope operation.Scope) chat.Principal {
		made, err := a.Service.Tokens().CreateToken(t.Context(), a.Service.LocalCaller(), operations.NewToken{Name: string(scope), Scopes: []operation.Scope{scope}})
		if err != nil {
			t.Fatal(err)
		}
		return made.Holder()
	}
	thread := func(transport string) chat.ThreadID {
		id, err := chat.NewThreadID(transport, "g/c", "t", "helper")
		if err != nil {
			t.Fatal(err)
		}
		return id
	}
	talker, admin := holder(operation.Chat), holder(operation.Admin)
	ada := chat.Principal{Kind: chat.LocalUser, ID: "ada"}
	eve := chat.Principal{Kind: "discord", ID: "eve"}
	schedule := chat.Principal{Kind: chat.ScheduleRule, ID: "nightly", For: &ada}
	agent := chat.Principal{Kind: chat.OtherAgent, ID: "helper"}
	forAda, forEve := agent, agent
	forAda.For, forEve.For = &ada, &eve
	web, discord := thread("web"), thread("discord")
	for _, c := range []struct {
		name   string
		thread chat.ThreadID
		dir    string
		who    []chat.Principal
		want   bool
	}{
		{"the terminal", web, other, []chat.Principal{ada}, true},
		{"an admin", web, other, []chat.Principal{admin}, true},
		{"a token", web, other, []chat.Principal{talker}, false},
		{"a token that is gone", web, other, []chat.Principal{{Kind: chat.TokenHolder, ID: "gone"}}, false},
		{"a token, in an open place", web, open, []chat.Principal{talker}, true},
		{"a token, in a folder of its own", web, a.Home.Scratch(web), []chat.Principal{talker}, true},
		{"Discord", discord, other, []chat.Principal{eve}, false},
		{"Discord, in the folder of the conversation", discord, a.Home.Scratch(discord), []chat.Principal{eve}, true},
		{"Discord, in the agent's workspace", discord, a.Settings.Agents().Workspace("helper"), []chat.Principal{eve}, true},
		{"Discord, in the agent's settings", discord, a.Home.AgentDir("helper"), []chat.Principal{eve}, false},
		{"Discord, in a folder of the web", discord, a.Home.Scratch(web), []chat.Principal{eve}, false},
		{"the terminal and Discord", discord, other, []chat.Principal{ada, eve}, false},
		{"a schedule", web, other, []chat.Principal{schedule}, false},
		{"a schedule, in an open place", web, open, []chat.Principal{schedule}, true},
		{"an agent for the terminal", web, other, []chat.Principal{forAda}, true},
		{"an agent for Discord", web, other, []chat.Principal{forEve}, false},
		{"an agent for nobody", web, other, []chat.Principal{agent}, false},
		{"Chorus's keys", web, home, []chat.Principal{talker}, false},
	} {
		var senders []transcript.Sender
		for _, p := range c.who {
			senders = append(senders, transcript.Sender{Principal: p})
		}
		err := a.Gate.MayWork(t.Context(), journal.Thread{ID: c.thread, Dir: c.dir}, senders)
		if (err == nil) != c.want || err != nil && !strings.Contains(err.Error(), open) {
			t.Errorf("%s: %v", c.name, err)
		}
		if err != nil && strings.Contains(err.Error(), "scope admin") == strings.Contains(c.name, "schedule") {
			t.Errorf("%s is told: %v", c.name, err) // no scope opens a folder to a schedule
		}
	}
}

// The first message of a session is refused where every later one is: here the agent's workspace is a link that leads elsewhere.
func TestFirstMessageIsHeldToPlaces(t *testing.T) {
	t.Parallel()
	home, other := storetest.FreshHome(t), t.TempDir()
	a, _ := keeper(t, home)
	workspace := a.Settings.Agents().Workspace("helper")
	if err := os.MkdirAll(filepath.Dir(workspace), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(other, workspace); err != nil {
		t.Fatal(err)
	}
	by := operation.Caller{Principal: chat.Principal{Kind: chat.TokenHolder, ID: "talker"}, Scopes: []operation.Scope{operation.Chat, operation.Read}}
	_, err := operations.CreateSession.Call(t.Context(), a.Service.Operations(), by, operations.NewSession{Agent: "helper", Message: "hello"})
	if operation.KindOf(err) != operation.Forbidden {
		t.Errorf("it was begun: %v", err)
	}
	by.Scopes = append(by.Scopes, operation.Admin)
	if _, err := operations.CreateSession.Call(t.Context(), a.Service.Operations(), by, operations.NewSession{Agent: "helper", Message: "hello"}); err != nil {
		t.Error(err)
	}
}

// What may be worked in is a folder, not a name: whoever is held to places is told which one it was, and a link that
// leads out of them is none.
func TestWhichFolderIsWorkedIn(t *testing.T) {
	t.Parallel()
	home, open, other := storetest.FreshHome(t), t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(home, "settings.json"), []byte(`{"workspaces":["`+open+`"]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	a, _ := keeper(t, home)
	work := filepath.Join(open, "work")
	if err := os.Mkdir(work, 0o755); err != nil {
		t.Fatal(err)
	}
	id, err := chat.NewThreadID("discord", "g/c", "t", "helper")
	if err != nil {
		t.Fatal(err)
	}
	row := journal.Thread{ID: id, Agent: "helper", Place: "g/c", Dir: work}
	held := func(p chat.Principal) (string, error) {
		return a.Gate.HoldPlace(t.Context(), row, []transcript.Sender{{Principal: p, Seq: 1}})
	}
	ada, eve := chat.Principal{Kind: chat.LocalUser, ID: "ada"}, chat.Principal{Kind: "discord", ID: "eve"}
	if got, err := held(ada); got != "" || err != nil {
		t.Error("the terminal works anywhere:", got, err)
	}
	info, err := os.Stat(work)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := held(eve); got != sandbox.FolderID(info) || err != nil {
		t.Error(got, err)
	}
	setup, err := a.Setup.ForRun(t.Context(), row, engine.Work{Seq: 1, Senders: []transcript.Sender{{Principal: eve, Seq: 1}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(work, work+".aside"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(other, work); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(other, "secret"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := held(eve); err == nil {
		t.Error("a link leads out:", got)
	}
	read, args, err := setup.Agent.Tools.Resolve("read", []byte(`{"path":"secret"}`))
	if err != nil {
		t.Fatal(err)
	}
	if res, err := read.Run(t.Context(), args); err != nil || !strings.Contains(fmt.Sprintf("%+v", res), "another folder has taken its place") {
		t.Errorf("a run that is on reads it: %+v, %v", res, err)
	}
}

// Behind a link ".." is the folder around what the link means, but not for whoever cleans the path first: no such path is one of
// those that are open.
func TestPathsThatGoBack(t *testing.T) {
	t.Parallel()
	home, open, other := storetest.FreshHome(t), t.TempDir(), t.TempDir()
	err := errors.Join(os.WriteFile(filepath.Join(home, "settings.json"), []byte(`{"workspaces":["`+open+`"]}`), 0o600), os.Mkdir(filepath.Join(other, "sub"), 0o755), os.Mkdir(filepath.Join(other, "x"), 0o755),
		os.Mkdir(filepath.Join(open, "x"), 0o755), os.Symlink(filepath.Join(other, "sub"), filepath.Join(open, "link")), os.Symlink(filepath.Join(open, "x"), filepath.Join(other, "back")))
	if err != nil {
		t.Fatal(err)
	}
	a, _ := keeper(t, home)
	if err := a.Settings.CheckNamedPlace(filepath.Join(open, "x")); err != nil {
		t.Error(err)
	}
	for _, path := range []string{open + "/link/../x", open + "/link/../new", other + "/back/../x", open + "/x/../link", open + "/.."} {
		if a.Settings.CheckNamedPlace(path) == nil {
			t.Errorf("%s is open", path)
		}
	}
}
