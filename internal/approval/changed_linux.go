package approval

import (
	"fmt"
	"io/fs"
	"syscall"
	"time"
)

// changed tells a state of a file from later ones without reading it: the time of its last change, which nobody can set, and its inode.
func changed(info fs.FileInfo) string {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return fmt.Sprintf("%s, inode %d", time.Unix(st.Ctim.Unix()).UTC().Format(changedFormat), st.Ino)
	}
	return info.ModTime().UTC().Format(changedFormat)
}
