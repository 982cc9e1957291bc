package cli_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"chorus/internal/chat"
	"chorus/internal/operation"
	"chorus/internal/transport/cli"
)

type cups interface {
	List(context.Context, operation.Caller, query) (operation.List[cup], error)
	Create(context.Context, operation.Caller, newCup) (cup, error)
	Break(context.Context, operation.Caller, ref) (operation.None, error)
	Fill(context.Context, operation.Caller, filling) (cup, error)
	Pour(context.Context, operation.Caller, ref) (operation.File, error)
	Watch(context.Context, operation.Caller, ref) iter.Seq2[cup, error]
}

type cup struct {
	Name string    `json:"name"`
	Size int       `json:"size"`
	Made time.Time `json:"made,omitzero"`
}

type query struct {
	Colour string    `json:"colour,omitempty" enum:"red,green"`
	Since  time.Time `json:"since,omitzero" doc:"not older"`
	Cursor string    `json:"cursor,omitempty" maxLen:"9" cli:"-" doc:"next"`
	Limit  int       `json:"limit,omitempty" min:"1" max:"2" default:"50"`
}

type newCup struct {
	Name  string   `json:"name" minLen:"2" maxLen:"9" doc:"its name"`
	Size  int      `json:"size,omitempty" min:"1" max:"9" cli:"size,s" doc:"how large"`
	Tags  []string `json:"tags,omitempty" maxItems:"3" doc:"words"`
	Empty bool     `json:"isEmpty,omitempty" doc:"without tea"`
	Words string   `json:"words,omitempty" maxLen:"99" doc:"what stands on it"`
	Key   string   `json:"-" key:"true"`
}

type ref struct {
	Name string `json:"name" maxLen:"9" noun:"cup"`
}

type filling struct {
	Name string         `json:"name" maxLen:"9" noun:"cup"`
	File operation.File `json:"-"`
}

var (
	list = operation.New(operation.Info{Name: "cup.list", Help: "List cups", CLI: []operation.CLI{{Words: "cup list"}},
		Columns: "CUP=name | SIZE=size", Empty: "there are none"}, cups.List)
	create = operation.New(operation.Info{Name: "cup.create", Help: "Create a cup", Effect: operation.Creates,
		CLI:  []operation.CLI{{Words: "cup create", Args: "NAME [WORDS…]"}, {Words: "cup small create", Args: "NAME", Set: map[string]any{"size": 1}, Alias: "make"}},
		Done: "{name} is ready"}, cups.Create)
	breaks = operation.New(operation.Info{Name: "cup.break", Help: "Break a cup", Effect: operation.Destroys, CLI: []operation.CLI{{Words: "cup break", Args: "NAME"}}}, cups.Break)
	fill   = operation.NewUpload(operation.Info{Name: "cup.fill", Help: "Fill a cup", CLI: []operation.CLI{{Words: "cup fill", Args: "NAME FILE"}}}, cups.Fill)
	pour   = operation.NewDownload(operation.Info{Name: "cup.pour", Help: "Pour a cup", CLI: []operation.CLI{{Words: "cup pour", Args: "NAME"}}}, cups.Pour)
	watch  = operation.NewStream(operation.Info{Name: "cup.watch", Help: "Watch a cup", CLI: []operation.CLI{{Words: "cup watch", Args: "NAME"}}}, cups.Watch, operation.Wire[cup]{})
	all    = operation.Collect([]operation.Any{list, create, breaks, fill, pour, watch, operation.Names})
)

// cupboard notes what it was asked.
type cupboard struct{ asked []string }

var _ cups = (*cupboard)(nil)

func (c *cupboard) note(what string, in any) {
	c.asked = append(c.asked, fmt.Sprintf("%s%+v", what, in))
}

// List has five cups, and gives at most two at once.
func (c *cupboard) List(_ context.Context, _ operation.Caller, in query) (out operation.List[cup], _ error) {
	c.note("list", in)
	if in.Colour == "red" {
		return out, nil
	}
	start := len(in.Cursor)
	for n := start; n < min(5, start+in.Limit); n++ {
		out.Items = append(out.Items, cup{Name: fmt.Sprintf("cup%d", n), Size: n})
	}
	if end := start + len(out.Items); end < 5 {
		out.Next = strings.Repeat("x", end)
	}
	return out, nil
}

