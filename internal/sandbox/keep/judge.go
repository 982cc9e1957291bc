package keep

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"chorus/internal/sandbox"
)

// The server judges programs that a kept command starts, by its current rules. The keeper listens on a
// socket in its folder and asks whoever connected last. While nobody is connected, the keeper applies
// the rules itself if it can: a keeper older than the rule files cannot read them. If it cannot, the
// program waits, unless the same program was allowed before.

// Own judges a program without a server, by the home's current rules. ok reports whether it could.
type Own func(ctx context.Context, program sandbox.Exec) (ok bool, refused error)

// waitForServer is how long a program waits for a server to connect. A
// server that started the program connects at once.
const waitForServer = 500 * time.Millisecond

// waitForJudge is how long a program waits for somebody to judge it:
// longer than a restart of the server takes.
const waitForJudge = 10 * time.Minute

// maxAllowed is how many programs are remembered.
const maxAllowed = 4096

// question is a program to be judged.
type question struct {
	ID     int64    `json:"id"`
	Names  []string `json:"names"`
	Path   string   `json:"path"`
	System bool     `json:"system,omitempty"`
	Script bool     `json:"script,omitempty"`
	Argv   []string `json:"argv"`
	Dir    string   `json:"dir"`
	By     []string `json:"by"`
}

// answer is the decision on a question.
type answer struct {
	ID    int64  `json:"id"`
	Error string `json:"error,omitempty"` // why it may not run
}

// remote asks whoever is connected.
type remote struct {
	listener net.Listener
	own      Own // nil: only others judge
	serving  sync.WaitGroup

	mu      sync.Mutex
	conn    net.Conn // nil: nobody is connected
	next    int64
	waiting map[int64]*pending
	allowed map[string]bool
}

type pending struct {
	question
	answered chan error
}

func listenForJudge(path, socket string, own Own) (*remote, error) {
	_ = os.Remove(path)
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return nil, fmt.Errorf("listen for the judge of programs: %w", err)
	}
	r := &remote{listener: listener, own: own, waiting: map[int64]*pending{}, allowed: map[string]bool{}}
	r.serving.Go(r.accept)
	return r, nil
}

func (r *remote) close() {
	_ = r.listener.Close()
	r.mu.Lock()
	if r.conn != nil {
		_ = r.conn.Close()
	}
	r.mu.Unlock()
	r.serving.Wait()
}

func (r *remote) accept() {
	for {
		conn, err := r.listener.Accept()
		if err != nil {
			return
		}
		r.mu.Lock()
		if r.conn != nil {
			_ = r.conn.Close()
		}
		r.conn = conn
		for _, p := range r.waiting {
			r.send(p.question)
		}
		r.mu.Unlock()
		r.serving.Go(func() { r.serve(conn) })
	}
}

// send sends a question. The caller holds the lock. If sending fails, the
// connection is over, and the next one gets the question.
func (r *remote) send(q question) {
	data, err := json.Marshal(q)
	if err == nil && r.conn != nil {
		_ = r.conn.SetWriteDeadline(time.Now().Add(5 * time.Second))
		_, _ = r.conn.Write(append(data, '\n'))
	}
}

func (r *remote) serve(conn net.Conn) {
	lines := bufio.NewScanner(conn)
	for lines.Scan() {
		var a answer
		if json.Unmarshal(lines.Bytes(), &a) != nil {
			break
		}
		r.mu.Lock()
		if p := r.waiting[a.ID]; p != nil {
			delete(r.waiting, a.ID)
			var no error
			if a.Error != "" {
				no = errors.New(a.Error)
			}
			p.answered <- no
		}
		r.mu.Unlock()
	}
	_ = conn.Close()
	r.mu.Lock()
	if r.conn == conn {
		r.conn = nil
	}
	r.mu.Unlock()
}

// judge implements sandbox.Judge.
func (r *remote) judge(program sandbox.Exec) (func(context.Context) error, error) {
	q := question{Names: program.Names, Path: program.Path, System: program.System, Script: program.Script, Argv: program.Argv, Dir: program.Dir()}
	known, err := json.Marshal(q)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	yes := r.allowed[string(known)]
	r.mu.Unlock()
	if yes {
		return nil, nil
	}
	q.By = program.By()
	return func(ctx context.Context) error {
		if err := r.ask(ctx, q); err != nil {
			return err
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if len(r.allowed) >= maxAllowed {
			clear(r.allowed)
		}
		r.allowed[string(known)] = true
		return nil
	}, nil
}

func (r *remote) ask(ctx context.Context, q question) error {
	p := &pending{question: q, answered: make(chan error, 1)}
	r.mu.Lock()
	r.next++
	p.ID = r.next
	r.waiting[p.ID] = p
	r.send(p.question)
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		delete(r.waiting, p.ID)
		r.mu.Unlock()
	}()
	late := time.NewTimer(waitForJudge)
	defer late.Stop()
	soon := time.NewTimer(waitForServer)
	defer soon.Stop()
	for {
		select {
		case err := <-p.answered:
			return err
		case <-soon.C:
			if ok, no := r.judgeAlone(ctx, q); ok {
				return no
			}
		case <-ctx.Done():
			return ctx.Err()
		case <-late.C:
			return errors.New("no server is running that could decide whether it may be started")
		}
	}
}

// judgeAlone judges without a server, unless one is connected.
func (r *remote) judgeAlone(ctx context.Context, q question) (ok bool, refused error) {
	r.mu.Lock()
	connected := r.conn != nil
	r.mu.Unlock()
	if connected || r.own == nil {
		return false, nil
	}
	return r.own(ctx, q.program())
}

// Judge judges the programs of a kept command until its keeper is gone, somebody else judges
// them, or ctx ends. If nothing is to be judged, it returns at once.
func Judge(ctx context.Context, dir string, judge sandbox.Judge) error {
	folder, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer func() { _ = folder.Close() }()
	path := filepath.Join("/proc/self/fd", strconv.Itoa(int(folder.Fd())), judgeName)
	if _, err := os.Lstat(path); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	conn, err := new(net.Dialer).DialContext(ctx, "unix", path)
	if err != nil {
		return fmt.Errorf("connect to a process: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	var write sync.Mutex
	var work sync.WaitGroup
	defer work.Wait()
	defer cancel()
	lines := bufio.NewScanner(conn)
	lines.Buffer(nil, 4<<20) // argument lists can be long
	for lines.Scan() {
		var q question
		if err := json.Unmarshal(lines.Bytes(), &q); err != nil {
			return fmt.Errorf("read what a process wants to start: %w", err)
		}
		work.Go(func() {
			a := answer{ID: q.ID}
			if err := q.judged(ctx, judge); err != nil {
				a.Error = err.Error()
			}
			data, err := json.Marshal(a)
			if err != nil || ctx.Err() != nil {
				return // the next judge to connect gets the question again
			}
			write.Lock()
			defer write.Unlock()
			_, _ = conn.Write(append(data, '\n'))
		})
	}
	return nil
}

func (q question) judged(ctx context.Context, judge sandbox.Judge) error {
	if len(q.Names) == 0 {
		return errors.New("it has no name")
	}
	ask, err := judge(q.program())
	if ask != nil && err == nil {
		err = ask(ctx)
	}
	return err
}

func (q question) program() sandbox.Exec {
	return sandbox.Exec{Names: q.Names, Path: q.Path, System: q.System, Script: q.Script, Argv: q.Argv,
		Dir: func() string { return q.Dir }, By: func() []string { return q.By }}
}
