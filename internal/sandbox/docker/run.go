package docker

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"time"

	"chorus/internal/sandbox"
	"chorus/internal/sandbox/process"
)

// drain is how long the docker program's pipes are read after it has ended.
const drain = 250 * time.Millisecond

// Run implements sandbox.Executor.
func (e *Executor) Run(ctx context.Context, command sandbox.Command) (sandbox.Result, error) {
	if ctx.Err() != nil {
		return sandbox.Result{Aborted: true, ExitCode: -1}, nil
	}
	if err := e.reach(ctx, command.Network); err != nil {
		return sandbox.Result{}, fmt.Errorf("start the command: %w", err)
	}
	token, mark := newToken(), rand.Text()
	args, env, err := e.arguments(command, token, mark)
	if err != nil {
		return sandbox.Result{}, err
	}
	began := time.Now()
	r, err := e.start(e.client(env, args...), token, command)
	if err != nil {
		return sandbox.Result{}, err
	}
	defer r.close()
	if err := e.await(ctx, r); err != nil {
		if ctx.Err() != nil {
			return sandbox.Result{Aborted: true, ExitCode: -1, Took: time.Since(began)}, nil
		}
		return sandbox.Result{}, fmt.Errorf("start the command: %w", err)
	}
	r.goAhead(command.Stdin)
	res, note := e.follow(ctx, r, command, "CHORUS_EXEC="+mark)
	if r.frames[0].none {
		return sandbox.Result{}, fmt.Errorf("start the command: there is no program %q in the container %s", command.Argv[0], e.container)
	}
	r.out.Fill(&res)
	res.Took = time.Since(began)
	if note != "" {
		remark(&res, command, note)
	}
	return res, nil
}

// remark adds a note to the output. The command did run, so there is no error to put the note
// into, and whoever reads the output must know that it is incomplete.
func remark(res *sandbox.Result, command sandbox.Command, note string) {
	note = "[docker: " + note + "]\n"
	note = res.Remark(command, note)
	if command.OnOutput != nil {
		command.OnOutput(note)
	}
}

// running is one start of the docker program for a command.
type running struct {
	cmd    *exec.Cmd
	out    *process.Collector
	frames []*frame // of stdout and stderr; with merged streams, stderr only carries what comes before the start
	pipes  []*os.File
	stdin  *os.File

	tasks     sync.WaitGroup // readers and the writer of stdin
	unstarted atomic.Int32   // streams that have not reported "start"
	unended   atomic.Int32   // streams that have not reported "end"
	started   chan struct{}
	ended     chan struct{}
	gone      chan struct{} // closed once the program has ended and its output is read
}

// start starts the docker program and reads its output.
func (e *Executor) start(cmd *exec.Cmd, token string, command sandbox.Command) (*running, error) {
	r := &running{
		cmd: cmd, out: process.NewCollector(command.OnOutput), frames: []*frame{{token: token}, {token: token}},
		started: make(chan struct{}), ended: make(chan struct{}), gone: make(chan struct{}),
	}
	streams := int32(2)
	if command.Merge {
		streams = 1
	}
	r.unstarted.Store(streams)
	r.unended.Store(streams)
	theirs, err := r.connect()
	defer func() {
		for _, f := range theirs {
			_ = f.Close()
		}
	}()
	if err != nil {
		r.close()
		return nil, fmt.Errorf("make a pipe for docker: %w", err)
	}
	if err := cmd.Start(); err != nil {
		r.close()
		return nil, e.startError(err)
	}
	for i := range r.frames {
		r.tasks.Go(func() { r.read(i) })
	}
	go r.wait()
	return r, nil
}

// connect creates the program's three streams. theirs are the program's ends.
func (r *running) connect() (theirs []*os.File, err error) {
	for range r.frames {
		ours, child, err := os.Pipe()
		if err != nil {
			return theirs, err
		}
		r.pipes, theirs = append(r.pipes, ours), append(theirs, child)
	}
	child, ours, err := os.Pipe()
	if err != nil {
		return theirs, err
	}
	r.stdin = ours
	r.cmd.Stdin, r.cmd.Stdout, r.cmd.Stderr = child, theirs[0], theirs[1]
	return append(theirs, child), nil
}

// wait waits for everything to end. Callers that only need the program's end wait for gone.
func (r *running) wait() {
	defer close(r.gone)
	_ = r.cmd.Wait() // its state says how it ended
	deadline := time.Now().Add(drain)
	for _, pipe := range r.pipes {
		_ = pipe.SetReadDeadline(deadline)
	}
	_ = r.stdin.SetWriteDeadline(deadline)
	r.tasks.Wait()
}

