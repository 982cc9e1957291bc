package skill

import "syscall"

// stamp shows whether a file was replaced or written: setting a file's
// times back still changes the change time of its inode.
type stamp struct {
	inode    uint64
	size     int64
	modified int64
	changed  int64
	mode     uint32
}

// stampOf does not follow links. It is called for each file of each skill on each search.
func stampOf(path string) (stamp, error) {
	var st syscall.Stat_t
	if err := syscall.Lstat(path, &st); err != nil {
		return stamp{}, err
	}
	return stamp{inode: st.Ino, size: st.Size, modified: st.Mtim.Nano(), changed: st.Ctim.Nano(), mode: st.Mode}, nil
}
