package room

import (
	"slices"
	"testing"

	"chorus/internal/chat"
)

func TestAuthors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in      Author
		program bool
		want    chat.Participant
	}{
		{Author{ID: "1", Name: "ada"}, false, chat.Participant{ID: "1", Name: "ada", Kind: chat.Person}},
		{Author{ID: "2", Name: "helper", Bot: true}, true, chat.Participant{ID: "2", Name: "helper", Kind: chat.Bot}},
		{Author{ID: "3", Name: "ci", Webhook: "3"}, true, chat.Participant{ID: "3", Name: "ci", Kind: chat.Bot}},
		{Author{ID: "3", Name: "Ada[oblique:42]", Webhook: "3", Bot: true}, false, chat.Participant{ID: "3", Name: "Ada", Kind: chat.Person}},
		{Author{ID: "4", Name: "Ada[oblique:42]"}, false, chat.Participant{ID: "4", Name: "Ada[oblique:42]", Kind: chat.Person}},
	} {
		if got := c.in.Participant(); got != c.want || c.in.Program() != c.program {
			t.Errorf("%+v: %+v, a program: %v", c.in, got, c.in.Program())
		}
	}
}

func TestKinds(t *testing.T) {
	t.Parallel()
	for kind, want := range map[Kind][2]bool{ // whether it is known, and whether it comes from the platform
		Said: {true, true}, Reacted: {true, true}, Edited: {true, true}, Deleted: {true, true},
		SelfActivation: {true, false}, Timer: {true, false}, Internal: {true, false}, "nonsense": {false, false}, "": {false, false},
	} {
		if got := [2]bool{kind.Known(), kind.FromPlatform()}; got != want {
			t.Errorf("%q: known and from the platform are %v", kind, got)
		}
	}
}

func TestAddressed(t *testing.T) {
	t.Parallel()
	a := Agent{Name: "opus", User: "9", Username: "Opus Bot", InnerName: "Inner", Aliases: []string{"Op"}}
	for targets, want := range map[string]bool{
		"": true, " ": true, "inner": true, "other inner": true, "@OPUS": true, "Opus Bot": true, "<@9>": true, "<@!9>": true, "op": true,
		"other": false, "inn": false, "<@8>": false, "uration": false,
	} {
		if a.Addressed(targets) != want {
			t.Errorf("%q: %v", targets, !want)
		}
	}
	if got := a.Names(); !slices.Equal(got, []string{"Inner", "opus", "Opus Bot", "Op"}) {
		t.Error(got)
	}
}

func TestWrote(t *testing.T) {
	t.Parallel()
	a := Agent{User: "9", Webhooks: []string{"77"}}
	for _, c := range []struct {
		by   Author
		want bool
	}{{Author{ID: "9"}, true}, {Author{ID: "77", Webhook: "77"}, true}, {Author{ID: "9", Webhook: "78"}, false}, {Author{ID: "8"}, false}} {
		if a.Wrote(c.by) != c.want {
			t.Errorf("%+v: %v", c.by, !c.want)
		}
	}
	if (Agent{}).Wrote(Author{}) || (Agent{}).Mentioned(Message{Mentions: []string{""}}) {
		t.Error("an agent without a user is nobody")
	}
	if !(Agent{Role: "5"}).Mentioned(Message{Roles: []string{"5"}}) || (Agent{}).Mentioned(Message{Roles: []string{""}}) {
		t.Error("a role that is the agent's own")
	}
}

func TestOlder(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		want bool
	}{{"9", "10", true}, {"10", "9", false}, {"10", "10", false}, {"0009", "10", true}, {"99999999999999999998", "99999999999999999999", true}} {
		if Older(c.a, c.b) != c.want {
			t.Errorf("%s before %s: %v", c.a, c.b, !c.want)
		}
	}
}

func TestDotCommands(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{".history": true, ".history x\n---": true, ".config\n---\nx: 1": true, ".configuration": false, " .history": false, ".x": false, ".historyé": false} {
		if IsDotCommand(text) != want {
			t.Errorf("%q: %v", text, !want)
		}
	}
}

func TestPlaces(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		in   Channel
		want string
	}{{Channel{Guild: "1", ID: "2"}, "1/2"}, {Channel{Guild: "1", ID: "3", Parent: "2"}, "1/2"}, {Channel{ID: "5"}, "@me/5"},
		{Channel{Guild: "1", ID: "3", Parent: "2", Private: true}, "1/2/3"}} {
		if got := c.in.Place(); got != c.want {
			t.Errorf("%+v: %s", c.in, got)
		}
		in := c.in.Home()
		if c.in.Private {
			in = c.in.ID
		}
		if guild, home, at := PlaceParts(c.want); c.in.Guild != "" && guild != c.in.Guild || home != c.in.Home() || at != in {
			t.Errorf("%s is %s, %s, %s", c.want, guild, home, at)
		}
	}
}
