package settings

import (
	"context"
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"chorus/internal/checkpoint"
	"chorus/internal/datadir"
	"chorus/internal/documents"
)

// SecretsKey is the variable with the key for secrets that nodes share. It is not a
// configuration key, because the nodes share the configuration itself.
const SecretsKey = "CHORUS_SECRETS_KEY"

// SecretsSeal returns the seal for the key that this machine was given, or nil.
func SecretsSeal(env func(string) string) (*documents.Seal, error) {
	key, err := datadir.Secret(env, SecretsKey)
	if err != nil || key == "" {
		return nil, err
	}
	seal, err := documents.NewSeal(key)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", SecretsKey, err)
	}
	return seal, nil
}

// Documents that are secrets.
const (
	// TokenName is the owner's token.
	TokenName = "token"
	// MCPLoginsName is the folder of logins to MCP servers.
	MCPLoginsName = "mcp-logins"
	auditKeyName  = "audit.key"
)

// secretFiles returns the kinds of files that contain secrets. Without a key to encrypt them in the database,
// each node has its own. A replaced version is not kept: no copies of a secret must be left around.
func (s *Settings) secretFiles(seal *documents.Seal) []documents.Kind {
	if seal == nil {
		return nil
	}
	kinds := []documents.Kind{
		{Patterns: []string{TokenName, MCPLoginsName + "/*.json"}, Seal: seal, Plain: true, Spare: true},
		// What it signed cannot be checked without it, so a node whose file is missing gets it back.
		{Patterns: []string{auditKeyName}, Seal: seal, Plain: true, Gone: func(string) bool { return false }},
	}
	if s.Live.Options.Dir == s.Home.Config() {
		kinds = append(kinds, documents.Kind{Patterns: []string{"config/secrets/*"}, Seal: seal, Plain: true, Only: func(name string) bool {
			base := path.Base(name)
			return !strings.HasSuffix(base, "~") && !strings.HasSuffix(base, ".swp") && !strings.Contains(base, ".replaced-")
		}})
	}
	return kinds
}

// MakeCheckpointKey creates the key that signs checkpoints, if there is none, so that all nodes
// have the same one. If nodes share no secrets, whoever signs first creates it.
func (s *Settings) MakeCheckpointKey(ctx context.Context, k checkpoint.Keeper) error {
	if s.Documents == nil || !s.Documents.Owns(auditKeyName) || k.Key != filepath.Join(s.Home.Dir(), auditKeyName) {
		return nil
	}
	return s.Documents.Change(ctx, auditKeyName, func(text []byte) ([]byte, error) {
		if len(text) > 0 {
			return text, nil
		}
		return checkpoint.NewKey()
	})
}
