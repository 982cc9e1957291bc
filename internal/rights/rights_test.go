package rights

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"chorus/internal/chat"
)

var (
	ada   = chat.Principal{Kind: chat.LocalUser, ID: "ada", Roles: []string{"owner"}}
	boss  = chat.Principal{Kind: "discord", ID: "1", Roles: []string{"admin"}}
	guest = chat.Principal{Kind: "discord", ID: "2"}
	token = chat.Principal{Kind: chat.TokenHolder, ID: "ci", Roles: []string{"chat", "admin"}}
	robot = chat.Principal{Kind: chat.OtherAgent, ID: "helper", Roles: []string{"admin"}}
)

var book = Policy{
	Grants: []Grant{{"local", "open"}, {"discord/role:admin", "standard"}, {"token:ci", "custom"}, {"discord", "guarded"}, {"agent:helper", "locked"}},
	// An agent has a role here, and a token one of the same name.
	Editors: []string{"local", "role:admin"},
	Order:   Presets(),
}

// profiles are the profiles of a principal and of whoever it acts for: all must allow what
// it does. nil: somebody among them has none.
func profiles(p chat.Principal) (out []string) {
	for _, q := range book.Behind(p) {
		g, ok := book.Grant(q)
		if !ok {
			return nil
		}
		out = append(out, g.Profile)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func TestGrants(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		who  chat.Principal
		want string
	}{
		{ada, "open"}, {boss, "standard"}, {guest, "guarded"}, {token, "custom"}, {robot, "locked"},
		{chat.Principal{}, "nothing"},
		{chat.Principal{Kind: chat.LocalUser}, "nothing"},
		{chat.Principal{Kind: chat.TokenHolder, ID: "other", Roles: []string{"admin"}}, "nothing"},
		{chat.Principal{Kind: chat.ScheduleRule, ID: "nightly"}, "nothing"},
	} {
		if got := cmp.Or(strings.Join(profiles(c.who), " and "), "nothing"); got != c.want {
			t.Errorf("%v has %s, want %s", c.who, got, c.want)
		}
	}
}

func TestMayGive(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		profile string
		givers  []chat.Principal
		may     bool
	}{
		{"open", []chat.Principal{ada}, true},
		{"locked", []chat.Principal{ada}, true},
		{"custom", []chat.Principal{ada}, false}, // cannot be compared with what ada has
		{"standard", []chat.Principal{boss}, true},
		{"guarded", []chat.Principal{boss}, false}, // neither is wider
		{"locked", []chat.Principal{boss}, true},
		{"open", []chat.Principal{boss}, false},
		{"locked", []chat.Principal{guest}, false}, // no editor
		{"custom", []chat.Principal{token}, true},
		{"locked", []chat.Principal{token}, false},
		{"standard", []chat.Principal{ada, boss}, true},
		{"open", []chat.Principal{ada, boss}, false},
		{"locked", []chat.Principal{ada, guest}, false},
		{"locked", nil, false},
		{"", []chat.Principal{ada}, false},
		{"open", []chat.Principal{{}}, false},
	} {
		may, why := book.MayGive(c.profile, c.givers...)
		if may != c.may || may == (why != "") {
			t.Errorf("%q by %v: %v %q", c.profile, c.givers, may, why)
		}
	}
}

// Below the profile that allows everything stands every other, also one nobody compared.
func TestWidest(t *testing.T) {
	t.Parallel()
	b := book
	b.Widest = "open"
	for profile, want := range map[string]bool{"custom": true, "open": true, "standard": true, "": false} {
		if may, why := b.MayGive(profile, ada); may != want {
			t.Errorf("%q: %v %s", profile, may, why)
		}
	}
	if b.Narrower("open", "standard") || b.Narrower("custom", "standard") {
		t.Error("open is not narrower than anything")
	}
}

func people() *rapid.Generator[chat.Principal] {
	return rapid.SampledFrom([]chat.Principal{ada, boss, guest, token, robot, {}, {Kind: chat.ScheduleRule, ID: "x"}, {Kind: chat.HookRule, ID: "x"}})
}

// What somebody may give is never wider than what each of the givers has.
func TestGivenNeverExceeds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		givers := rapid.SliceOfN(people(), 1, 4).Draw(t, "givers")
		profile := rapid.SampledFrom([]string{"open", "standard", "guarded", "locked", "custom", "other"}).Draw(t, "profile")
		may, _ := book.MayGive(profile, givers...)
		if !may {
			return
		}
		for _, p := range givers {
			for _, has := range profiles(p) {
				if !book.Narrower(profile, has) || profile != has && book.Narrower(has, profile) {
					t.Fatalf("%s has %s and gave %s", p, has, profile)
				}
			}
			if again, _ := book.MayGive(profile, p); !again {
				t.Fatalf("%s alone may not give what they may give together", p)
			}
		}
	})
}

