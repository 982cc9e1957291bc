package commandfiles

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// implied are the files that programs read without being told to, and whose contents decide what they run.
var implied = map[string][]string{
	"make": {"GNUmakefile", "makefile", "Makefile"}, "gmake": {"GNUmakefile", "makefile", "Makefile"},
	"npm": {"package.json", ".npmrc"}, "npx": {"package.json", ".npmrc"}, "pnpm": {"package.json", ".npmrc", ".pnpmfile.cjs"},
	"yarn": {"package.json", ".yarnrc", ".yarnrc.yml"}, "bun": {"package.json", "bunfig.toml"}, "deno": {"deno.json", "deno.jsonc"},
	"composer": {"composer.json"}, "bundle": {"Gemfile"}, "rake": {"Rakefile", "rakefile", "Rakefile.rb"},
	"just": {"justfile", "Justfile", ".justfile"}, "task": {"Taskfile.yml", "Taskfile.yaml", "Taskfile.dist.yml"},
	"cargo": {"Cargo.toml", "build.rs", ".cargo/config.toml", ".cargo/config"}, "cmake": {"CMakeLists.txt", "CMakePresets.json"}, "ninja": {"build.ninja"},
	"gradle": {"build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts"}, "gradlew": {"build.gradle", "build.gradle.kts", "settings.gradle", "settings.gradle.kts", "gradle/wrapper/gradle-wrapper.properties", "gradle/wrapper/gradle-wrapper.jar"},
	"mvn": {"pom.xml", ".mvn/extensions.xml"}, "mvnw": {"pom.xml", ".mvn/extensions.xml", ".mvn/wrapper/maven-wrapper.properties"}, "ant": {"build.xml"},
	"pytest": {"conftest.py", "pytest.ini", "pyproject.toml", "tox.ini", "setup.cfg"}, "tox": {"tox.ini", "pyproject.toml", "setup.cfg"}, "nox": {"noxfile.py"},
	"poetry": {"pyproject.toml"}, "uv": {"pyproject.toml", "uv.toml"}, "pre-commit": {".pre-commit-config.yaml"},
	"docker": {"Dockerfile", "compose.yaml", "compose.yml", "docker-compose.yaml", "docker-compose.yml"}, "docker-compose": {"compose.yaml", "compose.yml", "docker-compose.yaml", "docker-compose.yml"},
	"vagrant": {"Vagrantfile"}, "terraform": {".terraformrc"}, "ansible-playbook": {"ansible.cfg"},
}

// interpreter says how a program that runs a script finds it: the first word after its options.
type interpreter struct {
	code string // letters of options that take code in place of a script
	with string // letters of options that take another value
}

var interpreters = map[string]interpreter{
	"sh": {"c", "oO"}, "bash": {"c", "oO"}, "dash": {"c", "o"}, "zsh": {"c", "o"}, "ksh": {"c", "o"}, "ash": {"c", "o"}, "fish": {"c", ""},
	"source": {}, ".": {}, "python": {"cm", "WX"}, "pypy": {"cm", "WX"}, "perl": {"eE", "I"}, "ruby": {"e", "Ir"}, "node": {"ep", "r"}, "nodejs": {"ep", "r"},
	"php": {"r", "c"}, "lua": {"e", "l"}, "luajit": {"e", "l"}, "Rscript": {"e", ""}, "tclsh": {}, "expect": {"c", ""}, "julia": {"eE", ""}, "pwsh": {"cC", ""},
}

// starters run the command that follows them, so an interpreter may be anywhere among their words.
var starters = []string{"env", "sudo", "doas", "timeout", "nice", "ionice", "nohup", "setsid", "stdbuf", "time", "command", "exec", "builtin", "xargs", "find", "parallel",
	"watch", "strace", "ltrace", "flock", "taskset", "chrt", "unshare", "poetry", "uv", "pipenv", "bundle", "npx", "busybox", "entr"}

// feeders pass files to what they run whose names do not appear in the command.
var feeders = []string{"xargs", "find", "parallel", "entr"}

