// Package trust remembers which programs of a repository a person allowed to run. An approval covers
// the list of servers as it was shown and the workspace files that the list names: when one of them
// changes, nothing of it is started until somebody reviews it again.
package trust

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"chorus/internal/pattern"
	"chorus/internal/plainfile"
)

const (
	// Absent is the digest of a missing file. A script that appears where a command names one, or
	// a module that takes precedence over an installed one, is a change.
	Absent = "absent"
	// largestFile is larger than any script or bundled program; reading it takes a moment.
	largestFile = 64 << 20
	// mostModules of one package are bound one by one.
	mostModules = 200
	// mostFiles are bound in all: more would take long each time a server starts.
	mostFiles = 2000
)

// Binding is what an approval covers besides the list of servers itself.
type Binding struct {
	Files   map[string]string // digests by path, relative to the workspace if it is there
	Unbound []string          // what is named but not covered, and why; for people
}

// Command is how a server is started.
type Command struct {
	Program string   // the file behind Words[0]; "" if none was found
	Words   []string // the command and its arguments
	Env     map[string]string
	Dir     string // where it runs; relative to the workspace
}

// Bind finds the workspace files that the commands name.
func Bind(workspace string, commands []Command) Binding {
	real, err := filepath.EvalSymlinks(workspace)
	if err != nil {
		real = workspace
	}
	b := &binder{given: workspace, workspace: real, out: Binding{Files: map[string]string{}}}
	for _, c := range commands {
		b.command(c)
	}
	slices.Sort(b.out.Unbound)
	b.out.Unbound = slices.Compact(b.out.Unbound)
	return b.out
}

type binder struct {
	given, workspace string
	out              Binding
	bases            []string // directories that the server's names may be relative to
}

func (b *binder) command(c Command) {
	base := c.Dir
	if !filepath.IsAbs(base) {
		base = filepath.Join(b.workspace, base)
	}
	b.bases = []string{base}
	words := c.Words
	if c.Program != "" {
		b.file(c.Program, false)
	} else if strings.Contains(words[0], "/") {
		b.word(words[0], true)
	}
	for i, word := range words[1:] {
		if dir, ok := b.directory(word); ok && words[i] != "-m" { // a module's name is not a place
			b.bases = append(b.bases, dir)
		}
	}
	for _, word := range words[1:] {
		b.word(word, false)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Env)) {
		for _, part := range filepath.SplitList(c.Env[name]) {
			b.word(part, false)
		}
	}
	b.runner(words)
}

// readsToo are files that programs read from their working directory and that decide what they start.
var readsToo = map[string][]string{
	"npm": {"package.json", ".npmrc"}, "npx": {".npmrc"}, "pnpm": {"package.json", ".npmrc", ".pnpmfile.cjs", "pnpm-workspace.yaml"},
	"yarn": {"package.json", ".yarnrc", ".yarnrc.yml", ".pnp.cjs"}, "bun": {"package.json", "bunfig.toml"}, "bunx": {"bunfig.toml"},
	"deno": {"deno.json", "deno.jsonc"}, "uv": {"pyproject.toml", "uv.toml"}, "uvx": {"uv.toml"}, "poetry": {"pyproject.toml"},
	"cargo": {"Cargo.toml", "build.rs", ".cargo/config.toml"}, "go": {"go.mod", "go.work"},
	"make": {"GNUmakefile", "makefile", "Makefile"}, "gmake": {"GNUmakefile", "makefile", "Makefile"}, "just": {"justfile", "Justfile", ".justfile"},
	"bundle": {"Gemfile", ".bundle/config"}, "docker": {"compose.yaml", "compose.yml", "docker-compose.yml", "Dockerfile"},
}

// scriptRunners are packages that run a script by its name.
var scriptRunners = []string{"tsx", "ts-node", "vite-node", "nodemon", "node"}

