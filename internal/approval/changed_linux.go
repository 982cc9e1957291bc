package approval

import (
	"fmt"
	"io/fs"
	"syscall"
	"time"
)

// changed distinguishes states of a file without reading it, by the time of its
// last status change, which nobody can set, and its inode.
func changed(info fs.FileInfo) string {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return fmt.Sprintf("%s, inode %d", time.Unix(st.Ctim.Unix()).UTC().Format(changedFormat), st.Ino)
	}
	return info.ModTime().UTC().Format(changedFormat)
}
