// Package attach names the files that people attach to a message.
//
// A name is valid on every disk: a single path segment without control characters, not hidden,
// reserved or too long, and with the sender's file extension. The same message always gives the
// same names.
package attach

import (
	"fmt"
	"path"
	"strings"
	"time"
	"unicode"

	"chorus/internal/text"
)

// Folder is their folder in a workspace.
const Folder = "attachments"

// The maximum lengths of a name and of an extension, in bytes. Every file system allows 255; the
// timestamp, a number and the suffix of an unfinished file need room too.
const (
	maxName   = 120
	maxEnding = 20
)

// Name reduces a sender's file name to letters and digits of any script, dots, dashes and underscores.
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

// Path returns where a file of a message is stored in its workspace:
// attachments/{timestamp}_{name}, with a number if that is taken.
func Path(said time.Time, name string, taken func(string) bool) string {
	plain := fmt.Sprintf("%s/%d_%s", Folder, said.UnixMilli(), Name(name))
	at := plain
	for n := 2; taken(at); n++ {
		at = Numbered(plain, n)
	}
	return at
}

// Numbered inserts a number before the path's extension.
func Numbered(at string, n int) string {
	ending := path.Ext(at)
	if len(ending) > maxEnding {
		ending = ""
	}
	return fmt.Sprintf("%s-%d%s", strings.TrimSuffix(at, ending), n, ending)
}

// Size formats a number of bytes for people.
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
