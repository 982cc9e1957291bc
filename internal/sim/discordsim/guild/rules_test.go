package guild

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"chorus/internal/sim/discordsim/apierror"
)

// stillGuild is a guild without sockets, whose events are thrown away.
func stillGuild(t interface{ Fatalf(string, ...any) }, o Settings) *Guild {
	o.Now, o.TimeScale, o.Emit, o.After = time.Now, 1, func(Event) {}, func(time.Duration, func()) {}
	if o.Bots == nil {
		o.Bots = []BotSpec{{Name: "chorus"}}
	}
	if o.People == nil {
		o.People = []PersonSpec{{Name: "ada", Owner: true}, {Name: "bob"}}
	}
	if o.Channels == nil {
		o.Channels = []ChannelSpec{{Name: "general"}}
	}
	g, err := New(o)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return g
}

func TestSnowflakesOnlyGrow(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m, now := mint{}, time.Now()
		last := ID(0)
		for _, step := range rapid.SliceOf(rapid.Int64Range(-5000, 5000)).Draw(t, "steps") {
			now = now.Add(time.Duration(step) * time.Millisecond)
			id := m.next(now)
			if id <= last {
				t.Fatalf("%d comes after %d", id, last)
			}
			last = id
		}
	})
}

func TestHistoryPagesAreComplete(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		g := stillGuild(t, Settings{})
		c := g.ChannelNamed("general")
		ada := g.AccountNamed("ada")
		n := rapid.IntRange(0, 40).Draw(t, "messages")
		var want []ID
		for range n {
			text := "x"
			m, err := g.Send(ada, c, &messageBody{Content: &text})
			if err != nil {
				t.Fatalf("%v", err)
			}
			want = append(want, m.ID)
		}
		for i := rapid.IntRange(0, 5).Draw(t, "deleted"); i > 0 && len(want) > 0; i-- {
			at := rapid.IntRange(0, len(want)-1).Draw(t, "which")
			g.Remove(c, want[at])
			want = slices.Delete(want, at, at+1)
		}
		limit := rapid.IntRange(1, 10).Draw(t, "limit")
		var forward, back []ID
		for after := ID(1); ; {
			page := c.History(limit, 0, after, 0)
			for i := len(page) - 1; i >= 0; i-- {
				forward = append(forward, page[i].ID)
			}
			if len(page) == 0 {
				break
			}
			after = page[0].ID
		}
		for before := ID(0); ; {
			page := c.History(limit, before, 0, 0)
			for _, m := range page {
				back = append(back, m.ID)
			}
			if len(page) == 0 {
				break
			}
			before = page[len(page)-1].ID
		}
		slices.Reverse(back)
		if !slices.Equal(forward, want) || !slices.Equal(back, want) {
			t.Fatalf("of %v the pages forward are %v, those back %v", want, forward, back)
		}
	})
}

func TestLongChainsOfRepliesStaySmall(t *testing.T) {
	t.Parallel()
	g := stillGuild(t, Settings{})
	c, ada := g.ChannelNamed("general"), g.AccountNamed("ada")
	var last *Message
	for range 500 {
		text := "x"
		b := &messageBody{Content: &text}
		if last != nil {
			b.Reference = &Reference{MessageID: last.ID}
		}
		var err error
		if last, err = g.Send(ada, c, b); err != nil {
			t.Fatal(err)
		}
	}
	raw, err := json.Marshal(g.ViewMessage(last, 0, false))
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(raw), `"content"`); n != 2 {
		t.Fatalf("a reply shows %d messages", n)
	}
}

func TestRightsFollowDiscordsOrder(t *testing.T) {
	t.Parallel()
	g := stillGuild(t, Settings{
		People:   []PersonSpec{{Name: "owner", Owner: true}, {Name: "ada", Roles: []string{"crew"}}, {Name: "bob"}, {Name: "eve", Roles: []string{"chief"}}},
		Roles:    []RoleSpec{{Name: "crew"}, {Name: "chief", Permissions: []string{"administrator"}}},
		Channels: []ChannelSpec{{Name: "open"}, {Name: "crew-only", Deny: map[string][]string{"@everyone": {"view_channel"}}, Allow: map[string][]string{"crew": {"view_channel"}}}, {Name: "not-ada", Allow: map[string][]string{"crew": {"send_messages"}}, Deny: map[string][]string{"ada": {"send_messages"}}}},
	})
	for _, tt := range []struct {
		who, where string
		need       Perm
		may        bool
	}{
		{"bob", "open", PermSend, true}, {"bob", "open", PermManageMessages, false},
		{"bob", "crew-only", PermView, false}, {"ada", "crew-only", PermView | PermSend, true},
		{"ada", "not-ada", PermSend, false}, {"ada", "not-ada", PermView, true},
		{"eve", "crew-only", PermManageChannels, true}, {"owner", "not-ada", permAll, true}, {"chorus", "open", PermManageMessages, true},
	} {
		if got := g.Rights(g.AccountNamed(tt.who), g.ChannelNamed(tt.where)).Has(tt.need); got != tt.may {
			t.Errorf("%s in %s, %b: %v", tt.who, tt.where, tt.need, got)
		}
	}
}

