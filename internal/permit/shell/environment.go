package shell

import (
	"path"
	"slices"
	"strings"
)

// compilers are the programs that CC and similar variables usually name.
var compilers = strings.Fields(`cc gcc g++ c++ clang clang++ ld ld.lld lld mold gold ar ranlib tcc musl-gcc go rustc`)

// harmlessFlags are flags that GOFLAGS and NODE_OPTIONS often have.
var harmlessFlags = strings.Fields(`mod tags v x race count trimpath buildvcs p modcacherw short timeout max-old-space-size max-semi-space-size no-warnings trace-warnings
no-deprecation enable-source-maps experimental-vm-modules unhandled-rejections stack-trace-limit trace-deprecation`)

// changesPrograms says why setting a variable makes it unknown what runs, or "".
func changesPrograms(name, value string, known bool) string {
	switch name {
	case "GOFLAGS", "NODE_OPTIONS":
		// Sizes and switches are common here; programs and modules are not.
		for f := range strings.FieldsSeq(value) {
			flag, _, _ := strings.Cut(strings.TrimLeft(f, "-"), "=")
			known = known && slices.Contains(harmlessFlags, flag)
		}
		if !known {
			return changesRuns(name)
		}
		return ""
	case "PYTHONPATH", "NODE_PATH":
		if known && ownFolders(value) {
			return ""
		}
		return changesRuns(name)
	case "CC", "CXX", "CPP", "LD", "AR", "AS", "FC", "HOSTCC", "CC_FOR_TARGET":
		if known && (value == "" || slices.Contains(compilers, strings.TrimRight(value, "-0123456789."))) {
			return ""
		}
		return changesRuns(name)
	}
	if strings.HasSuffix(name, "_PAGER") || strings.HasSuffix(name, "_EDITOR") {
		if known && (value == "cat" || value == "true" || value == ":" || value == "") {
			return ""
		}
		return changesRuns(name)
	}
	if programs().decides(name) {
		return changesRuns(name)
	}
	return ""
}

func changesRuns(name string) string { return name + " changes what runs" }

// makes says why setting a variable of make starts a program, or "": make runs what stands in a call of its functions, its
// recipes are lines of a shell, and those that are built in pass flags on to a compiler.
func makes(name, value string) string {
	switch {
	case strings.HasSuffix(name, "!"):
		return "make runs the value of " + name
	case strings.ContainsAny(value, "`;|&\n") || strings.Contains(value, "$(") || strings.Contains(value, "${"):
		return "the value of " + name + " may be run by make"
	case !strings.HasSuffix(strings.TrimRight(name, ":+?"), "FLAGS") && name != "TARGET_ARCH" && name != "LDLIBS" && name != "LOADLIBES":
		return ""
	}
	var words []word
	for f := range strings.FieldsSeq(value) {
		words = append(words, knownWord(f))
	}
	u := readOptions(programs().program("gcc").alone, words, false)
	if slices.ContainsFunc(u.options, func(g given) bool { return g.spec.effect.matters() }) {
		return name + " makes a compiler start a program or write a file"
	}
	return ""
}

// decides reports a variable that decides which programs, libraries or start files are used.
func (t *programTable) decides(name string) bool {
	if decides, ok := t.variables[name]; ok {
		return decides
	}
	// npm reads its variables in any case.
	if lower := strings.ToLower(name); strings.HasPrefix(lower, "npm_config_") {
		decides, ok := t.variables[lower]
		return decides || !ok
	}
	return slices.ContainsFunc(t.prefixes, func(p string) bool { return strings.HasPrefix(name, p) }) ||
		slices.ContainsFunc(t.suffixes, func(s string) bool { return strings.HasSuffix(name, s) })
}

// ownFolders reports whether all folders of a list are below the working directory, which
// an interpreter searches anyway.
func ownFolders(list string) bool {
	for _, dir := range strings.Split(list, ":") {
		c := path.Clean(dir)
		if path.IsAbs(c) || c == ".." || strings.HasPrefix(c, "../") || strings.HasPrefix(c, "~") {
			return false
		}
	}
	return true
}

// setsVariable says why a builtin that sets variables changes what runs after it, or "".
func setsVariable(prog string, args []word) string {
	switch prog {
	case "read", "mapfile", "readarray", "printf", "getopts", "unset", "let", "export", "declare", "typeset", "local", "readonly", "wait":
	default:
		return ""
	}
	for i, x := range args {
		if prog == "printf" && (i == 0 || args[i-1].value != "-v") && !strings.HasPrefix(x.value, "-v") {
			continue
		}
		name, value, _ := strings.Cut(strings.TrimPrefix(x.value, "-v"), "=")
		if why := changesPrograms(name, value, false); why != "" && isName(name) {
			return why
		}
	}
	return ""
}
