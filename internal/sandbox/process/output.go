package process

import (
	"errors"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"

	"chorus/internal/sandbox"
)

// output collects what a command prints. Both streams go into one text in the order in
// which they arrive, and it remembers where each piece came from.
type output struct {
	mu      sync.Mutex
	on      func(string)
	all     []byte
	pieces  []piece // only while two streams are read
	dropped int64
	held    bool // a reader gave up before the end of its pipe
}

type piece struct {
	stream, end int
}

// buffers hold what is read from pipes. Most commands print a line, so
// allocating one buffer each would mostly create garbage.
var buffers = sync.Pool{New: func() any { return new([32 << 10]byte) }}

// read reads one pipe until its end, or until its deadline plus what was written by then.
func (o *output) read(pipe *os.File, stream int) {
	var (
		clean cleaner
		array = buffers.Get().(*[32 << 10]byte)
		buf   = array[:]
		text  []byte
		kept  int
		from  io.Reader = pipe
	)
	defer buffers.Put(array)
	for {
		n, err := from.Read(buf)
		if from == pipe && errors.Is(err, os.ErrDeadlineExceeded) {
			from, err = &written{pipe: pipe, most: pipeful}, nil
		}
		take := min(n, sandbox.MaxStream-kept)
		kept += take
		text = clean.clean(text[:0], buf[:take])
		if err != nil {
			text = clean.flush(text)
		}
		o.add(text, stream, int64(n-take))
		if err != nil {
			if !errors.Is(err, io.EOF) {
				o.mu.Lock()
				o.held = true
				o.mu.Unlock()
			}
			return
		}
	}
}

// pipeful is the most that an unprivileged pipe can hold.
const pipeful = 1 << 20

// written reads what is already in a pipe and never waits for more. After its deadline os.File reads
// nothing at all, and on a busy machine the reader may not have run before it.
type written struct {
	pipe *os.File
	most int // how much may still be read, because the other end may write forever
}

// Read implements io.Reader. It returns an error if the pipe is empty but not at its end.
func (w *written) Read(buf []byte) (int, error) {
	if w.most <= 0 {
		return 0, os.ErrDeadlineExceeded
	}
	conn, err := w.pipe.SyscallConn()
	if err != nil {
		return 0, err
	}
	var n int
	var failed error
	err = conn.Control(func(fd uintptr) { // our end of a pipe does not block
		for failed = syscall.EINTR; errors.Is(failed, syscall.EINTR); {
			n, failed = syscall.Read(int(fd), buf[:min(len(buf), w.most)])
		}
	})
	switch err := errors.Join(err, failed); {
	case err != nil:
		return 0, err
	case n == 0:
		return 0, io.EOF
	}
	w.most -= n
	return n, nil
}

func (o *output) add(text []byte, stream int, dropped int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.dropped += dropped
	if len(text) == 0 {
		return
	}
	o.all = append(o.all, text...)
	if n := len(o.pieces); n > 0 && o.pieces[n-1].stream == stream {
		o.pieces[n-1].end = len(o.all)
	} else {
		o.pieces = append(o.pieces, piece{stream, len(o.all)})
	}
	if o.on != nil {
		o.on(string(text))
	}
}

// fill stores everything in the result. It does not copy a text that comes from one stream only.
func (o *output) fill(res *sandbox.Result) {
	o.mu.Lock()
	defer o.mu.Unlock()
	res.Output, res.Dropped = string(o.all), o.dropped
	if len(o.pieces) == 1 {
		if o.pieces[0].stream == 0 {
			res.Stdout = res.Output
		} else {
			res.Stderr = res.Output
		}
		return
	}
	var streams [2]strings.Builder
	start := 0
	for _, p := range o.pieces {
		streams[p.stream].WriteString(res.Output[start:p.end])
		start = p.end
	}
	res.Stdout, res.Stderr = streams[0].String(), streams[1].String()
}
