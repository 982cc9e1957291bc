package gitrepo

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// job is what a process does that is killed in the middle.
type job struct {
	Dir  string // of the fixture
	Name string // of the case
	Step string // after which it is killed; "" records the steps
}

// story is something that is done in steps, and may be killed after each.
type story struct {
	prepare func(*fixture)
	do      func(ctx context.Context, f *fixture, stop func(string)) error
	// state is all that matters afterwards.
	state func(*fixture) string
}

func open(ctx context.Context, f *fixture, kind Kind, dir string, stop func(string)) (*Repo, error) {
	r, err := Open(ctx, kind, f.path(dir), f.opt)
	if err == nil {
		r.stop = stop
	}
	return r, err
}

// finish commits what is left in the tree and merges it, as the end of a task does, with nothing remembered from before.
func finish(kind Kind, dir string) func(context.Context, *fixture, func(string)) error {
	return func(ctx context.Context, f *fixture, stop func(string)) error {
		r, err := open(ctx, f, kind, dir, stop)
		if err != nil {
			return err
		}
		tree, err := r.Add(ctx, f.path("trees/t1"), "t1/work", "main")
		if err != nil {
			return err
		}
		defer tree.Close()
		if _, err := tree.Commit(ctx, Commit{Branch: "t1/work", Message: "Work", Author: agent, Committer: agent, At: noon}); err != nil {
			return err
		}
		p, err := r.Prepare(ctx, request("t1/work"))
		if err != nil {
			return err
		}
		return r.Apply(ctx, p)
	}
}

// work is what an agent left in its tree.
func work(kind Kind, dir string) func(*fixture) {
	return func(f *fixture) {
		switch kind {
		case KindClone:
			f.remote()
			_, err := Clone(context.Background(), f.path("remote.git"), f.path(dir), f.opt)
			f.must(err)
		case KindInit:
			_, err := Init(context.Background(), f.path(dir), "main", agent, noon, f.opt)
			f.must(err)
		case KindLink:
			f.checkout(dir)
		}
		r, err := Open(context.Background(), kind, f.path(dir), f.opt)
		f.must(err)
		tree, err := r.Add(context.Background(), f.path("trees/t1"), "t1/work", "main")
		f.must(err)
		tree.Close()
		f.write(tree.Path()+"/a.txt", "two\n")
		f.write(tree.Path()+"/new/file.txt", "new\n")
		_ = os.Remove(tree.Path() + "/gone.txt")
	}
}

// trunk is the whole history of a branch, and what is in it.
func trunk(f *fixture, dir string) string {
	return f.git(f.path(dir), "log", "--format=%H %P %s", "main") + "\n" + f.git(f.path(dir), "ls-tree", "-r", "main")
}

var stories = map[string]story{
	"merge into our own": {work(KindInit, "own"), finish(KindInit, "own"), func(f *fixture) string { return trunk(f, "own") }},
	"merge and push":     {work(KindClone, "clone"), finish(KindClone, "clone"), func(f *fixture) string { return trunk(f, "remote.git") }},
	"merge into a person's checkout": {work(KindLink, "link"), finish(KindLink, "link"), func(f *fixture) string {
		left, _ := filepath.Glob(f.path("link/.git/*chorus*"))
		return trunk(f, "link") + "\n" + f.git(f.path("link"), "status", "--porcelain") + fmt.Sprint(left, exists(f.path("link/.git/index.lock")))
	}},
	"push a branch": {
		work(KindClone, "clone"),
		func(ctx context.Context, f *fixture, stop func(string)) error {
			r, err := open(ctx, f, KindClone, "clone", stop)
			if err != nil {
				return err
			}
			return r.PushBranch(ctx, "t1/work")
		},
		func(f *fixture) string { return f.git(f.path("remote.git"), "for-each-ref") },
	},
	"make a pull request": {
		func(f *fixture) {
			_, hub := f.hubbed()
			f.write(f.path("hub"), hub.Program)
		},
		func(ctx context.Context, f *fixture, stop func(string)) error {
			r, err := open(ctx, f, KindClone, "data/clone", stop)
			if err != nil {
				return err
			}
			program, err := os.ReadFile(f.path("hub"))
			if err != nil {
				return err
			}
			r.opt.Hub = string(program)
			_, err = r.CreatePR(ctx, NewPull{Head: "t1/work", Base: "main", Title: "Work"})
			return err
		},
		func(f *fixture) string { return f.read(filepath.Join(filepath.Dir(f.read(f.path("hub"))), "pulls")) },
	},
	"remove a worktree and make it anew": {
		work(KindInit, "own"),
		func(ctx context.Context, f *fixture, stop func(string)) error {
			r, err := open(ctx, f, KindInit, "own", stop)
			if err != nil {
				return err
			}
			if err := r.Remove(ctx, f.path("trees/t1")); err != nil {
				return err
			}
			tree, err := r.Add(ctx, f.path("trees/t1"), "t1/work", "main")
			if err != nil {
				return err
			}
			tree.Close()
			return nil
		},
		func(f *fixture) string { return f.git(f.path("trees/t1"), "status", "--porcelain", "--branch") },
	},
}

// killedAt is the process that is killed.
func killedAt(text string) {
	var j job
	if err := json.Unmarshal([]byte(text), &j); err != nil {
		panic(err)
	}
	f := at(nil, j.Dir)
	err := stories[j.Name].do(context.Background(), f, func(step string) {
		if j.Step == "" {
			fmt.Println(step)
		}
		if step == j.Step {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	})
	if err != nil {
		fmt.Println("error:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// start runs a story in a process of its own.
func start(t *testing.T, j job) (out string, killed bool) {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(j)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), "GITREPO_KILLED_AT="+string(text))
	data, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	status, _ := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if err != nil && !status.Signaled() {
		t.Fatalf("%+v: %v\n%s", j, err, data)
	}
	return string(data), status.Signaled()
}

// A process that gets SIGKILL after any step, and is started again, ends where one ends that was left alone: the same commits
// by name, the same files, nothing twice and nothing left over.
func TestKilledAfterAnyStep(t *testing.T) {
	t.Parallel()
	for name, s := range stories {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			left := setup(t)
			s.prepare(left)
			out, _ := start(t, job{Dir: left.dir, Name: name})
			steps := slices.DeleteFunc(strings.Split(out, "\n"), func(s string) bool { return s == "" })
			want := strings.ReplaceAll(s.state(left), left.dir, "")
			if len(steps) == 0 {
				t.Fatal("no steps")
			}
			for _, step := range slices.Compact(slices.Sorted(slices.Values(steps))) {
				t.Run(step, func(t *testing.T) {
					t.Parallel()
					f := setup(t)
					s.prepare(f)
					if out, killed := start(t, job{f.dir, name, step}); !killed {
						t.Fatalf("it was not killed: %s", out)
					}
					f.must(s.do(t.Context(), f, nil))
					if got := strings.ReplaceAll(s.state(f), f.dir, ""); got != want {
						t.Errorf("after the kill:\n%s\nleft alone:\n%s", got, want)
					}
				})
			}
		})
	}
}
