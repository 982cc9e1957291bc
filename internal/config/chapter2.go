package config

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// ImportChapter2 imports the folder of a chapter2 installation, as EMS_PATH named it: config.yaml for
// all bots, and for each bot a folder with config.yaml, guilds/ID.yaml and discord_token. It writes as
// ImportChapter3 does. Anything else there is listed as left out.
func ImportChapter2(from string, o ImportOptions) ([]Taken, error) {
	c := &takeover{program: "chapter2", root: from, dir: from, o: o, out: map[string]output{}, files: map[string]string{}}
	names, err := c.chapter2Sources()
	if err != nil {
		return nil, err
	}
	if len(c.files) == 0 && len(c.bots) == 0 {
		return nil, fmt.Errorf("there is no chapter2 configuration in %s: want config.yaml, or a folder for each bot with config.yaml or discord_token", from)
	}
	for _, name := range names {
		if err := c.convert(name); err != nil {
			return nil, err
		}
	}
	if err := c.nameTheRest(); err != nil {
		return nil, err
	}
	return c.taken, c.write()
}

// chapter2Sources lists our files in the order in which they are made, shared.yaml first.
func (c *takeover) chapter2Sources() ([]string, error) {
	names := []string{"shared.yaml"}
	add := func(name, file string) {
		c.files[name] = file
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if c.isFile("config.yaml") {
		add("shared.yaml", "config.yaml")
	}
	entries, err := os.ReadDir(c.root)
	if err != nil {
		return nil, fmt.Errorf("import: %w", err)
	}
	for _, e := range entries {
		bot := e.Name()
		if !e.IsDir() || !c.isFile(bot+"/config.yaml") && !c.isFile(bot+"/discord_token") {
			continue
		}
		c.bots = append(c.bots, bot)
		names = append(names, "bots/"+bot+".yaml")
		if c.isFile(bot + "/config.yaml") {
			add("bots/"+bot+".yaml", bot+"/config.yaml")
		}
		guilds, err := filepath.Glob(filepath.Join(c.root, bot, "guilds", "*.y*ml"))
		if err != nil {
			return nil, err
		}
		for _, file := range guilds {
			base := filepath.Base(file)
			add("bots/"+bot+"-"+strings.TrimSuffix(base, filepath.Ext(base))+".yaml", bot+"/guilds/"+base)
		}
	}
	return names, nil
}

func (c *takeover) isFile(name string) bool {
	info, err := os.Stat(filepath.Join(c.root, name))
	return err == nil && info.Mode().IsRegular()
}

// oldNames renames chapter2's keys to the names of Chapter3 and Chorus.
func (c *takeover) oldNames(f *converted, root *node) {
	if root == nil {
		return
	}
	has := func(name string) bool {
		return slices.ContainsFunc(root.fields, func(o field) bool { return o.name == name })
	}
	for i, old := range root.fields {
		if old.name != "continuation_max_tokens" || has("max_tokens") || has("maxTokens") {
			continue
		}
		root.fields[i].name = "max_tokens"
		f.comments = append(f.comments, fmt.Sprintf("renamed (line %d): continuation_max_tokens is maxTokens", old.at.Line))
	}
}

// promptFile returns where a prompt file named by chapter2 is (next to the naming file or
// in the common folder), and our folder for it: each bot has its own.
func (c *takeover) promptFile(f *converted, path string) (from, folder string) {
	bot, _, inBot := strings.Cut(f.name, "/")
	if !inBot {
		return path, "bots"
	}
	for _, from := range []string{filepath.Join(filepath.Dir(f.name), path), filepath.Join(bot, path)} {
		if c.isFile(from) {
			return from, "bots/" + bot
		}
	}
	return path, "bots/" + bot
}

// nameTheRest lists what the installation contains but was not imported.
func (c *takeover) nameTheRest() error {
	used := map[string]bool{}
	for _, file := range c.files {
		used[file] = true
	}
	for _, o := range c.out {
		used[filepath.ToSlash(o.from)] = true
	}
	for _, dir := range append([]string{"."}, c.bots...) {
		entries, err := os.ReadDir(filepath.Join(c.root, dir))
		if err != nil {
			return fmt.Errorf("import: %w", err)
		}
		for _, e := range entries {
			name := filepath.ToSlash(filepath.Join(dir, e.Name()))
			switch {
			case used[name], dir == "." && slices.Contains(c.bots, name), dir != "." && e.Name() == "guilds":
			case dir != "." && e.Name() == "discord_token", strings.HasPrefix(e.Name(), "."):
			default:
				c.taken = append(c.taken, Taken{From: name, Action: "left out", Detail: "it is no file of the configuration; what people said is read from the platform again"})
			}
		}
	}
	return nil
}