// read reads one stream to its end.
func (r *running) read(stream int) {
	f, buf := r.frames[stream], make([]byte, 32<<10)
	defer r.out.Close(stream)
	for {
		n, err := r.pipes[stream].Read(buf)
		was := f.state
		text := f.feed(buf[:n])
		if err != nil {
			text = append(text, f.flush()...)
		}
		if len(text) > 0 {
			r.out.Write(stream, text)
		}
		if was == before && f.state != before && r.unstarted.Add(-1) == 0 {
			close(r.started)
		}
		if was != after && f.state == after && r.unended.Add(-1) == 0 {
			close(r.ended)
		}
		if err != nil {
			return
		}
	}
}

// goAhead lets the command start and sends its input.
func (r *running) goAhead(stdin []byte) {
	r.tasks.Go(func() {
		// The command may close its input early.
		if _, err := r.stdin.WriteString("go\n"); err == nil {
			_, _ = r.stdin.Write(stdin)
		}
		_ = r.stdin.Close()
	})
}

func (r *running) kill() {
	process.KillGroup(r.cmd)
	<-r.gone
}

// leave waits a moment for the program to end by itself, and then kills it.
func (r *running) leave(linger time.Duration) {
	select {
	case <-r.gone:
	case <-time.After(linger):
		r.kill()
	}
}

func (r *running) close() {
	for _, pipe := range r.pipes {
		_ = pipe.Close()
	}
	if r.stdin != nil {
		_ = r.stdin.Close()
	}
}

// await waits until run.sh has started inside and waits for "go". If that fails,
// nothing was run and nothing will be, because its input is closed.
func (e *Executor) await(ctx context.Context, r *running) error {
	select {
	case <-r.started:
		return nil
	case <-ctx.Done():
		r.kill()
		return ctx.Err()
	case <-r.gone:
		said := oneLine(string(r.frames[1].note) + " " + string(r.frames[0].note))
		return e.diagnose(ctx, &refusal{what: "exec", said: said, err: errors.New(r.cmd.ProcessState.String())})
	case <-time.After(e.begin):
		r.kill()
		return e.diagnose(ctx, fmt.Errorf("the container %s did not begin within %s", e.container, e.begin))
	}
}

// follow waits for a running command to end. The note is for whoever reads the
// output, if there is more to say than the result can hold.
func (e *Executor) follow(ctx context.Context, r *running, command sandbox.Command, mark string) (res sandbox.Result, note string) {
	timeout := command.Timeout
	if timeout <= 0 {
		timeout = sandbox.DefaultTimeout
	}
	select {
	case <-r.ended:
	case <-r.gone:
	case <-time.After(min(timeout, sandbox.MaxTimeout)):
		res.TimedOut = true
	case <-ctx.Done():
		res.Aborted = true
	}
	select {
	case <-r.ended: // it ended first, or practically so
		r.leave(e.linger)
		end := r.frames[0].end
		if end.stuck > 0 {
			_, err := e.end(r, mark)
			note = words(err)
		}
		return sandbox.Result{ExitCode: end.code, Left: end.left}, note
	default:
	}
	left, err := e.end(r, mark)
	if res.TimedOut || res.Aborted {
		r.leave(e.linger)
		if res.ExitCode = -1; err != nil {
			note = "the command may still run in the container: " + err.Error()
		}
		return res, note
	}
	return e.lost(r, left, err)
}

// end kills what is left of the command in the container. It does not use
// the command's context, which may have been cancelled.
func (e *Executor) end(r *running, mark string) (int, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*e.requestTimeout)
	defer cancel()
	n, err := e.sweep(ctx, mark, r.frames[0].start)
	if err != nil {
		return n, e.diagnose(ctx, err)
	}
	return n, nil
}

// lost returns the result of a command whose end was not seen although the docker program has
// ended: somebody killed it, the container was stopped, or the connection broke.
func (e *Executor) lost(r *running, left int, err error) (sandbox.Result, string) {
	res := sandbox.Result{ExitCode: process.ExitCode(r.cmd), Left: left}
	switch {
	case errors.Is(err, ErrNotRunning) || errors.Is(err, ErrNoContainer):
		err = fmt.Errorf("the container ended while the command ran: %w", err)
	case err != nil:
		err = fmt.Errorf("the connection was lost while the command ran, and it may still run: %w", err)
	case res.ExitCode != 128+9 && res.ExitCode != 128+15:
		err = errors.New("the end of the command was not seen: its last output and its exit code are lost")
	}
	if res.ExitCode == 0 {
		res.ExitCode = 255 // unknown, and it must not look like success
	}
	return res, words(err)
}

func words(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
