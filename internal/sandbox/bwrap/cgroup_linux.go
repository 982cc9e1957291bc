package bwrap

import (
	"bufio"
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"chorus/internal/sandbox"
)

// groups maps each controller to the directory in which control groups
// can be made. It is empty if none is writable.
type groups map[string]groupDir

type groupDir struct {
	path   string
	v2     bool
	starts bool // in version 2: a process can be started in a group and need not be moved
}

// limitFiles returns the files that a controller's limits are written to. Swap comes
// second and may be missing: without swap there is nothing to limit.
func limitFiles(controller string, v2 bool, limits Limits) [][2]string {
	memory, processes := strconv.FormatInt(limits.Memory, 10), strconv.FormatInt(limits.Processes, 10)
	switch {
	case controller == "pids":
		return [][2]string{{"pids.max", processes}}
	case controller != "memory":
		return nil
	case v2:
		return [][2]string{{"memory.max", memory}, {"memory.swap.max", "0"}}
	default:
		return [][2]string{{"memory.limit_in_bytes", memory}, {"memory.memsw.limit_in_bytes", memory}}
	}
}

// findGroups looks for writable groups and tries each, because permission to
// make a group does not imply permission to enter it.
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
			if dir.works(controller, limits) {
				found[controller] = dir
				break
			}
		}
	}
	return found
}

