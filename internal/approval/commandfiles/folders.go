package commandfiles

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// folderOptions are the options with which programs name their working folder: one letter, or a word.
var folderOptions = []string{"-C", "-D", "--directory", "--prefix", "--cwd", "--chdir", "--working-directory", "--project", "--project-dir", "--project-directory"}

// folderChange follows cd, and options like make's -C.
func (f *finder) folderChange(args []*syntax.Word) {
	for len(args) > 0 && slices.Contains([]string{"builtin", "command"}, literal(args[0])) {
		args = args[1:]
	}
	if len(args) < 2 {
		return
	}
	if name := literal(args[0]); name == "cd" || name == "pushd" {
		for _, word := range args[1:] {
			if option := literal(word); option == "" || option[0] != '-' && option[0] != '+' {
				f.folderOf(word)
			}
		}
		return
	}
	for i, a := range args[1:] {
		option, value, attached := strings.Cut(literal(a), "=")
		long := slices.Contains(folderOptions, option)
		bundle := len(option) > 2 && option[0] == '-' && option[1] != '-'
		switch {
		case long && attached:
			f.folder(value)
		case long || bundle && strings.HasSuffix(option, "C"): // make -sC sub
			if i+2 < len(args) {
				f.folderOf(args[i+2])
			}
		}
		if bundle {
			if at := strings.IndexByte(option[:min(len(option), maxLetters)], 'C'); at > 0 {
				f.folder(option[at+1:])
			}
		}
	}
}

// folderOf adds the folders that a word expands to.
func (f *finder) folderOf(word *syntax.Word) {
	fields, err := f.expand(word)
	if err != nil {
		f.unbound(fmt.Sprintf("files in the folder %s: %s", printed(word), err))
	}
	f.inHome(word)
	for _, field := range fields {
		f.folder(field)
	}
}

// folderInText follows cd in text that something runs: the word after
// eval, a here-document, code in another language.
func (f *finder) folderInText(word *syntax.Word) {
	fields, _ := f.expand(word)
	for _, field := range fields {
		before := ""
		for piece := range strings.FieldsFuncSeq(field, separates) {
			if before == "cd" || before == "pushd" || strings.HasSuffix(before, "chdir") {
				f.folder(piece)
			}
			if piece[0] != '-' {
				before = piece
			}
		}
	}
}

// separates reports whether file names in a word may be separated by this character.
func separates(r rune) bool { return strings.ContainsRune(" \t\r\n;|&<>()`'\"=:,@!{}", r) }

// folder adds a folder in which the command may be.
func (f *finder) folder(name string) {
	if name == "" {
		return
	}
	for _, at := range slices.Clone(f.folders) {
		ways := f.ways(at, name)
		if real, err := filepath.EvalSymlinks(ways[0]); err == nil && !slices.Contains(ways, real) {
			ways = append(ways, real) // from where ".." may lead elsewhere
		}
		for _, dir := range ways {
			rel, in := f.below(dir)
			switch {
			case !in && filepath.IsAbs(name), !in && at == f.folders[0]:
				f.outside = append(f.outside, dir)
			case !in || slices.Contains(f.folders, dir):
			default:
				if info, err := f.root.Stat(rel); err != nil || !info.IsDir() {
					continue
				}
				if len(f.folders) == maxFolders {
					f.unbound(fmt.Sprintf("files in folders beyond the first %d", maxFolders))
					return
				}
				f.folders = append(f.folders, dir)
			}
		}
	}
}

func join(dir, name string) string {
	if filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	return filepath.Join(dir, name)
}

// ways returns the paths that a name can lead to. A shell takes ".." as the folder above by
// name; the system takes it as the folder above the target of a link.
func (f *finder) ways(dir, name string) []string {
	lexical := join(dir, name)
	if !strings.Contains(name, "..") {
		return []string{lexical}
	}
	at := dir
	if filepath.IsAbs(name) {
		at = "/"
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == ".." {
			if real, err := filepath.EvalSymlinks(at); err == nil {
				at = real
			}
		}
		at = filepath.Join(at, part)
	}
	if at == lexical {
		return []string{lexical}
	}
	return []string{lexical, at}
}

// below returns a path relative to where the command begins, if it is inside.
func (f *finder) below(path string) (string, bool) {
	rel, err := filepath.Rel(f.place.Dir, path)
	return rel, err == nil && filepath.IsLocal(rel)
}
