package gitrepo

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"chorus/internal/gitrepo/hubtest"
)

func TestMain(m *testing.M) {
	sandboxInit()
	if job := os.Getenv("GITREPO_KILLED_AT"); job != "" {
		killedAt(job)
	}
	hubtest.Main()
	goleak.VerifyTestMain(m)
}

var (
	noon  = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	agent = Person{"Builder", "builder@example.invalid"}
)

// fixture is a home without settings, with a remote and whatever a test adds.
type fixture struct {
	*testing.T
	dir string
	opt Options
}

func setup(t *testing.T) *fixture {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("git is needed")
		}
		t.Skip("SKIPPED: git is not installed")
	}
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return at(t, dir)
}

func at(t *testing.T, dir string) *fixture {
	return &fixture{t, dir, Options{Environ: append(os.Environ(), "HOME="+dir, "XDG_CONFIG_HOME="+dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+filepath.Join(dir, "gitconfig")), LocalURLs: true}}
}

func (f *fixture) path(name string) string { return filepath.Join(f.dir, name) }

// git is what a person types.
func (f *fixture) git(dir string, args ...string) string {
	f.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=Ann", "-c", "user.email=ann@example.invalid", "-c", "init.defaultBranch=main"}, args...)...)
	cmd.Dir, cmd.Env = dir, append(f.opt.Environ, "GIT_AUTHOR_DATE=@1772000000 +0000", "GIT_COMMITTER_DATE=@1772000000 +0000")
	out, err := cmd.CombinedOutput()
	if err != nil {
		f.Fatalf("git %v in %s: %v\n%s", args, dir, err, out)
	}
	return strings.TrimSuffix(string(out), "\n")
}

func (f *fixture) write(path, content string) {
	f.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		f.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) read(path string) string {
	f.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	return string(data)
}

// checkout makes a person's checkout with three files.
func (f *fixture) checkout(name string) string {
	f.Helper()
	dir := f.path(name)
	f.git(f.dir, "init", "-q", dir)
	for file, content := range map[string]string{"a.txt": "one\n", "b.txt": "one\n", "gone.txt": "one\n"} {
		f.write(filepath.Join(dir, file), content)
	}
	f.git(dir, "add", ".")
	f.git(dir, "commit", "-q", "-m", "first")
	return dir
}

// remote makes a bare remote with a first commit.
func (f *fixture) remote() string {
	f.Helper()
	f.git(f.dir, "clone", "-q", "--bare", f.checkout("seed"), f.path("remote.git"))
	return f.path("remote.git")
}

func (f *fixture) clone() *Repo {
	f.Helper()
	r, err := Clone(f.Context(), f.path("remote.git"), f.path("data/clone"), f.opt)
	f.must(err)
	return r
}

