package operations_test

import (
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"chorus/internal/connector/slash"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/platform"
	"chorus/internal/tool"
	"chorus/internal/tool/operate"
)

// documented are the commands of the document with their arguments.
func documented(t *testing.T) map[string][]string {
	t.Helper()
	data, err := os.ReadFile("testdata/commands.txt")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string][]string{}
	for line := range strings.Lines(string(data)) {
		if words := strings.Fields(line); len(words) > 0 && words[0] != "#" {
			out[words[0]] = words[1:]
		}
	}
	if len(out) != 63 {
		t.Fatalf("%d commands, and the document has 63", len(out))
	}
	return out
}

// Every command of the document is one operation, and everybody can give it: an agent, somebody at a terminal, a program over HTTP,
// somebody in a chat.
func TestNoCommandLacksAWayIn(t *testing.T) {
	t.Parallel()
	chat, err := slash.New(slash.Options{Operations: operations.All(), Groups: operations.Groups()})
	if err != nil {
		t.Fatal(err)
	}
	paths := map[string]bool{}
	var walk func(before string, list []platform.Command)
	walk = func(before string, list []platform.Command) {
		for _, c := range list {
			paths[strings.TrimSpace(before+" "+c.Name)] = true
			walk(strings.TrimSpace(before+" "+c.Name), c.Sub)
		}
	}
	walk("", chat.List())
	tools := map[string]tool.Spec{}
	for _, one := range operate.Tools(operate.Options{Operations: operations.All()}) {
		tools[one.Spec().Name] = one.Spec()
	}
	groups := []string{"project", "task", "repo", "git", "note", "hook", "worker", "system"}
	for name, args := range documented(t) {
		d, ok := operations.All().Tool(name)
		if !ok || d.Tool != name {
			t.Errorf("%s is no operation", name)
			continue
		}
		if len(d.CLI) == 0 || d.CLI[0].Words == "" {
			t.Errorf("%s is no command of the terminal", name)
		}
		if len(d.HTTP) == 0 {
			t.Errorf("%s has no route", name)
		}
		if !slices.ContainsFunc(d.Slash, func(s operation.Slash) bool {
			return paths[s.Words] && slices.Contains(groups, strings.Fields(s.Words)[0])
		}) {
			t.Errorf("%s is no command of the chat", name)
		}
		checkArguments(t, tools[name], args)
	}
}

// checkArguments holds the schema of a tool against the arguments of the document.
func checkArguments(t *testing.T, spec tool.Spec, args []string) {
	t.Helper()
	var schema struct {
		Properties map[string]any
		Required   []string
	}
	if err := json.Unmarshal(spec.Schema, &schema); err != nil {
		t.Errorf("%s: %v", spec.Name, err)
		return
	}
	for _, arg := range args {
		arg, required := strings.CutSuffix(arg, "*")
		if _, ok := schema.Properties[arg]; !ok || required != slices.Contains(schema.Required, arg) {
			t.Errorf("%s takes %s: %v, required: %v", spec.Name, arg, ok, slices.Contains(schema.Required, arg))
		}
	}
	for _, arg := range schema.Required {
		if !slices.Contains(args, arg+"*") {
			t.Errorf("%s demands %s, which the document does not", spec.Name, arg)
		}
	}
}

// Every list is given in pages: those of the commands, and those of what belongs to them.
func TestListsHaveACursor(t *testing.T) {
	t.Parallel()
	lists := []string{"list_workers"}
	for name := range documented(t) {
		if d, ok := operations.All().Tool(name); ok && operation.IsList(reflect.Zero(d.Out).Interface()) {
			lists = append(lists, name)
		}
	}
	if len(lists) < 9 {
		t.Fatalf("only %s are lists", lists)
	}
	for _, name := range lists {
		d, _ := operations.All().Tool(name)
		if _, ok := d.Field("cursor"); !ok {
			t.Errorf("%s has no cursor", name)
		}
		if f, ok := d.Field("limit"); !ok || f.Max == nil || *f.Max > 200 || f.Default == "" {
			t.Errorf("%s gives endless lists", name)
		}
	}
}

// Discord refuses a command with more than 25 subcommands or 25 options, and one whose texts have more than 8,000 characters.
func TestDiscordTakesTheCommands(t *testing.T) {
	t.Parallel()
	chat, err := slash.New(slash.Options{Operations: operations.All(), Groups: operations.Groups()})
	if err != nil {
		t.Fatal(err)
	}
	var size func(platform.Command) int
	size = func(c platform.Command) int {
		n := utf8.RuneCountInString(c.Name) + utf8.RuneCountInString(c.Description)
		for _, o := range c.Options {
			n += utf8.RuneCountInString(o.Name) + utf8.RuneCountInString(o.Description)
			for _, choice := range o.Choices {
				n += utf8.RuneCountInString(choice.Label) + utf8.RuneCountInString(choice.Value)
			}
		}
		for _, sub := range c.Sub {
			n += size(sub)
		}
		return n
	}
	for _, c := range chat.List() {
		if n := size(c); n > 7000 || len(c.Sub) > 25 || len(c.Options) > 25 { // translations are longer
			t.Errorf("/%s has %d characters, %d subcommands, %d options", c.Name, n, len(c.Sub), len(c.Options))
		}
	}
}
