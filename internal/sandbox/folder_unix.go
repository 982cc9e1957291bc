//go:build unix

package sandbox

import (
	"fmt"
	"io/fs"
	"syscall"
)

// FolderID identifies a folder independently of its name: a folder that takes over
// the name has another id. It returns "" if the id is not known.
func FolderID(info fs.FileInfo) string {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	return fmt.Sprintf("%d:%d", stat.Dev, stat.Ino)
}
