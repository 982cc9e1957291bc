package settings

import (
	"os"
	"path"
	"path/filepath"
	"strings"

	"chorus/internal/documents"
	"chorus/internal/memory"
	"chorus/internal/tool/mcp/serverconfig"
)

// sharedFiles returns the kinds of files that agents read and that people and agents write. With one
// home on a database they are only files; with several, the database has them.
func (s *Settings) sharedFiles() []documents.Kind {
	return []documents.Kind{
		{Patterns: []string{memory.Name, memory.System, memory.Identity, "*/" + memory.Name, "*/*/" + memory.Name, "*/*/*/notes.json"}, Plain: true, Only: ofConversations, Gone: s.folderIsThere},
		{Trees: []string{"skills", "template"}},
		{Trees: []string{"projects/*/notes"}, Plain: true},
		{Trees: []string{"*/skills", "*/*/skills"}, Plain: true, Only: ofConversations},
		{Trees: []string{"agents/*/docs", "agents/*/skills"}, Plain: true, With: func(name string) string {
			return path.Join("agents", strings.Split(name, "/")[1], "agent.json")
		}},
		{Patterns: []string{MCPServersName}, Check: func(_ string, body []byte) error {
			_, _, err := serverconfig.ParseConfig(body, func(string) (string, bool) { return "", true })
			return err
		}},
		{Patterns: []string{modelsName}, Spare: true},
	}
}

// Documents of sharedFiles by name.
const (
	// MCPServersName are the servers that were added by a command.
	MCPServersName = "mcp.json"
	modelsName     = "available_models.json"
)

// ofConversations excludes folders of the home that belong to no transport and
// contain files of the same names for other purposes.
func ofConversations(name string) bool {
	top, _, below := strings.Cut(name, "/")
	if !below {
		return true
	}
	switch top {
	case "agents", "blobs", "cache", "config", "events", "guilds", "locks", "logs", "mcp-logins", "outputs", "processes", "projects", "prompts", "run", "sessions", "skills", "template", "trusted":
		return false
	}
	return true
}

// folderIsThere reports whether a file's folder exists: a file that is missing
// together with its folder was not removed by anybody.
func (s *Settings) folderIsThere(name string) bool {
	info, err := os.Stat(filepath.Dir(s.Documents.Path(name)))
	return err == nil && info.IsDir()
}