func (f *fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// wants says that err is of the kind, and that its text has all of the words.
func (f *fixture) wants(err, kind error, words ...string) *Error {
	f.Helper()
	var e *Error
	if !errors.Is(err, kind) || !errors.As(err, &e) {
		f.Fatalf("%v, want %q", err, kind)
	}
	for _, w := range words {
		if !strings.Contains(e.Text, w) {
			f.Errorf("%q does not say %q", e.Text, w)
		}
	}
	return e
}

func (f *fixture) add(r *Repo, name, branch string) *Tree {
	f.Helper()
	base, err := r.DefaultBranch(f.Context())
	f.must(err)
	tree, err := r.Add(f.Context(), f.path("trees/"+name), branch, base)
	f.must(err)
	f.Cleanup(tree.Close)
	return tree
}

func (f *fixture) commit(tree *Tree, subject string) Committed {
	f.Helper()
	done, err := tree.Commit(f.Context(), Commit{Message: subject, Trailers: []Trailer{{"Task-Id", "t1"}, {"Agent", "builder"}}, Author: agent, Committer: agent, At: noon})
	f.must(err)
	return done
}

func request(head string) MergeRequest {
	return MergeRequest{Target: "main", Head: head, At: noon, Message: "Merge " + head, Trailers: []Trailer{{"Task-Id", "t1"}}, By: agent}
}

// A file that is changed in the very moment in which it was checked out, to something as long, has changed.
func TestAChangeInTheSameMomentIsSeen(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.remote()
	r := f.clone()
	tree := f.add(r, "t1", "t1/quick")
	moment := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	file, index := tree.Path()+"/a.txt", filepath.Join(tree.gitDir, "index")
	f.git(r.Dir(), "config", "core.trustctime", "false") // the one time that a test cannot set
	f.must(os.Chtimes(file, moment, moment))
	f.git(tree.Path(), "update-index", "--refresh")
	f.must(os.Chtimes(index, moment, moment))
	f.write(file, "two\n")
	f.must(os.Chtimes(file, moment, moment))
	files, err := tree.ChangedFiles(t.Context(), "main")
	f.must(err)
	if len(files) != 1 || files[0].Path != "a.txt" {
		t.Errorf("changed files: %+v", files)
	}
}

// A task's way in a clone: its own tree, its work committed with trailers, merged and at the remote.
func TestATaskInAClone(t *testing.T) {
	t.Parallel()
	f := setup(t)
	ctx := t.Context()
	remote := f.remote()
	r, err := Clone(ctx, remote, f.path("data/clone"), f.opt)
	f.must(err)
	if branch, err := r.DefaultBranch(ctx); err != nil || branch != "main" {
		t.Fatalf("%q, %v", branch, err)
	}
	branch := BranchName("brave-otter", "Add a greeting")
	tree := f.add(r, "brave-otter", branch)
	f.write(tree.Path()+"/greeting.txt", "hello\n")
	f.write(tree.Path()+"/a.txt", "two\n")
	f.must(os.Remove(tree.Path() + "/gone.txt"))
	files, err := tree.ChangedFiles(ctx, "main")
	f.must(err)
	want := []File{{Path: "a.txt", Status: "modified", Added: 1, Deleted: 1}, {Path: "gone.txt", Status: "deleted", Deleted: 1}, {Path: "greeting.txt", Status: "added", Added: 1}}
	if !slices.Equal(files, want) {
		t.Errorf("changed files: %+v", files)
	}
	done := f.commit(tree, "Add a greeting")
	if !done.Made || done.Files != 3 {
		t.Errorf("%+v", done)
	}
	if again := f.commit(tree, "Add a greeting"); again.Made || again.OID != done.OID {
		t.Errorf("a clean tree was committed: %+v", again)
	}
	if text := f.git(r.Dir(), "log", "-1", "--format=%an <%ae> %cI%n%B", branch); text != "Builder <builder@example.invalid> 2026-03-01T12:00:00+00:00\nAdd a greeting\n\nTask-Id: t1\nAgent: builder\n" {
		t.Errorf("commit: %q", text)
	}
	p, err := r.Prepare(ctx, request(branch))
	f.must(err)
	if !slices.Equal(p.Files, []string{"a.txt", "gone.txt", "greeting.txt"}) || p.Head != done.OID {
		t.Errorf("%+v", p)
	}
	if state, err := r.State(ctx, p); err != nil || state != Waiting {
		t.Errorf("%s, %v", state, err)
	}
	f.must(r.Apply(ctx, p))
	f.must(r.Apply(ctx, p))
	if got := f.git(remote, "rev-parse", "main"); got != p.OID {
		t.Errorf("the remote has %s, not %s", got, p.OID)
	}
	if state, err := r.State(ctx, p); err != nil || state != Merged {
		t.Errorf("%s, %v", state, err)
	}
	f.must(tree.Remove(ctx))
	tree.Close()
	f.must(r.DeleteBranch(ctx, branch))
	f.must(r.DeleteBranch(ctx, branch))
	left, err := os.ReadDir(f.path("trees"))
	if err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if refs := f.git(r.Dir(), "for-each-ref", "refs/heads"); refs != "" {
		t.Errorf("left behind: %s", refs)
	}
}

// A repository of our own begins with an empty commit, and making it twice is making it once.
func TestInit(t *testing.T) {
	t.Parallel()
	f := setup(t)
	dir := f.path("data/own")
	r, err := Init(t.Context(), dir, "trunk", agent, noon, f.opt)
	f.must(err)
	head := f.git(dir, "rev-parse", "trunk")
	if _, err = Init(t.Context(), dir, "trunk", agent, noon, f.opt); err != nil || f.git(dir, "rev-parse", "trunk") != head {
		t.Error(err)
	}
	if branch, err := r.DefaultBranch(t.Context()); err != nil || branch != "trunk" {
		t.Errorf("%q, %v", branch, err)
	}
	tree := f.add(r, "one", "one/work")
	f.write(tree.Path()+"/x", "x\n")
	f.commit(tree, "Add x")
	p, err := r.Prepare(t.Context(), MergeRequest{Target: "trunk", Head: "one/work", At: noon, Message: "Merge"})
	f.must(err)
	f.must(r.Apply(t.Context(), p))
	if f.git(dir, "show", "trunk:x") != "x" {
		t.Error("x is not on the trunk")
	}
	f.wants(r.PushBranch(t.Context(), "one/work"), ErrNoRemote, "has no remote")
}

func TestDefaultBranch(t *testing.T) {
	t.Parallel()
	f := setup(t)
	for name, tt := range map[string]struct {
		branches []string
		remote   string // what origin/HEAD says
		setting  string // init.defaultBranch
		want     string
		says     string
	}{
		"master":        {branches: []string{"master", "x"}, want: "master"},
		"main first":    {branches: []string{"master", "main"}, want: "main"},
		"only one":      {branches: []string{"develop"}, want: "develop"},
		"the remote's":  {branches: []string{"main", "develop"}, remote: "develop", want: "develop"},
		"the setting's": {branches: []string{"a", "b"}, setting: "b", want: "b"},
		"unclear":       {branches: []string{"a", "b"}, says: "which of a, b is the default branch"},
		"none":          {says: "no commits yet"},
	} {
		dir := f.path("default " + name)
		f.git(f.dir, "init", "-q", dir)
		for i, branch := range tt.branches {
			f.git(dir, "checkout", "-q", "-b", branch)
			if i == 0 {
				f.git(dir, "commit", "-q", "--allow-empty", "-m", "first")
			}
		}
		if tt.remote != "" {
			f.git(dir, "symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/"+tt.remote)
		}
		if tt.setting != "" {
			f.git(dir, "config", "init.defaultBranch", tt.setting)
		}
		r, err := Link(t.Context(), dir, f.opt)
		f.must(err)
		got, err := r.DefaultBranch(t.Context())
		if tt.says != "" {
			f.wants(err, ErrNoSuchBranch, tt.says)
		} else if err != nil || got != tt.want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

// The remote renames its default branch; a clone follows at the next fetch.
func TestTheRemoteRenamesItsDefaultBranch(t *testing.T) {
	t.Parallel()
	f := setup(t)
	remote := f.remote()
	r := f.clone()
	f.git(remote, "branch", "-m", "main", "trunk")
	f.must(r.Fetch(t.Context()))
	if branch, err := r.DefaultBranch(t.Context()); err != nil || branch != "trunk" {
		t.Errorf("%q, %v", branch, err)
	}
	_, err := r.Prepare(t.Context(), request("trunk"))
	f.wants(err, ErrNoSuchBranch, "the remote has no branch main")
}

func TestRemoteIsVerified(t *testing.T) {
	t.Parallel()
	f := setup(t)
	remote := f.remote()
	r := f.clone()
	f.must(r.VerifyRemote(t.Context(), "file://"+remote))
	f.must(r.VerifyRemote(t.Context(), strings.TrimSuffix(remote, ".git")))
	f.wants(r.VerifyRemote(t.Context(), "https://github.com/o/other"), ErrRemoteMismatch, "belongs to "+remote, "github.com/o/other")
	f.git(f.dir, "init", "-q", "--bare", f.path("other.git"))
	_, err := Clone(t.Context(), f.path("other.git"), r.Dir(), f.opt)
	f.wants(err, ErrRemoteMismatch, "choose another folder")
	link, err := Link(t.Context(), f.path("seed"), f.opt)
	f.must(err)
	f.wants(link.VerifyRemote(t.Context(), "git@github.com:o/r.git"), ErrRemoteMismatch, "has no remote", "remote add origin")
	f.git(f.path("seed"), "remote", "add", "origin", "https://github.com/o/r")
	f.must(link.VerifyRemote(t.Context(), "git@github.com:o/r.git"))
}

// What is not a repository is said to be none, in a sentence.
func TestNotARepository(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.write(f.path("plain/x"), "")
	_, err := Link(t.Context(), f.path("plain"), f.opt)
	f.wants(err, ErrNotARepository, "there is no git repository")
	_, err = Link(t.Context(), f.path("missing"), f.opt)
	f.wants(err, ErrNotARepository, "there is no folder")
	_, err = Link(t.Context(), f.remote(), f.opt)
	f.wants(err, ErrNoCheckout, "bare repository")
	_, err = Open(t.Context(), KindClone, f.path("seed"), f.opt)
	f.wants(err, ErrNotARepository, "not a bare repository")
	_, err = Clone(t.Context(), f.path("missing"), f.path("c"), f.opt)
	f.wants(err, ErrUnreachable, "check the url")
	if exists(f.path("c")) || exists(f.path("c.part")) {
		t.Error("a clone that failed left something behind")
	}
	// A clone that was killed in the middle is begun again.
	f.write(f.path("c.part/objects/x"), "")
	_, err = Clone(t.Context(), f.path("remote.git"), f.path("c"), f.opt)
	f.must(err)
}
