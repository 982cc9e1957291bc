package settings

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"chorus/internal/config"
	"chorus/internal/documents"
)

// Documents by name.
const (
	settingsName = "settings.json"
	trustedName  = "trusted.json"
	// KeyName is the document of the key that signs cookies and sign-in
	// links. It is a secret: nothing lists or shows it.
	KeyName = "door.key"
)

// changeTime limits a change that nobody else waits for.
const changeTime = 20 * time.Second

// configPatterns match the files of the configuration, except those that contain only a secret.
var configPatterns = []string{
	"config/*.yaml", "config/*.yml", "config/*.md", "config/*.txt",
	"config/guilds/*.yaml", "config/guilds/*.md", "config/guilds/*.txt", "config/bots/*.yaml", "config/bots/*.md", "config/bots/*.txt",
}

// OpenDocuments makes the configuration files equal to the documents of a store, and
// reports whether that changed one. shared says that other homes may use the database:
// then they share secrets, if they have a key for them.
func (s *Settings) OpenDocuments(ctx context.Context, store documents.Store, shared bool, warn func(string)) (changed bool, err error) {
	s.UseDocuments(store, shared)
	s.Documents.Warn, s.Documents.Kinds = warn, []documents.Kind{s.configDocuments()}
	s.Documents.Changed = func([]string) { changed = true }
	if shared {
		seal, err := SecretsSeal(s.Env)
		if err != nil {
			return false, err
		}
		s.Documents.Kinds = append(s.Documents.Kinds, s.secretFiles(seal)...)
		s.seal = seal
	}
	return changed, s.Documents.SyncAll(ctx, "")
}

// UseDocuments is for those who need only documents without files: no file of the home becomes equal to one.
func (s *Settings) UseDocuments(store documents.Store, shared bool) {
	host, _ := os.Hostname() // a machine without a name can still change things
	s.Documents, s.shared = &documents.Copies{Home: s.Home, Store: store, By: host}, shared
}

// OpenMoreDocuments does the same for everything else that homes share. Callers add further kinds. shared
// says that other homes may use this database: then they also share what nobody else would read.
func (s *Settings) OpenMoreDocuments(ctx context.Context, shared bool, more ...documents.Kind) error {
	s.Documents.Changed = s.documentsChanged
	s.Documents.Kinds = append(s.Documents.Kinds, documents.Kind{Patterns: []string{"guilds/*.json"}, Check: checkGuild}, s.Agents().Kind(),
		// What was trusted: the lock, and texts by their digests, to show
		// changes. A broken lock trusts nothing, on any machine.
		documents.Kind{Patterns: []string{trustedName, "trusted/[0-9a-f]*"}},
		documents.Kind{Patterns: []string{KeyName}, Seal: s.seal},
		documents.Kind{Patterns: []string{"prompts/*.md"}})
	s.Documents.Kinds = append(s.Documents.Kinds, more...)
	if shared {
		s.Documents.Kinds = append(s.Documents.Kinds, s.sharedFiles()...)
	}
	return s.Documents.SyncAll(ctx, "")
}

// Copies returns the documents of the home. If no database is open, they are only files.
func (s *Settings) Copies() *documents.Copies {
	if s.Documents == nil {
		return documents.FilesOnly(s.Home)
	}
	return s.Documents
}

func (s *Settings) configDocuments() documents.Kind {
	files := documents.Kind{Patterns: []string{settingsName}, Check: s.checkConfig}
	if s.Live.Options.Dir == s.Home.Config() { // otherwise it belongs to the operator, who copies it to each machine
		files.Patterns = append(files.Patterns, configPatterns...)
	}
	return files
}

// checkConfig checks the configuration as a whole: a file may be right on its own and contradict another.
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

// documentsChanged applies files that were changed on another machine.
func (s *Settings) documentsChanged(names []string) {
	if slices.ContainsFunc(names, func(name string) bool { return name == settingsName || strings.HasPrefix(name, "config/") }) {
		_ = s.Reread() // whoever watches the files reports what is wrong with them
	}
}
