// Package attach names the files that people attach to a message.
//
// It promises that a name is one on every disk: a single part of a path, without control
// characters, never hidden, never reserved, never too long, with the ending that its sender gave
// it; and that the same message gives the same names, however often it is heard.
package attach

import (
	"fmt"
	"path"
	"strings"
	"time"
	"unicode"

	"chorus/internal/text"
)

// Folder is where they lie in a workspace.
const Folder = "attachments"

// The longest name and the longest ending, in bytes: every file system takes 255, and the
// time, a number and the name of a half-written file need room beside it.
const (
	maxName   = 120
	maxEnding = 20
)

// Name is what is left of a sender's name for a file: letters and digits of every script,
// dots, dashes and underscores.
func Name(said string) string {
	said = strings.ReplaceAll(strings.ToValidUTF8(said, "_"), `\`, "/")
	said = said[strings.LastIndexByte(said, '/')+1:]
	name := strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) || strings.ContainsRune("._-", r) {
			return r
		}
		return '_'
	}, said)
	name = strings.TrimLeft(name, ".")
	name = strings.TrimRight(name, ".") // Windows would drop it
	if strings.Trim(name, "_") == "" {
		return "file"
	}
	if len(name) <= maxName {
		return name
	}
	ending := path.Ext(name)
	if len(ending) > maxEnding {
		ending = ""
	}
	return text.Prefix(name[:len(name)-len(ending)], maxName-len(ending)) + ending
}

// Path is where a file of a message lies in its workspace: attachments/{timestamp}_{name},
// with a number where that is taken.
func Path(said time.Time, name string, taken func(string) bool) string {
	plain := fmt.Sprintf("%s/%d_%s", Folder, said.UnixMilli(), Name(name))
	at := plain
	for n := 2; taken(at); n++ {
		at = Numbered(plain, n)
	}
	return at
}

// Numbered is the path with a number before its ending.
func Numbered(at string, n int) string {
	ending := path.Ext(at)
	if len(ending) > maxEnding {
		ending = ""
	}
	return fmt.Sprintf("%s-%d%s", strings.TrimSuffix(at, ending), n, ending)
}

// Size is a number of bytes for people.
func Size(n int64) string {
	switch {
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MB", float64(n)/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%d KB", n>>10)
	default:
		return fmt.Sprintf("%d bytes", n)
	}
}
