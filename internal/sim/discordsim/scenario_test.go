package discordsim

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"chorus/internal/sim/discordsim/guild"
)

// TestTheGuidesScenarioPlays plays the example of the guide to its end, with a bot that answers.
func TestTheGuidesScenarioPlays(t *testing.T) {
	t.Parallel()
	guide := must[[]byte](t)(os.ReadFile(filepath.Join("..", "..", "..", "docs", "guides", "discord-sim.md")))
	_, rest, _ := strings.Cut(string(guide), "```yaml\n")
	example, _, found := strings.Cut(rest, "```")
	if !found {
		t.Fatal("the guide has no scenario")
	}
	o := must[Options](t)(ParseScenario([]byte(example)))
	s := StartT(t, o)
	plans := "/channels/" + s.Channel("plans").String() + "/messages"
	if status, body, _ := ask(t, s, "helper", "POST", plans, object{"content": "let us begin"}); status != 200 {
		t.Fatal(body)
	}
	ok(t, s.WaitScript(within(t)))
	list := must[[]guild.Message](t)(s.Messages("plans"))
	last := list[len(list)-1]
	if last.Content != "are you still there?" || last.Reference == nil {
		t.Fatalf("it ended with %+v", last)
	}
	answer := must[guild.Message](t)(s.WaitMessage(within(t), func(m guild.Message) bool { return m.ID == last.Reference.MessageID }))
	if answer.Author.Username != "helper" || len(answer.Reactions) != 1 {
		t.Fatalf("the answer is %+v", answer)
	}
	if _, err := s.Say("ada", "vault", "as the owner I may"); err != nil {
		t.Fatal(err)
	}
}

func TestScenariosThatAreWrong(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ text, says string }{
		{"script: [{as: ada, in: general}]", "does one thing"},
		{"script: [{say: hi, in: general}]", "as: NAME"},
		{"script: [{as: ada, say: hi}]", "in: CHANNEL"},
		{"script: [{as: ada, react: x}]", "on: LABEL"},
		{"script: [{as: ada, in: general, say: hi, after: soon}]", "soon"},
		{"channel: []", "channel"},
	} {
		if _, err := ParseScenario([]byte(tt.text)); err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v", tt.text, err)
		}
	}
	for _, tt := range []struct {
		o    Options
		says string
	}{
		{Options{People: []guild.PersonSpec{{Name: "ada"}, {Name: "ada"}}}, "name of their own"},
		{Options{People: []guild.PersonSpec{{Name: "ada", Roles: []string{"x"}}}}, `no role "x"`},
		{Options{Channels: []guild.ChannelSpec{{Name: "a", Type: "cave"}}}, `no type "cave"`},
		{Options{Channels: []guild.ChannelSpec{{Name: "a", Deny: map[string][]string{"x": {"view_channel"}}}}}, `called "x"`},
		{Options{Bots: []guild.BotSpec{{Name: "b", Permissions: &[]string{"fly"}}}}, `no permission "fly"`},
		{Options{Script: []Step{{As: "nobody", In: "general", Say: "x"}}}, `nobody called "nobody"`},
		{Options{TimeScale: -1}, "backwards"},
	} {
		if _, err := New(tt.o, "http://test"); err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%q: %v", tt.says, err)
		}
	}
}

func FuzzScenario(f *testing.F) {
	f.Add([]byte("guild: x\nscript:\n  - {as: ada, in: general, say: hi, after: 1s}\n"))
	f.Add([]byte("channels: [{name: a, type: forum, deny: {'@everyone': [view_channel]}}]\n"))
	f.Add([]byte("roles: [{name: x, permissions: [nothing]}]"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		o, err := ParseScenario(raw)
		if err != nil {
			return
		}
		if s, err := New(o, "http://test"); err == nil && len(s.List().Channels) == 0 {
			t.Fatal("a guild without channels was built")
		}
	})
}
