package bwrap

import (
	"bufio"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// groups are where control groups can be made here: for each controller the
// directory to make them in. Empty where none can be written.
type groups map[string]groupDir

type groupDir struct {
	path string
	v2   bool
}

// The files that limits are written to, in both versions. Swap comes second and
// may be missing: without swap there is nothing to limit.
func limitFiles(controller string, v2 bool, limits Limits) [][2]string {
	memory, processes := strconv.FormatInt(limits.Memory, 10), strconv.FormatInt(limits.Processes, 10)
	switch {
	case controller == "pids":
		return [][2]string{{"pids.max", processes}}
	case v2:
		return [][2]string{{"memory.max", memory}, {"memory.swap.max", "0"}}
	default:
		return [][2]string{{"memory.limit_in_bytes", memory}, {"memory.memsw.limit_in_bytes", memory}}
	}
}

// findGroups looks for groups that can be written, and tries each with a process
// of its own: permissions to make one and to move into it are not the same.
func findGroups(limits Limits) groups {
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return nil
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil
	}
	found := groups{}
	for _, controller := range []string{"memory", "pids"} {
		for _, dir := range candidates(string(own), string(mounts), controller) {
			sweep(dir.path)
			only := groups{controller: dir}
			if only.works(limits) {
				found[controller] = dir
				break
			}
		}
	}
	return found
}

// candidates are the directories to try for a controller, nearest to our own group
// first, from the texts of /proc/self/cgroup and /proc/self/mountinfo.
func candidates(own, mounts, controller string) []groupDir {
	at := map[string]string{} // controller, or "" for version 2: our own group
	for text := range strings.Lines(own) {
		parts := strings.SplitN(strings.TrimSuffix(text, "\n"), ":", 3)
		if len(parts) != 3 {
			continue
		}
		for name := range strings.SplitSeq(parts[1], ",") {
			at[name] = parts[2]
		}
	}
	var dirs []groupDir
	for lines := bufio.NewScanner(strings.NewReader(mounts)); lines.Scan(); {
		// id parent device root mountpoint options … - type source superoptions
		before, after, ok := strings.Cut(lines.Text(), " - ")
		head, tail := strings.Fields(before), strings.Fields(after)
		if !ok || len(head) < 5 || len(tail) < 3 {
			continue
		}
		switch {
		case tail[0] == "cgroup" && slices.Contains(strings.Split(tail[2], ","), controller):
			if path, ok := below(at[controller], head[3]); ok {
				dirs = append(dirs, groupDir{filepath.Join(head[4], path), false})
			}
		case tail[0] == "cgroup2":
			// A group with processes of its own cannot have limited ones below it, so
			// the siblings of ours are tried too: where a service manager gave us a part
			// of its tree, that is where they belong.
			path, ok := below(at[""], head[3])
			for ok && path != "" {
				if data, err := os.ReadFile(filepath.Join(head[4], path, "cgroup.subtree_control")); err == nil &&
					slices.Contains(strings.Fields(string(data)), controller) {
					dirs = append(dirs, groupDir{filepath.Join(head[4], path), true})
				}
				if path == "/" {
					break
				}
				path = filepath.Dir(path)
			}
		}
	}
	return dirs
}

// below is the path as seen under a mount of root.
func below(path, root string) (string, bool) {
	if path == "" || !within(path, root) {
		return "", false
	}
	return filepath.Join("/", strings.TrimPrefix(path, strings.TrimSuffix(root, "/"))), true
}

// works tries the groups with a process that only waits.
func (g groups) works(limits Limits) bool {
	cmd := exec.Command("/bin/sh", "-c", "read nothing")
	in, err := cmd.StdinPipe()
	if err != nil || cmd.Start() != nil {
		return false
	}
	leave, err := g.enter(cmd.Process.Pid, limits)
	_ = in.Close()
	_ = cmd.Wait()
	if err != nil {
		return false
	}
	leave()
	return true
}

// enter makes a group for pid and what it will start, and moves it there. leave
// removes it once all of them are gone.
func (g groups) enter(pid int, limits Limits) (leave func(), err error) {
	name := fmt.Sprintf("%s%d-%s", prefix, os.Getpid(), rand.Text()[:10])
	made := map[string]bool{}
	leave = func() {
		for dir := range made {
			remove(dir)
		}
	}
	for controller, parent := range g {
		dir := filepath.Join(parent.path, name)
		if !made[dir] {
			if err := os.Mkdir(dir, 0o755); err != nil {
				leave()
				return nil, err
			}
			made[dir] = true
		}
		for i, file := range limitFiles(controller, parent.v2, limits) {
			if err := os.WriteFile(filepath.Join(dir, file[0]), []byte(file[1]), 0o644); err != nil && i == 0 {
				leave()
				return nil, err
			}
		}
	}
	for dir := range made {
		if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0o644); err != nil {
			leave()
			return nil, err
		}
	}
	return leave, nil
}

const prefix = "chorus-" // of our groups' names; then the server's process id

// remove removes a group whose processes are dying. Nothing signals that the last one is
// gone, and what does not go in time is removed by the next server.
func remove(dir string) {
	deadline := time.Now().Add(2 * time.Second)
	for wait := 100 * time.Microsecond; ; wait = min(2*wait, 20*time.Millisecond) {
		err := os.Remove(dir)
		if err == nil || errors.Is(err, fs.ErrNotExist) || time.Now().After(deadline) {
			return
		}
		time.Sleep(wait)
	}
}

// sweep removes the groups of servers that are no more. One that still has
// processes stays: the system does not let it go.
func sweep(parent string) {
	dirs, _ := filepath.Glob(filepath.Join(parent, prefix+"*"))
	for _, dir := range dirs {
		pid, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), prefix), "-")
		if _, err := os.Stat("/proc/" + pid); pid != "" && errors.Is(err, fs.ErrNotExist) {
			_ = os.Remove(dir)
		}
	}
}
