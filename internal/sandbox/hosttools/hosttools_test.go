package hosttools

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"chorus/internal/sandbox"
)

// place is a made-up machine below one folder.
type place struct {
	t    *testing.T
	base string
}

func newPlace(t *testing.T) place {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return place{t, base}
}

func (p place) dir(name string) string {
	p.t.Helper()
	path := filepath.Join(p.base, name)
	if err := os.MkdirAll(path, 0o755); err != nil {
		p.t.Fatal(err)
	}
	return path
}

func (p place) file(name string) string {
	p.t.Helper()
	p.dir(filepath.Dir(name))
	path := filepath.Join(p.base, name)
	if err := os.WriteFile(path, nil, 0o644); err != nil {
		p.t.Fatal(err)
	}
	return path
}

// shown are the roots below the made-up machine: relative, writable ones with a plus.
func (p place) shown(v View) string {
	var out []string
	for _, r := range v.Roots {
		rel, ok := strings.CutPrefix(r.Path, p.base+"/")
		if !ok {
			continue
		}
		if r.Writable {
			rel += "+"
		}
		out = append(out, rel)
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

func TestToolchains(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	home, work := p.dir("home"), p.dir("home/code/app")
	for _, name := range []string{"home/bin", "home/.ssh/bin", "home/.pyenv/shims", "home/.rustup/x", "home/go/bin", "home/go/pkg/mod", "home/.cargo/bin",
		"home/.cargo/registry", "home/chorus/x", "home/code/app/node_modules/.bin", "tools/bin", "tools/lib", "tools/private", "go/bin", "go/src/runtime", "home/.config/x"} {
		p.dir(name)
	}
	p.file("home/.cargo/credentials.toml")
	path := []string{home, home + "/bin", home + "/.ssh/bin", home + "/.pyenv/shims", home + "/chorus/x", work + "/node_modules/.bin", p.base + "/tools/bin", p.base + "/go/bin",
		p.base, "relative", "/usr/bin", "/bin", "/nowhere"}
	v := Find(Options{Home: home, Dir: work, Hide: []string{home + "/chorus"}, Root: true, Environ: []string{"PATH=" + strings.Join(path, ":"), "GIT_AUTHOR_NAME=ada"}})
	want := "go go/bin home/.cargo/bin home/.cargo/registry home/.pyenv home/.pyenv/shims home/.rustup home/bin home/go/bin home/go/pkg/mod tools/bin tools/lib"
	if got := p.shown(v); got != want {
		t.Errorf("shown:\n%s\nwanted:\n%s", got, want)
	}
	for _, r := range v.Roots {
		if !strings.HasPrefix(r.Path, p.base) {
			t.Errorf("the system is seen anyway: %s", r.Path)
		}
	}
	wantEnv := []string{"CARGO_HOME=" + home + "/.cargo", "CARGO_NET_OFFLINE=true", "GIT_AUTHOR_NAME=ada", "GOMODCACHE=" + home + "/go/pkg/mod",
		"PYENV_ROOT=" + home + "/.pyenv", "RUSTUP_HOME=" + home + "/.rustup"}
	if !slices.Equal(v.Env, wantEnv) {
		t.Errorf("%q", v.Env)
	}
	v = Find(Options{Home: home, Dir: work, Network: true, Root: true})
	if !slices.Contains(v.Env, "GOPROXY=file://"+home+"/go/pkg/mod/cache/download,https://proxy.golang.org,direct") || !slices.Contains(v.Env, "CARGO_HOME=") {
		t.Errorf("with a network caches are its own: %q", v.Env)
	}
}

func TestNamedRoots(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	home, work := p.dir("home"), p.dir("home/code/app")
	p.dir("home/data")
	p.dir("home/.aws")
	p.dir("home/chorus/agents/other")
	p.dir("home/code/lib")
	if err := os.Symlink(home+"/.aws", p.base+"/innocent"); err != nil {
		t.Fatal(err)
	}
	v := Find(Options{Home: home, Dir: work, Hide: []string{home + "/chorus"}, Root: true,
		Roots: []string{"~/data:rw", "../lib", home, "~/.aws", p.base + "/innocent", "~/chorus/agents/other:rw", "/", "/etc", "~/none"}})
	if got, want := p.shown(v), "home/code/lib home/data+"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if len(v.Problems) != 7 {
		t.Errorf("every one that is left out is told: %q", v.Problems)
	}
}

func TestRepositoryAbove(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	home := p.dir("home")
	p.dir("home/.git/objects") // somebody keeps their settings in git
	p.file("home/.git/HEAD")
	p.dir("home/repo/.git/objects")
	p.file("home/repo/.git/HEAD")
	p.file("home/tree/.git")
	p.dir("home/fake/.git")
	for dir, want := range map[string]string{
		"home/repo": "", "home/repo/a/b": "home/repo home/repo/.git+", "home/plain/a": "", "home/tree/a": "home/tree", "home/fake/a": "",
	} {
		if got := p.shown(Find(Options{Home: home, Dir: p.dir(dir), Root: true})); got != want {
			t.Errorf("%s: %q, want %q", dir, got, want)
		}
	}
}

func TestIdentity(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("no git")
	}
	p := newPlace(t)
	config := filepath.Join(p.base, "config")
	if err := os.WriteFile(config, []byte("[user]\n\tname = A \\\"B\\\" \\\\ C\n\temail = a@example.com\n[credential]\n\thelper = store\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	environ := append(os.Environ(), "GIT_CONFIG_GLOBAL="+config, "GIT_CONFIG_NOSYSTEM=1")
	text := Identity(t.Context(), p.base, environ)
	if strings.Contains(text, "credential") {
		t.Errorf("more than a name: %s", text)
	}
	again := filepath.Join(p.base, "again")
	if err := os.WriteFile(again, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command("git", "config", "-f", again, "user.name").Output()
	if err != nil || string(out) != "A \"B\" \\ C\n" {
		t.Errorf("%q %v in %s", out, err, text)
	}
	if got := Identity(t.Context(), p.base, append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")); got != "" {
		t.Errorf("nobody said: %q", got)
	}
}

// TestNames: git is asked once for all folders that are in no repository, and each time for those that are in one.
func TestNames(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("no git")
	}
	p := newPlace(t)
	config, plain, other, repository := filepath.Join(p.base, "config"), p.dir("plain"), p.dir("other"), p.dir("repository")
	if inRepository(plain, nil) {
		t.Skip("the temporary directory is in a repository")
	}
	if out, err := exec.Command("git", "init", "-q", repository).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	environ := append(os.Environ(), "GIT_CONFIG_GLOBAL="+config, "GIT_CONFIG_NOSYSTEM=1")
	call := func(name string) {
		if err := os.WriteFile(config, []byte("[user]\n\tname = "+name+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var names Names
	says := func(dir, name string) {
		t.Helper()
		if got := names.Identity(t.Context(), dir, environ); !strings.Contains(got, name) {
			t.Errorf("%s: %q, not %s", dir, got, name)
		}
	}
	call("One")
	says(plain, "One")
	says(repository, "One")
	call("Two")
	names.asked = names.asked.Add(time.Hour) // however slow this machine is
	says(other, "One")
	says(filepath.Join(repository, ".git"), "Two")
	names.asked = names.asked.Add(-2 * time.Hour)
	says(other, "Two")
}

// Whatever the PATH and the named roots are, neither the home, nor what holds it, nor
// keys, nor what is hidden is shown.
func TestNeverShown(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	home, work := p.dir("home"), p.dir("home/code/app")
	folders := []string{"", "home", "home/.ssh", "home/.ssh/sub", "home/.aws", "home/chorus", "home/chorus/agents/x", "home/code", "home/code/app", "home/bin", "tools/bin"}
	for _, name := range folders {
		p.dir(name)
	}
	for i, name := range folders {
		if err := os.Symlink(filepath.Join(p.base, name), filepath.Join(p.base, "link"+string(rune('a'+i)))); err != nil {
			t.Fatal(err)
		}
		folders = append(folders, "link"+string(rune('a'+i)))
	}
	rapid.Check(t, func(t *rapid.T) {
		list := func(name string) []string {
			var out []string
			for _, f := range rapid.SliceOf(rapid.SampledFrom(folders)).Draw(t, name) {
				out = append(out, filepath.Join(p.base, f))
			}
			return out
		}
		v := Find(Options{Home: home, Dir: work, Hide: []string{home + "/chorus"}, Root: true, Environ: []string{"PATH=" + strings.Join(list("path"), ":")}, Roots: list("roots")})
		for _, r := range v.Roots {
			real := resolved(r.Path)
			if sandbox.Within(home, real) || sandbox.Within(real, home+"/.ssh") || sandbox.Within(real, home+"/.aws") || sandbox.Within(real, home+"/chorus") {
				t.Fatalf("%s is shown as %s", real, r.Path)
			}
		}
	})
}