func TestFormsAreChecked(t *testing.T) {
	t.Parallel()
	button := func(id string) string {
		return `{"type":1,"components":[{"type":2,"style":1,"label":"x","custom_id":"` + id + `"}]}`
	}
	for _, tt := range []struct{ name, body, at string }{
		{"nonce", `{"content":"x","nonce":"` + strings.Repeat("n", 26) + `"}`, "nonce"},
		{"embed's sum", `{"embeds":[{"description":"` + strings.Repeat("d", 4000) + `"},{"description":"` + strings.Repeat("d", 2001) + `"}]}`, "embeds"},
		{"field without a value", `{"embeds":[{"fields":[{"name":"n"}]}]}`, "embeds"},
		{"the same custom id", `{"components":[` + button("a") + `,` + button("a") + `]}`, "components"},
		{"six rows", `{"components":[` + strings.Join([]string{button("a"), button("b"), button("c"), button("d"), button("e"), button("f")}, ",") + `]}`, "components"},
		{"text with the second version", `{"content":"x","flags":32768,"components":[{"type":10,"content":"y"}]}`, "content"},
		{"the second version without its flag", `{"components":[{"type":10,"content":"y"}]}`, "components"},
		{"forty-one components", `{"flags":32768,"components":[` + strings.TrimSuffix(strings.Repeat(`{"type":10,"content":"y"},`, 41), ",") + `]}`, "components"},
		{"too much text", `{"flags":32768,"components":[{"type":17,"components":[{"type":10,"content":"` + strings.Repeat("y", 3000) + `"},{"type":10,"content":"` + strings.Repeat("y", 1001) + `"}]}]}`, "components"},
		{"a box in a box", `{"flags":32768,"components":[{"type":17,"components":[{"type":17,"components":[{"type":10,"content":"y"}]}]}]}`, "components"},
		{"a button by itself", `{"flags":32768,"components":[{"type":2,"style":1,"label":"x","custom_id":"a"}]}`, "components"},
		{"a section without anything beside it", `{"flags":32768,"components":[{"type":9,"components":[{"type":10,"content":"y"}]}]}`, "components"},
		{"a label in a message", `{"flags":32768,"components":[{"type":18,"label":"x","component":{"type":4,"custom_id":"a","style":1}}]}`, "components"},
		{"a long custom id", `{"flags":32768,"components":[` + button(strings.Repeat("i", 101)) + `]}`, "components"},
		{"mentions both ways", `{"content":"x","allowed_mentions":{"parse":["users"],"users":["1"]}}`, "allowed_mentions"},
		{"wrong type", `{"content":{}}`, "content"},
	} {
		_, err := DecodeMessage([]byte(tt.body), nil)
		e, _ := err.(*apierror.Error)
		if e == nil || e.Code != 50035 || e.Errors[tt.at] == nil {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
	if _, err := DecodeMessage([]byte(`{"content"`), nil); err == nil || err.(*apierror.Error).Code != 50109 {
		t.Errorf("no JSON: %v", err)
	}
}

// A message becomes one of the second version only without its text, and stays one.
func TestEditsToTheSecondVersion(t *testing.T) {
	t.Parallel()
	g := stillGuild(t, Settings{})
	bot, in := g.AccountNamed("chorus"), g.ChannelNamed("general")
	m, err := g.Send(bot, in, TextBody("May I?"))
	if err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		body string
		ok   bool
	}{
		{`{"flags":32768,"components":[{"type":10,"content":"yes"}]}`, false},
		{`{"components":[{"type":10,"content":"yes"}]}`, false},
		{`{"flags":32768,"content":"","components":[{"type":17,"components":[{"type":10,"content":"yes"}]}]}`, true},
		{`{"content":"words again"}`, false},
		{`{"components":[{"type":10,"content":"said"}]}`, true},
	} {
		b, err := DecodeEdit([]byte(step.body), nil)
		if err == nil {
			err = g.Edit(bot, in, m, b)
		}
		if (err == nil) != step.ok {
			t.Errorf("%s: %v", step.body, err)
		}
	}
	if m.Text() != "said" || m.Flags&FlagComponentsV2 == 0 {
		t.Errorf("in the end it says %q", m.Text())
	}
}

func FuzzMessageBody(f *testing.F) {
	for _, seed := range []string{`{"content":"hi <@1>","nonce":1}`, `{"embeds":[{"fields":[{}]}],"components":[{"type":1,"components":[{"type":3}]}]}`,
		`{"flags":32768,"components":[{"type":17,"components":[{"type":9,"accessory":{"type":2}}]}]}`, `{"message_reference":{"message_id":5}}`, `[]`, `{`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		b, err := DecodeMessage(raw, nil)
		if err != nil {
			return
		}
		g := stillGuild(t, Settings{})
		m, err := g.Send(g.AccountNamed("ada"), g.ChannelNamed("general"), b)
		if err != nil {
			return
		}
		shown, err := json.Marshal(g.ViewMessage(m, 0, true))
		if err != nil || !json.Valid(shown) {
			t.Fatalf("a message that was taken cannot be shown: %v", err)
		}
	})
}

func FuzzEmoji(f *testing.F) {
	for _, seed := range []string{"👍", "name:123", "a", "", ":", "1️⃣", "😀😀"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if e, err := ParseEmoji(s); err == nil && e.key() == "" {
			t.Fatalf("%q is an emoji without a name", s)
		}
	})
}

func TestFileName(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"a.txt": "a.txt", "Az09-_.md": "Az09-_.md", "a b.txt": "a_b.txt", "a{b}[c]@d.txt": "abcd.txt", "../../x.png": "x.png", "é.txt": ".txt", "..": "file", "{}": "file",
	} {
		if got := fileName(name); got != want {
			t.Errorf("%q is kept as %q, not %q", name, got, want)
		}
	}
}

func FuzzFileName(f *testing.F) {
	for _, seed := range []string{"a.txt", "../../x", "..", "a b", "é"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if kept := fileName(name); kept == "" || strings.ContainsAny(kept, "/\\") {
			t.Fatalf("%q became %q", name, kept)
		}
	})
}
