package pins

import (
	"strings"
	"testing"

	"chorus/internal/config"
	"chorus/internal/room"
)

var (
	ada = room.Author{ID: "1", Name: "ada", Member: true}
	bo  = room.Author{ID: "2", Name: "bo", Member: true, Roles: []string{"Admin"}}
	me  = room.Author{ID: "900", Name: "claude", Bot: true}
	bot = room.Author{ID: "5", Name: "feed", Bot: true}
)

func pin(id string, by room.Author, text string) Pin {
	return Pin{Message: room.Message{ID: id, Author: by, Text: text}}
}

func TestMay(t *testing.T) {
	t.Parallel()
	agent := room.Agent{User: "900"}
	for _, c := range []struct {
		name string
		who  Who
		by   room.Author
		want bool
	}{
		{"no rule, a person", Who{Agent: agent}, ada, true},
		{"no rule, a program", Who{Agent: agent}, bot, false},
		{"itself", Who{Agent: agent, Roles: []string{"admin"}}, me, true},
		{"without the role", Who{Roles: []string{"admin"}}, ada, false},
		{"with the role", Who{Roles: []string{"admin"}}, bo, true},
		{"a role of no member", Who{Roles: []string{"admin"}}, room.Author{ID: "3", Roles: []string{"admin"}}, false},
		{"who administers the server", Who{Roles: []string{"admin"}}, room.Author{ID: "4", Member: true, Admin: true}, true},
		{"a program that does", Who{Roles: []string{"admin"}}, room.Author{ID: "6", Bot: true, Member: true, Admin: true}, false},
		{"by name", Who{Users: []string{"1"}}, ada, true},
		{"not by name", Who{Users: []string{"1"}}, bo, false},
		{"a program by name", Who{Users: []string{"5"}}, bot, true},
	} {
		if got := c.who.May(c.by); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

func TestCounting(t *testing.T) {
	t.Parallel()
	const text = ".config claude\n---\nmaxTokens: 5"
	parent := pin("90", bo, text)
	parent.Above = 1
	moved := pin("40", bo, text)
	moved.By = &ada
	count, refused := Counting([]Pin{
		pin("100", bo, text), pin("30", bo, text), parent, pin("50", ada, text), moved, pin("60", bo, "a nice cat"), pin("70", bo, ".configuration"),
	}, Who{Roles: []string{"Admin"}})
	var ids []string
	for _, p := range count {
		ids = append(ids, p.Message.ID)
	}
	if got := strings.Join(ids, " "); got != "90 30 100" {
		t.Error(got)
	}
	if len(refused) != 2 || !strings.Contains(refused[0].Why, "ada, who wrote it") || !strings.Contains(refused[1].Why, "ada, who pinned it") || !strings.Contains(refused[0].Why, "role Admin") {
		t.Errorf("%+v", refused)
	}
}

// TestTheConfigurationReadsThem: B2 and B12 end to end, with the rules of the layers.
func TestTheConfigurationReadsThem(t *testing.T) {
	t.Parallel()
	count, _ := Counting([]Pin{
		pin("3", ada, ".config other\n---\ntemperature: 0.95"), pin("2", ada, ".config\n---\ntemperature: 0.9"), pin("4", ada, ".config other claude\n---\nmaxTokens: 5"),
	}, Who{})
	var given []config.Pin
	for _, p := range count {
		given = append(given, config.Pin{ID: p.Message.ID, Text: p.Message.Text, Parent: p.Above > 0})
	}
	bot, problems := config.Load(config.Options{Dir: t.TempDir(), Env: func(string) string { return "" }}, config.Ask{Bot: "claude", Pins: given})
	if bot == nil || bot.Temperature == nil || *bot.Temperature != 0.9 || bot.MaxTokens != 5 {
		t.Errorf("%+v %v", bot, problems)
	}
}
