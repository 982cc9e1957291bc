package api

import (
	"context"
	"encoding/json"
	"reflect"
	"strings"

	"chorus/internal/operation"
	"chorus/internal/transport/http/rest"
)

// command is a call of an operation by the name of its tool.
type command struct {
	Name string `path:"name" doc:"the name of the operation's tool, such as create_task"`
	Key  string `header:"Idempotency-Key" doc:"a retry with the same key creates nothing twice"`
	Body *map[string]json.RawMessage
}

// commandAnswer is the output of an operation, as JSON.
type commandAnswer struct{ json.RawMessage }

// commands returns the route that calls any operation by the name and with the arguments of its tool, as agents do.
func (a *API) commands(set *operation.Set) rest.Operation {
	var names []string
	for _, d := range set.All() {
		if name := d.NameForMCP(); name != "" && d.Shape == operation.Unary {
			names = append(names, name)
		}
	}
	return rest.Op(rest.Route{Method: "POST", Path: "/api/commands/{name}", ID: "callCommand", Tag: "commands", Scope: string(operation.Read), Errors: []int{404, 409}, MaxBody: 8 << 20,
		Summary: "Call an operation by the name of its tool",
		Doc: "The body is an object with the arguments of the tool; leave it out if there are none. Rights, errors and the answer are those of the operation's own route; " +
			"a caller without its scope is refused. `chorus call` lists the names with their arguments. The names are: " + strings.Join(names, ", ") + "."},
		func(ctx context.Context, in command) (commandAnswer, error) {
			d, ok := set.Tool(in.Name)
			if !ok {
				return commandAnswer{}, operation.Errorf(operation.NotFound, "unknown command %.80q; the description of this route lists them all", in.Name)
			}
			given := []byte("{}")
			if in.Body != nil {
				var err error
				if given, err = json.Marshal(*in.Body); err != nil {
					return commandAnswer{}, err
				}
			}
			input, err := d.ReadArguments(given)
			if err != nil {
				return commandAnswer{}, operation.Errorf(operation.Invalid, "%s", err)
			}
			d.SetKey(input, in.Key)
			out, err := a.executor.Execute(ctx, by(ctx), d, input.Interface())
			if err != nil {
				return commandAnswer{}, err
			}
			if d.Out == reflect.TypeFor[operation.None]() {
				return commandAnswer{json.RawMessage("{}")}, nil
			}
			text, err := json.Marshal(out)
			return commandAnswer{text}, err
		})
}
