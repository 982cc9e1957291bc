package process

import (
	"bytes"
	"cmp"
	"context"
	"os"
	"slices"
	"strconv"
	"syscall"
)

// attributes puts the child into its own group and sends it the signal when we die.
func attributes(signal syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: signal}
}

// proc is one entry of the process table.
type proc struct {
	parent, group int
	zombie        bool
}

// killTree kills the group of leader (if not 0), everything that carries mark in its environment, and
// everything below either, until it finds nothing new. It returns how many live processes it found.
func killTree(ctx context.Context, leader int, mark string) (int, error) {
	killed := map[int]bool{}
	for ctx.Err() == nil {
		found := 0
		for _, p := range table(leader, mark) {
			if !killed[p] {
				killed[p] = true
				found++
			}
			_ = syscall.Kill(p, syscall.SIGKILL)
		}
		if leader > 0 {
			_ = syscall.Kill(-leader, syscall.SIGKILL)
		}
		if found == 0 {
			return len(killed), nil
		}
	}
	return len(killed), ctx.Err()
}

// Terminate asks the processes that carry mark to end and returns how many there are. It asks the process
// that started all others last: a shell would end its script, and what it started would have no time to end
// by itself. asked holds the processes that were asked before, which are not asked again.
func Terminate(mark string, asked map[int]bool) int {
	pids := table(0, mark)
	rest := pids
	if len(pids) > 1 {
		rest = pids[1:]
	}
	for _, pid := range slices.Backward(rest) {
		if !asked[pid] {
			asked[pid] = true
			_ = syscall.Kill(pid, syscall.SIGTERM)
		}
	}
	return len(pids)
}

// StartTime returns when a process started, in ticks since boot, and whether there is such a process.
// Together with BootID it distinguishes a process from a later one with the same id.
func StartTime(pid int) (uint64, bool) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, false
	}
	fields := bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:])
	if len(fields) < 20 {
		return 0, false
	}
	ticks, err := strconv.ParseUint(string(fields[19]), 10, 64)
	return ticks, err == nil && fields[0][0] != 'Z' && fields[0][0] != 'X'
}

// BootID identifies the current boot of this machine. It is empty if unknown.
func BootID() string {
	data, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return string(bytes.TrimSpace(data))
}

// table lists the live processes that belong to leader or carry mark, and all
// below those: a child may have a different environment.
func table(leader int, mark string) []int {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	names, _ := dir.Readdirnames(-1)
	_ = dir.Close()
	self := os.Getpid()
	procs := make(map[int]proc, len(names))
	mine := map[int]bool{}
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil || pid == self {
			continue
		}
		p, ok := stat(name)
		if !ok || p.zombie {
			continue
		}
		procs[pid] = p
		mine[pid] = leader > 0 && p.group == leader || carries(name, mark)
	}
	for grown := true; grown; {
		grown = false
		for pid, p := range procs {
			if !mine[pid] && mine[p.parent] {
				mine[pid], grown = true, true
			}
		}
	}
	var pids []int
	depth := map[int]int{}
	for pid := range procs {
		if mine[pid] {
			pids = append(pids, pid)
			for p := procs[pid].parent; mine[p] && depth[pid] < len(procs); p = procs[p].parent {
				depth[pid]++
			}
		}
	}
	// Parents come first: a shell would otherwise report its children's end, or even continue its script.
	slices.SortFunc(pids, func(a, b int) int { return cmp.Or(depth[a]-depth[b], a-b) })
	return pids
}

// stat reads /proc/<pid>/stat: "pid (name) state parent group …". The name may
// contain anything, so fields are counted from its last parenthesis.
func stat(name string) (proc, bool) {
	data, err := os.ReadFile("/proc/" + name + "/stat")
	if err != nil {
		return proc{}, false
	}
	fields := bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:])
	if len(fields) < 3 {
		return proc{}, false
	}
	parent, _ := strconv.Atoi(string(fields[1]))
	group, _ := strconv.Atoi(string(fields[2]))
	return proc{parent: parent, group: group, zombie: fields[0][0] == 'Z' || fields[0][0] == 'X'}, true
}

// carries reports whether the process was started with mark in its environment. The
// environment of another user's process cannot be read; that process is not ours.
func carries(name, mark string) bool {
	if mark == "" {
		return false
	}
	data, err := os.ReadFile("/proc/" + name + "/environ")
	if err != nil {
		return false
	}
	for entry := range bytes.SplitSeq(data, []byte{0}) {
		if string(entry) == mark {
			return true
		}
	}
	return false
}