// loaders run code of the workspace that does not appear in the command: tests that they search
// for, and what one of their files starts or includes. The programs in implied do so too.
var loaders = []string{"pytest", "py.test", "unittest", "behave", "jest", "mocha", "vitest", "ava", "rspec", "phpunit", "prove", "go", "ctest", "meson", "scons", "bazel", "dotnet", "swift", "mix", "sbt", "lein", "stack", "cabal", "zig", "pip", "pip3",
	"tsx", "ts-node", "electron", "hatch", "pdm", "pipenv", "invoke", "fab", "snakemake", "dune", "dub", "crystal", "shards", "lerna", "nx", "turbo", "webpack", "vite", "rollup", "gulp", "grunt", "eslint"}

// onlyThese are the words of which one must follow a program for it to
// load code. With a word of onlyWithout it does not.
var (
	onlyThese = map[string][]string{"go": {"run", "test", "generate", "tool"}, "docker": {"build", "compose", "buildx"}, "pip": {"install", "wheel", "download"}, "pip3": {"install", "wheel", "download"},
		"terraform": {"init", "plan", "apply", "destroy", "test"}, "swift": {"build", "run", "test", "package"}, "uv": {"run", "sync", "build", "pip", "tool", "lock", "add"}, "poetry": {"run", "install", "build"}}
	onlyWithout = map[string][]string{"": {"--version", "-v", "-V", "--help", "-h", "help", "version"}, "npm": {"view", "info", "ls", "list", "outdated", "search", "config", "whoami", "ping", "audit"}, "cargo": {"fmt", "tree", "search", "metadata"}}
)

// program returns the program that a word starts, without its folder and version.
func program(word *syntax.Word) string {
	text := literal(word)
	if text == "" {
		return ""
	}
	name := filepath.Base(text)
	if trimmed := strings.TrimRight(name, "0123456789."); trimmed == "python" || trimmed == "pypy" {
		return trimmed
	}
	return name
}

// call examines one command: which files its program reads implicitly,
// what it runs, and what of that cannot be bound.
func (f *finder) call(args []*syntax.Word, redirs []*syntax.Redirect, nested int) {
	if len(args) == 0 {
		return
	}
	first := program(args[0])
	f.feeds(args, first)
	for i, a := range args {
		name := program(a)
		if word := printed(a); i > 0 && strings.Contains(word, "=") && slices.Contains(starters, first) {
			variable, _, _ := strings.Cut(word, "=")
			f.searches(variable)
		}
		if name == "" || i > 0 && !slices.Contains(starters, first) {
			continue
		}
		for _, file := range implied[name] {
			f.imply(file, args[i+1:])
		}
		if loadsCode(name, args[i+1:]) {
			f.loads(name)
		}
		f.readsScript(name, args[i+1:])
		switch in, ok := interpreters[name]; {
		case ok:
			f.script(args, i, in, redirs, nested)
		case name == "eval" || name == "trap" || name == "alias":
			f.evaluated(name, args[i+1:], nested)
		case name == "env" && strings.ContainsAny(splitText(args[i+1:]), `\$`):
			f.unbound("what env -S makes of its text")
		}
	}
	f.startsFile(args[0])
	if !slices.Contains(starters, first) || slices.Contains(feeders, first) {
		return
	}
	for _, a := range args[1:] { // the first word that is not an option, number or variable is what it starts
		if text := printed(a); !strings.HasPrefix(text, "-") && !strings.Contains(text, "=") && strings.Trim(text, "0123456789.smhd") != "" {
			f.startsFile(a)
			return
		}
	}
}

// startsFile examines the word that names the program.
func (f *finder) startsFile(word *syntax.Word) {
	if text := literal(word); text != "" && !strings.HasPrefix(text, "~") {
		if strings.Contains(text, "/") {
			f.runs(text)
		}
		return
	}
	fields, err := f.expand(word)
	if err != nil {
		f.unbound(fmt.Sprintf("%s, which is run: %s", printed(word), err))
	}
	f.inHome(word)
	for _, field := range fields {
		if strings.Contains(field, "/") {
			f.runs(field)
		}
	}
}

