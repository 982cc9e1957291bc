package config

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"chorus/internal/text"
)

// ImportOptions say where an import goes.
type ImportOptions struct {
	To     string // our folder
	DryRun bool   // report what would be done, change nothing
	Force  bool   // overwrite files that differ
}

// Taken is one thing that an import did, or would do.
type Taken struct {
	From   string `json:"from"` // relative to the installation
	To     string `json:"to,omitempty"`
	Action string `json:"action"` // written, same, left out, note
	Detail string `json:"detail,omitempty"`
}

// ImportChapter3 imports the configuration of a Chapter3 installation: its folder, or the config folder
// in it. Our files are written in canonical spelling, with a comment where a key was left out. Secrets
// go to separate files. Nothing is written unless everything can be.
func ImportChapter3(from string, o ImportOptions) ([]Taken, error) {
	c := &takeover{program: "Chapter3", root: from, dir: filepath.Join(from, "config"), o: o, out: map[string]output{}}
	if _, err := os.Stat(c.dir); err != nil {
		c.dir = from
	}
	names, err := c.sources()
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("there is no Chapter3 configuration in %s: want config/shared.yaml or config/bots/*.yaml", from)
	}
	for _, name := range names {
		if err := c.convert(name); err != nil {
			return nil, err
		}
	}
	return c.taken, c.write()
}

type output struct {
	data []byte
	perm fs.FileMode
	from string
}

// takeover is an import in progress: what will be written, and what was found.
type takeover struct {
	program   string // whose configuration it is
	root, dir string
	files     map[string]string // chapter2: the source below root for each of our files
	o         ImportOptions
	bots      []string
	out       map[string]output // by path below To
	taken     []Taken
}

// sources lists the files, always including shared.yaml, which gets what applies to all.
func (c *takeover) sources() ([]string, error) {
	var names []string
	for _, pattern := range []string{"shared.y*ml", "guilds/*.y*ml", "bots/*.y*ml"} {
		found, err := filepath.Glob(filepath.Join(c.dir, pattern))
		if err != nil {
			return nil, err
		}
		for _, path := range found {
			name, err := filepath.Rel(c.dir, path)
			if err != nil {
				return nil, err
			}
			names = append(names, filepath.ToSlash(name))
			stem := strings.TrimSuffix(filepath.Base(name), filepath.Ext(name))
			if _, guild, ok := splitName(stem); strings.HasPrefix(name, "bots/") && (!ok || len(guild) < snowflake) {
				c.bots = append(c.bots, stem)
			}
		}
	}
	if len(names) > 0 && !strings.HasPrefix(names[0], "shared.") {
		names = append([]string{"shared.yaml"}, names...)
	}
	return names, nil
}

func layerOf(name string) Layer {
	switch {
	case strings.HasPrefix(name, "guilds/"):
		return Guild
	case strings.HasPrefix(name, "bots/"):
		return BotFile
	default:
		return Shared
	}
}

// convert reads one file and plans the result.
func (c *takeover) convert(name string) error {
	data, shown, err := c.source(name)
	if err != nil {
		return err
	}
	r := &report{}
	root := parse(r, name, layerOf(name), data)
	if r.found.Err() != nil {
		c.taken = append(c.taken, Taken{From: shown, Action: "left out", Detail: c.program + " could not read it either: " + r.found[0].Error()})
		return nil
	}
	f := &converted{program: c.program, name: shown, target: strings.TrimSuffix(name, filepath.Ext(name)) + ".yaml"}
	if c.files != nil {
		c.oldNames(f, root)
	}
	leaves := shape(r, layerOf(name), nil, root)
	for _, p := range r.found.Errors() {
		f.leftOut(p.Place.Line, p.Text)
		c.taken = append(c.taken, Taken{From: shown, Action: "left out", Detail: fmt.Sprintf("line %d: %s", p.Place.Line, p.Text)})
	}
	for _, l := range leaves {
		if l = c.adapt(f, l); l.value != nil {
			f.leaves = append(f.leaves, l)
		}
	}
	c.complete(f)
	text, err := f.document()
	if err != nil {
		return fmt.Errorf("import %s: %w", name, err)
	}
	c.out[f.target] = output{text, 0o600, shown}
	return nil
}

