package rights

import (
	"slices"
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

func TestOf(t *testing.T) {
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
		if got := book.Of(c.who).String(); got != c.want {
			t.Errorf("%v has %s, want %s", c.who, got, c.want)
		}
	}
}

func TestEffective(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		sender, channel, agent []string
		want                   string
	}{
		{[]string{"open"}, nil, []string{"open"}, "open"},
		{[]string{"open"}, []string{"guarded"}, []string{"standard"}, "guarded and open and standard"},
		{nil, []string{"open"}, []string{"open"}, "nothing"},
		{[]string{"open"}, []string{"open"}, nil, "nothing"},
	} {
		if got := Effective(c.sender, c.channel, c.agent).String(); got != c.want {
			t.Errorf("%v: %s", c, got)
		}
	}
	if (Rights{}).String() != "everything" || book.OfRun().String() != "nothing" {
		t.Error("the empty sums are wrong")
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
	return rapid.SampledFrom([]chat.Principal{ada, boss, guest, token, robot, {}, {Kind: chat.ScheduleRule, ID: "x"}})
}

// Another sender never widens; order and repetition do not matter.
func TestRunsOfMany(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		some := rapid.SliceOfN(people(), 1, 6).Draw(t, "senders")
		r := book.OfRun(some...)
		more := people().Draw(t, "another")
		wider := book.OfRun(append(slices.Clone(some), more)...)
		if !wider.Within(r) || !wider.Within(book.Of(more)) {
			t.Fatalf("%s widened %s to %s", more, r, wider)
		}
		if got := book.OfRun(rapid.Permutation(some).Draw(t, "order")...); got.String() != r.String() {
			t.Fatalf("another order gives %s, not %s", got, r)
		}
		if got := book.OfRun(append(slices.Clone(some), some...)...); got.String() != r.String() {
			t.Fatalf("twice gives %s, not %s", got, r)
		}
	})
}

// The sum of sender, channel and agent is within each of them, whatever the order.
func TestSums(t *testing.T) {
	t.Parallel()
	profiles := rapid.SliceOfN(rapid.SampledFrom([]string{"open", "standard", "guarded", "a", "b"}), 0, 3)
	rapid.Check(t, func(t *rapid.T) {
		s, c, a := profiles.Draw(t, "sender"), profiles.Draw(t, "channel"), profiles.Draw(t, "agent")
		r := Effective(s, c, a)
		for _, part := range [][]string{s, c, a} {
			if !r.Within(Of(part...)) {
				t.Fatalf("%s is not within %v", r, part)
			}
		}
		if got := Effective(a, c, s); got.String() != r.String() {
			t.Fatalf("%s and %s", got, r)
		}
		if got := r.And(r); got.String() != r.String() {
			t.Fatalf("%s with itself is %s", r, got)
		}
		if !None().Within(r) || r.Within(None()) != r.Nothing() {
			t.Fatalf("%s against nothing", r)
		}
	})
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
			for _, has := range book.Of(p).Profiles() {
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
		{acting(chat.Principal{Kind: chat.TaskWorker, ID: "7"}, guest), "guarded"}, // no grant of its own
		{acting(chat.Principal{Kind: chat.TokenHolder, ID: "other"}, ada), "nothing"},
		{acting(chat.Principal{Kind: chat.TaskWorker, ID: "7"}, chat.Principal{}), "nothing"},
		{acting(chat.Principal{}, ada), "nothing"},
	} {
		if got := book.Of(c.who).String(); got != c.want {
			t.Errorf("%v has %s, want %s", c.who, got, c.want)
		}
	}
	round := chat.Principal{Kind: chat.OtherAgent, ID: "helper"}
	round.For = &round
	if got := book.Of(round); !got.Nothing() {
		t.Errorf("whoever acts for itself has %s", got)
	}
	rapid.Check(t, func(t *rapid.T) {
		origin := people().Draw(t, "origin")
		who := origin
		for range rapid.IntRange(1, 4).Draw(t, "deep") {
			next := acting(people().Draw(t, "acting"), who)
			if !book.Of(next).Within(book.Of(who)) || !book.Of(next).Within(book.Of(origin)) {
				t.Fatalf("%v has %s, behind it is %s", next, book.Of(next), book.Of(who))
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