// inHome reports that a file below the home may be a different one, since a sandbox has its own home.
func (f *finder) inHome(word *syntax.Word) {
	if text := printed(word); strings.HasPrefix(text, "~") || strings.Contains(text, "$HOME") || strings.Contains(text, "${HOME") {
		f.unbound(text + ": a sandbox has a different home")
	}
}

// loadsCode reports whether a program runs code of the workspace that does not appear in the command.
func loadsCode(name string, args []*syntax.Word) bool {
	if implied[name] == nil && !slices.Contains(loaders, name) {
		return false
	}
	has := func(words []string) bool {
		return slices.ContainsFunc(args, func(a *syntax.Word) bool { return slices.Contains(words, literal(a)) })
	}
	if only := onlyThese[name]; only != nil && !has(only) {
		return false
	}
	return !(len(args) > 0 && (slices.Contains(onlyWithout[""], literal(args[0])) || slices.Contains(onlyWithout[name], literal(args[0]))))
}

// feeds reports that the files that a program passes to others, or the
// folders in which it runs them, are not bound.
func (f *finder) feeds(args []*syntax.Word, first string) {
	if !slices.Contains(feeders, first) {
		return
	}
	for i, a := range args[1:] {
		switch option := literal(a); {
		case option == "-execdir" || option == "-okdir":
			f.unbound("files in the folders that " + first + " goes through")
		case option == "{}" && slices.Contains([]string{"-exec", "-ok"}, literal(args[i])):
			f.unbound("the files that " + first + " runs")
		}
	}
}

// readsScript reports why the file after -f is not known, for programs that take their script with -f.
func (f *finder) readsScript(name string, args []*syntax.Word) {
	if !slices.Contains([]string{"awk", "gawk", "mawk", "nawk", "sed", "gsed", "bc", "jq", "psql", "sqlite3", "gnuplot"}, name) {
		return
	}
	for i, a := range args {
		text := printed(a)
		if i > 0 && slices.Contains([]string{"-f", "--file", "-i", "-init"}, literal(args[i-1])) || strings.HasPrefix(text, "-f") || strings.HasPrefix(text, "--file=") {
			if _, err := f.expand(a); err != nil {
				f.unbound(fmt.Sprintf("%s, which %s runs: %s", text, name, err))
			}
		}
	}
}

// evaluated examines the text that a shell builtin runs, now or later.
func (f *finder) evaluated(name string, words []*syntax.Word, nested int) {
	var text []string
	for i, w := range words {
		fields, err := f.expand(w)
		if err != nil {
			f.unbound(fmt.Sprintf("what %s runs: %s", name, printed(w)))
			return
		}
		joined := strings.Join(fields, " ")
		switch {
		case name == "trap" && i > 0: // names of signals
		case name == "alias":
			_, joined, _ = strings.Cut(joined, "=")
			text = append(text, joined, "\n")
		default:
			text = append(text, joined)
		}
	}
	f.text(strings.Join(text, " "), nested+1)
}

// splitText returns what follows the -S of env.
func splitText(args []*syntax.Word) string {
	for i, a := range args {
		text := literal(a)
		if !strings.HasPrefix(text, "-") {
			continue
		}
		if raw := printed(a); strings.Contains(text, "S") || strings.HasPrefix(text, "--split") {
			if i+1 < len(args) {
				raw += printed(args[i+1])
			}
			return raw
		}
	}
	return ""
}

