//go:build !linux

package approval

import "io/fs"

// changed tells a state of a file from later ones without reading it, by the time of its last writing, which a program can set.
func changed(info fs.FileInfo) string { return info.ModTime().UTC().Format(changedFormat) }
