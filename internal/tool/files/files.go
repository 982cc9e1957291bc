// Package files lets an agent read and change files. It promises that this happens only inside the named
// roots: paths that lead outside, by dots, links or races, are refused. A change is written in one step and
// keeps mode bits. A patch is applied whole or not at all. Two calls never change one file at the same time.
package files

import (
	_ "embed"

	"chorus/internal/tool"
)

// Tools returns read, write, edit, hashline_edit, apply_patch and list_files on the roots.
func Tools(r *Roots) []tool.Tool {
	return []tool.Tool{Read(r), Write(r), Edit(r), HashlineEdit(r), ApplyPatch(r), ListFiles(r)}
}

var (
	//go:embed read.md
	readProse string
	//go:embed write.md
	writeProse string
	//go:embed edit.md
	editProse string
	//go:embed hashline_edit.md
	hashlineProse string
	//go:embed apply_patch.md
	patchProse string
	//go:embed list_files.md
	listProse string
)
