package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/suggest"
	"chorus/internal/text"
	"chorus/internal/usage"
)

// maxArguments limits the input that is read from a pipe.
const maxArguments = 8 << 20

func (c *program) callCommand() *cobra.Command {
	return c.serverFlags(c.jsonFlag(&cobra.Command{
		Use: "call [NAME [JSON]]", Short: "Run any operation by its tool name, with JSON arguments", Args: cobra.MaximumNArgs(2),
		Long: `Runs an operation that agents call as a tool, with the same name and the same arguments as JSON.
Use - to read the arguments from standard input. Without a name it lists all operations.`,
		Example: `  chorus call
  chorus call list_tasks '{"project_id":"my-web-app"}'
  echo '{"title":"Add a dark mode","project_id":"my-web-app"}' | chorus call create_task -`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return c.listCalls()
			}
			d, ok := operations.All().Tool(args[0])
			if !ok {
				return &usage.Error{Err: fmt.Errorf("unknown command: %s%s (`chorus call` lists them)", text.Clip(args[0], 80), suggest.Hint(args[0], callNames()))}
			}
			given := []byte("{}")
			if len(args) == 2 {
				given = []byte(args[1])
			}
			if string(given) == "-" {
				var err error
				if given, err = io.ReadAll(io.LimitReader(cmd.InOrStdin(), maxArguments)); err != nil {
					return err
				}
			}
			in, err := d.ReadArguments(given)
			if err != nil {
				return &usage.Error{Err: err}
			}
			to, err := c.connect(cmd.Context())
			if err != nil {
				return err
			}
			defer to.Close()
			out, err := to.Execute(cmd.Context(), to.Caller, d, in.Interface())
			if err != nil {
				return err
			}
			return text.WriteIndentedJSON(cmd.OutOrStdout(), out, "")
		},
	}))
}

func callNames() (names []string) {
	for _, d := range operations.All().All() {
		if name := d.NameForMCP(); name != "" && d.Shape == operation.Unary {
			names = append(names, name)
		}
	}
	return names
}

// callJSON is an operation in JSON.
type callJSON struct {
	Name      string         `json:"name"`
	Help      string         `json:"help"`
	Arguments []argumentJSON `json:"arguments"`
}

type argumentJSON struct {
	Name     string `json:"name"`
	Required bool   `json:"required"`
	Help     string `json:"help,omitempty"`
}

// listCalls lists the operations. A star marks required arguments.
func (c *program) listCalls() error {
	var list []callJSON
	for _, name := range callNames() {
		d, _ := operations.All().Tool(name)
		one := callJSON{Name: name, Help: d.Help, Arguments: []argumentJSON{}}
		for _, f := range d.Fields() {
			if arg, _, ok := f.In(operation.AsTool); ok {
				one.Arguments = append(one.Arguments, argumentJSON{arg, f.Required, f.Doc})
			}
		}
		list = append(list, one)
	}
	if c.json {
		return c.printJSON(list)
	}
	w := c.columns()
	fmt.Fprintln(w, "NAME\tDOES\tARGUMENTS")
	for _, one := range list {
		var args []string
		for _, arg := range one.Arguments {
			if arg.Required {
				arg.Name += "*"
			}
			args = append(args, arg.Name)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", one.Name, one.Help, strings.Join(args, ", "))
	}
	return w.Flush()
}
