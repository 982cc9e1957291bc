package main

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
)

// giveBack hands the pages of the program itself back to the kernel. Before main, every
// library sets its tables up, and the code for that is never run again: a third of what
// a short command would hold to its end. What is needed after all comes back by itself,
// from the page cache. Where anything is not as expected, nothing is done.
func giveBack() {
	program, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return
	}
	for line := range bytes.Lines(maps) {
		f := bytes.Fields(line)
		if len(f) != 6 || string(f[5]) != program || len(f[1]) < 2 || f[1][1] == 'w' { // only what is as it is on disk
			continue
		}
		begin, end, _ := bytes.Cut(f[0], []byte("-"))
		from, err := strconv.ParseUint(string(begin), 16, 64)
		if err != nil {
			continue
		}
		to, err := strconv.ParseUint(string(end), 16, 64)
		if err != nil {
			continue
		}
		_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, uintptr(from), uintptr(to-from), syscall.MADV_DONTNEED) // a hint: nothing depends on it
	}
}
