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
)

// ImportOptions say where an import goes.
type ImportOptions struct {
	To     string // our folder
	Env    func(string) string
	DryRun bool // say what would be done, touch nothing
	Force  bool // overwrite files that differ
}

// Taken is one thing that an import did, or would do.
type Taken struct {
	From   string `json:"from"` // below the installation
	To     string `json:"to,omitempty"`
	Action string `json:"action"` // written, same, left out, note
	Detail string `json:"detail,omitempty"`
}

// ImportChapter3 takes over the configuration of a Chapter3 installation: its folder, or
// the config folder in it. Our files are written in canonical spelling, with a comment
// where a key was left out; secrets go to files of their own. Nothing is written
// unless everything can be.
func ImportChapter3(from string, o ImportOptions) ([]Taken, error) {
	c := &chapter3{root: from, dir: filepath.Join(from, "config"), o: o, out: map[string]output{}}
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

// chapter3 is an import under way: what will be written, and what was found.
type chapter3 struct {
	root, dir string
	o         ImportOptions
	bots      []string
	out       map[string]output // by path below To
	taken     []Taken
}

// sources lists the files, shared.yaml always: what it must say for all is written there.
func (c *chapter3) sources() ([]string, error) {
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

// convert reads one file and plans what comes of it.
func (c *chapter3) convert(name string) error {
	data, err := os.ReadFile(filepath.Join(c.dir, name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("import: %w", err)
	}
	r := &report{}
	root := parse(r, name, layerOf(name), data)
	if r.found.Err() != nil {
		c.taken = append(c.taken, Taken{From: name, Action: "left out", Detail: "Chapter3 could not read it either: " + r.found[0].Error()})
		return nil
	}
	leaves := shape(r, layerOf(name), nil, root)
	f := &converted{name: name, target: strings.TrimSuffix(name, filepath.Ext(name)) + ".yaml"}
	for _, p := range r.found.Errors() {
		f.leftOut(p.Place.Line, p.Text)
		c.taken = append(c.taken, Taken{From: name, Action: "left out", Detail: fmt.Sprintf("line %d: %s", p.Place.Line, p.Text)})
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
	c.out[f.target] = output{text, 0o600, name}
	return nil
}

// converted is one of our files in the making.
type converted struct {
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
func (c *chapter3) adapt(f *converted, l leaf) leaf {
	switch {
	case l.value.form == isNull:
		f.leftOut(l.at.Line, shownPath(l.path)+" is null, which Chapter3 ignored; here it would unset the key")
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

// literally writes a value so that it means itself: Chapter3 knew no variables.
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
func (c *chapter3) secret(f *converted, l leaf) leaf {
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

// up is the way from the file to the folder.
func (f *converted) up() string {
	if strings.Contains(f.target, "/") {
		return "../"
	}
	return ""
}

// text takes the file of a prompt along. Chapter3 looked for it in bots/ whoever named it.
func (c *chapter3) text(f *converted, l leaf) leaf {
	path := l.value.text
	data, err := os.ReadFile(filepath.Join(c.dir, "bots", path))
	if err != nil {
		f.leftOut(l.at.Line, fmt.Sprintf("%s: %v", l.path, cause(err)))
		c.taken = append(c.taken, Taken{From: f.name, Action: "left out", Detail: fmt.Sprintf("line %d: %s: %s: %v", l.at.Line, l.path, path, cause(err))})
		return leaf{}
	}
	local := filepath.IsLocal(path) && !filepath.IsAbs(path)
	switch {
	case local && layerOf(f.target) == BotFile:
		c.out[filepath.ToSlash(filepath.Join("bots", path))] = output{data, 0o600, filepath.Join("bots", path)}
	case local && layerOf(f.target) == Shared:
		c.out[filepath.ToSlash(filepath.Join("bots", path))] = output{data, 0o600, filepath.Join("bots", path)}
		l.value = &node{form: isText, text: filepath.ToSlash(filepath.Join("bots", path))}
	default: // it stands where we do not look: the text itself
		l.path = strings.TrimSuffix(l.path, "File")
		if f.has(l.path) {
			return leaf{}
		}
		l.key, l.value = table().lookup(l.path), &node{form: isText, text: strings.ReplaceAll(string(data), "${", "$${")}
	}
	return l
}

// patterns warns of those that meant more in Chapter3, where they were regular
// expressions that might match anywhere in the name.
func (c *chapter3) patterns(f *converted, l leaf) {
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

// complete adds what was so without being written.
func (c *chapter3) complete(f *converted) {
	stem := strings.TrimSuffix(filepath.Base(f.target), ".yaml")
	if f.target == "shared.yaml" {
		if !f.has("routing") {
			f.set("routing", "room")
			f.comments = append(f.comments, "added: routing: room, since Chapter3 took a channel for one conversation")
		}
		if !f.has("replyOnRandom") {
			f.set("replyOnRandom", 500)
			f.comments = append(f.comments, "added: replyOnRandom: 500, which was Chapter3's default")
		}
		slices.SortStableFunc(f.leaves, func(a, b leaf) int { return cmp.Compare(a.at.Line, b.at.Line) })
		return
	}
	if layerOf(f.target) != BotFile || !slices.Contains(c.bots, stem) || f.has("discordToken") {
		return
	}
	token, err := os.ReadFile(filepath.Join(c.root, "discord_token"))
	switch {
	case err != nil:
	case len(c.bots) > 1:
		f.comments = append(f.comments, "discord_token was one file for "+fmt.Sprint(len(c.bots))+" bots; give this one its discordToken")
	default:
		c.out["secrets/"+stem+"-discord_token"] = output{token, 0o600, "discord_token"}
		f.set("discordToken", "file:../secrets/"+stem+"-discord_token")
	}
}
