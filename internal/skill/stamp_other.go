//go:build !linux

package skill

import "os"

// stamp shows whether a file was written.
type stamp struct {
	size     int64
	modified int64
	changed  int64
	mode     uint32
}

// stampOf does not follow links.
func stampOf(path string) (stamp, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return stamp{}, err
	}
	at := info.ModTime().UnixNano()
	return stamp{size: info.Size(), modified: at, changed: at, mode: uint32(info.Mode())}, nil
}
