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

// A home notes which agents have had a folder in it. Without that note nobody could tell an agent that a person removed
// here from one that was made elsewhere, in another home on the same store.

func (r *Store) noteOf(name string) string { return filepath.Join(r.Home.AgentFolders(), name) }

// hadFolder reports whether a folder that is missing was here.
func (r *Store) hadFolder(name string) bool { return exists(r.noteOf(name)) }

// checkNotes drops the notes where the folder of all agents is missing: nobody has removed an agent, a disk is not mounted.
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

// layOutKnown makes the folder of an agent that the store knows and this home does not.
func (r *Store) layOutKnown(ctx context.Context, a Agent) error {
	text, err := r.fileText(a)
	if err != nil {
		return err
	}
	return r.layOutText(ctx, a.Name, text)
}

// layOutText makes the folder of an agent that was made elsewhere, whole or not at all, with what its file says.
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
