//go:build unix

package sandbox

import (
	"fmt"
	"io/fs"
	"syscall"
)

// FolderID says which folder it is, whatever it is called: one that takes its name has another. "": that is not known.
func FolderID(info fs.FileInfo) string {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	return fmt.Sprintf("%d:%d", stat.Dev, stat.Ino)
}
