package documents

import (
	"bytes"
	"context"
	"errors"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"chorus/internal/symlink"
)

// Kind is a kind of documents: which files of a home are copies of documents, and what is special about them.
type Kind struct {
	// Patterns are paths below the home as path.Match understands them, with slashes. Names that begin with a dot never match a *.
	Patterns []string
	// Trees are folders below the home, as such patterns, in which every file is a document, however deep, with its executable bit; and
	// every link that stays inside. A document goes when its file was removed and the folder is there.
	Trees []string
	// Plain: a link is no copy, nor what lies below one. Others may have made it, and it may lead to anything.
	Plain bool
	// Only narrows what matches; nil: all of it.
	Only func(name string) bool
	// Check says why a text that a person left in a file cannot become a version; nil: every text can. The last version holds then.
	Check func(name string, body []byte) error
	// Gone reports whether a missing file means that somebody removed the document; nil: it does.
	Gone func(name string) bool
	// With names another document: when that one is removed, those that were there before go with it. nil: each stays for itself.
	With func(name string) string
	// Spare: a text that gives way to another is not kept beside it. It can be made again, or must not lie around.
	Spare bool
	// Seal encrypts the texts in the database; nil: they are as they are in the files.
	Seal *Seal
	// Write makes a copy where there is none; nil: the folder and the file. Remove takes one away; nil: the file.
	Write  func(ctx context.Context, name string, body []byte) error
	Remove func(ctx context.Context, name string) error
}

// How large files may be. Longer ones stay on their machine.
const (
	largest       = 1 << 20 // more than anybody writes by hand
	largestInTree = 8 << 20 // a picture or a font beside a skill
	mostInTree    = 2000    // files
	deepest       = 16      // folders
)

func (k Kind) largest(name string) int64 {
	if k.tree(name) != "" {
		return largestInTree
	}
	return largest
}

func (k Kind) owns(name string) bool {
	if !filepath.IsLocal(filepath.FromSlash(name)) || path.Clean(name) != name || k.Only != nil && !k.Only(name) {
		return false
	}
	if k.tree(name) != "" {
		return true
	}
	return !strings.Contains(name, "/.") && slices.ContainsFunc(k.Patterns, func(p string) bool {
		ok, _ := path.Match(p, name) // the patterns are ours
		return ok
	})
}

// tree is the folder whose files are all documents that a name lies in; "": none.
func (k Kind) tree(name string) string {
	for _, pattern := range k.Trees {
		top, rest, ok := cutParts(name, strings.Count(pattern, "/")+1)
		if matched, _ := path.Match(pattern, top); ok && matched && !strings.Contains("/"+top, "/.") && !slices.ContainsFunc(strings.Split(rest, "/"), leftOut) {
			return top
		}
	}
	return ""
}

// cutParts cuts a name after so many parts; false: it has no more.
func cutParts(name string, parts int) (top, rest string, ok bool) {
	for i, c := range name {
		if c == '/' {
			if parts--; parts == 0 {
				return name[:i], name[i+1:], true
			}
		}
	}
	return "", "", false
}

// leftOut reports whether a file or folder of a tree is what programs and editors make beside the files that people mean, or what
// was put aside here.
func leftOut(name string) bool {
	switch name {
	case ".git", ".hg", ".svn", "__pycache__", ".DS_Store", "4913": // the last is vim's
		return true
	}
	return slices.ContainsFunc([]string{"*~", "*.swp", "*.swx", ".#*", "#*#", ".*.tmp-*", ".new-*", "*.replaced-????????"}, func(pattern string) bool {
		ok, _ := path.Match(pattern, name)
		return ok
	})
}

// content is what a file holds, with what is kept of it besides its bytes.
type content struct {
	body []byte
	exec bool
	link string // where it leads, for a link
}

// What stands before the bytes of a file of a tree.
const (
	plainFile      = "file\n"
	executableFile = "executable\n"
	linkFile       = "link\n"
)

// pack is the text of the document that a file is the copy of. It is the same for the same file.
func (k Kind) pack(name string, c content) ([]byte, error) {
	text := c.body
	if k.tree(name) != "" {
		switch {
		case c.link != "":
			text = []byte(linkFile + c.link)
		case c.exec:
			text = append([]byte(executableFile), c.body...)
		default:
			text = append([]byte(plainFile), c.body...)
		}
	}
	if k.Seal == nil {
		return text, nil
	}
	return k.Seal.seal(name, text)
}

var errOtherVersion = errors.New("it was written by another version of Chorus")

// unpack is the file that is the copy of a document.
func (k Kind) unpack(name string, text []byte) (content, error) {
	if isSealed(text) {
		if k.Seal == nil {
			return content{}, ErrSealed
		}
		var err error
		if text, err = k.Seal.open(name, text); err != nil {
			return content{}, err
		}
	}
	tree := k.tree(name)
	if tree == "" {
		return content{body: text}, nil
	}
	if body, ok := bytes.CutPrefix(text, []byte(plainFile)); ok {
		return content{body: body}, nil
	}
	if body, ok := bytes.CutPrefix(text, []byte(executableFile)); ok {
		return content{body: body, exec: true}, nil
	}
	target, ok := bytes.CutPrefix(text, []byte(linkFile))
	if !ok || !symlink.StaysInside(strings.TrimPrefix(name, tree+"/"), string(target)) {
		return content{}, errOtherVersion
	}
	return content{link: string(target)}, nil
}