func (c *cupboard) Create(_ context.Context, _ operation.Caller, in newCup) (cup, error) {
	c.note("create", in)
	return cup{Name: in.Name, Size: in.Size}, nil
}

func (c *cupboard) Break(_ context.Context, _ operation.Caller, in ref) (operation.None, error) {
	c.note("break", in)
	return operation.None{}, nil
}

func (c *cupboard) Fill(_ context.Context, _ operation.Caller, in filling) (cup, error) {
	data, err := io.ReadAll(in.File)
	return cup{Name: in.File.Name, Size: len(data)}, errors.Join(err, in.File.Close())
}

func (c *cupboard) Pour(_ context.Context, _ operation.Caller, in ref) (operation.File, error) {
	return operation.Upload("", strings.NewReader("tea of "+in.Name)), nil
}

func (c *cupboard) Watch(_ context.Context, _ operation.Caller, in ref) iter.Seq2[cup, error] {
	return func(yield func(cup, error) bool) {
		if yield(cup{Name: in.Name, Size: 1}, nil) {
			yield(cup{}, errors.New("it fell"))
		}
	}
}

var errUsage = errors.New("wrong use")

// run runs a command line.
func run(t *testing.T, handler *cupboard, change func(*cli.Commands), args ...string) (string, error) {
	t.Helper()
	asJSON, closed := false, 0
	local := operation.NewLocal(operation.LocalOptions{Handlers: []any{handler}, Nouns: map[string]operation.Noun{"cup": {
		Suggest: func(_ context.Context, _ operation.Caller, prefix string) ([]string, error) {
			return slices.DeleteFunc([]string{"teacup", "mug", "muscat"}, func(n string) bool { return !strings.HasPrefix(n, prefix) }), nil
		}}}})
	commands := cli.New(cli.Options{JSON: &asJSON, Prefixes: []string{"cup"}, Usage: func(err error) error { return errors.Join(errUsage, err) },
		Connect: func(context.Context) (cli.Connection, error) {
			by := operation.Caller{Principal: chat.Principal{ID: "ada"}, Scopes: operation.Scopes()}
			return cli.Connection{Executor: local, Caller: by, Close: func() error { closed++; return nil }}, nil
		}})
	if change != nil {
		change(commands)
	}
	root := &cobra.Command{Use: "chorus", SilenceErrors: true, SilenceUsage: true}
	root.AddCommand(commands.AddTo(&cobra.Command{Use: "cup"}, all))
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetErr(&out)
	root.SetIn(strings.NewReader("typed"))
	root.SetArgs(args)
	err := root.ExecuteContext(t.Context())
	if closed > 1 {
		t.Errorf("closed %d times", closed)
	}
	return out.String(), err
}

func TestCommandLines(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "tea.txt")
	if err := os.WriteFile(file, []byte("green"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ line, says, asked string }{
		{"cup list --limit 3", "CUP   SIZE\ncup0  0\ncup1  1\ncup2  2\n", "Cursor:xx Limit:1"},
		{"cup list --json --limit 1", "[\n  {\n    \"name\": \"cup0\",\n    \"size\": 0\n  }\n]\n", "Limit:1"},
		{"cup list --colour red", "there are none\n", "Colour:red"},
		{"cup list --colour red --json", "[]\n", ""},
		{"cup list --colour red --since 2026-01-31", "there are none\n", "Since:2026-01-31"},
		{"cup create mug -s 3 --tags a,b --is-empty", "mug is ready\n", "{Name:mug Size:3 Tags:[a b] Empty:true Words: Key:}"},
		{"cup create mug I am yours", "mug is ready\n", "Words:I am yours"},
		{"cup small make mug", "mug is ready\n", "Size:1"},
		{"cup break teacup --yes", "", "break{Name:teacup}"},
		{"cup fill tea " + file, "name  tea.txt\nsize  5\n", ""},
		{"cup fill tea -", "size  5\n", ""},
		{"cup pour tea", "tea of teacup", ""},
		{"__complete cup pour mu", "mug\nmuscat\n:4\n", ""},
		{"__complete cup list --colour ", "red\ngreen\n:4\n", ""},
	} {
		h := &cupboard{}
		out, err := run(t, h, nil, strings.Fields(c.line)...)
		if strings.HasSuffix(c.line, "colour ") {
			out, err = run(t, h, nil, append(strings.Fields(c.line), "")...)
		}
		out, _, _ = strings.Cut(out, "Completion ended")
		if err != nil || out != c.says || !strings.Contains(strings.Join(h.asked, "\n"), c.asked) {
			t.Errorf("%s: %v, %q, asked %q", c.line, err, out, h.asked)
		}
	}
}

