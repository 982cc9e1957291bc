//go:build linux

package bwrap

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestProcessesStartInTheirGroup: a process is in its group from its first moment, no thread of ours stays there, and the
// group goes with it.
func TestProcessesStartInTheirGroup(t *testing.T) {
	t.Parallel()
	limits := Limits{}.orDefault()
	kinds := map[string]groups{"those of this machine": findGroups(limits)}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		if before, after, _ := strings.Cut(line, " - "); strings.HasPrefix(after, "cgroup2 ") {
			// Without a controller there is nothing to limit, and the process is in it all the same.
			kinds["version 2"] = groups{"none": {path: strings.Fields(before)[4], v2: true, starts: true}}
		}
	}
	for kind, found := range kinds {
		made, err := found.make(limits)
		if len(found) == 0 || err != nil {
			t.Logf("!!! %s cannot be written here: %v", kind, err)
			continue
		}
		cmd := exec.Command("/bin/cat", "/proc/self/cgroup")
		var out strings.Builder
		cmd.Stdout = &out
		if err := made.start(cmd); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Fatal(err)
		}
		for dir := range made.dirs {
			if !strings.Contains(out.String(), filepath.Base(dir)) {
				t.Errorf("%s: it was not in %s: %s", kind, dir, out.String())
			}
			if strings.Contains(threadGroups(t), filepath.Base(dir)) {
				t.Errorf("%s: a thread of ours is in %s", kind, dir)
			}
		}
		made.remove()
		for dir := range made.dirs {
			if _, err := os.Stat(dir); err == nil {
				t.Errorf("%s: %s is still there", kind, dir)
			}
		}
	}
}

// threadGroups are the groups that threads of this process are in.
func threadGroups(t *testing.T) string {
	t.Helper()
	files, err := filepath.Glob("/proc/self/task/*/cgroup")
	if err != nil || len(files) == 0 {
		t.Fatal("no threads", err)
	}
	var out strings.Builder
	for _, file := range files {
		data, _ := os.ReadFile(file) // a thread may have ended
		out.Write(data)
	}
	return out.String()
}
