// Package commandfiles finds the files that a shell command names, as the shell will find
// them: after expanding braces, quotes, variables, ~ and globs, in the folders that it
// changes to. An approval of the command is bound to their contents.
//
// It starts nothing, and reads only the names in folders below the one where the command starts,
// and where links lead. It reports which part of what the command runs it could not find. It does
// not read the files: what a script starts in turn is not found.
package commandfiles

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// Limits for the search, because somebody is waiting.
const (
	maxCommand = 128 << 10
	maxNames   = 1024
	maxFolders = 16
	maxValues  = 64    // per word
	maxEntries = 20000 // names read from folders
	maxFields  = 10000 // fields of all words together
	maxNested  = 4
	maxUnbound = 8
	maxLetters = 6 // of a bundle of options, including the dash
)

// Place is where a command would run.
type Place struct {
	Dir  string   // absolute
	Home string   // what ~ expands to; may be ""
	Env  []string // names of its variables, whose values are not known
}

// Found lists what a command names.
type Found struct {
	Named   []string // absolute paths of possible files, each once
	Implied []string // files that a program reads implicitly, such as a Makefile, even if missing
	Unbound []string // what of the command cannot be bound, and why, each a clause for people
}

// In finds the files of a command.
func In(command string, at Place) Found {
	root, err := os.OpenRoot(at.Dir)
	if err != nil {
		return Found{Unbound: []string{"its files: the folder where it runs cannot be read"}}
	}
	defer root.Close()
	f := &finder{place: at, root: root, folders: []string{filepath.Clean(at.Dir)}, vars: map[string][]string{}, unknown: map[string]bool{}, options: map[string]bool{}}
	for _, option := range []string{"globstar", "dotglob", "nocaseglob"} {
		f.options[option] = strings.Contains(command, option)
	}
	if at.Home != "" {
		f.vars["HOME"] = []string{at.Home}
	}
	f.text(command, 0)
	return f.found
}

type finder struct {
	place      Place
	root       *os.Root
	folders    []string            // in which it may be at some point; it begins in the first one
	vars       map[string][]string // the values that the command assigns to variables
	unknown    map[string]bool     // variables that also get another value
	anyUnknown bool                // any variable may get another value
	options    map[string]bool     // options of the shell that the command may set
	outside    []string            // folders in which it may be that are not below the first one
	entries    int                 // names read so far
	fields     int                 // fields produced from words so far
	found      Found
}

// text reads a command, or the text that a shell inside it runs.
func (f *finder) text(command string, nested int) {
	if len(command) > maxCommand || nested > maxNested {
		f.unbound("its files: it is too long, or nested too deeply")
		return
	}
	file, err := parse(command)
	if err != nil {
		f.unbound("its files: it cannot be read")
		return
	}
	// Values and folders first, because a loop may use what comes after it.
	syntax.Walk(file, func(n syntax.Node) bool {
		f.values(n)
		if word, ok := n.(*syntax.Word); ok {
			f.folderInText(word)
		}
		if call, ok := n.(*syntax.CallExpr); ok {
			f.folderChange(call.Args)
		}
		return true
	})
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Word:
			fields, err := f.expand(n)
			if errors.Is(err, errTooMany) {
				f.unbound("all its files: its words expand to too many")
			}
			for _, field := range fields {
				f.name(field)
			}
		case *syntax.ExtGlob: // which the library does not expand
			f.unbound("the files that the extended pattern " + n.Op.String() + n.Pattern.Value + ") stands for")
		case *syntax.Stmt:
			if call, ok := n.Cmd.(*syntax.CallExpr); ok {
				f.call(call.Args, n.Redirs, nested)
			}
		}
		return true
	})
}

// errTooMany means that the expansion of a word was not completed.
var errTooMany = errors.New("it stands for too many files")

func parse(command string) (file *syntax.File, err error) {
	// The text is untrusted. If the parser panics, the text counts as unreadable.
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the parser failed: %v", r)
		}
	}()
	return syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(command), "")
}

func (f *finder) unbound(clause string) {
	switch {
	case slices.Contains(f.found.Unbound, clause):
	case len(f.found.Unbound) < maxUnbound:
		f.found.Unbound = append(f.found.Unbound, clause)
	case len(f.found.Unbound) == maxUnbound:
		f.found.Unbound = append(f.found.Unbound, "and more")
	}
}

// name adds a possible file, and the parts that may be files too: "--file=x", "-fx", "host:x", "@x".
func (f *finder) name(field string) {
	f.path(field)
	for i := 2; i < min(len(field), maxLetters) && field[0] == '-'; i++ { // "-fx", and "-sfx" in a bundle
		f.path(field[i:])
	}
	for piece := range strings.FieldsFuncSeq(field, separates) {
		f.path(piece)
	}
}

