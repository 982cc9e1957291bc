package settings

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"chorus/internal/chat"
)

// PlaceError says that only an admin may work in a folder, and where else work is possible.
type PlaceError struct {
	Dir      string
	Roots    []string // as configured
	Why      string   // "": it is in none of the roots
	Schedule bool     // nobody watches a schedule, so not even an admin's may work there
}

// Error implements error.
func (e *PlaceError) Error() string {
	allowed := "folders that Chorus makes itself"
	if len(e.Roots) > 0 {
		allowed += " and " + strings.Join(e.Roots, ", ")
	}
	why := "it is not one of the places that an admin has named"
	if e.Why != "" {
		why = e.Why
	}
	switch {
	case e.Schedule && e.Why != "":
		return fmt.Sprintf("no schedule can work in %.200s: %s. Allowed are %s; leave the folder out to get one of its own", e.Dir, why, allowed)
	case e.Schedule:
		return fmt.Sprintf("no schedule can work in %.200s yet: nobody looks on when one does, so it works only in %s, whoever adds it. "+
			"Add the folder to `workspaces`, on the page of settings or in shared.yaml (`workspaces: [%.200s]`), or leave it out to get one of its own", e.Dir, allowed, e.Dir)
	}
	return fmt.Sprintf("only the scope admin may work in %.200s: %s. Allowed are %s; an admin adds a folder to `workspaces` in the configuration, or leave the folder out to get your own", e.Dir, why, allowed)
}

// CheckPlace refuses folders in which somebody without the admin scope may not have an agent work
// in a thread: all except those that Chorus created for conversations and agents, and the
// configured `workspaces`. It follows links before comparing anything.
func (s *Settings) CheckPlace(thread chat.ThreadID, dir string) error {
	transport := filepath.Dir(filepath.Dir(s.Home.ThreadDir(thread)))
	rel, in := below(transport, dir)
	parts := strings.Split(rel, string(filepath.Separator)) // place, thread, scratch
	if in && len(parts) >= 3 && parts[2] == filepath.Base(s.Home.Scratch(thread)) {
		return nil
	}
	rel, in = below(s.Home.Agents(), dir)
	parts = strings.Split(rel, string(filepath.Separator)) // agent, workspace
	if in && len(parts) >= 2 && parts[1] == filepath.Base(s.Agents().Workspace(parts[0])) {
		return nil
	}
	if thread.Transport() == chat.WorkTransport { // the steps of a plan work in the folder of the task that contains it
		rel, in := below(s.Home.TaskDir(thread.Place(), ""), dir)
		if parts := strings.Split(rel, string(filepath.Separator)); in && len(parts) >= 2 {
			return nil
		}
	}
	return s.CheckNamedPlace(dir)
}

// CheckScheduledPlace is CheckPlace for a schedule: nobody watches it, so
// the folder must be open to all, whoever added it.
func (s *Settings) CheckScheduledPlace(thread chat.ThreadID, dir string) error {
	err := s.CheckPlace(thread, dir)
	if refused, ok := errors.AsType[*PlaceError](err); ok {
		refused.Schedule = true
	}
	return err
}

// CheckChosenPlace is CheckPlace for a folder that somebody names. Of the folders that
// Chorus created, it only allows those of conversations in the same place.
func (s *Settings) CheckChosenPlace(thread chat.ThreadID, dir string) error {
	rel, in := below(filepath.Dir(s.Home.ThreadDir(thread)), dir)
	parts := strings.Split(rel, string(filepath.Separator)) // thread, scratch
	if in && len(parts) >= 2 && parts[1] == filepath.Base(s.Home.Scratch(thread)) {
		return nil
	}
	return s.CheckNamedPlace(dir)
}

// CheckNamedPlace refuses folders that are in none of the
// `workspaces`, and Chorus's own files wherever they are.
func (s *Settings) CheckNamedPlace(dir string) error {
	bot, err := s.Bot("")
	if err != nil {
		return err
	}
	refused := &PlaceError{Dir: dir, Roots: bot.Workspaces}
	_, inside := below(s.Home.Dir(), dir)
	_, around := below(dir, s.Home.Dir())
	if inside || around {
		refused.Why = "Chorus keeps its keys there"
		return refused
	}
	for _, root := range bot.Workspaces {
		if rest, ok := strings.CutPrefix(root, "~"); ok && (rest == "" || rest[0] == '/') {
			root = filepath.Join(s.userHome(), rest)
		}
		if _, in := below(root, dir); in && filepath.IsAbs(root) {
			return nil
		}
	}
	return refused
}

func (s *Settings) userHome() string {
	if dir := s.Env("HOME"); filepath.IsAbs(dir) {
		return dir
	}
	dir, _ := os.UserHomeDir()
	return dir
}

// below returns the path of dir relative to an outer folder that contains or equals it, with the
// links of both followed. A dir with ".." in it is in none: after a link it leads somewhere else,
// depending on whether somebody cleans the path before using it.
func below(outer, dir string) (rel string, in bool) {
	if slices.Contains(strings.Split(dir, string(filepath.Separator)), "..") {
		return "", false
	}
	rel, err := filepath.Rel(resolved(outer), resolved(dir))
	return rel, err == nil && filepath.IsLocal(rel)
}

// resolved returns a path without links, as far as it exists.
func resolved(path string) string {
	rest := ""
	for at := filepath.Clean(path); ; at = filepath.Dir(at) {
		if real, err := filepath.EvalSymlinks(at); err == nil {
			return filepath.Join(real, rest)
		}
		if at == filepath.Dir(at) {
			return path
		}
		rest = filepath.Join(filepath.Base(at), rest)
	}
}
