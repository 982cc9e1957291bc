package local

import (
	"context"
	"errors"

	"chorus/internal/connector/slash"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/platform"
	"chorus/internal/room"
)

// derived carries out a command of an operation, such as /memory show, as whoever sits here and for this folder; false: it
// is none of these.
func (s *Session) derived(ctx context.Context, line string) (string, bool, error) {
	if s.commands == nil {
		commands, err := slash.New(slash.Options{Executor: s.app.Service.GuestOperations(), Operations: operations.All(), Groups: operations.Groups(), Surroundings: slash.Surroundings{
			Caller: func(room.Author, room.Channel, bool) operation.Caller {
				return operation.Caller{Principal: s.app.Me(), Scopes: operation.Scopes(), Here: s.thread.Transport() + ":" + s.thread.Place()}
			},
			Context: func(_ context.Context, _ platform.Invocation, what string) string {
				switch {
				case what == "memory":
					return "channel"
				case what == "session" && !s.fresh:
					return string(s.thread)
				case what == "agent":
					return s.thread.Agent()
				}
				return ""
			},
		}})
		if err != nil {
			return "", true, err
		}
		s.commands = commands
	}
	answer, ok := s.commands.Line(ctx, platform.Invocation{Allowed: platform.Allowed{Write: true}}, line)
	if answer.Say != "" {
		return "", true, errors.New("say it as it is: " + answer.Say)
	}
	return answer.Text, ok, nil
}
