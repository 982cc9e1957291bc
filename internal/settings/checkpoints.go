package settings

import (
	"cmp"
	"path/filepath"
	"strings"

	"chorus/internal/checkpoint"
	"chorus/internal/config"
)

// StateDir returns where things are kept that must not be next to the
// database, or "" if nobody knows whose home this is.
func StateDir(env func(string) string) string {
	if dir := env("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "chorus")
	}
	if home := env("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".local", "state", "chorus")
	}
	return ""
}

// Checkpoints returns the keeper that stores the head of this home's audit log elsewhere.
func (s *Settings) Checkpoints(bot *config.Bot) checkpoint.Keeper {
	name := Place(s.Home.Dir())
	k := checkpoint.Keeper{Home: name, File: s.path(bot.CheckpointFile), Key: s.path(bot.CheckpointKey), URL: string(bot.CheckpointURL), Git: s.path(bot.CheckpointGit)}
	k.Key = cmp.Or(k.Key, filepath.Join(s.Home.Dir(), auditKeyName))
	switch dir := StateDir(s.Env); {
	case bot.CheckpointFile == "off":
		k.File = ""
	case k.File == "" && dir != "":
		k.File = filepath.Join(dir, "audit-"+name+".jsonl")
	}
	return k
}

// path resolves a configured path: ~ is the user's home, and relative paths are relative to ours.
func (s *Settings) path(text string) string {
	if rest, ok := strings.CutPrefix(text, "~/"); ok {
		return filepath.Join(s.Env("HOME"), rest)
	}
	if text == "" || filepath.IsAbs(text) {
		return text
	}
	return filepath.Join(s.Home.Dir(), text)
}
