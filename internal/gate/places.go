package gate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"chorus/internal/chat"
	"chorus/internal/journal"
	"chorus/internal/operation"
	"chorus/internal/sandbox"
	"chorus/internal/transcript"
)

// MayWork refuses a run in a folder where its senders may not have an agent work. The
// person at the terminal and admins may work anywhere; everybody else, including
// schedules, only where Settings.CheckPlace allows it.
func (g *Gate) MayWork(ctx context.Context, row journal.Thread, senders []transcript.Sender) error {
	_, err := g.HoldPlace(ctx, row, senders)
	return err
}

// HoldPlace is like MayWork and also returns the identity of the folder that was checked, as
// sandbox.FolderID does: between this check and a command, another agent could replace the folder
// with a link. The identity is "" for those who may work anywhere.
func (g *Gate) HoldPlace(ctx context.Context, row journal.Thread, senders []transcript.Sender) (string, error) {
	for _, s := range senders {
		for _, at := range s.Principal.Everybody() {
			free, err := g.worksAnywhere(ctx, at)
			if err != nil {
				return "", err
			}
			if free {
				continue
			}
			dir, folder := openedAt(row.Dir)
			if at.Kind == chat.ScheduleRule {
				return folder, g.Settings.CheckScheduledPlace(row.ID, dir)
			}
			return folder, g.Settings.CheckPlace(row.ID, dir)
		}
	}
	return "", nil
}

// openedAt opens a folder and returns its real path and its identity. Both describe the folder that was
// opened, even if something replaces it meanwhile. The identity is "" if the folder does not exist.
func openedAt(dir string) (real, folder string) {
	f, err := os.Open(dir)
	if err != nil {
		return dir, ""
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return dir, ""
	}
	real, err = os.Readlink(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
	if err != nil || !filepath.IsAbs(real) { // not Linux, so no sandbox either
		return dir, sandbox.FolderID(info)
	}
	return real, sandbox.FolderID(info)
}

// worksAnywhere reports whether a principal itself may work in any folder.
func (g *Gate) worksAnywhere(ctx context.Context, p chat.Principal) (bool, error) {
	switch {
	case p.Owns(), p.Kind == chat.TheSystem:
		return true, nil
	case p.Kind == chat.OtherAgent || p.Kind == chat.TaskWorker || p.Kind == chat.ProcessHook:
		return p.For != nil, nil // limited by whoever it acts for
	case p.Kind != chat.TokenHolder:
		return false, nil
	}
	token, err := g.DB.TokenByID(ctx, p.ID)
	if errors.Is(err, journal.ErrUnknown) {
		return false, nil
	}
	return slices.Contains(token.Scopes, string(operation.Admin)), err
}
