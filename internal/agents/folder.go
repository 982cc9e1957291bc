package agents

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"chorus/internal/datadir"
)

// A home records which agents have had a folder in it. Without that, nobody could distinguish an agent that a
// person removed here from one that was created elsewhere, in another home on the same store.

func (r *Store) noteOf(name string) string { return filepath.Join(r.Home.AgentFolders(), name) }

// hadFolder reports whether a missing folder once existed here.
func (r *Store) hadFolder(name string) bool { return exists(r.noteOf(name)) }

// checkNotes drops the records if the folder of all agents is missing: then a
// disk is not mounted, and nobody has removed an agent.
func (r *Store) checkNotes() error {
	if exists(r.Home.Agents()) {
		return nil
	}
	return os.RemoveAll(r.Home.AgentFolders())
}

func (r *Store) noteFolder(name string) error {
	if exists(r.noteOf(name)) {
		return nil
	}
	if _, err := r.Home.Ensure(r.Home.AgentFolders()); err != nil {
		return err
	}
	if err := os.WriteFile(r.noteOf(name), nil, 0o600); err != nil {
		return fmt.Errorf("note that agent %s has a folder here: %w", name, err)
	}
	return nil
}

func (r *Store) forgetFolder(name string) error {
	if err := os.Remove(r.noteOf(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("forget the folder of agent %s: %w", name, err)
	}
	return nil
}

// layOutKnown creates the folder of an agent that the store knows but this home does not.
func (r *Store) layOutKnown(ctx context.Context, a Agent) error {
	text, err := r.fileText(a)
	if err != nil {
		return err
	}
	return r.layOutText(ctx, a.Name, text)
}

// layOutText creates the folder of an agent that was created elsewhere,
// completely or not at all, with the contents of its file.
func (r *Store) layOutText(ctx context.Context, name string, text []byte) error {
	if _, err := r.Home.Ensure(r.Home.Agents()); err != nil {
		return err
	}
	if exists(r.Home.AgentDir(name)) || r.BuiltIn[name] != nil {
		if err := r.layOut(name); err != nil {
			return err
		}
		if err := datadir.WriteFile(r.file(name), text, 0o600); err != nil {
			return err
		}
		return r.noteFolder(name)
	}
	tmp, err := os.MkdirTemp(r.Home.Agents(), newPrefix+name+"-")
	if err != nil {
		return err
	}
	shared := r.Documents != nil && r.Documents.Owns(documentOf(name)) && r.Documents.Owns(path.Join("agents", name, docsDir, "README.md"))
	if err = r.layTemplates(tmp, name, !shared); err == nil {
		err = r.finish(ctx, tmp, name, text)
	}
	if err == nil {
		err = os.Rename(tmp, r.Home.AgentDir(name))
	}
	if err != nil {
		err = errors.Join(err, os.RemoveAll(tmp))
		if exists(r.file(name)) { // another process was quicker
			err = nil
		}
	}
	if err != nil {
		return err
	}
	return r.noteFolder(name)
}
