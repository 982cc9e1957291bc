package trust

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"chorus/internal/pattern"
	"chorus/internal/plainfile"
)

// What a script loads from next to itself runs with it. It is found by reading the
// script's text; names that are built at run time are not found.
var (
	pythonImport = pattern.Lazy(`(?m)^[ \t]*(?:from[ \t]+(\.*[\w.]*)[ \t]+import[ \t]+\(?([\w, \t]+)|import[ \t]+([\w., \t]+))`)
	scriptImport = pattern.Lazy("(?:from|import|require)\\s*\\(?\\s*[\"'`](\\.{1,2}/[^\"'`\\s]+)[\"'`]")
	shellSource  = pattern.Lazy(`[\w./-]*/[\w.-]+|[\w-]+\.(?:sh|bash|py|js|mjs|cjs|rb|pl)\b`)
)

// largestScript is the largest script that is read for what it loads.
const largestScript = 1 << 20

// loads binds what the script at real loads; path is how it was named.
func (b *binder) loads(path, real string) {
	if len(b.out.Files) >= mostFiles {
		b.unbound("more than %d files are named and loaded: the rest is", mostFiles)
		return
	}
	data, err := plainfile.Read(real, largestScript)
	if err != nil {
		return
	}
	text := string(data)
	dir := filepath.Dir(real) // interpreters look next to the file itself, not next to a link to it
	kind := filepath.Ext(path)
	if first, _, _ := strings.Cut(text, "\n"); strings.HasPrefix(first, "#!") {
		switch {
		case strings.Contains(first, "python"):
			kind = ".py"
		case strings.Contains(first, "node"), strings.Contains(first, "deno"), strings.Contains(first, "bun"):
			kind = ".js"
		case strings.HasSuffix(strings.TrimSpace(first), "sh"):
			kind = ".sh"
		}
	}
	switch kind {
	case ".py":
		b.pythonImports(dir, text)
	case ".js", ".mjs", ".cjs", ".ts", ".mts", ".tsx", ".jsx":
		for _, found := range scriptImport().FindAllStringSubmatch(text, -1) {
			for _, ending := range []string{"", ".js", ".mjs", ".cjs", ".ts", ".json", "/index.js", "/index.ts"} {
				if ending != "" && slices.Contains(scripts, filepath.Ext(found[1])) {
					break
				}
				b.file(filepath.Join(dir, found[1]+ending), false)
			}
		}
	case ".rb", ".pl", ".php", ".lua", ".ps1":
		b.unbound("what %s loads is not", b.name(path))
	case ".sh", ".bash":
		for _, name := range shellSource().FindAllString(text, -1) {
			for _, base := range append([]string{dir}, b.bases...) {
				if file := filepath.Join(base, name); runnable(file) {
					b.file(file, false)
				}
			}
		}
	}
}

// runnable distinguishes what a shell script starts from what it writes.
func runnable(file string) bool {
	info, err := os.Stat(file)
	return err == nil && info.Mode().IsRegular() && (info.Mode()&0o111 != 0 || slices.Contains(scripts, filepath.Ext(file)))
}

// pythonImports binds modules next to a script. It also binds the absence of files with
// the names of installed modules, which would take precedence.
func (b *binder) pythonImports(dir, text string) {
	for _, found := range pythonImport().FindAllStringSubmatch(text, -1) {
		from, names, plain := found[1], found[2], found[3]
		if plain != "" {
			for name := range strings.SplitSeq(plain, ",") {
				b.pythonModule(dir, strings.Fields(name))
			}
			continue
		}
		base := dir
		if dots := len(from) - len(strings.TrimLeft(from, ".")); dots > 0 {
			for range dots - 1 {
				base = filepath.Dir(base)
			}
			from = strings.TrimLeft(from, ".")
		}
		b.pythonModule(base, strings.Fields(from))
		for name := range strings.SplitSeq(names, ",") {
			if fields := strings.Fields(name); len(fields) > 0 { // it may be a module of the package
				b.file(filepath.Join(base, strings.ReplaceAll(from, ".", "/"), fields[0]+".py"), false)
			}
		}
	}
}

// pythonModule binds a module by the first of the words, `a.b` of "a.b as c".
func (b *binder) pythonModule(dir string, words []string) {
	if len(words) == 0 {
		return
	}
	path := dir
	for part := range strings.SplitSeq(words[0], ".") {
		if part == "" {
			return
		}
		path = filepath.Join(path, part)
		b.file(path+".py", true)
		b.file(filepath.Join(path, "__init__.py"), true)
	}
}
