// Package symlink judges where symbolic links lead, by their text alone: nothing is looked up on a disk.
package symlink

import (
	"path"
	"path/filepath"
	"strings"
)

// StaysInside reports whether a link cannot leave the folder that holds it. name is the link's path below the folder, with slashes. It may
// go up only at its beginning, where all above it are folders and no links, and not beyond the top. What it then goes down through may be
// links for which the same holds.
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
