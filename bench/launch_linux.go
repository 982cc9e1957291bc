package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// toolTime waits until the process has ended, without reaping it, and gives how much
// time its own children took.
func toolTime(pid int) time.Duration {
	var err error = unix.EINTR
	for err == unix.EINTR {
		err = unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
	}
	stat, rerr := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil || rerr != nil {
		return 0
	}
	// The name in parentheses may hold spaces; the fields are counted behind it.
	_, rest, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 15 {
		return 0
	}
	const tick = 10 * time.Millisecond
	var sum time.Duration
	for _, f := range fields[13:15] { // cutime, cstime
		n, err := strconv.Atoi(f)
		if err != nil {
			return 0
		}
		sum += time.Duration(n) * tick
	}
	return sum
}

// uncache makes the kernel forget what it has in memory of a file.
func uncache(f *os.File) error {
	if err := unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED); err != nil {
		return fmt.Errorf("remove %s from the page cache: %w", f.Name(), err)
	}
	return nil
}

// residentPeak is the most memory that a running process has had, in bytes; 0: not known here.
func residentPeak(pid int) int64 { return statusLine(pid, "VmHWM:") }

// residentNow is what a process has in memory at this moment.
func residentNow(pid int) int64 { return statusLine(pid, "VmRSS:") }

// privateNow is the memory that a process shares with nobody and no file: its heap and stacks.
func privateNow(pid int) int64 { return statusLine(pid, "RssAnon:") }

// privateOfAll is that of a process and of all that descend from it.
func privateOfAll(pid int) int64 {
	parents := map[int]int{}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return 0
	}
	for _, entry := range entries {
		if child, err := strconv.Atoi(entry.Name()); err == nil {
			parents[child] = int(statusNumber(child, "PPid:"))
		}
	}
	var sum int64
	for child := range parents {
		for at := child; at > 0; at = parents[at] {
			if at == pid {
				sum += privateNow(child)
				break
			}
		}
	}
	return sum
}

// statusLine is a figure of /proc/PID/status that is in kilobytes, in bytes; 0: not known.
func statusLine(pid int, name string) int64 { return statusNumber(pid, name) * 1024 }

func statusNumber(pid int, name string) int64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(status), name)
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return 0
	}
	n, err := strconv.ParseInt(fields[0], 10, 64)
	if err != nil {
		return 0
	}
	return n
}