func (f *finder) path(name string) {
	if name == "" || len(name) > 4096 || strings.ContainsRune(name, 0) {
		return
	}
	for _, at := range f.folders {
		for _, path := range f.ways(at, name) {
			if slices.Contains(f.found.Named, path) {
				continue
			}
			if len(f.found.Named) == maxNames {
				f.unbound(fmt.Sprintf("files beyond the first %d names", maxNames))
				return
			}
			f.found.Named = append(f.found.Named, path)
		}
	}
}

// expand returns what a word expands to, in every folder and with every value of
// its variables. The error says why that is incomplete.
func (f *finder) expand(word *syntax.Word) (out []string, err error) {
	choices := []map[string]string{{}}
	syntax.Walk(word, func(n syntax.Node) bool {
		p, ok := n.(*syntax.ParamExp)
		if !ok || p.Param == nil {
			return true
		}
		name := p.Param.Value
		values := f.vars[name]
		if name == "PWD" {
			values = f.folders
		}
		if name != "PWD" && (f.unknown[name] || f.anyUnknown || len(values) == 0 && slices.Contains(f.place.Env, name)) {
			err = fmt.Errorf("the value of %s is not known", name)
		}
		if len(values) == 0 || choices[0][name] != "" {
			return true
		}
		var more []map[string]string
		for _, c := range choices {
			for _, v := range values {
				next := map[string]string{name: v}
				maps.Copy(next, c)
				more = append(more, next)
			}
		}
		if len(more) > maxValues {
			more, err = more[:maxValues], errTooMany
		}
		choices = more
		return true
	})
	for _, vars := range choices {
		for _, dir := range f.folders {
			fields, failed := f.fieldsOf(word, vars, dir)
			if failed != nil {
				err = failed
			}
			for _, field := range fields {
				if !slices.Contains(out, field) && len(out) < maxNames {
					out = append(out, field)
				}
			}
		}
	}
	return out, err
}

// fieldsOf expands a word in one folder with one choice of values.
func (f *finder) fieldsOf(word *syntax.Word, vars map[string]string, dir string) (fields []string, err error) {
	defer func() {
		if r := recover(); r != nil { // like for the parser
			err = errors.New("it cannot be read")
		}
	}()
	config := &expand.Config{Env: environ{vars, dir, f.place.Home}, ReadDir2: f.readDir, NoUnset: true,
		GlobStar: f.options["globstar"], DotGlob: f.options["dotglob"], NoCaseGlob: f.options["nocaseglob"]}
	for field, failed := range expand.FieldsSeq(config, word) {
		if f.fields++; f.fields > maxFields {
			return fields, errTooMany
		}
		if err = failed; err == nil {
			fields = append(fields, field)
		}
	}
	var unset expand.UnsetParameterError
	var command expand.UnexpectedCommandError
	switch {
	case errors.As(err, &unset):
		err = fmt.Errorf("the value of %s is not known", unset.Node.Param.Value)
	case errors.As(err, &command):
		err = errors.New("it is the output of a command")
	case err != nil:
		err = errors.New("what it becomes is not known")
	}
	return fields, err
}

// readDir reads the names in a folder, for globs. For a folder above
// the command's own it returns only the way down.
func (f *finder) readDir(path string) ([]fs.DirEntry, error) {
	rel, ok := f.below(path)
	if !ok {
		down, err := filepath.Rel(path, f.place.Dir)
		if err != nil || !filepath.IsLocal(down) {
			return nil, fs.ErrNotExist
		}
		next, _, _ := strings.Cut(down, string(filepath.Separator))
		info, err := os.Stat(filepath.Join(path, next))
		if err != nil {
			return nil, err
		}
		return []fs.DirEntry{fs.FileInfoToDirEntry(info)}, nil
	}
	entries, err := fs.ReadDir(f.root.FS(), filepath.ToSlash(rel))
	if f.entries += len(entries); f.entries > maxEntries {
		f.unbound("all files of a glob: there are too many names to look at")
		return nil, fs.ErrNotExist
	}
	return entries, err
}

// environ supplies a word's variables.
type environ struct {
	vars      map[string]string
	dir, home string
}

func (e environ) Get(name string) expand.Variable {
	value, ok := e.vars[name]
	switch {
	case name == "PWD" && !ok:
		value, ok = e.dir, true
	case name == "HOME" && !ok:
		value, ok = e.home, e.home != ""
	}
	return expand.Variable{Set: ok, Kind: expand.String, Str: value}
}

func (e environ) Each(func(string, expand.Variable) bool) {}

// printed returns a word as written in the command.
func printed(word *syntax.Word) string {
	var text strings.Builder
	if err := syntax.NewPrinter().Print(&text, word); err != nil {
		return "…"
	}
	if s := text.String(); len(s) <= 80 {
		return s
	}
	return text.String()[:80] + "…"
}
