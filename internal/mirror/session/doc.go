// Package session reads and writes session logs in the Local Coding Agent's format:
// .agent/session_<id>.jsonl, one line per entry, and the index .agent/sessions.jsonl next to it.
//
// An event is written once and completely, whatever crashed in between: each line has the event's
// number and how many lines of the event follow. A file that is not a session log is never changed.
// Reading continues after a broken line and reports which one it was. What is read never has a call
// without its result or a result without its call.
package session

import (
	"fmt"
	"path/filepath"

	"chorus/internal/pattern"
)

// Folder is the directory of session logs in a repository.
const Folder = ".agent"

// validID prevents an id from being a path.
var validID = pattern.Lazy(`^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$`)

// Path returns the log of a session in a repository.
func Path(repo, id string) (string, error) {
	if !validID().MatchString(id) {
		return "", fmt.Errorf("session id %.80q: want letters, digits, hyphens and underscores only", id)
	}
	return filepath.Join(repo, Folder, "session_"+id+".jsonl"), nil
}
