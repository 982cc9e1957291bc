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

// attributes put the child into a group of its own, and have it get the signal when we die.
func attributes(signal syscall.Signal) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: signal}
}

// proc is one line of the process table.
type proc struct {
	pid, parent, group int
	zombie             bool
}

// killTree kills the group of leader (when not 0), everything that carries mark in
// its environment, and everything below either, until nothing new is found. It
// says how many processes it met that were alive.
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

// Terminate asks the processes that carry mark to end and says how many there are. The one that began all of them comes
// last: with a shell its script would end, and what it started would have no time to end by itself. asked holds
// those that were asked before, who are not asked again.
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

// StartTime is when a process began, in ticks since the machine did, and whether there is such a process. Together with BootID it
// tells a process from a later one with the same number.
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

// BootID names the time since this machine started; empty where nobody knows.
func BootID() string {
	data, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	return string(bytes.TrimSpace(data))
}

// table lists the living processes that belong to leader or carry mark, and all
// below those: a child may have been given another environment.
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
		p, ok := stat(name, pid)
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
	// Parents first: a shell would print something about its children's end, or even go
	// on with its script.
	slices.SortFunc(pids, func(a, b int) int { return cmp.Or(depth[a]-depth[b], a-b) })
	return pids
}

// stat reads /proc/<pid>/stat: "pid (name) state parent group …"; the name may
// hold anything, so the fields are counted from its last parenthesis.
func stat(name string, pid int) (proc, bool) {
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
	return proc{pid: pid, parent: parent, group: group, zombie: fields[0][0] == 'Z' || fields[0][0] == 'X'}, true
}

// carries says whether the process was started with mark in its environment. One
// that belongs to somebody else cannot be read, and is not ours.
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
