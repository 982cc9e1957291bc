// Package symlink judges where symbolic links lead by their text alone, without accessing a disk.
package symlink

import (
	"path"
	"path/filepath"
	"strings"
)

// StaysInside reports whether a link cannot leave the folder that contains it. name is the
// link's path below the folder, with slashes. The target may go up only at its beginning, where
// everything above it is a folder and not a link, and not beyond the top. The path it then goes
// down may contain links for which the same holds.
func StaysInside(name, target string) bool {
	if target == "" || path.IsAbs(target) || filepath.IsAbs(target) || strings.ContainsAny(target, "\\\x00") {
		return false
	}
	up, down := 0, false
	for part := range strings.SplitSeq(target, "/") {
		switch part {
		case "", ".":
		case "..":
			if down {
				return false
			}
			up++
		default:
			down = true
		}
	}
	return up <= strings.Count(name, "/")
}