// imply binds a file in each folder and those above it, and in the folders among the program's words.
func (f *finder) imply(name string, words []*syntax.Word) {
	folders := slices.Clone(f.folders)
	for _, w := range words {
		fields, _ := f.expand(w)
		for _, field := range fields {
			dir := join(f.folders[0], field)
			if rel, in := f.below(dir); in && !slices.Contains(folders, dir) && len(folders) < maxFolders {
				if info, err := f.root.Stat(rel); err == nil && info.IsDir() {
					folders = append(folders, dir)
				}
			}
		}
	}
	for _, dir := range folders {
		for {
			path := filepath.Join(dir, name)
			if !slices.Contains(f.found.Implied, path) {
				f.found.Implied = append(f.found.Implied, path)
			}
			if _, in := f.below(filepath.Dir(dir)); !in {
				break
			}
			dir = filepath.Dir(dir)
		}
	}
}

// script finds what an interpreter runs: the text after -c, or a file.
func (f *finder) script(args []*syntax.Word, at int, in interpreter, redirs []*syntax.Redirect, nested int) {
	input := false // the script comes from the input
	for i := at + 1; i < len(args); i++ {
		option := literal(args[i])
		switch {
		case option == "--" || len(option) > 1 && option[0] == '+': // +e of a shell
			continue
		case option == "-":
			input = true
		case len(option) > 1 && option[0] == '-' && option[1] != '-':
			letter := strings.IndexAny(option[1:], in.code+in.with) + 1
			switch {
			case letter == 0:
				input = input || isShell(program(args[at])) && strings.Contains(option, "s")
				continue
			case strings.Contains(in.with, option[letter:letter+1]):
				if letter == len(option)-1 {
					i++
				}
				continue
			case option[letter] == 'm':
				f.module(args, at, i, option[letter+1:])
			case isShell(program(args[at])) && i+1 < len(args):
				if at > 0 && strings.Contains(printed(args[i+1]), "{}") {
					f.unbound(fmt.Sprintf("the text that %s gives to %s", program(args[0]), literal(args[at])))
				}
				f.inner(args[i+1:], nested)
			case i+1 < len(args):
				f.code(literal(args[at]), args[i], args[i+1])
			}
			return
		case len(option) > 2 && option[:2] == "--":
			if option == "--test" {
				f.loads(program(args[at]) + " --test")
			}
			continue
		}
		if input {
			break // what follows are arguments of the script
		}
		fields, err := f.expand(args[i])
		if err != nil {
			f.unbound(fmt.Sprintf("%s, which %s runs: %s", printed(args[i]), literal(args[at]), err))
		}
		f.inHome(args[i])
		for _, field := range fields {
			if strings.Contains(field, "{}") && at > 0 {
				f.unbound(fmt.Sprintf("the files that %s gives to %s", program(args[0]), literal(args[at])))
				return
			}
			f.runs(field)
		}
		return
	}
	if at > 0 && slices.Contains(feeders, program(args[0])) {
		f.unbound(fmt.Sprintf("the files that %s gives to %s", program(args[0]), literal(args[at])))
		return
	}
	f.comesIn(literal(args[at]), redirs, nested)
}

// comesIn examines what an interpreter without a script reads: a file,
// a text in the command, or something unknown.
func (f *finder) comesIn(name string, redirs []*syntax.Redirect, nested int) {
	known := false
	for _, r := range redirs {
		switch {
		case r.N != nil && r.N.Value != "0":
		case r.Op == syntax.RdrIn:
			_, err := f.expand(r.Word)
			known = err == nil
		case r.Op == syntax.WordHdoc:
			known = f.textOf(name, r.Word, nested)
		case r.Op == syntax.Hdoc || r.Op == syntax.DashHdoc:
			known = f.textOf(name, r.Hdoc, nested)
		}
	}
	if !known {
		f.unbound("what " + name + " reads from its input")
	}
}

// textOf examines a text that is passed to an interpreter.
func (f *finder) textOf(name string, word *syntax.Word, nested int) bool {
	if word == nil {
		return true
	}
	fields, err := f.expand(word)
	if err != nil {
		return false
	}
	if isShell(program(&syntax.Word{Parts: []syntax.WordPart{&syntax.Lit{Value: name}}})) {
		f.text(strings.Join(fields, " "), nested+1)
		return true
	}
	f.code(name, word)
	return true
}

