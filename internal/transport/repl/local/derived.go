package local

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"chorus/internal/connector/slash"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/platform"
	"chorus/internal/room"
	"chorus/internal/transport/repl"
)

// asker executes operations for the commands of a session.
type asker struct {
	to  operation.Executor
	set *slash.Set
}

// newAsker creates the executor at the first use of such a command.
func (s *Session) newAsker() (*asker, error) {
	to := s.app.Service.GuestOperations()
	commands, err := slash.New(slash.Options{Executor: to, Operations: operations.All(), Groups: operations.Groups(), Surroundings: slash.Surroundings{
		Caller: func(room.Author, room.Channel, bool) operation.Caller {
			by := operation.Caller{Principal: s.app.Me(), Scopes: operation.Scopes(), Here: s.thread.Transport() + ":" + s.thread.Place()}
			if !s.fresh {
				by.Session = s.thread
			}
			return by
		},
		Context: func(_ context.Context, _ platform.Invocation, what string) string {
			switch {
			case what == "memory":
				return "channel"
			case (what == "session" || what == "running") && !s.fresh:
				return string(s.thread)
			case what == "agent":
				return s.thread.Agent()
			}
			return ""
		},
	}})
	return &asker{to, commands}, err
}

// Commands implements repl.Commander: the commands of operations.
func (s *Session) Commands(context.Context) (out []repl.Command) {
	for _, d := range operations.All().All() {
		for _, line := range d.Slash {
			name, _, sub := strings.Cut(line.Words, " ")
			about := cmp.Or(line.Help, d.Help)
			if sub {
				about = operations.Groups()[name]
			}
			if !slices.ContainsFunc(out, func(c repl.Command) bool { return c.Name == name }) {
				out = append(out, repl.Command{Name: name, About: about})
			}
		}
	}
	return out
}

// derived runs a command of an operation, such as /memory show, as the person at the terminal and for this folder; false: it
// is not such a command.
func (s *Session) derived(ctx context.Context, line string) (string, bool, error) {
	operations, err := s.asker()
	if err != nil {
		return "", true, err
	}
	answer, ok := operations.set.Line(ctx, platform.Invocation{Allowed: platform.Allowed{Write: true}}, line)
	if answer.Say != "" {
		return "", true, errors.New("type it as a message: " + answer.Say)
	}
	return answer.Text, ok, nil
}
