package operations_test

import (
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"chorus/internal/connector/slash"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/platform"
	"chorus/internal/tool"
	"chorus/internal/tool/operate"
	"chorus/internal/transport/cli"
	"chorus/internal/transport/http/api"
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

// faces are the ways in which operations can be asked for, as they are derived from the definitions.
type faces struct {
	tools map[string]tool.Spec
	lines map[string]bool // of the terminal: "task stop"
	http  map[string]bool // ids of routes
	chat  map[string]bool // "task stop"
}

func facesOf(t *testing.T, set *operation.Set) faces {
	t.Helper()
	out := faces{map[string]tool.Spec{}, map[string]bool{}, map[string]bool{}, map[string]bool{}}
	for _, one := range operate.Tools(operate.Options{Operations: set}) {
		out.tools[one.Spec().Name] = one.Spec()
	}
	asJSON, root := false, &cobra.Command{Use: "chorus"}
	cli.New(cli.Options{JSON: &asJSON, Usage: func(err error) error { return err }}).AddAll(root, set, nil)
	var commands func(before string, list []*cobra.Command)
	commands = func(before string, list []*cobra.Command) {
		for _, c := range list {
			words := strings.TrimSpace(before + " " + c.Name())
			out.lines[words] = c.Runnable()
			commands(words, c.Commands())
		}
	}
	commands("", root.Commands())
	routes, err := api.New(api.Options{Executor: operation.NewLocal(operation.LocalOptions{Operations: set})})
	if err != nil {
		t.Fatal(err)
	}
	text, err := routes.DocumentJSON()
	var doc struct {
		Paths map[string]map[string]struct{ OperationID string }
	}
	if err != nil || json.Unmarshal(text, &doc) != nil {
		t.Fatal("there is no document: ", err)
	}
	for _, methods := range doc.Paths {
		for _, one := range methods {
			out.http[one.OperationID] = true
		}
	}
	chat, err := slash.New(slash.Options{Operations: set, Groups: operations.Groups()})
	if err != nil {
		t.Fatal(err)
	}
	var walk func(before string, list []platform.Command)
	walk = func(before string, list []platform.Command) {
		for _, c := range list {
			out.chat[strings.TrimSpace(before+" "+c.Name)] = true
			walk(strings.TrimSpace(before+" "+c.Name), c.Sub)
		}
	}
	walk("", chat.List())
	return out
}

// lacks says which ways in a command does not have; "": it has all.
func (f faces) lacks(set *operation.Set, name string) string {
	d, ok := set.Tool(name)
	if !ok || d.Tool != name {
		return "operation"
	}
	groups := []string{"project", "task", "repo", "git", "note", "hook", "worker", "system"}
	var out []string
	for way, there := range map[string]bool{
		"tool": f.tools[name].Name == name,
		"line": slices.ContainsFunc(d.CLI, func(c operation.CLI) bool { return f.lines[c.Words] }),
		"http": slices.ContainsFunc(d.HTTP, func(h operation.HTTP) bool { return f.http[h.ID] }),
		"chat": slices.ContainsFunc(d.Slash, func(s operation.Slash) bool {
			return f.chat[s.Words] && slices.Contains(groups, strings.Fields(s.Words)[0])
		}),
	} {
		if !there {
			out = append(out, way)
		}
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// Every command of the document is one operation, and everybody can give it: an agent, somebody at a terminal, a program over HTTP,
// somebody in a chat.
func TestNoCommandLacksAWayIn(t *testing.T) {
	t.Parallel()
	f := facesOf(t, operations.All())
	for name, args := range documented(t) {
		if missing := f.lacks(operations.All(), name); missing != "" {
			t.Errorf("%s has no %s", name, missing)
			continue
		}
		checkArguments(t, f.tools[name], args)
	}
	if missing := f.lacks(operations.All(), "resolve_conflict"); missing != "" {
		t.Errorf("resolve_conflict has no %s", missing)
	}
}

// A way in that a definition loses is missed.
func TestALostWayInIsSeen(t *testing.T) {
	t.Parallel()
	for way, lose := range map[string]func(*operation.Info){
		"line": func(i *operation.Info) { i.CLI = nil }, "http": func(i *operation.Info) { i.HTTP = nil }, "chat": func(i *operation.Info) { i.Slash = nil },
		"operation": func(i *operation.Info) { i.Tool = "" },
	} {
		var list []operation.Any
		for _, d := range operations.All().All() {
			if d.Tool == "stop_task" {
				changed := *d
				lose(&changed.Info)
				d = &changed
			}
			list = append(list, d)
		}
		set := operation.Collect(list)
		if got := facesOf(t, set).lacks(set, "stop_task"); got != way {
			t.Errorf("without its %s stop_task is said to lack %q", way, got)
		}
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
