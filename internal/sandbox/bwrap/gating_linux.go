package bwrap

import (
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"chorus/internal/sandbox/bwrap/execgate"
)

// gating is what all gates of an executor share.
type gating struct {
	programs *execgate.Programs
	noGate   atomic.Pointer[error] // set if the kernel refused a gate after all
}

func newPrograms(env []string) *execgate.Programs {
	all := filepath.SplitList(defaultPath)
	for _, entry := range env {
		if list, ok := strings.CutPrefix(entry, "PATH="); ok {
			all = append(all, filepath.SplitList(list)...)
		}
	}
	var dirs []string
	for _, dir := range all {
		if real, err := filepath.EvalSymlinks(dir); err == nil { // /bin is /usr/bin on many machines
			dir = real
		}
		if !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	return &execgate.Programs{Dirs: dirs}
}
