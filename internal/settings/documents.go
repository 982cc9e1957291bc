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
	// KeyName is the document of the key that signs cookies and sign-in links. It is a secret: nothing lists or shows it.
	KeyName = "door.key"
)

// changeTime bounds a change for which nobody waits elsewhere.
const changeTime = 20 * time.Second

// configPatterns are the files of the configuration, without those that hold a secret alone.
var configPatterns = []string{
	"config/*.yaml", "config/*.yml", "config/*.md", "config/*.txt",
	"config/guilds/*.yaml", "config/guilds/*.md", "config/guilds/*.txt", "config/bots/*.yaml", "config/bots/*.md", "config/bots/*.txt",
}

// OpenDocuments makes the files of the configuration equal to the documents of a store, and reports whether that changed one. shared says
// that there may be other homes on the database: then they share secrets, if they have a key for them.
func (s *Settings) OpenDocuments(ctx context.Context, store documents.Store, shared bool, warn func(string)) (changed bool, err error) {
	host, _ := os.Hostname() // one without a name changes things all the same
	s.Documents = &documents.Copies{Home: s.Home, Store: store, By: host, Warn: warn, Kinds: []documents.Kind{s.configDocuments()},
		Changed: func([]string) { changed = true }}
	if s.shared = shared; shared {
		seal, err := SecretsSeal(s.Env)
		if err != nil {
			return false, err
		}
		s.Documents.Kinds = append(s.Documents.Kinds, s.secretFiles(seal)...)
		s.seal = seal
	}
	return changed, s.Documents.SyncAll(ctx, "")
}

// OpenMoreDocuments does so for everything else that homes share. More kinds come from those who know them. shared says that there may be
// other homes on this database: then they share what nobody else would read, too.
func (s *Settings) OpenMoreDocuments(ctx context.Context, shared bool, more ...documents.Kind) error {
	s.Documents.Changed = s.documentsChanged
	s.Documents.Kinds = append(s.Documents.Kinds, documents.Kind{Patterns: []string{"guilds/*.json"}, Check: checkGuild}, s.Agents().Kind(),
		// What was trusted: the lock, and texts by their digests, to show changes. A broken lock trusts nothing, on any machine.
		documents.Kind{Patterns: []string{trustedName, "trusted/[0-9a-f]*"}},
		documents.Kind{Patterns: []string{KeyName}, Seal: s.seal},
		documents.Kind{Patterns: []string{"prompts/*.md"}})
	s.Documents.Kinds = append(s.Documents.Kinds, more...)
	if shared {
		s.Documents.Kinds = append(s.Documents.Kinds, s.sharedFiles()...)
	}
	return s.Documents.SyncAll(ctx, "")
}

// Copies are the documents of the home; where no database is open they are files and nothing else.
func (s *Settings) Copies() *documents.Copies {
	if s.Documents == nil {
		return documents.FilesOnly(s.Home)
	}
	return s.Documents
}

func (s *Settings) configDocuments() documents.Kind {
	files := documents.Kind{Patterns: []string{settingsName}, Check: s.checkConfig}
	if s.Live.Options.Dir == s.Home.Config() { // elsewhere it is the operator's, who brings it to each machine
		files.Patterns = append(files.Patterns, configPatterns...)
	}
	return files
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

// documentsChanged lets files count that were changed on another machine.
func (s *Settings) documentsChanged(names []string) {
	if slices.ContainsFunc(names, func(name string) bool { return name == settingsName || strings.HasPrefix(name, "config/") }) {
		_ = s.Reread() // what is wrong with it is told by whoever watches the files
	}
}
