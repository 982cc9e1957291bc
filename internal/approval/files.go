package approval

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"chorus/internal/plainfile"
)

// Limits for reading files, because somebody is waiting.
const (
	maxFiles = 64
	maxFile  = 4 << 20 // a larger file is compared by its size and time only
	maxRead  = 32 << 20
)

// Digests returns the digests of files below dir. Files in wanted are included even if
// they are missing. Files in words, which may be anything, are included only if they exist
// and are not folders. Nothing outside of dir is opened, whatever a link says. unbound
// names the files whose contents are not included.
func Digests(dir string, wanted, words []string) (out map[string]string, unbound []string) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, nil
	}
	defer root.Close()
	out = map[string]string{}
	left := int64(maxRead)
	look := func(names []string, tellMissing bool) {
		for _, name := range names {
			name, ok := below(dir, name)
			if !ok || out[name] != "" {
				continue
			}
			digest, read := digest(root, name, left)
			left -= read
			if digest == "" && tellMissing {
				digest = Missing
			}
			switch {
			case digest == "":
				continue
			case len(out) == maxFiles:
				unbound = append(unbound, fmt.Sprintf("files beyond the first %d", maxFiles))
				return
			case strings.Contains(digest, sized):
				unbound = append(unbound, name+": it is large, so only its size and time are compared")
			case digest == notPlain:
				unbound = append(unbound, name+": it is a pipe or a device, and its content is not known in advance")
			case digest == unreadable:
				unbound = append(unbound, name+": it cannot be read")
			}
			out[name] = digest
		}
	}
	look(wanted, true)
	look(words, false)
	return out, unbound
}

// What replaces the digest of a file that is not read.
const (
	sized      = " bytes of "
	unreadable = "unreadable"
	notPlain   = "no plain file"

	changedFormat = "2006-01-02T15:04:05.000000000"
)

// below returns the name of a path relative to dir, if it is inside.
func below(dir, name string) (string, bool) {
	if name == "" || len(name) > 4096 || strings.ContainsRune(name, 0) {
		return "", false
	}
	if filepath.IsAbs(name) {
		rel, err := filepath.Rel(dir, name)
		if err != nil {
			return "", false
		}
		name = rel
	}
	name = filepath.Clean(name)
	return name, filepath.IsLocal(name) && name != "."
}

// digest returns "" for missing files and for folders. It does not wait for pipes.
func digest(root *os.Root, name string, left int64) (string, int64) {
	info, err := root.Stat(name)
	switch {
	case err != nil || info.IsDir():
		return "", 0
	case !info.Mode().IsRegular():
		return notPlain, 0
	}
	f, info, err := plainfile.OpenIn(root, name)
	if errors.Is(err, plainfile.ErrNotPlain) { // changed since then
		return notPlain, 0
	}
	if err != nil {
		return unreadable, 0
	}
	defer f.Close()
	if info.Size() > min(maxFile, left) {
		return fmt.Sprintf("%d"+sized+"%s", info.Size(), changed(info)), 0
	}
	sum := sha256.New()
	n, err := io.Copy(sum, io.LimitReader(f, maxFile))
	if err != nil {
		return unreadable, n
	}
	return hex.EncodeToString(sum.Sum(nil)[:16]), n
}