// source reads the source of one of our files, or nothing if there is none, and returns what to call it.
func (c *takeover) source(name string) (data []byte, shown string, err error) {
	path, shown := filepath.Join(c.dir, name), name
	if c.files != nil {
		file, ok := c.files[name]
		if !ok {
			return nil, name, nil
		}
		path, shown = filepath.Join(c.root, file), file
	}
	data, err = os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, shown, fmt.Errorf("import: %w", err)
	}
	return data, shown, nil
}

// converted is one of our files in the making.
type converted struct {
	program      string
	name, target string
	comments     []string
	leaves       []leaf
}

func (f *converted) leftOut(line int, why string) {
	f.comments = append(f.comments, fmt.Sprintf("left out (line %d): %s", line, why))
}

func (f *converted) has(path string) bool {
	return slices.ContainsFunc(f.leaves, func(l leaf) bool { return l.path == path })
}

func (f *converted) set(path string, value any) {
	f.leaves = append(f.leaves, leaf{path: path, key: table().lookup(path), value: given(value, Place{}, 0)})
}

// adapt changes a value that means something else here. A leaf without a value is left out.
func (c *takeover) adapt(f *converted, l leaf) leaf {
	switch {
	case l.value.form == isNull:
		f.leftOut(l.at.Line, shownPath(l.path)+" is null, which "+c.program+" ignored; here it would unset the key")
		return leaf{}
	case l.key == nil:
		return l
	case l.key.Secret && l.value.form == isText && !isReference(l.value.text) && hidden(l.key, l.path, l.value.text):
		return c.secret(f, l)
	case l.path == "systemPromptFile" || l.path == "contextPrefixFile":
		return c.text(f, l)
	case strings.HasSuffix(l.path, ".provides"):
		c.patterns(f, l)
	}
	if !l.key.Secret {
		l.value = literally(l.value)
	}
	return l
}

// literally escapes a value so that it means itself: Chapter3 had no variables.
func literally(n *node) *node {
	out := *n
	out.text = strings.ReplaceAll(n.text, "${", "$${")
	out.items = nil
	for _, item := range n.items {
		out.items = append(out.items, literally(item))
	}
	return &out
}

// secret moves a secret out of the file.
func (c *takeover) secret(f *converted, l leaf) leaf {
	parts := strings.Split(l.path, ".")
	name := unescape(parts[len(parts)-1])
	if len(parts) > 1 {
		name = unescape(parts[1]) + "-" + name
	}
	name = strings.Map(func(r rune) rune {
		if strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.", r) {
			return r
		}
		return '_'
	}, strings.TrimLeft(name, "."))
	if f.target != "shared.yaml" {
		name = strings.TrimSuffix(filepath.Base(f.target), ".yaml") + "-" + name
	}
	c.out["secrets/"+name] = output{[]byte(l.value.text + "\n"), 0o600, f.name}
	c.taken = append(c.taken, Taken{From: f.name, To: "secrets/" + name, Action: "note", Detail: shownPath(l.path) + " is kept in a file of its own, for you alone"})
	l.value = &node{form: isText, text: "file:" + f.up() + "secrets/" + name}
	return l
}

// up returns the relative path from the file to the folder.
func (f *converted) up() string {
	if strings.Contains(f.target, "/") {
		return "../"
	}
	return ""
}

