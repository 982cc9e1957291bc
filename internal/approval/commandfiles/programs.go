package commandfiles

import (
	"fmt"
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

// interpreter says how a program that runs a script finds it: the first word behind its options.
type interpreter struct {
	code string // letters of options that take code in place of a script
	with string // letters of options that take some other value
}

var interpreters = map[string]interpreter{
	"sh": {"c", "oO"}, "bash": {"c", "oO"}, "dash": {"c", "o"}, "zsh": {"c", "o"}, "ksh": {"c", "o"}, "ash": {"c", "o"}, "fish": {"c", ""},
	"source": {}, ".": {}, "python": {"cm", "WX"}, "pypy": {"cm", "WX"}, "perl": {"eE", "I"}, "ruby": {"e", "Ir"}, "node": {"ep", "r"}, "nodejs": {"ep", "r"},
	"php": {"r", "c"}, "lua": {"e", "l"}, "luajit": {"e", "l"}, "Rscript": {"e", ""}, "tclsh": {}, "expect": {"c", ""}, "julia": {"eE", ""}, "pwsh": {"cC", ""},
}

// starters run what stands behind them, so that an interpreter may stand anywhere among their words.
var starters = []string{"env", "sudo", "doas", "timeout", "nice", "ionice", "nohup", "setsid", "stdbuf", "time", "command", "exec", "builtin", "xargs", "find", "parallel",
	"watch", "strace", "ltrace", "flock", "taskset", "chrt", "unshare", "poetry", "uv", "pipenv", "bundle", "npx", "busybox", "entr"}

// feeders give files to what they run whose names stand nowhere in the command.
var feeders = []string{"xargs", "find", "parallel", "entr"}

// loaders run tests that they look for in the workspace.
var loaders = []string{"pytest", "py.test", "unittest", "behave", "jest", "mocha", "vitest", "ava", "rspec", "phpunit", "prove"}

// program is what a word starts, without its folder and version.
func program(word *syntax.Word) string {
	name := filepath.Base(literal(word))
	if trimmed := strings.TrimRight(name, "0123456789."); trimmed == "python" || trimmed == "pypy" {
		return trimmed
	}
	return name
}

// call looks at one command: which files its program reads unasked, what it runs, and what of that cannot be bound.
func (f *finder) call(args []*syntax.Word, nested int) {
	if len(args) == 0 {
		return
	}
	first := program(args[0])
	for i, a := range args {
		name := program(a)
		if name == "" || i > 0 && !slices.Contains(starters, first) {
			continue
		}
		for _, file := range implied[name] {
			f.imply(file)
		}
		if slices.Contains(loaders, name) {
			f.loads(name)
		}
		if in, ok := interpreters[name]; ok {
			f.script(args, i, in, nested)
		}
	}
	if strings.Contains(literal(args[0]), "/") {
		f.runs(literal(args[0]))
	}
}

// imply adds a file to those that are bound, in each folder and those above it.
func (f *finder) imply(name string) {
	for _, dir := range f.folders {
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

// script finds what an interpreter runs: the text behind -c, or a file.
func (f *finder) script(args []*syntax.Word, at int, in interpreter, nested int) {
	for i := at + 1; i < len(args); i++ {
		option := literal(args[i])
		switch {
		case option == "--":
			continue
		case len(option) > 1 && option[0] == '-' && option[1] != '-':
			letter := strings.IndexAny(option[1:], in.code+in.with) + 1
			switch {
			case letter == 0:
				continue
			case strings.Contains(in.with, option[letter:letter+1]):
				if letter == len(option)-1 {
					i++
				}
				continue
			case option[letter] == 'm':
				f.module(args, at, i, option[letter+1:])
			case isShell(program(args[at])) && i+1 < len(args):
				f.inner(args[i+1:], nested)
			}
			return
		case len(option) > 2 && option[:2] == "--":
			if option == "--test" {
				f.loads(program(args[at]) + " --test")
			}
			continue
		}
		fields, err := f.expand(args[i])
		if err != nil {
			f.unbound(fmt.Sprintf("%s, which %s runs: %s", printed(args[i]), literal(args[at]), err))
		}
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
	}
}

// module treats python -m. Its name stands behind the letter in the same word, or is the next one.
func (f *finder) module(args []*syntax.Word, at, option int, name string) {
	if name == "" && option+1 < len(args) {
		name = literal(args[option+1])
	}
	for _, file := range implied[name] {
		f.imply(file)
	}
	if slices.Contains(loaders, name) {
		f.loads(name)
		return
	}
	f.unbound("the module that " + literal(args[at]) + " runs")
}

// loads says of a program that runs code which stands nowhere in the command that this is not bound.
func (f *finder) loads(name string) { f.unbound("the code of the workspace that " + name + " loads") }

// inner looks at the text that a shell runs, whose parameters stand behind it.
func (f *finder) inner(words []*syntax.Word, nested int) {
	fields, err := f.expand(words[0])
	if err != nil || len(fields) != 1 {
		f.unbound("what a shell inside runs: " + printed(words[0]))
		return
	}
	before := f.vars
	f.vars = map[string][]string{}
	for name, values := range before {
		f.vars[name] = values
	}
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

// runs says of a file that is run why it cannot be bound, if it cannot.
func (f *finder) runs(name string) {
	if strings.HasPrefix(name, "/") && slices.Contains(systemFolders, filepath.Dir(filepath.Clean(name))) {
		return // a program of the system
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

// literal is the value of a word that is known without expanding it; "" for any other.
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
