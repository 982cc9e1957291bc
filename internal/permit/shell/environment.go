package shell

import (
	"path"
	"slices"
	"strings"
)

// compilers are the programs that CC and similar variables usually name.
var compilers = strings.Fields(`cc gcc g++ c++ clang clang++ ld ld.lld lld mold gold ar ranlib tcc musl-gcc go rustc`)

// makes returns why setting a make variable starts a program, or "". make runs what its function calls
// contain, its recipes are shell lines, and its built-in recipes pass flags on to a compiler.
func makes(name, value string) string {
	switch {
	case strings.HasSuffix(name, "!"):
		return "make runs the value of " + name
	case strings.Contains(name, ".") || strings.HasPrefix(name, "OUTPUT_OPTION"):
		return name + " is a command line of make's own rules, or a part of one"
	case strings.ContainsAny(value, "`;|&\n") || strings.Contains(value, "$(") || strings.Contains(value, "${"):
		return "the value of " + name + " may be run by make"
	case !strings.HasSuffix(strings.TrimRight(name, ":+?"), "FLAGS") && name != "TARGET_ARCH" && name != "LDLIBS" && name != "LOADLIBES":
		return ""
	}
	if !compilesOnly(value) {
		return name + " makes a compiler start a program or write a file"
	}
	return ""
}

// compilesOnly reports whether a compiler with these flags starts no
// program and writes no file but its output.
func compilesOnly(flags string) bool {
	var words []word
	for f := range strings.FieldsSeq(flags) {
		words = append(words, knownWord(f))
	}
	u := readOptions(programs().program("gcc").alone, words, false)
	return !slices.ContainsFunc(u.options, func(g given) bool { return g.spec.effect.matters() })
}

// ownFolders reports whether all folders of a list are below the working
// directory, which an interpreter searches anyway.
func ownFolders(list string) bool {
	for dir := range strings.SplitSeq(list, ":") {
		c := path.Clean(dir)
		if path.IsAbs(c) || c == ".." || strings.HasPrefix(c, "../") || strings.HasPrefix(c, "~") {
			return false
		}
	}
	return true
}

// setsVariable returns why a builtin that sets variables changes what runs after it, or "".
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
