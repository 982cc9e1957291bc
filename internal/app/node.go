package app

import (
	"context"
	"time"

	"chorus/internal/journal"
	"chorus/internal/node"
	"chorus/internal/runsetup"
)

// wireNode connects the member among nodes with the rest of the
// program. It does nothing if this process is alone.
func (a *App) wireNode() {
	m := a.member
	if m == nil {
		return
	}
	m.Tasks, m.Channels, m.Repos, m.CheckPlace = a.work, a.Host, a.queue.Repos, a.Settings.CheckPlace
	m.MoveLost, m.MoveAfter = a.Shared.OnNodeLost == "move", time.Duration(a.Shared.NodeLostAfter)*time.Second
	a.Host.NodeOf, a.work.Here, a.work.Hold = m.BotNode, m.HasProject, m.HoldProject
	a.Processes.Places = node.Processes{Member: m}
	a.Setup.NoteSources = append(a.Setup.NoteSources, runsetup.NoteSource{What: "node", AtBegin: true, Text: func(ctx context.Context, at runsetup.NoteContext) (string, error) {
		return m.MovedNote(ctx, at.Row.ID)
	}})
}

// here returns a function that says why a thread cannot run in this process; nil: every thread can.
func (a *App) here() func(journal.Thread) error {
	if a.member == nil {
		return nil
	}
	return a.member.Here
}

func (a *App) nodeOperations() node.Operations {
	return node.Operations{Member: a.member, Name: node.NameOf(a.Env), Version: a.Version}
}
