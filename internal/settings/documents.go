package settings

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	"chorus/internal/config"
	"chorus/internal/documents"
)

// settingsName is the document of settings.json.
const settingsName = "settings.json"

// configPatterns are the files of the configuration, without those that hold a secret alone.
var configPatterns = []string{
	"config/*.yaml", "config/*.yml", "config/*.md", "config/*.txt",
	"config/guilds/*.yaml", "config/guilds/*.md", "config/guilds/*.txt", "config/bots/*.yaml", "config/bots/*.md", "config/bots/*.txt",
}

// OpenDocuments keeps the files of the home that all machines share equal to the documents of a store. More kinds come from
// those who know them.
func (s *Settings) OpenDocuments(store documents.Store, warn func(string), more ...documents.Kind) {
	host, _ := os.Hostname() // one without a name changes things all the same
	s.Documents = &documents.Copies{Home: s.Home, Store: store, By: host, Warn: warn, Kinds: append(s.kinds(), more...)}
}

// Copies are the documents of the home; where no database is open they are files and nothing else.
func (s *Settings) Copies() *documents.Copies {
	if s.Documents == nil {
		return documents.FilesOnly(s.Home)
	}
	return s.Documents
}

func (s *Settings) kinds() []documents.Kind {
	files := documents.Kind{Patterns: []string{settingsName}, Check: s.checkConfig}
	if s.Live.Options.Dir == s.Home.Config() { // elsewhere it is the operator's, who brings it to each machine
		files.Patterns = append(files.Patterns, configPatterns...)
	}
	return []documents.Kind{files, {Patterns: []string{"guilds/*.json"}, Check: checkGuild}}
}

// checkConfig looks at the configuration as a whole: a file alone can be right and contradict another.
func (s *Settings) checkConfig(string, []byte) error {
	_, problems := config.ReadFiles(s.Live.Options)
	return problems.Err()
}

func checkGuild(_ string, body []byte) error {
	var values map[string]any
	if err := json.Unmarshal(body, &values); err != nil {
		return fmt.Errorf("it is no JSON object: %w", err)
	}
	return nil
}

// DocumentsChanged lets files count that were changed on another machine.
func (s *Settings) DocumentsChanged(names []string) {
	if s.HasConfig(names) {
		_ = s.Reread() // what is wrong with it is told by whoever watches the files
	}
}

// HasConfig reports whether files of the configuration are among documents.
func (s *Settings) HasConfig(names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return name == settingsName || strings.HasPrefix(name, "config/") })
}
