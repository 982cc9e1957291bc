package api_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// How many watch, and what: ten windows open on each of a hundred agents at work.
const (
	benchSessions = 100
	benchReaders  = 1000
)

// BenchmarkReaders has a thousand readers follow a hundred runs to their end, over
// real connections. It counts the objects they got and the memory that they hold,
// their own end of each connection included.
func BenchmarkReaders(b *testing.B) {
	_, server := realServer(b)
	for b.Loop() {
		sessions := make([]string, benchSessions)
		for i := range sessions {
			sessions[i], _ = post(b, server.URL+"/api/sessions", `{}`, 201)["sessionId"].(string)
		}
		before := inUse()
		var objects, ended atomic.Int64
		var readers sync.WaitGroup
		ready := make(chan struct{}, benchReaders)
		for i := range benchReaders {
			readers.Go(func() {
				watchToTheEnd(b, server.URL+"/api/sessions/"+sessions[i%benchSessions]+"/stream", ready, &objects, &ended)
			})
		}
		for range benchReaders {
			<-ready
		}
		idle := inUse() - before
		begin := time.Now()
		message, _ := json.Marshal(map[string]string{"message": "```demo\nchunk 12\nsay " + strings.Repeat("many words make a long answer ", 40) + "\n```"})
		for _, s := range sessions {
			post(b, server.URL+"/api/sessions/"+s+"/chat", string(message), 202)
		}
		readers.Wait()
		took := time.Since(begin)
		if ended.Load() != benchReaders {
			b.Fatalf("%d of %d readers saw the end", ended.Load(), benchReaders)
		}
		b.ReportMetric(float64(objects.Load())/took.Seconds(), "objects/s")
		b.ReportMetric(float64(objects.Load())/benchReaders, "objects/reader")
		b.ReportMetric(float64(idle)/benchReaders/1024, "KB/reader") // both ends
		b.ReportMetric(took.Seconds(), "s")
	}
}

// inUse is what stays: stacks that were deep once are halved by each collection.
func inUse() int64 {
	for range 5 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}

// watchToTheEnd counts objects until the run's last.
func watchToTheEnd(b *testing.B, url string, ready chan<- struct{}, objects, ended *atomic.Int64) {
	r, err := http.NewRequestWithContext(b.Context(), http.MethodGet, url, nil)
	if err != nil {
		panic(err) // the address is ours
	}
	res, err := (&http.Transport{DisableCompression: true, DisableKeepAlives: true}).RoundTrip(r)
	if err != nil {
		b.Error(err)
		ready <- struct{}{}
		return
	}
	defer res.Body.Close()
	lines := bufio.NewReaderSize(res.Body, 4096)
	told := false
	for {
		line, err := lines.ReadSlice('\n')
		if err != nil && err != bufio.ErrBufferFull {
			b.Error(err)
			return
		}
		switch {
		case !told && bytes.HasPrefix(line, []byte(": hello")):
			told = true
			ready <- struct{}{}
		case bytes.HasPrefix(line, []byte("event: ")):
			objects.Add(1)
			if bytes.HasPrefix(line, []byte("event: completed")) {
				ended.Add(1)
				return
			}
		}
	}
}
