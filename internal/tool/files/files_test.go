package files

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"chorus/internal/tool"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(holderEnv); dir != "" {
		holdLock(dir)
	}
	goleak.VerifyTestMain(m)
}

// place is a workspace with an outside that nobody may reach.
type place struct {
	t       *testing.T
	dir     string // the workspace
	outside string
	roots   *Roots
	set     *tool.Set
}

func newPlace(t *testing.T, tree map[string]string) *place {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p := &place{t: t, dir: filepath.Join(base, "root"), outside: filepath.Join(base, "root2")}
	for _, dir := range []string{p.dir, p.outside, filepath.Join(base, "docs")} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, content := range tree {
		p.put(name, content)
	}
	if err := os.WriteFile(filepath.Join(p.outside, "secret"), []byte("secret\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(base, "docs", "d.md"), []byte("doc\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	p.roots, err = NewRoots(p.dir,
		Root{Name: "docs", Dir: filepath.Join(base, "docs")},
		Root{Name: "memory", Dir: filepath.Join(base, "memory"), Writable: true},
		Root{Name: "outputs", Dir: filepath.Join(base, "outputs"), Writable: true},
	)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.roots.Close(); err != nil {
			t.Error(err)
		}
	})
	if p.set, err = tool.NewSet(Tools(p.roots)...); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *place) put(name, content string) {
	p.t.Helper()
	full := filepath.Join(p.dir, name)
	if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(content), 0o644); err != nil {
		p.t.Fatal(err)
	}
}

func (p *place) get(name string) string {
	p.t.Helper()
	data, err := os.ReadFile(filepath.Join(p.dir, name))
	if err != nil {
		return "<" + filepath.Base(err.(*fs.PathError).Err.Error()) + ">"
	}
	return string(data)
}

func (p *place) link(name, to string) {
	p.t.Helper()
	if err := os.Symlink(to, filepath.Join(p.dir, name)); err != nil {
		p.t.Fatal(err)
	}
}

// call runs a tool as an agent would.
func (p *place) call(name string, args string) tool.Result {
	p.t.Helper()
	t, corrected, err := p.set.Resolve(name, []byte(args))
	if err != nil {
		return tool.Fail(err.Error())
	}
	res, err := t.Run(tool.WithCall(p.t.Context(), tool.Call{ID: "c1"}), corrected)
	if err != nil {
		p.t.Fatalf("%s %s: %v", name, args, err)
	}
	return res
}

// tree is everything in a directory, with modes, for comparing before and after.
func tree(t testing.TB, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, name)
		out[rel] = info.Mode().String()
		if info.Mode().IsRegular() {
			data, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			out[rel] += " " + string(data)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func want(t *testing.T, res tool.Result, text string, failed bool) {
	t.Helper()
	if got := res.Blocks.Text(); got != text || res.Failed != failed {
		t.Errorf("got %q failed=%v\nwant %q failed=%v", got, res.Failed, text, failed)
	}
}

func wantPart(t *testing.T, res tool.Result, part string, failed bool) {
	t.Helper()
	if got := res.Blocks.Text(); !strings.Contains(got, part) || res.Failed != failed {
		t.Errorf("got %q failed=%v\nwant a part %q failed=%v", got, res.Failed, part, failed)
	}
}
