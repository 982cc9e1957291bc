package approval

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"chorus/internal/chat"
)

var (
	ada   = chat.Principal{Kind: chat.LocalUser, ID: "ada"}
	bob   = chat.Principal{Kind: "discord", ID: "2", Roles: []string{"admin", "player"}}
	cleo  = chat.Principal{Kind: "discord", ID: "3"}
	token = chat.Principal{Kind: chat.TokenHolder, ID: "ci", Roles: []string{"approve"}}
	robot = chat.Principal{Kind: chat.OtherAgent, ID: "helper", Roles: []string{"admin"}}
)

func TestParseWho(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"": "asker, local", "asker": "asker", " anyone ": "anyone", "role:admin": "role:admin", "two": "two",
		"local,role:a,role:b": "local, role:a, role:b", "two of role:admin, asker": "two of asker, role:admin", "two of anyone": "two",
	} {
		w, err := ParseWho(text)
		if err != nil || w.String() != want {
			t.Errorf("%q is %q, %v; want %q", text, w, err, want)
		}
		again, err := ParseWho(w.String())
		if err != nil || again.String() != w.String() {
			t.Errorf("%q does not survive being written: %q, %v", text, again, err)
		}
	}
	for _, text := range []string{"everybody", "role:", "asker,", "two of", "two of ", "two asker", "two,asker"} {
		if w, err := ParseWho(text); err == nil || !strings.Contains(err.Error(), "role:NAME") {
			t.Errorf("%q was read as %q, %v", text, w, err)
		}
	}
}

func TestMayAnswer(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule  string
		asker chat.Principal
		who   chat.Principal
		may   bool
	}{
		{"asker", ada, ada, true},
		{"asker", ada, cleo, false},
		{"asker", ada, chat.Principal{Kind: "discord", ID: "ada"}, false}, // another ada
		{"asker", robot, robot, false},
		{"asker", chat.Principal{Kind: chat.ScheduleRule, ID: "x", For: &cleo}, cleo, true}, // a schedule asks for its owner
		{"asker", chat.Principal{Kind: chat.ScheduleRule, ID: "x", For: &cleo}, bob, false},
		{"asker", chat.Principal{Kind: chat.HookRule, ID: "x", For: &cleo}, cleo, true},
		{"anyone", ada, chat.Principal{Kind: chat.HookRule, ID: "x", For: &cleo}, false},
		{"anyone", robot, robot, false},
		{"anyone", ada, chat.Principal{Kind: chat.TheSystem, ID: "x"}, false},
		{"anyone", ada, chat.Principal{Kind: chat.ScheduleRule, ID: "x"}, false},
		{"anyone", ada, chat.Principal{Kind: chat.TaskWorker, ID: "x"}, false},
		{"anyone", ada, chat.Principal{}, false},
		{"anyone", chat.Principal{}, chat.Principal{}, false},
		{"anyone", ada, chat.Principal{Kind: chat.LocalUser}, false},
		{"anyone", ada, cleo, true},
		{"anyone", ada, token, true},
		{"role:admin", ada, bob, true},
		{"role:admin", ada, ada, false},
		{"role:admin", ada, cleo, false},
		{"role:admin", ada, robot, false}, // a role does not make it a person
		{"role:approve", ada, token, true},
		{"local", bob, ada, true},
		{"local", bob, bob, false},
		{"", bob, bob, true},
		{"", bob, ada, true},
		{"", bob, cleo, false},
		{"two of role:admin", ada, bob, true},
		{"two of role:admin", ada, ada, false},
	} {
		rule, err := ParseWho(c.rule)
		if err != nil {
			t.Fatal(err)
		}
		may, why := MayAnswer(rule, Approval{AskedBy: c.asker}, c.who)
		if may != c.may || may == (why != "") {
			t.Errorf("rule %q, asked by %s, answered by %s: %v %q", c.rule, c.asker, c.who, may, why)
		}
	}
}

