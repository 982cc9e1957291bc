//go:build !unix

package sandbox

import "io/fs"

// FolderID returns "": there is no sandbox here.
func FolderID(fs.FileInfo) string { return "" }
