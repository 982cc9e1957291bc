package host

import (
	"chorus/internal/connector"
	"chorus/internal/connector/commands"
	"chorus/internal/connector/slash"
	"chorus/internal/gate"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/room"
)

// maxDerived is the maximum length of a derived command's answer: it fits into a message with the rest.
const maxDerived = 1700

// derivedCommands are the commands of operations without a hand-written one.
func (h *Host) derivedCommands() (*slash.Set, error) {
	return slash.New(slash.Options{Executor: h.Service.Operations(), Operations: operations.All(), Groups: operations.Groups(), MaxText: maxDerived})
}

// surroundings describe who gives a command through a bot, and where. People of a platform may read and chat; everybody in a
// channel may see what happens there. The people who run this Chorus may do everything, on a platform as well.
func (h *Backend) surroundings(bot *connector.Bot, own *commands.Set) slash.Surroundings {
	return slash.Surroundings{
		Caller: func(who room.Author, in room.Channel, absent bool) operation.Caller {
			by := operation.Caller{Principal: bot.Principal(who), Scopes: []operation.Scope{operation.Read, operation.Chat}}
			if !absent {
				by.Here = h.Platform.Name + ":" + in.Place()
			}
			if h.App.Service.RunsHome(by.Principal) {
				by.Scopes = append(by.Scopes, operation.Admin)
			}
			return by
		},
		Context: own.Context, Named: own.Named, Choices: own.Choices,
		Refused: func(d *operation.Definition) string {
			text := "Only the people who run this Chorus can do that: those named in `editors` of its configuration to whom `access` gives the rights of `" + gate.Everything + "`, by their ids, or the person at its terminal"
			if len(d.CLI) > 0 {
				text += ", with `chorus " + d.CLI[0].Words + "`"
			}
			return text + "."
		},
	}
}
