package telemetry

import (
	"bytes"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"time"
)

// process describes the process under the names that everybody's dashboards know. What
// only Linux tells is left out elsewhere.
func process(r *registry) {
	began := time.Now()
	r.gauge("process_start_time_seconds", "When this process began to count, in seconds since 1970.", func() (float64, bool) {
		return float64(began.UnixMilli()) / 1e3, true
	})
	r.gauge("chorus_uptime_seconds", "How long this process has been counting.", func() (float64, bool) { return time.Since(began).Seconds(), true })
	r.gauge("process_resident_memory_bytes", "Memory that this process has in RAM.", resident)
	r.gauge("process_open_fds", "Open files, sockets and pipes.", openFiles)
	r.counterFunc("process_cpu_seconds_total", "Time that processors spent on this process.", cpu)
	r.gauge("go_goroutines", "Goroutines that exist.", func() (float64, bool) { return float64(runtime.NumGoroutine()), true })
}

func resident() (float64, bool) {
	data, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, false
	}
	fields := bytes.Fields(data)
	if len(fields) < 2 {
		return 0, false
	}
	pages, err := strconv.ParseInt(string(fields[1]), 10, 64)
	return float64(pages) * float64(os.Getpagesize()), err == nil
}

func openFiles() (float64, bool) {
	dir, err := os.Open("/proc/self/fd")
	if err != nil {
		return 0, false
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	return float64(len(names) - 1), err == nil // the folder itself is one of them
}

func cpu() (float64, bool) {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		return 0, false
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano()).Seconds(), true
}