func TestMistakesInCommandLines(t *testing.T) {
	t.Parallel()
	for line, says := range map[string]string{
		"cup create":                 "usage: chorus cup create NAME [WORDS…]",
		"cup pour a b":               "usage: chorus cup pour NAME",
		"cup create mug --size 0":    "at least 1", // a zero that was given
		"cup list --since soon":      "--since: invalid time",
		"cup break teacup":           "add --yes",
		"cup fill tea /no/such/file": "no such file",
		"cup small nothing":          "there is no command",
	} {
		h := &cupboard{}
		if _, err := run(t, h, nil, strings.Fields(line)...); !errors.Is(err, errUsage) || !strings.Contains(err.Error(), says) || h.asked != nil {
			t.Errorf("%s: %v, asked %v", line, err, h.asked)
		}
	}
	// What the operation says is wrong is no mistake in the command line unless somebody says so.
	for line, says := range map[string]string{"cup create m": "at least 2 characters", "cup pour mu": "2 cups start with mu", "cup watch tea": "it fell"} {
		if _, err := run(t, &cupboard{}, nil, strings.Fields(line)...); err == nil || errors.Is(err, errUsage) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", line, err)
		}
	}
	strict := func(c *cli.Commands) { cli.InvalidIsUsage(c, create) }
	if _, err := run(t, &cupboard{}, strict, "cup", "create", "m"); !errors.Is(err, errUsage) {
		t.Error(err)
	}
}

// What a table or a sentence cannot show is said by overrides.
func TestOverrides(t *testing.T) {
	t.Parallel()
	change := func(c *cli.Commands) {
		cli.Render(c, list, func(v cli.View, _ query, out operation.List[cup]) error {
			_, err := fmt.Fprintf(v.Out, "%d cups\n", len(out.Items))
			return err
		})
		cli.JSON(c, list, func(_ cli.View, out operation.List[cup]) any { return len(out.Items) })
		cli.Fails(c, list, func(out operation.List[cup]) error {
			if len(out.Items) == 1 {
				return errors.New("only one")
			}
			return nil
		})
		cli.Prepare(c, create, func(cmd *cobra.Command) func(context.Context, cli.Connection, *newCup, []string) error {
			large := cmd.Flags().Bool("large", false, "as large as it gets")
			return func(_ context.Context, _ cli.Connection, in *newCup, _ []string) error {
				if *large {
					in.Size = 9
				}
				return nil
			}
		})
		cli.Items(c, watch, func(v cli.View, json bool) (func(cup) error, func(error) error) {
			return func(x cup) error { _, err := fmt.Fprintf(v.Out, "%s %v\n", x.Name, json); return err },
				func(error) error { return nil }
		})
	}
	for line, want := range map[string]string{
		"cup list --limit 2": "2 cups\n", "cup list --limit 2 --json": "2\n", "cup watch teacup --json": "teacup true\n", "cup watch mug": "mug false\n",
	} {
		if out, err := run(t, &cupboard{}, change, strings.Fields(line)...); err != nil || out != want {
			t.Errorf("%s: %q, %v", line, out, err)
		}
	}
	if out, err := run(t, &cupboard{}, change, "cup", "list", "--limit", "1"); err == nil || out != "1 cups\n" {
		t.Errorf("%q, %v", out, err)
	}
	h := &cupboard{}
	if _, err := run(t, h, change, "cup", "create", "mug", "--large"); err != nil || !strings.Contains(h.asked[0], "Size:9") {
		t.Errorf("%v, %v", h.asked, err)
	}
}