// runner binds what programs read without being told.
func (b *binder) runner(words []string) {
	name := filepath.Base(words[0])
	args := words[1:]
	for _, file := range readsToo[name] {
		b.named(file, true)
	}
	switch {
	case strings.HasPrefix(name, "python"), name == "uv", name == "pypy", name == "pypy3":
		b.module(args)
		b.pythonText(args)
	case name == "npm", name == "pnpm", name == "yarn", name == "bun":
		b.packageScripts(args)
	case name == "npx", name == "bunx":
		for i, word := range args {
			if !strings.HasPrefix(word, "-") {
				b.named(filepath.Join("node_modules", ".bin", word), true)
				if slices.Contains(scriptRunners, word) {
					b.scriptModules(args[i+1:])
				}
				return
			}
		}
	case name == "node", name == "nodejs", name == "tsx", name == "deno":
		b.scriptModules(args)
	}
}

// scriptModules binds arguments and option values that name
// JavaScript modules, whose extensions may be omitted.
func (b *binder) scriptModules(args []string) {
	for _, word := range args {
		if strings.HasPrefix(word, "-") {
			_, value, ok := strings.Cut(word, "=")
			if !ok && !strings.HasPrefix(word, "--") {
				value = word[min(2, len(word)):] // -r./x
			}
			word = value
		}
		if word == "" || strings.HasPrefix(word, "-") || slices.Contains(scripts, filepath.Ext(word)) {
			continue
		}
		for _, ending := range []string{".js", ".mjs", ".cjs", ".ts", "/package.json", "/index.js"} {
			b.named(word+ending, false)
		}
	}
}

// pythonText binds what code in an argument imports, and what Python runs of a folder.
func (b *binder) pythonText(args []string) {
	for i, word := range args {
		switch {
		case word == "-c" && i+1 < len(args):
			for _, base := range b.bases {
				b.pythonImports(base, args[i+1])
			}
			return
		case strings.HasPrefix(word, "-"):
		default:
			for _, base := range b.bases[:1] {
				if info, err := os.Stat(filepath.Join(base, word)); err == nil && info.IsDir() {
					b.file(filepath.Join(base, word, "__main__.py"), true)
				}
			}
		}
	}
}

// module binds what `python -m name` would find in the workspace before anything installed.
func (b *binder) module(args []string) {
	for i, word := range args {
		name, attached := strings.CutPrefix(word, "-m")
		switch {
		case !attached:
			continue
		case name == "" && i+1 < len(args):
			name = args[i+1]
		}
		if name == "" || strings.ContainsAny(name, "/ ") {
			return
		}
		path := strings.ReplaceAll(name, ".", "/")
		for _, file := range []string{path + ".py", path + "/__main__.py", path + "/__init__.py"} {
			b.named(file, true)
		}
		b.modules(path)
		return
	}
}

// modules binds the files of a package one by one, unless there are too many.
func (b *binder) modules(path string) {
	for _, base := range b.bases {
		var files []string
		dir := filepath.Join(base, path)
		_ = filepath.WalkDir(dir, func(file string, entry fs.DirEntry, err error) error {
			if err == nil && !entry.IsDir() && strings.HasSuffix(file, ".py") {
				files = append(files, file)
			}
			if len(files) > mostModules {
				return fs.SkipAll
			}
			return nil
		})
		if len(files) > mostModules {
			b.unbound("%s has more than %d files: only its __main__.py and __init__.py are", b.name(dir), mostModules)
			continue
		}
		for _, file := range files {
			b.file(file, false)
		}
	}
}

// packageScripts binds the files that are named by the package.json scripts that run.
func (b *binder) packageScripts(args []string) {
	var names []string
	for _, word := range args {
		if !strings.HasPrefix(word, "-") {
			names = append(names, word, "pre"+word, "post"+word)
		}
	}
	for _, base := range slices.Clone(b.bases) {
		data, err := plainfile.Read(filepath.Join(base, "package.json"), 1<<20)
		var file struct {
			Scripts map[string]string `json:"scripts"`
		}
		if err != nil || json.Unmarshal(data, &file) != nil {
			continue
		}
		for _, name := range names {
			b.word(file.Scripts[name], false)
		}
	}
}

// between is where a file name can end inside a word that contains more than one.
var between = pattern.Lazy("[\\s;&|<>()'\"`$={},:@]+")

// word binds a word of the command line that is a file, and the files named in it.
func (b *binder) word(word string, missing bool) {
	if word == "" {
		return
	}
	b.named(word, missing)
	if parts := between().Split(word, -1); len(parts) > 1 {
		for _, part := range parts {
			b.named(part, false)
			b.attached(part)
		}
	} else {
		b.attached(word)
	}
}

