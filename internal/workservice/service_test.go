package workservice_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"chorus/internal/chat"
	"chorus/internal/datadir"
	"chorus/internal/gitrepo"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/store"
	"chorus/internal/store/storetest"
	"chorus/internal/store/tasks"
	"chorus/internal/work"
	"chorus/internal/workrun"
	"chorus/internal/workservice"
)

// Those who ask: who runs this Chorus, somebody with a token, and the same with one that only reads.
var (
	root   = caller(chat.LocalUser, "ada", operation.Scopes()...)
	grace  = caller(chat.TokenHolder, "grace", operation.Chat)
	reader = caller(chat.TokenHolder, "grace", operation.Read)
)

func caller(kind chat.PrincipalKind, id string, scopes ...operation.Scope) operation.Caller {
	return operation.Caller{Principal: chat.Principal{Kind: kind, ID: id}, Scopes: scopes}
}

// inSession is a caller who asks in a conversation.
func inSession(by operation.Caller, session chat.ThreadID) operation.Caller {
	by.Session = session
	return by
}

// home is a home with the handler and all that it needs, but no workers.
type home struct {
	*workservice.Handler
	*operation.Local
	t     *testing.T
	db    *store.DB
	queue *tasks.Tasks
	dir   *datadir.Home
	tmp   string
	now   time.Time
	tools tools
	// members are the workers that run.
	members []work.Worker
}

// tools stand for those of agents: a shell without a sandbox, and rules that hide a file.
type tools struct{ used []string }

func (t *tools) MayRead(_ context.Context, _ operation.Caller, at workservice.Folder) error {
	if at.Path == "secret.txt" {
		return operation.Errorf(operation.Forbidden, "permission denied: a rule hides it")
	}
	return nil
}

func (t *tools) Use(ctx context.Context, _ operation.Caller, at workservice.Folder, name string, args map[string]any) (workservice.Used, error) {
	t.used = append(t.used, fmt.Sprint(name, " ", args))
	if name != "bash" {
		return workservice.Used{Text: "README.md:1: hello"}, nil
	}
	cmd := exec.CommandContext(ctx, "sh", "-c", args["command"].(string))
	cmd.Dir = at.Dir
	var out, bad strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &bad
	_ = cmd.Run() // the code says how it ended
	return workservice.Used{Text: out.String() + bad.String(), Stdout: out.String(), Stderr: bad.String(), Exit: cmd.ProcessState.ExitCode()}, nil
}

func newHome(t *testing.T, change ...func(*workservice.Options)) *home {
	t.Helper()
	h := &home{t: t, members: []work.Worker{{Name: "server", Slots: 2}}, tmp: t.TempDir(), now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	var err error
	if h.dir, err = datadir.Open(filepath.Join(h.tmp, "home")); err != nil {
		t.Fatal(err)
	}
	clock := func() time.Time { return h.now }
	storetest.Fresh(t, filepath.Join(h.tmp, "chorus.db"))
	if h.db, err = store.Open(t.Context(), store.Options{Path: filepath.Join(h.tmp, "chorus.db"), Now: clock, Follow: tasks.Follow}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = h.db.Close() })
	h.queue = tasks.New(h.db, nil)
	runner := &workrun.Runner{Tasks: h.queue, Home: h.dir, Now: clock, Log: slog.New(slog.DiscardHandler), Git: gitrepo.Options{LocalURLs: true}}
	o := workservice.Options{Projects: h.queue, Tasks: h.queue, Plans: h.queue, Memos: h.db, Home: h.dir, Now: clock, Agent: "main", Git: runner, Members: func() ([]work.Worker, error) { return h.members, nil },
		FindAgent: func(_ context.Context, name string) error {
			if name != "main" {
				return errors.New("there is no agent " + name)
			}
			return nil
		},
		Tools:      &h.tools,
		CheckPlace: func(string) error { return errors.New("this folder is not yours") },
		CheckURL:   func(context.Context, string) error { return errors.New("only public addresses can be cloned") },
		Abort:      func(context.Context, chat.ThreadID, string) (bool, error) { return true, nil }}
	for _, set := range change {
		set(&o)
	}
	h.Handler = workservice.New(o)
	h.Local = operation.NewLocal(operation.LocalOptions{Handlers: []any{h.Handler}, Operations: operations.All()})
	return h
}

// call carries out an operation by the name and the arguments of its tool, as everybody does.
func (h *home) call(by operation.Caller, name, args string) (any, error) {
	h.t.Helper()
	d, ok := operations.All().Tool(name)
	if !ok {
		h.t.Fatalf("there is no command %s", name)
	}
	in, err := d.ReadArguments([]byte(args))
	if err != nil {
		return nil, err
	}
	return h.Execute(h.t.Context(), by, d, in.Interface())
}

// must is call where nothing may go wrong.
func must[Out any](h *home, by operation.Caller, name, args string) Out {
	h.t.Helper()
	out, err := h.call(by, name, args)
	if err != nil {
		h.t.Fatalf("%s %s: %v", name, args, err)
	}
	return out.(Out)
}

// refused is call where an error of a kind is expected, with words in it.
func (h *home) refused(by operation.Caller, kind operation.Kind, words, name, args string) {
	h.t.Helper()
	out, err := h.call(by, name, args)
	if err == nil || !strings.Contains(err.Error(), words) || kind != "" && operation.KindOf(err) != kind {
		h.t.Errorf("%s %s: %+v, %v (%s); expected %s with %q", name, args, out, err, operation.KindOf(err), kind, words)
	}
}

func (h *home) git(args ...string) string {
	h.t.Helper()
	out, err := exec.Command("git", append([]string{"-c", "user.name=Ada", "-c", "user.email=ada@example.org"}, args...)...).CombinedOutput()
	if err != nil {
		h.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (h *home) write(text string, path ...string) {
	h.t.Helper()
	if err := os.WriteFile(filepath.Join(path...), []byte(text), 0o600); err != nil {
		h.t.Fatal(err)
	}
}

// site makes the project site with a linked repository, and gives its folder.
func (h *home) site() string {
	h.t.Helper()
	dir := filepath.Join(h.tmp, "site")
	h.git("init", "-q", "-b", "main", dir)
	h.write("hello\n", dir, "README.md")
	h.git("-C", dir, "add", ".")
	h.git("-C", dir, "commit", "-q", "-m", "begin")
	must[operations.Project](h, root, "create_project", `{"name":"Site"}`)
	must[operations.Repo](h, root, "add_repo", `{"project_id":"site","source":"link","path":"`+dir+`"}`)
	return dir
}

// move puts a task into a state as a worker or the queue would.
func (h *home) move(id string, to work.State) {
	h.t.Helper()
	_, err := h.queue.Change(h.t.Context(), id, func(t *work.Task, now time.Time) ([]work.Event, error) {
		return []work.Event{t.Override(to, "test", now)}, nil
	})
	if err != nil {
		h.t.Fatal(err)
	}
}
