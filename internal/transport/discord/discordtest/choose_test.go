package discordtest

import (
	"slices"
	"strings"
	"testing"

	"chorus/internal/connector/commands"
	"chorus/internal/platform"
	"chorus/internal/sim/discordsim"
)

// chooses chooses from a list and waits for words in its place.
func (g *guildT) chooses(who string, on discordsim.Message, list, value, want string) discordsim.Message {
	g.Helper()
	if _, err := g.Click(who, on.ID, list, value); err != nil {
		g.Fatal(err)
	}
	return g.message(want, func(m discordsim.Message) bool { return m.ID == on.ID && strings.Contains(m.Text(), want) })
}

// The model, what an agent may do and which agent had to be typed; now they are chosen from lists.
func TestSettingsAreChosen(t *testing.T) {
	t.Parallel()
	g := inGuild(t, discordsim.Options{}, map[string]string{})
	g.commandShows("ada", "agent init", map[string]any{"name": "helper", "model": "demo/script"}, "is ready")
	show := g.command("ada", "general", "settings show", nil)
	if !slices.Equal(show.CustomIDs(), []string{"c1:set:/model", "c1:set:/permissions"}) {
		t.Fatalf("%v", show.CustomIDs())
	}
	g.chooses("ada", show, "c1:set:/model", "demo/echo", "model of this server is now `demo/echo`")
	list := g.command("ada", "general", "agent list", nil)
	one := g.chooses("ada", list, "c1:agent:list", "helper", "- model: `demo/script`")
	g.chooses("ada", one, "c1:set:helper/permissions", "locked", "permissions of **helper** is now `locked`")
	routing := g.command("ada", "general", "agent config", map[string]any{"name": "helper", "key": "routing"})
	g.chooses("ada", routing, "c1:set:helper/routing", "thread", "routing of **helper** is now `thread`")
	g.commandShows("ada", "agent config", map[string]any{"name": "helper", "key": "routing"}, "is `thread`")
}

// freeText are options in which anything may stand: there is no list that could be proposed.
var freeText = []string{"ask/prompt", "agent/init/name", "agent/init/prompt", "cost/since", "context/save/description", "why/message"}

// Every option whose values are a list proposes them while somebody types.
func TestOptionsAreCompleted(t *testing.T) {
	t.Parallel()
	var free []string
	var walk func(c platform.Command, path string)
	walk = func(c platform.Command, path string) {
		for _, sub := range c.Sub {
			walk(sub, path+"/"+sub.Name)
		}
		for _, o := range c.Options {
			if o.Kind == platform.Text && !o.Completes && len(o.Choices) == 0 {
				free = append(free, path+"/"+o.Name)
			}
		}
	}
	for _, c := range (&commands.Set{}).List() {
		walk(c, c.Name)
	}
	slices.Sort(free)
	want := slices.Sorted(slices.Values(freeText))
	if !slices.Equal(free, want) {
		t.Errorf("nothing is proposed for %v; only %v are free text", free, want)
	}
}
