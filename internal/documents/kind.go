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

// Kind is a kind of document: which files of a home are copies of
// such documents, and what is special about them.
type Kind struct {
	// Patterns are paths below the home in the syntax of path.Match, with
	// slashes. A * never matches names that begin with a dot.
	Patterns []string
	// Trees are patterns for folders below the home in which every file is a document, at any
	// depth, with its executable bit, and so is every link that stays inside. A document is
	// removed if its file was removed and the folder still exists.
	Trees []string
	// Plain says that a link, or anything below one, is not a copy. Others
	// may have created it, and it may lead anywhere.
	Plain bool
	// Only restricts what matches; nil means no restriction.
	Only func(name string) bool
	// Check says why a text that a person left in a file cannot become a version; nil
	// accepts every text. The last version stays in effect then.
	Check func(name string, body []byte) error
	// Gone reports whether a missing file means that somebody removed the document; nil means that it does.
	Gone func(name string) bool
	// With names another document. When that one is removed, those that existed before are
	// removed with it. nil means that each document is independent.
	With func(name string) string
	// Spare says that a replaced text is not kept, because it can be
	// generated again or must not be left lying around.
	Spare bool
	// Seal encrypts the texts in the database; nil stores them as they are in the files.
	Seal *Seal
	// Write creates a copy where there is none; nil creates the folder and the
	// file. Remove removes a copy; nil removes the file.
	Write  func(ctx context.Context, name string, body []byte) error
	Remove func(ctx context.Context, name string) error
}

// Maximum sizes. Larger files stay on their machine.
const (
	largest       = 1 << 20 // more than anybody writes by hand
	largestInTree = 8 << 20 // a picture or a font next to a skill
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
		ok, _ := path.Match(p, name) // our patterns are valid
		return ok
	})
}

// tree returns the folder of a tree that a name is in, or "".
func (k Kind) tree(name string) string {
	for _, pattern := range k.Trees {
		top, rest, ok := cutParts(name, strings.Count(pattern, "/")+1)
		if matched, _ := path.Match(pattern, top); ok && matched && !strings.Contains("/"+top, "/.") && !slices.ContainsFunc(strings.Split(rest, "/"), leftOut) {
			return top
		}
	}
	return ""
}

// cutParts cuts a name after the given number of parts. It returns false if it has no more.
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

// leftOut reports whether a file or folder in a tree is an artefact of
// programs and editors, or was set aside here.
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

// content is what a file contains, with the metadata that is kept.
type content struct {
	body []byte
	exec bool
	link string // the target, for a link
}

// The prefixes of the contents of files in a tree.
const (
	plainFile      = "file\n"
	executableFile = "executable\n"
	linkFile       = "link\n"
)

// pack returns the text of the document for a file. The same file always gives the same text.
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

// unpack returns the file for a document.
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