// candidates returns the directories to try for each controller, nearest to our own group
// first. It reads the texts of /proc/self/cgroup and /proc/self/mountinfo.
func candidates(own, mounts, controller string) []groupDir {
	at := map[string]string{} // controller, or "" for version 2, to our own group
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
				dirs = append(dirs, groupDir{path: filepath.Join(head[4], path)})
			}
		case tail[0] == "cgroup2":
			// A group with its own processes cannot have limited groups below it. Therefore the siblings of
			// our group are tried too: if a service manager gave us a part of its tree, they belong there.
			path, ok := below(at[""], head[3])
			for ok && path != "" {
				if data, err := os.ReadFile(filepath.Join(head[4], path, "cgroup.subtree_control")); err == nil &&
					slices.Contains(strings.Fields(string(data)), controller) {
					dirs = append(dirs, groupDir{path: filepath.Join(head[4], path), v2: true})
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

// below returns the path as seen under a mount of root.
func below(path, root string) (string, bool) {
	if path == "" || !sandbox.Within(path, root) {
		return "", false
	}
	return filepath.Join("/", strings.TrimPrefix(path, strings.TrimSuffix(root, "/"))), true
}

// works tries a group: in version 1 with one of our threads, in version 2 with a process that only waits.
func (d *groupDir) works(controller string, limits Limits) bool {
	if d.v2 {
		d.starts = true
		if d.startsIn(controller, limits) {
			return true
		}
		d.starts = false // before Linux 5.7, or if a filter refuses the call
		return d.startsIn(controller, limits)
	}
	made, err := groups{controller: *d}.make(limits)
	if err != nil {
		return false
	}
	defer made.remove()
	return made.inThread(func() error { return nil }) == nil
}

func (d *groupDir) startsIn(controller string, limits Limits) bool {
	made, err := groups{controller: *d}.make(limits)
	if err != nil {
		return false
	}
	defer made.remove()
	cmd := exec.Command("/bin/sh", "-c", "read nothing")
	in, err := cmd.StdinPipe()
	if err != nil || made.start(cmd) != nil {
		return false
	}
	_ = in.Close()
	_ = cmd.Wait()
	return true
}

// group holds the folders that were made for one sandbox, one in each
// hierarchy that has one of the controllers.
type group struct {
	dirs    map[string]groupDir // by the folder that was made: the folder it was made in
	started *os.File            // the folder in which a process can be started
}

// make makes a group.
func (g groups) make(limits Limits) (_ *group, err error) {
	name := fmt.Sprintf("%s%d-%s", prefix, os.Getpid(), rand.Text()[:10])
	m := &group{dirs: map[string]groupDir{}}
	defer func() {
		if err != nil {
			m.remove()
		}
	}()
	for controller, parent := range g {
		dir := filepath.Join(parent.path, name)
		if _, made := m.dirs[dir]; !made {
			if err := os.Mkdir(dir, 0o755); err != nil {
				return nil, err
			}
			m.dirs[dir] = parent
		}
		for i, file := range limitFiles(controller, parent.v2, limits) {
			if err := os.WriteFile(filepath.Join(dir, file[0]), []byte(file[1]), 0o644); err != nil && i == 0 {
				return nil, err
			}
		}
		if parent.starts && m.started == nil {
			if m.started, err = os.Open(dir); err != nil {
				return nil, err
			}
		}
	}
	return m, nil
}

// start starts a process in the group. Moving a running process waits until every processor has passed
// a quiet state, which takes ten milliseconds or more. Therefore version 2 starts the process in the
// group, and version 1 starts it from a thread that is in the group.
func (m *group) start(cmd *exec.Cmd) error {
	if m.started != nil {
		cmd.SysProcAttr = cmp.Or(cmd.SysProcAttr, &syscall.SysProcAttr{})
		cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, int(m.started.Fd())
	}
	if err := m.inThread(cmd.Start); err != nil {
		return err
	}
	for dir, parent := range m.dirs {
		if !parent.v2 || m.started != nil && m.started.Name() == dir {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(cmd.Process.Pid)), 0o644); err != nil {
			_ = cmd.Process.Kill()
			return errors.Join(fmt.Errorf("put the command into a cgroup: %w", err), cmd.Wait())
		}
	}
	return nil
}

// inThread calls do in a thread that has entered the version 1 groups, where each
// thread has its own group, and then moves the thread back.
func (m *group) inThread(do func() error) error {
	var dirs []string
	for dir, parent := range m.dirs {
		if !parent.v2 {
			dirs = append(dirs, dir)
		}
	}
	if len(dirs) == 0 {
		return do()
	}
	done := make(chan error, 1)
	go func() { // in its own goroutine: a thread that cannot be moved back is not used for anything else
		runtime.LockOSThread()
		var err error
		entered := 0
		for ; entered < len(dirs) && err == nil; entered++ {
			err = enterThread(dirs[entered])
		}
		if err != nil {
			err = fmt.Errorf("enter a cgroup: %w", err)
		} else {
			err = do()
		}
		var lost error
		for _, dir := range dirs[:entered] {
			lost = errors.Join(lost, enterThread(m.dirs[dir].path))
		}
		if lost == nil {
			runtime.UnlockOSThread()
		} else { // the thread ends, and with it whatever it started: bubblewrap dies with its parent
			err = errors.Join(err, fmt.Errorf("leave a cgroup: %w", lost))
		}
		done <- err
	}()
	return <-done
}

// enterThread moves the calling thread. That needs no waiting, because the
// thread does not start or end another meanwhile.
func enterThread(dir string) error {
	return os.WriteFile(filepath.Join(dir, "tasks"), []byte("0"), 0o644)
}

// remove removes the group once all its processes are gone.
func (m *group) remove() {
	if m.started != nil {
		_ = m.started.Close()
	}
	for dir := range m.dirs {
		remove(dir)
	}
}

const prefix = "chorus-" // prefix of our groups' names, followed by the server's process id

// remove removes a group whose processes are dying. Nothing signals when the last one is
// gone. A group that does not go in time is removed by the next server.
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

// sweep removes the groups of servers that no longer run. The system
// refuses to remove a group that still has processes.
func sweep(parent string) {
	dirs, _ := filepath.Glob(filepath.Join(parent, prefix+"*"))
	for _, dir := range dirs {
		pid, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), prefix), "-")
		if _, err := os.Stat("/proc/" + pid); pid != "" && errors.Is(err, fs.ErrNotExist) {
			_ = os.Remove(dir)
		}
	}
}