// loading are words in code that make it read further files.
var loading = []string{"import", "require", "open", "exec", "system", "spawn", "load", "eval", "source", "read", "use ", "do ", "include", "File", "`"}

// code reports that the files used by code in another language are not bound, if it may use any.
func (f *finder) code(name string, words ...*syntax.Word) {
	for _, w := range words {
		if text := printed(w); slices.ContainsFunc(loading, func(word string) bool { return strings.Contains(text, word) }) || strings.Contains(text, "…") {
			f.unbound("the files that the code for " + name + " loads or starts")
		}
	}
}

// module handles python -m. The module's name follows the letter in the same word, or is the next word.
func (f *finder) module(args []*syntax.Word, at, option int, name string) {
	if name == "" && option+1 < len(args) {
		name = literal(args[option+1])
	}
	for _, file := range implied[name] {
		f.imply(file, args[option+1:])
	}
	if implied[name] != nil || slices.Contains(loaders, name) {
		f.loads(name)
		return
	}
	f.unbound("the module that " + literal(args[at]) + " runs")
}

// loads reports that a program runs code which does not appear in the command and is therefore not bound.
func (f *finder) loads(name string) { f.unbound("the code of the workspace that " + name + " loads") }

// inner examines the text that a shell runs, followed by its parameters.
func (f *finder) inner(words []*syntax.Word, nested int) {
	fields, err := f.expand(words[0])
	if err != nil || len(fields) != 1 {
		f.unbound("what a shell inside runs: " + printed(words[0]))
		return
	}
	before := f.vars
	f.vars = map[string][]string{}
	maps.Copy(f.vars, before)
	for i, w := range words[1:] {
		values, _ := f.expand(w)
		f.vars[fmt.Sprint(i)] = values
		if i > 0 {
			f.vars["@"], f.vars["*"] = append(f.vars["@"], values...), append(f.vars["*"], values...)
		}
	}
	f.text(fields[0], nested+1)
	f.vars = before
}

// runs reports why a file that is run cannot be bound, if it cannot.
func (f *finder) runs(name string) {
	if strings.HasPrefix(name, "/") && slices.Contains(systemFolders, filepath.Dir(filepath.Clean(name))) {
		return // a program of the system
	}
	if strings.Contains(name, "{}") {
		f.unbound(name + ": it depends on the output of another program")
	}
	if !filepath.IsAbs(name) {
		for _, dir := range f.outside {
			f.unbound(fmt.Sprintf("%s in %s: it lies outside of the workspace", name, dir))
		}
	}
	inside := false
	for _, dir := range f.folders {
		path := join(dir, name)
		rel, in := f.below(path)
		if !in {
			continue
		}
		inside = true
		info, err := f.root.Stat(rel)
		switch {
		case err == nil && info.IsDir():
			f.unbound(name + ": it is a folder")
		case err != nil && strings.Contains(err.Error(), "escapes"):
			f.unbound(name + ": it is a link that leads out of the workspace")
		}
	}
	if !inside {
		f.unbound(name + ": it lies outside of the workspace")
	}
}

// systemFolders are where a system keeps its programs.
var systemFolders = []string{"/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin", "/opt/homebrew/bin"}

func isShell(name string) bool {
	return slices.Contains([]string{"sh", "bash", "dash", "zsh", "ksh", "ash"}, name)
}

// literal returns the value of a word that needs no expansion, or "".
func literal(word *syntax.Word) string {
	var out strings.Builder
	for _, p := range word.Parts {
		switch p := p.(type) {
		case *syntax.Lit:
			out.WriteString(strings.ReplaceAll(p.Value, `\`, ""))
		case *syntax.SglQuoted:
			out.WriteString(p.Value)
		case *syntax.DblQuoted:
			for _, inner := range p.Parts {
				lit, ok := inner.(*syntax.Lit)
				if !ok {
					return ""
				}
				out.WriteString(lit.Value)
			}
		default:
			return ""
		}
	}
	return out.String()
}
