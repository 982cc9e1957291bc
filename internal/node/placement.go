package node

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

// Placement returns the label of a new thread: the node that creates it has its folder.
func (m *Member) Placement(dir string) string {
	if dir == "" {
		return ""
	}
	return m.Name()
}

// Here says why a thread cannot run on this node. Files also count as here if
// the thread's folder exists, on a disk that nodes share.
func (m *Member) Here(row journal.Thread) error {
	if row.Placement == "" {
		return nil
	}
	n, err := m.joined()
	if err != nil {
		return err
	}
	if slices.Contains(n.Labels(), row.Placement) {
		return nil
	}
	if info, err := os.Stat(row.Dir); err == nil && info.IsDir() && !m.madeElsewhere(row) {
		return nil
	}
	if n.Carried(row.Placement) {
		m.lost.back(row.Placement)
		return engine.ErrElsewhere
	}
	return m.withoutNode(row)
}

// madeElsewhere reports whether the folder of a conversation on a platform was created in the home
// of another node that happens to be on this machine too. Its people may not work there from here.
func (m *Member) madeElsewhere(row journal.Thread) bool {
	workspace := strings.HasSuffix(filepath.ToSlash(row.Dir), "/agents/"+row.Agent+"/workspace")
	return row.ID.OnPlatform() && (workspace || ownScratch(row)) && m.CheckPlace(row.ID, row.Dir) != nil
}

// ProjectPlace is the kind of memo that says on which machines the files
// of a project are: those that carry the label.
const ProjectPlace = "project-placement"

// HasProject reports whether the files of a project are on this machine. A
// project without a place is assigned to the first node that asks and has the
// folders it links to. What is cloned is cloned there.
func (m *Member) HasProject(ctx context.Context, project string) (bool, error) {
	n, err := m.joined()
	if err != nil {
		return false, err
	}
	label, err := m.DB.Recall(ctx, ProjectPlace, project)
	if err == nil && label == nil {
		label, err = m.placeProject(ctx, project, n.Name())
	}
	if err != nil {
		return false, fmt.Errorf("where the files of project %s are: %w", project, err)
	}
	return slices.Contains(n.Labels(), string(label)), nil
}

// placeProject assigns a project to this machine, if its folders are here.
func (m *Member) placeProject(ctx context.Context, project, node string) ([]byte, error) {
	repos, err := m.Repos(ctx, project)
	if err != nil {
		return nil, err
	}
	for _, repo := range repos {
		if repo.Kind == work.Link {
			if _, err := os.Stat(repo.Path); err != nil {
				return nil, nil // another node has it
			}
		}
	}
	if _, err := m.DB.RememberOnce(ctx, ProjectPlace, project, []byte(node), forever); err != nil {
		return nil, err
	}
	return m.DB.Recall(ctx, ProjectPlace, project) // another node may have been faster
}

// HoldProject keeps other nodes away from the repositories of a
// project. It returns nil if one of them has them.
func (m *Member) HoldProject(ctx context.Context, project string) (release func()) {
	held, err := m.Take(ctx, owner.Project(project))
	if err != nil {
		if !errors.Is(err, owner.ErrHeld) && !errors.Is(err, owner.ErrDraining) {
			m.Log.Warn("the repositories of a project cannot be taken: "+err.Error(), "component", "work", "event", "project_not_taken", "project", project)
		}
		return nil
	}
	return held.Release
}
