package worker

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"chorus/internal/sandbox"
	"chorus/internal/sandbox/process"
	"chorus/internal/work"
)

// Program starts a program and exchanges lines with it.
type Program struct {
	// Prepare prepares the program for its start, in a sandbox if there is one. key marks its processes.
	Prepare func(ctx context.Context, argv []string, key string) (*sandbox.Prepared, error)
	// Quiet is how long it may be silent; 0: DefaultQuiet.
	Quiet time.Duration
}

const (
	// DefaultQuiet is longer than most of a program's silent waits.
	DefaultQuiet = 15 * time.Minute
	// MaxLine is the longest line that is read; longer ones are skipped.
	MaxLine = 16 << 20
	// grace is how long a program has to end by itself after it has said that it is done.
	grace = 5 * time.Second
	// drain is how long output that was written before the end is still read.
	drain = time.Second
	// writeTime is how long a program may take to read its input.
	writeTime = 30 * time.Second
	// keptErrors is how much of the end of its error output is kept.
	keptErrors = 4 << 10
)

// Talk is a running program.
type Talk struct {
	in     *os.File
	lines  chan []byte
	errors tail
	exited chan exit
}

type exit struct {
	code int
	err  error
}

// Send writes a value as a line of JSON.
func (t *Talk) Send(v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return t.Write(append(data, '\n'))
}

// Write writes to the program's input.
func (t *Talk) Write(data []byte) error {
	_ = t.in.SetWriteDeadline(time.Now().Add(writeTime)) // without a deadline, the write itself reports the problem
	if _, err := t.in.Write(data); err != nil {
		return Errorf(work.ErrorWorker, "the program does not read its input: %v", err)
	}
	return nil
}

// CloseInput signals that there is no more input.
func (t *Talk) CloseInput() { _ = t.in.Close() }

// Run starts the program, calls begin to send the first input, and passes every line of
// its output to line (nil for one that is too long) until line says that the work is
// over. Then the program has a moment to end. An error from line ends it at once. When
// Run returns, none of its processes is running.
func (p Program) Run(ctx context.Context, argv []string, key string, host Host, begin func(*Talk) error, line func(*Talk, []byte) (over bool, err error)) error {
	prepared, err := p.Prepare(ctx, argv, key)
	if err != nil {
		return Errorf(work.ErrorWorker, "%s cannot be started: %v", argv[0], err)
	}
	defer prepared.Release()
	talk, running, end, err := start(prepared, argv[0])
	if err != nil {
		return err
	}
	defer end()
	if err := begin(talk); err != nil {
		running.Kill()
		return talk.with(err, argv[0])
	}
	err = p.listen(ctx, talk, argv[0], host, line)
	talk.CloseInput()
	if err == nil {
		select {
		case e := <-talk.exited:
			talk.exited <- e
		case <-time.After(grace):
		case <-ctx.Done():
		}
	}
	running.Kill()
	return err
}

// start starts the program. end waits until its processes and readers are gone.
func start(prepared *sandbox.Prepared, name string) (*Talk, sandbox.Program, func(), error) {
	var files []*os.File
	closeAll := func() {
		for _, f := range files {
			_ = f.Close()
		}
	}
	pipe := func() (*os.File, *os.File, error) {
		r, w, err := os.Pipe()
		if err == nil {
			files = append(files, r, w)
		}
		return r, w, err
	}
	inR, inW, err1 := pipe()
	outR, outW, err2 := pipe()
	errR, errW, err3 := pipe()
	if err := errors.Join(err1, err2, err3); err != nil {
		closeAll()
		return nil, nil, nil, Errorf(work.ErrorWorker, "make a pipe for %s: %v", name, err)
	}
	running, err := prepared.Start(inR, outW, errW)
	if err != nil {
		closeAll()
		return nil, nil, nil, Errorf(work.ErrorWorker, "%s cannot be started: %v", name, err)
	}
	for _, f := range []*os.File{inR, outW, errW} {
		_ = f.Close()
	}
	t := &Talk{in: inW, lines: make(chan []byte), exited: make(chan exit, 1)}
	stop := make(chan struct{})
	var readers sync.WaitGroup
	readers.Go(func() { readLines(outR, t.lines, stop) })
	readers.Go(func() { _, _ = io.Copy(&t.errors, errR) })
	readers.Go(func() {
		code, err := running.Wait()
		late := time.Now().Add(drain)
		_ = outR.SetReadDeadline(late)
		_ = errR.SetReadDeadline(late)
		t.exited <- exit{code, err}
	})
	return t, running, func() {
		close(stop)
		readers.Wait()
		closeAll()
	}, nil
}

// listen reads lines until the work is over.
func (p Program) listen(ctx context.Context, t *Talk, name string, host Host, line func(*Talk, []byte) (bool, error)) error {
	most := cmp.Or(p.Quiet, DefaultQuiet)
	quiet := time.NewTimer(most)
	defer quiet.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-quiet.C:
			return Errorf(work.ErrorTimeout, "%s printed nothing for %s and was ended", name, most)
		case data, more := <-t.lines:
			if !more {
				return t.ended(ctx, name)
			}
			host.Alive()
			over, err := line(t, data)
			if err != nil {
				return t.with(err, name)
			}
			if over {
				return nil
			}
			quiet.Reset(most)
		}
	}
}

// ended returns the error for a program that ended before its work did.
func (t *Talk) ended(ctx context.Context, name string) error {
	select {
	case e := <-t.exited:
		t.exited <- e
		text := t.errors.String()
		kind := work.ErrorWorker
		if found := work.KindOfOutput(text); found != work.ErrorUnexpected && found != work.ErrorStopped {
			kind = found
		}
		return Errorf(kind, "%s ended with code %d before it was done%s", name, e.code, said(text))
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(grace):
		return Errorf(work.ErrorWorker, "%s closed its output before it was done", name)
	}
}

// with adds the program's error output to an error of ours.
func (t *Talk) with(err error, name string) error {
	var e *Error
	if text := t.errors.String(); errors.As(err, &e) && e.Kind == work.ErrorWorker && text != "" {
		return Errorf(e.Kind, "%s: %s%s", name, e.Message, said(text))
	}
	return err
}

func said(text string) string {
	if text = strings.TrimSpace(text); text == "" {
		return ""
	}
	return ": " + text
}

// readLines passes on complete lines, and nil for one that is too long.
func readLines(r io.Reader, out chan<- []byte, stop <-chan struct{}) {
	defer close(out)
	buffer := bufio.NewReaderSize(r, 64<<10)
	var line []byte
	skipping := false
	for {
		piece, err := buffer.ReadSlice('\n')
		if skipping = skipping || len(line)+len(piece) > MaxLine; skipping {
			line = nil
		} else {
			line = append(line, piece...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if len(line) > 0 || skipping {
			select {
			case out <- line:
			case <-stop:
				return
			}
		}
		if line, skipping = nil, false; err != nil {
			return
		}
	}
}

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	data []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.data = append(t.data, p...)
	if over := len(t.data) - keptErrors; over > 0 {
		t.data = append([]byte(nil), t.data[over:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var c process.Cleaner
	return string(c.Flush(c.Clean(nil, t.data)))
}

// Brief shortens a program's text for people.
func Brief(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return fmt.Sprintf("%s … (%d bytes more)", strings.ToValidUTF8(text[:most], ""), len(text)-most)
}
