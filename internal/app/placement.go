package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"chorus/internal/engine"
	"chorus/internal/journal"
	"chorus/internal/owner"
	"chorus/internal/work"
)

// placement is the label of a new thread: the node that makes it has its folder.
func (m *membership) placement(dir string) string {
	if dir == "" {
		return ""
	}
	return m.nameOf()
}

// here says why a thread cannot run on this node. Files count as here, too, where a thread's folder is: on a disk that nodes share.
func (a *App) here() func(journal.Thread) error {
	if a.member == nil {
		return nil
	}
	return func(row journal.Thread) error {
		if row.Placement == "" {
			return nil
		}
		n, err := a.member.joined()
		if err != nil {
			return err
		}
		if slices.Contains(n.Labels(), row.Placement) {
			return nil
		}
		if info, err := os.Stat(row.Dir); err == nil && info.IsDir() && !a.madeElsewhere(row) {
			return nil
		}
		if n.Carried(row.Placement) {
			a.lost.back(row.Placement)
			return engine.ErrElsewhere
		}
		return a.withoutNode(row)
	}
}

// madeElsewhere reports whether the folder of a conversation on a platform was made in the home of another node, which happens to be on
// this machine too: its people may not work there from here.
func (a *App) madeElsewhere(row journal.Thread) bool {
	workspace := strings.HasSuffix(filepath.ToSlash(row.Dir), "/agents/"+row.Agent+"/workspace")
	return row.ID.OnPlatform() && (workspace || ownScratch(row)) && a.Settings.CheckPlace(row.ID, row.Dir) != nil
}

// projectPlace is the kind of memo that says on which machines the files of a project are: those that carry the label.
const projectPlace = "project-placement"

// hasProject reports whether the files of a project are on this machine. A project without a place gets that of the first node that
// asks and has the folders that it links to; what is cloned is cloned there.
func (a *App) hasProject(ctx context.Context, project string) (bool, error) {
	n, err := a.member.joined()
	if err != nil {
		return false, err
	}
	label, err := a.DB.Recall(ctx, projectPlace, project)
	if err == nil && label == nil {
		label, err = a.placeProject(ctx, project, n.Name())
	}
	if err != nil {
		return false, fmt.Errorf("where the files of project %s are: %w", project, err)
	}
	return slices.Contains(n.Labels(), string(label)), nil
}

// placeProject gives a project a place, if its folders are here.
func (a *App) placeProject(ctx context.Context, project, node string) ([]byte, error) {
	repos, err := a.queue.Repos(ctx, project)
	if err != nil {
		return nil, err
	}
	for _, repo := range repos {
		if repo.Kind == work.Link {
			if _, err := os.Stat(repo.Path); err != nil {
				return nil, nil // somebody else has it
			}
		}
	}
	if _, err := a.DB.RememberOnce(ctx, projectPlace, project, []byte(node), secretForever); err != nil {
		return nil, err
	}
	return a.DB.Recall(ctx, projectPlace, project) // another node may have been quicker
}

// holdProject keeps other nodes from the repositories of a project; nil: one of them has them.
func (a *App) holdProject(ctx context.Context, project string) (release func()) {
	held, err := a.owner.Take(ctx, owner.Project(project))
	if err != nil {
		if !errors.Is(err, owner.ErrHeld) && !errors.Is(err, owner.ErrDraining) {
			a.Log.Warn("the repositories of a project cannot be taken: "+err.Error(), "component", "work", "event", "project_not_taken", "project", project)
		}
		return nil
	}
	return held.Release
}