func TestWeigh(t *testing.T) {
	t.Parallel()
	yes := func(p chat.Principal) Vote { return Vote{By: p, OK: true} }
	for _, c := range []struct {
		name, rule string
		votes      []Vote
		who        chat.Principal
		ok         bool
		want       State
		refused    bool
	}{
		{"one yes", "anyone", nil, ada, true, Approved, false},
		{"one no", "anyone", nil, ada, false, Refused, false},
		{"the first of two", "two", nil, ada, true, Open, false},
		{"the second of two", "two", []Vote{yes(ada)}, bob, true, Approved, false},
		{"the same person twice", "two", []Vote{yes(ada)}, ada, true, Open, true},
		{"a no after a yes", "two", []Vote{yes(ada)}, bob, false, Refused, false},
		{"somebody thinks again", "two", []Vote{yes(ada)}, ada, false, Refused, false},
		{"a stranger", "two of role:admin", []Vote{yes(bob)}, cleo, true, Open, true},
		{"a stranger's no", "role:admin", nil, cleo, false, Open, true},
		{"a vote that would not count today", "two of role:admin", []Vote{yes(cleo)}, bob, true, Open, false},
		{"an agent", "two", []Vote{yes(ada)}, robot, true, Open, true},
		{"a rule nobody can read", "three", nil, ada, true, Open, true},
	} {
		got, err := Weigh(Approval{Who: c.rule, AskedBy: ada, Votes: c.votes}, c.who, c.ok)
		if got != c.want || c.refused != errors.Is(err, ErrMayNot) || !c.refused && err != nil {
			t.Errorf("%s: %s, %v", c.name, got, err)
		}
	}
}

// However the answers come: a question with four eyes is approved only when two
// different people have said yes, and nobody no.
func TestFourEyes(t *testing.T) {
	t.Parallel()
	people := []chat.Principal{ada, bob, cleo, token, robot, {}}
	rapid.Check(t, func(t *rapid.T) {
		a := Approval{Who: "two", AskedBy: rapid.SampledFrom(people).Draw(t, "asker"), State: Open}
		said := map[string]bool{}
		for range rapid.IntRange(1, 8).Draw(t, "answers") {
			who, ok := rapid.SampledFrom(people).Draw(t, "who"), rapid.Bool().Draw(t, "ok")
			state, err := Weigh(a, who, ok)
			if err != nil {
				continue
			}
			a.Votes = append(a.Votes, Vote{By: who, OK: ok})
			if ok {
				said[who.String()] = true
			}
			a.State = state
			if state != Open {
				break
			}
		}
		if (a.State == Approved) != (len(said) == 2) && a.State != Refused || said[robot.String()] || said[""] {
			t.Fatalf("%s after %+v", a.State, a.Votes)
		}
		if len(said) > 2 {
			t.Fatalf("asked on after two: %+v", a.Votes)
		}
	})
}

// The owner's token is the person at the terminal: it may answer what they may, and
// both together are one of two.
func TestOwnersToken(t *testing.T) {
	t.Parallel()
	terminal := chat.Principal{Kind: chat.LocalUser, ID: "ada"}
	token := chat.Principal{Kind: chat.TokenHolder, ID: "t1", Roles: []string{chat.OwnerRole}}
	other := chat.Principal{Kind: chat.TokenHolder, ID: "t2", Roles: []string{"guest"}}
	asked := Approval{AskedBy: chat.Principal{Kind: "discord", ID: "7"}, Who: "local"}
	if s, err := Weigh(asked, token, true); s != Approved || err != nil {
		t.Errorf("the owner's token: %v %v", s, err)
	}
	if s, err := Weigh(asked, other, true); s != Open || err == nil {
		t.Errorf("another token: %v %v", s, err)
	}
	asked.Who, asked.Votes = "two", []Vote{{By: terminal, OK: true}}
	if s, err := Weigh(asked, token, true); s != Open || err == nil {
		t.Errorf("one person twice: %v %v", s, err)
	}
	if s, err := Weigh(asked, chat.Principal{Kind: chat.LocalUser, ID: "grace"}, true); s != Approved || err != nil {
		t.Errorf("two people: %v %v", s, err)
	}
}