// Whoever acts for somebody never may, nor gives, more than they; whoever is added to
// the chain never widens.
func TestActingForSomebody(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		who  chat.Principal
		want string
	}{
		{acting(robot, boss), "locked and standard"},
		{acting(chat.Principal{Kind: chat.TaskWorker, ID: "7"}, guest), "guarded"},                                                     // no grant of its own
		{acting(chat.Principal{Kind: chat.HookRule, ID: "h"}, acting(chat.Principal{Kind: chat.HookRule, ID: "g"}, guest)), "guarded"}, // hooks that trigger each other
		{acting(chat.Principal{Kind: chat.TokenHolder, ID: "other"}, ada), "nothing"},
		{acting(chat.Principal{Kind: chat.TaskWorker, ID: "7"}, chat.Principal{}), "nothing"},
		{acting(chat.Principal{}, ada), "nothing"},
	} {
		if got := cmp.Or(strings.Join(profiles(c.who), " and "), "nothing"); got != c.want {
			t.Errorf("%v has %s, want %s", c.who, got, c.want)
		}
	}
	round := chat.Principal{Kind: chat.OtherAgent, ID: "helper"}
	round.For = &round
	if got := profiles(round); got != nil {
		t.Errorf("whoever acts for itself has %s", got)
	}
	rapid.Check(t, func(t *rapid.T) {
		origin := people().Draw(t, "origin")
		who := origin
		for range rapid.IntRange(1, 4).Draw(t, "deep") {
			next := acting(people().Draw(t, "acting"), who)
			if has := profiles(next); has != nil {
				for _, p := range slices.Concat(profiles(who), profiles(origin)) {
					if !slices.Contains(has, p) {
						t.Fatalf("%v has %s, behind it is %s", next, has, profiles(who))
					}
				}
			}
			profile := rapid.SampledFrom([]string{"open", "standard", "guarded", "locked", "custom"}).Draw(t, "profile")
			if may, _ := book.MayGive(profile, next); may {
				if origins, why := book.MayGive(profile, origin); !origins {
					t.Fatalf("%v gives %s, but %s", next, profile, why)
				}
			}
			who = next
		}
	})
}

func acting(who, behind chat.Principal) chat.Principal {
	who.For = &behind
	return who
}

// Only editors could take rights away.
func TestLessNeedsNoEditor(t *testing.T) {
	t.Parallel()
	b := Policy{Grants: []Grant{{"discord", "standard"}}, Editors: []string{"local"}, Order: Presets(), Widest: "open"}
	guest, nobody := chat.Principal{Kind: "discord", ID: "2"}, chat.Principal{Kind: "token", ID: "x"}
	for _, c := range []struct {
		from, to string
		who      []chat.Principal
		want     bool
	}{
		{"open", "standard", []chat.Principal{guest}, true},
		{"open", "guarded", []chat.Principal{guest}, true},
		{"standard", "locked", []chat.Principal{guest, guest}, true},
		{"standard", "standard", []chat.Principal{guest}, false},
		{"standard", "guarded", []chat.Principal{guest}, false}, // allows something else
		{"locked", "standard", []chat.Principal{guest}, false},
		{"", "locked", []chat.Principal{guest}, false},
		{"open", "locked", []chat.Principal{guest, nobody}, false},
		{"open", "locked", nil, false},
	} {
		if may, why := b.MayChange(c.from, c.to, c.who...); may != c.want || may == (why != "") {
			t.Errorf("%s to %s: %v, %q", c.from, c.to, may, why)
		}
	}
}

// Whoever acts on the words of several may do what each of them may, however deep in the chain they stand.
func TestAllOnWhoseWordsItActsCount(t *testing.T) {
	b := Policy{Grants: []Grant{{To: "local", Profile: "open"}, {To: "discord", Profile: "standard"}}}
	ada, bob := chat.Principal{Kind: chat.LocalUser, ID: "ada"}, chat.Principal{Kind: "discord", ID: "bob"}
	child := chat.Acting(chat.OtherAgent, "lead", []chat.Principal{ada, bob})
	grandchild := chat.Acting(chat.OtherAgent, "helper", []chat.Principal{child})
	for _, p := range []chat.Principal{child, grandchild} {
		var got []string
		for _, who := range b.Behind(p) {
			got = append(got, who.String())
		}
		if strings.Join(got, " ") != "discord:bob local:ada" {
			t.Errorf("%v", got)
		}
	}
	if child.Same(chat.Acting(chat.OtherAgent, "lead", []chat.Principal{ada})) {
		t.Error("it is the same without one of them")
	}
	if grandchild.Person().ID != "ada" {
		t.Errorf("%v pays", grandchild.Person())
	}
}