// text also imports the file of a prompt. Chapter3 looked for it in bots/, whichever file named it.
func (c *takeover) text(f *converted, l leaf) leaf {
	path := l.value.text
	from, folder := filepath.Join("bots", path), "bots"
	read := filepath.Join(c.dir, from)
	if c.files != nil {
		from, folder = c.promptFile(f, path)
		read = filepath.Join(c.root, from)
	}
	if filepath.IsAbs(path) {
		read = path
	}
	data, err := os.ReadFile(read)
	if err != nil {
		f.leftOut(l.at.Line, fmt.Sprintf("%s: %v", l.path, text.Cause(err)))
		c.taken = append(c.taken, Taken{From: f.name, Action: "left out", Detail: fmt.Sprintf("line %d: %s: %s: %v", l.at.Line, l.path, path, text.Cause(err))})
		return leaf{}
	}
	local := filepath.IsLocal(path) && !filepath.IsAbs(path)
	switch {
	case local && layerOf(f.target) == BotFile:
		target := filepath.ToSlash(filepath.Join(folder, path))
		c.out[target] = output{data, 0o600, from}
		l.value = &node{form: isText, text: strings.TrimPrefix(target, "bots/")}
	case local && layerOf(f.target) == Shared:
		target := filepath.ToSlash(filepath.Join(folder, path))
		c.out[target] = output{data, 0o600, from}
		l.value = &node{form: isText, text: target}
	default: // it is in a place that we do not read: use the text itself
		l.path = strings.TrimSuffix(l.path, "File")
		if f.has(l.path) {
			return leaf{}
		}
		l.key, l.value = table().lookup(l.path), &node{form: isText, text: strings.ReplaceAll(string(data), "${", "$${")}
	}
	return l
}

// patterns warns about patterns that meant more in Chapter3, where they were
// regular expressions that could match anywhere in the name.
func (c *takeover) patterns(f *converted, l leaf) {
	for _, item := range l.value.items {
		if strings.ContainsAny(item.text, `\`) || strings.Contains(item.text, ".*") {
			continue
		}
		why := "matches the whole name now, not a part of it"
		if strings.ContainsAny(item.text, "^$()[]|+{}") {
			why = "was a regular expression; one needs a .* or a \\ in it to be one here"
		} else if strings.ContainsAny(item.text, "*?") {
			why = "is a glob now, not a regular expression"
		}
		f.comments = append(f.comments, fmt.Sprintf("look at (line %d): the pattern %q %s", item.at.Line, item.text, why))
		c.taken = append(c.taken, Taken{From: f.name, Action: "note", Detail: fmt.Sprintf("line %d: the pattern %q %s", item.at.Line, item.text, why)})
	}
}

// complete adds what was the default in Chapter3.
func (c *takeover) complete(f *converted) {
	stem := strings.TrimSuffix(filepath.Base(f.target), ".yaml")
	if f.target == "shared.yaml" {
		if !f.has("routing") {
			f.set("routing", "room")
			f.comments = append(f.comments, "added: routing: room, since "+c.program+" took a channel for one conversation")
		}
		if c.files == nil && !f.has("replyOnRandom") {
			f.set("replyOnRandom", 500)
			f.comments = append(f.comments, "added: replyOnRandom: 500, which was Chapter3's default")
		}
		slices.SortStableFunc(f.leaves, func(a, b leaf) int { return cmp.Compare(a.at.Line, b.at.Line) })
		return
	}
	if layerOf(f.target) != BotFile || !slices.Contains(c.bots, stem) || f.has("discordToken") {
		return
	}
	source := "discord_token"
	if c.files != nil {
		source = filepath.ToSlash(filepath.Join(stem, source))
	}
	token, err := os.ReadFile(filepath.Join(c.root, source))
	switch {
	case err != nil:
	case c.files == nil && len(c.bots) > 1:
		f.comments = append(f.comments, "discord_token was one file for "+fmt.Sprint(len(c.bots))+" bots; give this one its discordToken")
	default:
		c.out["secrets/"+stem+"-discord_token"] = output{token, 0o600, source}
		f.set("discordToken", "file:../secrets/"+stem+"-discord_token")
	}
}
