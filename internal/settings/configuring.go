package settings

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"chorus/internal/agents"
	"chorus/internal/agents/builtin"
	"chorus/internal/config"
	"chorus/internal/datadir"
)

// ConfigOptions returns where the layered configuration of a home is, without opening the
// home. folder is the value of --config, homeDir that of --home.
func ConfigOptions(env func(string) string, homeDir, folder string) (config.Options, error) {
	dir, err := HomeFolder(env, homeDir)
	if err != nil {
		return config.Options{}, err
	}
	return config.Options{Dir: config.Folder(folder, dir, env), Settings: filepath.Join(dir, "settings.json"), Env: env}, nil
}

// HomeFolder returns the home folder: homeDir if given, or else the one that the environment names.
func HomeFolder(env func(string) string, homeDir string) (string, error) {
	if homeDir == "" {
		return datadir.Find(env)
	}
	return filepath.Abs(homeDir)
}

// AgentValues returns the configuration keys in the agent's agent.json, and the
// file's path. There are none for an agent that was never created.
func AgentValues(homeDir, name string) (map[string]any, string, error) {
	if name == "" || !filepath.IsLocal(name) || filepath.Base(name) != name {
		return nil, "", nil
	}
	path := filepath.Join(homeDir, "agents", name, "agent.json")
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, "", nil
	}
	if err != nil {
		return nil, path, fmt.Errorf("read the agent's file: %w", err)
	}
	var a agents.Agent
	if err := json.Unmarshal(data, &a); err != nil {
		return nil, path, fmt.Errorf("%s: %w", path, err)
	}
	out := map[string]any{}
	for key, raw := range a.Extra {
		if config.AgentFile.Knows(key) {
			var value any
			if err := json.Unmarshal(raw, &value); err != nil {
				return nil, path, fmt.Errorf("%s: %s: %w", path, key, err)
			}
			out[key] = value
		}
	}
	for key, value := range map[string]string{"systemPrompt": a.SystemPrompt, "continuationModel": a.Model, "permissions": a.Permissions} {
		if value != "" {
			out[key] = value
		}
	}
	return out, path, nil
}

// ConfigAsk fills in what a home knows about a bot: its agent.json,
// and what `/settings` stored for the guild.
func ConfigAsk(env func(string) string, homeDir, bot, guild string) (config.Ask, error) {
	dir, err := HomeFolder(env, homeDir)
	if err != nil {
		return config.Ask{}, err
	}
	ask := config.Ask{Bot: bot, Guild: guild}
	_, ask.Definition, _ = builtin.Define(datadir.At(dir), bot)
	if ask.GuildSettings, err = GuildValues(dir, guild); err != nil {
		return ask, err
	}
	ask.Agent, ask.AgentFile, err = AgentValues(dir, bot)
	return ask, err
}

// CheckConfig reads the files and merges them for every bot in every guild that has a file. It
// reports each problem once, and omits those that only follow from another.
func CheckConfig(o config.Options, env func(string) string, homeDir string) (*config.Files, config.Problems, error) {
	files, problems := config.ReadFiles(o)
	wrong := problems.Errors()
	seen := map[string]bool{}
	for _, bot := range append([]string{""}, files.Bots()...) {
		for _, guild := range append([]string{""}, files.Guilds()...) {
			ask, err := ConfigAsk(env, homeDir, bot, guild)
			if err != nil {
				return files, problems, err
			}
			_, more := files.Bot(ask)
			for _, p := range more {
				if text := p.Error(); !seen[text] && !follows(p, wrong) {
					seen[text] = true
					problems = append(problems, p)
				}
			}
		}
	}
	return files, problems, nil
}

// follows reports whether something at or below the problem's key is already wrong.
func follows(p config.Problem, wrong config.Problems) bool {
	return p.Key != "" && slices.ContainsFunc(wrong, func(w config.Problem) bool {
		return w.Key == p.Key || strings.HasPrefix(w.Key, p.Key+".")
	})
}

// ImportChapter2 is ImportChapter3 for the folder of a chapter2 installation.
func ImportChapter2(env func(string) string, homeDir, folder, from string, o config.ImportOptions) ([]config.Taken, error) {
	to, err := ConfigOptions(env, homeDir, folder)
	if err != nil {
		return nil, err
	}
	o.To = to.Dir
	return config.ImportChapter2(cmp.Or(from, "."), o)
}

// ImportChapter3 imports the configuration of a Chapter3 installation.
func ImportChapter3(env func(string) string, homeDir, folder, from string, o config.ImportOptions) ([]config.Taken, error) {
	to, err := ConfigOptions(env, homeDir, folder)
	if err != nil {
		return nil, err
	}
	o.To = to.Dir
	return config.ImportChapter3(cmp.Or(from, "."), o)
}
