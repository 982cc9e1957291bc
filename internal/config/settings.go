package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"chorus/internal/suggest"
)

// Settings are the values people can set. Zero means the built-in default.
type Settings struct {
	DefaultProvider string     `json:"defaultProvider"`
	DefaultModel    string     `json:"defaultModel"`
	Permissions     string     `json:"permissions"`
	MaxTokens       int        `json:"maxTokens"`
	ThinkingBudget  int        `json:"thinkingBudget"`
	Compaction      Compaction `json:"compaction"`
	Retry           Retry      `json:"retry"`
	IdleTimeoutMS   int        `json:"idleTimeoutMs"`
	MaxQueueDepth   int        `json:"maxQueueDepth"`
	Durability      string     `json:"durability"` // normal or full
}

// Compaction says when the older part of a conversation is summarised.
type Compaction struct {
	Enabled          *bool `json:"enabled"`
	ContextWindow    int   `json:"contextWindow"`
	ReserveTokens    int   `json:"reserveTokens"`
	KeepRecentTokens int   `json:"keepRecentTokens"`
}

// Retry says how often a failed model call is made again.
type Retry struct {
	Enabled     *bool `json:"enabled"`
	MaxRetries  int   `json:"maxRetries"`
	BaseDelayMS int   `json:"baseDelayMs"`
}

// Read reads the file.
func Read(path string) (Settings, error) {
	var s Settings
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return s, fmt.Errorf("read settings: %w", err)
	}
	if err := parseSettings(data, &s); err != nil {
		return Settings{}, fmt.Errorf("%s%w", path, err)
	}
	return s, s.check(path)
}

func parseSettings(data []byte, s *Settings) error {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if len(bytes.TrimSpace(data)) == 0 {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	err := dec.Decode(s)
	if err == nil {
		if _, err := dec.Token(); !errors.Is(err, io.EOF) {
			return fmt.Errorf("%s: there is something behind the closing brace", position(data, dec.InputOffset()))
		}
		return nil
	}
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return fmt.Errorf("%s: %w", position(data, syntax.Offset-1), err)
	case errors.As(err, &kind):
		return fmt.Errorf("%s: %s must be a %s, not a %s", position(data, kind.Offset), kind.Field, kind.Type, kind.Value)
	case strings.Contains(err.Error(), "unknown field"):
		name := strings.Trim(strings.TrimPrefix(err.Error(), "json: unknown field "), `"`)
		if isKey(name) { // not one of these settings, but one of the layered ones
			return parseLayered(data, s)
		}
		return fmt.Errorf("%s: unknown key %q%s", position(data, int64(bytes.Index(data, []byte(`"`+name+`"`)))), name, meant(name))
	default:
		return fmt.Errorf(": %w", err)
	}
}

func isKey(name string) bool {
	root, _ := (&shaper{report: &report{}, layer: ChannelPin}).find(table().root, "", field{name: name})
	return root != nil
}

// parseLayered reads settings.json when it holds other keys of the table too, and holds
// all of them against it.
func parseLayered(data []byte, s *Settings) error {
	r := &report{}
	shape(r, SettingsFile, os.Getenv, parseJSON(r, "", data))
	if errs := r.found.Errors(); len(errs) > 0 {
		return fmt.Errorf(":%d:%d: %s", errs[0].Place.Line, errs[0].Place.Column, errs[0].Text)
	}
	if err := json.Unmarshal(data, s); err != nil {
		return fmt.Errorf(": %w", err)
	}
	return nil
}

// Settings are the values of the home as they follow from the layers.
func (b *Bot) Settings() Settings {
	compact, again := b.CompactionEnabled, b.RetryEnabled && b.LLMRetries > 0
	return Settings{
		DefaultProvider: b.DefaultProvider, DefaultModel: b.DefaultModel, Permissions: b.Permissions, MaxTokens: b.MaxTokens, ThinkingBudget: b.ThinkingBudget,
		Compaction:    Compaction{&compact, b.CompactionContextWindow, b.CompactionReserveTokens, b.CompactionKeepRecentTokens},
		Retry:         Retry{&again, b.LLMRetries, b.RetryBaseDelayMS},
		IdleTimeoutMS: b.IdleTimeoutMS, MaxQueueDepth: b.MaxQueuedReplies, Durability: b.Durability,
	}
}

func position(data []byte, offset int64) string {
	line, column := lineColumn(data, offset)
	return fmt.Sprintf(":%d:%d", line, column)
}

func lineColumn(data []byte, offset int64) (line, column int) {
	offset = min(max(offset, 0), int64(len(data)))
	before := data[:offset]
	return 1 + bytes.Count(before, []byte("\n")), max(int(offset)-bytes.LastIndexByte(before, '\n'), 1)
}

var settingsKeys = []string{"defaultProvider", "defaultModel", "permissions", "maxTokens", "thinkingBudget", "compaction", "retry",
	"idleTimeoutMs", "maxQueueDepth", "durability", "enabled", "contextWindow", "reserveTokens", "keepRecentTokens", "maxRetries", "baseDelayMs"}

func meant(name string) string {
	if best := suggest.Best(name, settingsKeys); best != "" {
		return fmt.Sprintf("; did you mean %q?", best)
	}
	return ""
}

func (s Settings) check(path string) error {
	bad := func(key, want string) error { return fmt.Errorf("%s: %s must be %s", path, key, want) }
	switch {
	case s.Durability != "" && s.Durability != "normal" && s.Durability != "full":
		return bad("durability", `"normal" or "full"`)
	case s.MaxQueueDepth < 0:
		return bad("maxQueueDepth", "1 or more")
	case s.IdleTimeoutMS < 0:
		return bad("idleTimeoutMs", "0 or more")
	case s.MaxTokens < 0 || s.Compaction.ContextWindow < 0 || s.Compaction.ReserveTokens < 0 || s.Compaction.KeepRecentTokens < 0:
		return bad("a number of tokens", "0 or more")
	case s.Retry.MaxRetries < 0 || s.Retry.BaseDelayMS < 0:
		return bad("retry", "0 or more")
	}
	return nil
}
