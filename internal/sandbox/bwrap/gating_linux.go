package bwrap

import (
	"path/filepath"
	"strings"
	"sync/atomic"

	"chorus/internal/sandbox/bwrap/execgate"
)

// gating is what all gates of an executor share.
type gating struct {
	programs *execgate.Programs
	noGate   atomic.Pointer[error] // why there is none after all
}

func newPrograms(env []string) *execgate.Programs {
	dirs := filepath.SplitList(defaultPath)
	for _, entry := range env {
		if list, ok := strings.CutPrefix(entry, "PATH="); ok {
			dirs = append(dirs, filepath.SplitList(list)...)
		}
	}
	return &execgate.Programs{Dirs: dirs}
}
