package config

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"chorus/internal/pattern"
	"chorus/internal/suggest"
	"chorus/internal/text"
)

// Options say where the files are.
type Options struct {
	Dir      string              // the folder with shared.yaml, guilds/ and bots/; it need not exist
	Settings string              // settings.json of the home; "": none
	Env      func(string) string // nil: the process's
}

// Folder returns where the files are: the flag, CHORUS_CONFIG,
// CONFIG_PATH, or else config in the home folder.
func Folder(flag, home string, env func(string) string) string {
	return cmp.Or(flag, env("CHORUS_CONFIG"), env("CONFIG_PATH"), filepath.Join(home, "config"))
}

// Files is one version of the folder, read at one moment. It is immutable.
type Files struct {
	Options
	settings, shared []leaf
	guilds, bots     map[string][]leaf // by file name
	digest           string            // of what was read
}

// Load reads the files and merges them for one bot. A server keeps the [Files] and asks them.
func Load(o Options, ask Ask) (*Bot, Problems) {
	files, problems := ReadFiles(o)
	if problems.Err() != nil {
		return nil, problems
	}
	bot, more := files.Bot(ask)
	return bot, append(problems, more...)
}

// ReadFiles reads every file of the folder and returns all problems. If there are
// errors among them, the Files are only fit for display.
func ReadFiles(o Options) (*Files, Problems) {
	if o.Env == nil {
		o.Env = os.Getenv
	}
	f := &Files{Options: o, digest: digest(o)}
	r := &report{}
	if o.Settings != "" {
		f.settings = readSettings(r, o)
	}
	f.shared = readFile(r, o, filepath.Join(o.Dir, "shared.yaml"), Shared)
	f.conflicts(r)
	f.guilds = readFolder(r, o, "guilds", Guild)
	f.bots = readFolder(r, o, "bots", BotFile)
	strays(r, o.Dir)
	return f, r.found
}

// Bots returns the names of the bots that have a file.
func (f *Files) Bots() []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(f.bots)) {
		if bot, _, ok := f.botAndGuild(name); !ok || bot == "" {
			out = append(out, name)
		}
	}
	return out
}

// Guilds returns the ids of the guilds that have a file, including files for a bot in a guild.
func (f *Files) Guilds() []string {
	ids := map[string]bool{}
	for id := range f.guilds {
		ids[id] = true
	}
	for name := range f.bots {
		if _, guild, ok := f.botAndGuild(name); ok {
			ids[guild] = true
		}
	}
	return slices.Sorted(maps.Keys(ids))
}

// botAndGuild distinguishes bots/<name>-<guild>.yaml from a bot whose name ends in a number.
func (f *Files) botAndGuild(name string) (bot, guild string, ok bool) {
	bot, guild, ok = splitName(name)
	_, has := f.bots[bot]
	return bot, guild, ok && (has || len(guild) >= snowflake)
}

// snowflake is the minimum length of a Discord id.
const snowflake = 15

var withGuild = pattern.Lazy(`^(.+)-([0-9]+)$`)

func splitName(name string) (bot, guild string, ok bool) {
	parts := withGuild().FindStringSubmatch(name)
	if parts == nil {
		return "", "", false
	}
	return parts[1], parts[2], true
}

func readFile(r *report, o Options, path string, layer Layer) []leaf {
	at := Place{Layer: layer, File: path}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		r.fail(at, "", "%v", text.Cause(err))
		return nil
	}
	defer f.Close()
	content, err := readLimited(f, largestFile)
	if err != nil {
		r.fail(at, "", "%v", text.Cause(err))
		return nil
	}
	return shape(r, layer, o.Env, parse(r, path, layer, []byte(content)))
}

// readSettings reads settings.json as a layer. As always, a number 0 there means the default.
func readSettings(r *report, o Options) []leaf {
	data, err := os.ReadFile(o.Settings)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		r.fail(Place{Layer: SettingsFile, File: o.Settings}, "", "%v", text.Cause(err))
		return nil
	}
	return shape(r, SettingsFile, o.Env, parseJSON(r, o.Settings, data))
}

// parseJSON parses the text of settings.json, which must be strict JSON, although it is parsed as YAML to get
// positions. JSON may be indented with tabs, which YAML rejects; JSON strings contain none.
func parseJSON(r *report, path string, data []byte) *node {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if len(bytes.TrimSpace(data)) == 0 {
		return nil
	}
	at := Place{Layer: SettingsFile, File: path}
	var whole json.RawMessage
	if err := json.Unmarshal(data, &whole); err != nil {
		offset := int64(len(data))
		if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
			offset = syntax.Offset - 1
		}
		at.Line, at.Column = lineColumn(data, offset)
		r.fail(at, "", "%v", err)
		return nil
	}
	n := parse(r, path, SettingsFile, []byte(strings.ReplaceAll(string(data), "\t", " ")))
	withoutZeros(n)
	return n
}

func lineColumn(data []byte, offset int64) (line, column int) {
	offset = min(max(offset, 0), int64(len(data)))
	before := data[:offset]
	return 1 + bytes.Count(before, []byte("\n")), max(int(offset)-bytes.LastIndexByte(before, '\n'), 1)
}

func withoutZeros(n *node) {
	if n == nil {
		return
	}
	n.fields = slices.DeleteFunc(n.fields, func(f field) bool { return f.value.form == isNumber && f.value.number == 0 })
	for _, f := range n.fields {
		withoutZeros(f.value)
	}
}

// conflicts warns where settings.json and shared.yaml disagree.
func (f *Files) conflicts(r *report) {
	var m merged
	m.lay(f.settings)
	for _, l := range f.shared {
		old := m.get(l.path)
		if old == nil || l.key == nil || sameValue(old.value, l.value) {
			continue
		}
		r.warn(old.at, l.path, "%s is set here and in %s; shared.yaml holds", shownPath(l.path), l.at)
	}
}

func sameValue(a, b *node) bool {
	return a.form == b.form && a.number == b.number && a.truth == b.truth && (a.form == isNumber || a.text == b.text) &&
		slices.EqualFunc(a.items, b.items, sameValue)
}

func readFolder(r *report, o Options, folder string, layer Layer) map[string][]leaf {
	dir := filepath.Join(o.Dir, folder)
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.fail(Place{File: dir}, "", "%v", text.Cause(err))
	}
	out := map[string][]leaf{}
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".yaml")
		switch {
		case strings.HasPrefix(e.Name(), ".") || e.IsDir():
		case ok && name != "":
			out[name] = readFile(r, o, filepath.Join(dir, e.Name()), layer)
		case strings.HasSuffix(e.Name(), ".yml"):
			r.warn(Place{File: filepath.Join(dir, e.Name())}, "", "not read: rename it to end in .yaml")
		}
	}
	return out
}

// strays warns about files that look as if they were meant to be read.
func strays(r *report, dir string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		name, at := e.Name(), Place{File: filepath.Join(dir, e.Name())}
		switch {
		case strings.HasPrefix(name, ".") || name == "shared.yaml" || name == "guilds" || name == "bots":
		case e.IsDir():
			if best := suggest.Best(name, []string{"guilds", "bots"}); best != "" {
				r.warn(at, "", "this folder is not read; did you mean %q?", best)
			}
		case strings.HasSuffix(name, ".yaml") || strings.HasSuffix(name, ".yml"):
			r.warn(at, "", "not read: the files are shared.yaml, guilds/<id>.yaml, bots/<name>.yaml and bots/<name>-<guild>.yaml")
		}
	}
}

// Has reports whether the bot has its own file.
func (f *Files) Has(bot string) bool {
	_, ok := f.bots[bot]
	return ok
}