// mostLetters is how many leading characters of a bundle of options,
// including the dash, a file name may follow.
const mostLetters = 6

// attached binds a file in one word with its option: -r./x.js, -fx.mk.
func (b *binder) attached(word string) {
	for i := 2; i < min(len(word), mostLetters) && word[0] == '-'; i++ {
		for _, base := range b.bases {
			file := word[i:]
			if !filepath.IsAbs(file) {
				file = filepath.Join(base, file)
			}
			if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() {
				b.file(file, false)
			}
		}
	}
}

// scripts are extensions of files that interpreters run.
var scripts = []string{".py", ".js", ".mjs", ".cjs", ".ts", ".mts", ".tsx", ".jsx", ".sh", ".bash", ".rb", ".pl", ".php", ".lua", ".jar", ".wasm", ".ps1"}

// data are extensions of files that servers write to: if they were
// bound, each run would require a new approval.
var data = []string{".db", ".sqlite", ".sqlite3", ".duckdb", ".log", ".jsonl", ".csv", ".parquet", ".pid", ".sock"}

// named binds a name in every directory that it may be relative to.
func (b *binder) named(name string, missing bool) {
	if name == "" || strings.HasPrefix(name, "-") || strings.ContainsRune(name, 0) || len(name) > 4096 {
		return
	}
	if filepath.IsAbs(name) {
		b.file(name, missing)
		return
	}
	for _, base := range b.bases {
		b.file(filepath.Join(base, name), missing)
	}
}

// directory returns the directory of the workspace that a word names.
func (b *binder) directory(word string) (string, bool) {
	_, value, _ := strings.Cut(word, "=")
	for _, name := range []string{word, value} {
		if name == "" || strings.HasPrefix(name, "-") {
			continue
		}
		if !filepath.IsAbs(name) {
			name = filepath.Join(b.bases[0], name)
		}
		if info, err := os.Stat(name); err == nil && info.IsDir() {
			return name, true
		}
	}
	return "", false
}

// file binds one path, if it belongs to the workspace.
func (b *binder) file(path string, missing bool) {
	path = filepath.Clean(path)
	real, err := filepath.EvalSymlinks(path)
	if !b.inside(path) && (err != nil || !b.inside(real)) {
		return
	}
	name := b.name(path)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) && (missing || slices.Contains(scripts, filepath.Ext(path)) && !strings.ContainsAny(filepath.Base(path), " \t\n:;,")) {
			b.out.Files[name] = Absent
		}
		return
	}
	info, err := os.Stat(real)
	switch {
	case err != nil:
		return
	case info.IsDir():
		if real != b.workspace {
			b.unbound("%s is a directory: what is in it is not", name)
		}
		return
	case !info.Mode().IsRegular():
		b.unbound("%s is not a plain file", name)
		return
	case slices.Contains(data, strings.ToLower(filepath.Ext(path))):
		b.unbound("%s is taken for data", name)
		return
	case info.Size() > largestFile:
		b.unbound("%s has more than %d MB", name, largestFile>>20)
		return
	}
	sum, err := digestOfFile(real)
	if err != nil {
		b.unbound("%s cannot be read", name)
		return
	}
	if _, again := b.out.Files[name]; !again {
		defer b.loads(path, real)
	}
	if real != path {
		sum += " by way of " + b.name(real) // what it loads comes from next to the file itself
	}
	b.out.Files[name] = sum
}

func (b *binder) inside(path string) bool {
	return within(path, b.workspace) || within(path, b.given)
}

func within(path, root string) bool {
	return path == root || strings.HasPrefix(path, strings.TrimSuffix(root, "/")+"/")
}

// name returns a path as people see it.
func (b *binder) name(path string) string {
	for _, root := range []string{b.workspace, b.given} {
		if rel, err := filepath.Rel(root, path); err == nil && filepath.IsLocal(rel) {
			return rel
		}
	}
	return path
}

func (b *binder) unbound(format string, args ...any) {
	b.out.Unbound = append(b.out.Unbound, fmt.Sprintf(format, args...))
}

func digestOfFile(path string) (string, error) {
	file, _, err := plainfile.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }()
	sum := sha256.New()
	if _, err := io.Copy(sum, io.LimitReader(file, largestFile+1)); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
