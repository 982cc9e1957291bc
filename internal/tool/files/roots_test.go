package files

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"chorus/internal/tool"
)

func quoted(s string) string {
	data, _ := json.Marshal(s)
	return string(data)
}

func TestEscapesAreRefused(t *testing.T) {
	t.Parallel()
	p := newPlace(t, map[string]string{"a/in.txt": "in\n", "real/in.txt": "in\n"})
	p.link("linked", p.outside)                  // absolute
	p.link("relative", "../root2")               // relative
	p.link("a/nested", "../linked")              // through another link
	p.link("a/file", "../../root2/secret")       // a file
	p.link("dangling", "../root2/not-there-yet") // nothing there
	p.link("a/deep", "../a/../../root2")         // dots in the middle
	p.link("loop", "loop")                       // itself
	p.link("self", filepath.Join(p.dir, "real")) // absolute, even when it leads inside
	p.link("inner", "real")                      // inside: allowed
	p.link("inner-file", "a/in.txt")             // inside: allowed
	p.link("real/up", "../a/in.txt")             // inside, by dots: allowed
	refused := []string{
		"", "  ", "..", "../root2/secret", "../../../etc/passwd", "/etc/passwd", "foo/../../bar", "a/../../root2/secret",
		`C:\Windows`, "C:/Windows", `\\srv\x`, "//srv/x", "a\x00b", "~/x", "~",
		p.outside + "/secret", p.dir + "2/secret", p.dir + "/../root2/secret", filepath.Dir(p.dir),
		"@docs/../root2/secret", "@docs/../../x", "@skills/x", "@attachments", "@workspace/../root2/secret",
		"linked/secret", "linked", "relative/secret", "a/nested/secret", "a/file", "dangling", "a/deep/secret", "loop", "self/in.txt",
	}
	before := tree(t, filepath.Dir(p.dir))
	for _, name := range refused {
		for _, call := range [][2]string{
			{"read", `{"path":` + quoted(name) + `}`},
			{"write", `{"path":` + quoted(name) + `,"content":"evil"}`},
			{"append_file", `{"path":` + quoted(name) + `,"content":"evil"}`},
			{"edit", `{"path":` + quoted(name) + `,"old_string":"secret","new_string":"evil"}`},
			{"apply_patch", `{"patch":` + quoted("*** Begin Patch\n*** Add File: good\n+x\n*** Add File: "+name+"\n+evil\n*** End Patch\n") + `}`},
			{"apply_patch", `{"patch":` + quoted("*** Begin Patch\n*** Delete File: "+name+"\n*** End Patch\n") + `}`},
			{"list_files", `{"path":` + quoted(name) + `}`},
		} {
			if call[0] == "list_files" && strings.TrimSpace(name) == "" {
				continue
			}
			res := p.call(call[0], call[1])
			if !res.Failed || strings.Contains(res.Blocks.Text(), "secret\n") {
				t.Errorf("%s %q: %q", call[0], name, res.Blocks.Text())
			}
		}
	}
	if after := tree(t, filepath.Dir(p.dir)); !maps.Equal(before, after) {
		t.Errorf("something was changed:\n%v\n%v", before, after)
	}
	for _, name := range []string{"inner/in.txt", "inner-file", "real/up", "a/../a/in.txt", "./a//in.txt", p.dir + "/a/in.txt", "@workspace/a/in.txt"} {
		want(t, p.call("read", `{"path":`+quoted(name)+`}`), "     1\tin", false)
	}
}

func TestWritesFollowInnerLinks(t *testing.T) {
	t.Parallel()
	p := newPlace(t, map[string]string{"real/sub/f": "old\n"})
	p.link("d", "real/sub")
	p.link("real/sub/up", "../made")
	p.link("l", "d/f")
	want(t, p.call("write", `{"path":"l","content":"one\n"}`), "Wrote 4 bytes to l", false)
	want(t, p.call("write", `{"path":"d/up","content":"two\n"}`), "Wrote 4 bytes to d/up", false)
	if p.get("real/sub/f") != "one\n" || p.get("real/made") != "two\n" {
		t.Errorf("%v", tree(t, p.dir))
	}
	if info, err := os.Lstat(filepath.Join(p.dir, "l")); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link was replaced: %v %v", info, err)
	}
	wantPart(t, p.call("apply_patch", `{"patch":"*** Begin Patch\n*** Delete File: l\n*** End Patch"}`), "is a link", true)
}

func TestPipesAndDevicesDoNotBlock(t *testing.T) {
	t.Parallel()
	p := newPlace(t, nil)
	if err := syscall.Mkfifo(filepath.Join(p.dir, "pipe"), 0o644); err != nil {
		t.Skip(err)
	}
	wantPart(t, p.call("read", `{"path":"pipe"}`), "neither a file nor a directory", true)
	wantPart(t, p.call("edit", `{"path":"pipe","old_string":"a","new_string":"b"}`), "neither a file nor a directory", true)
	wantPart(t, p.call("write", `{"path":"pipe","content":"b"}`), "neither a file nor a directory", true)
	want(t, p.call("list_files", `{}`), "No files found.", false)
}

// TestSwappedLink changes a directory into a link to the outside and back while
// files are written through it.
func TestSwappedLink(t *testing.T) {
	t.Parallel()
	p := newPlace(t, map[string]string{"d/f": "x"})
	before := tree(t, p.outside)
	stop := make(chan struct{})
	var swapper sync.WaitGroup
	swapper.Go(func() {
		real, away := filepath.Join(p.dir, "d"), filepath.Join(p.dir, "away")
		for {
			select {
			case <-stop:
				return
			default:
			}
			_ = os.Rename(real, away)
			_ = os.Symlink(p.outside, real)
			_ = os.Remove(real)
			_ = os.Rename(away, real)
		}
	})
	for range 100 {
		p.call("write", `{"path":"d/f","content":"evil"}`)
		p.call("write", `{"path":"d/secret","content":"evil"}`)
		if res := p.call("read", `{"path":"d/secret"}`); strings.Contains(res.Blocks.Text(), "\tsecret") {
			t.Error("the outside was read")
		}
	}
	close(stop)
	swapper.Wait()
	if after := tree(t, p.outside); !maps.Equal(before, after) {
		t.Errorf("the outside was changed: %v", after)
	}
}

func TestAccess(t *testing.T) {
	t.Parallel()
	p := newPlace(t, nil)
	base := filepath.Dir(p.dir)
	tests := []struct{ tool, args, want string }{
		{"read", `{"path":"src/../a.go"}`, "tool:read:a.go"},
		{"read", `{"path":` + quoted(p.dir+"/src/a.go") + `}`, "tool:read:src/a.go"},
		{"read", `{"path":"@docs/x//y.md"}`, "tool:read:@docs/x/y.md"},
		{"read", `{"path":"@docs"}`, "tool:read:@docs"},
		{"read", `{"path":"./@docs/x"}`, "tool:read:./@docs/x"},
		{"read", `{"path":"@scope/x"}`, "tool:read:./@scope/x"},
		{"read", `{"path":"."}`, "tool:read:."},
		{"read", `{"path":"../root2/secret"}`, "tool:read:" + base + "/root2/secret"},
		{"read", `{"path":"@docs/../x"}`, "tool:read:" + base + "/x"},
		{"read", `{"path":"/etc/../etc/passwd"}`, "tool:read:/etc/passwd"},
		{"read", `{"path":"C:\\Windows"}`, `tool:read:C:\Windows`},
		{"read", `{"path":""}`, ""},
		{"read", `{"path":3`, ""},
		{"write", `{"path":"a","content":""}`, "tool:write:a"},
		{"edit", `{"path":"a","old_string":"","new_string":""}`, "tool:edit:a"},
		{"list_files", `{}`, "tool:list_files:."},
		{"list_files", `{"path":"src/"}`, "tool:list_files:src"},
		{"apply_patch", `{"patch":"*** Begin Patch\n*** Update File: a\n*** Move to: b\n@@\n-x\n+y\n*** Delete File: ../c\n*** End Patch"}`,
			"tool:apply_patch:a tool:apply_patch:b tool:apply_patch:" + base + "/c"},
		{"apply_patch", `{"patch":"--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n"}`, "tool:apply_patch:x"},
		{"apply_patch", `{"patch":"hello"}`, ""},
	}
	for _, tt := range tests {
		for _, tl := range p.set.Tools() {
			if tl.Spec().Name != tt.tool {
				continue
			}
			var got []string
			for _, a := range tl.Access([]byte(tt.args)) {
				got = append(got, a.Action())
			}
			if strings.Join(got, " ") != tt.want {
				t.Errorf("%s %s: %q, want %q", tt.tool, tt.args, got, tt.want)
			}
		}
	}
}

func TestNamedRoots(t *testing.T) {
	t.Parallel()
	p := newPlace(t, nil)
	base := filepath.Dir(p.dir)
	want(t, p.call("read", `{"path":"@docs/d.md"}`), "     1\tdoc", false)
	want(t, p.call("write", `{"path":"@docs/d.md","content":"x"}`), "@docs is read-only.", true)
	want(t, p.call("read", `{"path":"@memory/M.md"}`), "@memory/M.md does not exist.", true)
	if _, err := os.Stat(filepath.Join(base, "memory")); err == nil {
		t.Error("reading made the root's directory")
	}
	res := p.call("write", `{"path":"@memory/a/M.md","content":"hi"}`)
	want(t, res, "Wrote 2 bytes to @memory/a/M.md", false)
	if len(res.Changed) != 1 || res.Changed[0] != "@memory/a/M.md" {
		t.Errorf("changed %v", res.Changed)
	}
	want(t, p.call("list_files", `{"path":"@memory"}`), "@memory/a/M.md", false)
	want(t, p.call("write", `{"path":"@skills/x","content":""}`), "There is no @skills here. Only paths in the workspace and in @docs, @memory, @outputs can be used.", true)
	env := strings.Join(p.roots.Env(), "\n")
	if !strings.Contains(env, "CHORUS_ROOT_DOCS="+base+"/docs") || strings.Contains(env, "WORKSPACE") {
		t.Errorf("env %s", env)
	}
	for name, roots := range map[string][]Root{
		"twice": {{Name: "docs", Dir: "/a"}, {Name: "docs", Dir: "/b"}}, "relative": {{Name: "docs", Dir: "a"}},
		"name": {{Name: "Docs/x", Dir: "/a"}}, "no name": {{Dir: "/a"}}, "workspace": {{Name: "workspace", Dir: "/a"}},
	} {
		if _, err := NewRoots("/w", roots...); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestKeep(t *testing.T) {
	t.Parallel()
	p := newPlace(t, nil)
	base := filepath.Dir(p.dir)
	for _, tt := range []struct{ call, text, want string }{
		{"call_1", "one", "@outputs/call_1.txt"},
		{"call_1", "one", "@outputs/call_1.txt"},
		{"call_1", "two", "@outputs/call_1-3fc4ccfe7458.txt"},
		{"../../x", "three", "@outputs/------x.txt"},
	} {
		ref, err := p.roots.Keep(t.Context(), tt.call, tt.text)
		if err != nil || ref != tt.want {
			t.Errorf("%s: %q, %v", tt.call, ref, err)
			continue
		}
		data, err := os.ReadFile(filepath.Join(base, strings.TrimPrefix(ref, "@")))
		if err != nil || string(data) != tt.text {
			t.Errorf("%s: %q, %v", ref, data, err)
		}
	}
	if ref, err := p.roots.Keep(t.Context(), "", "x"); err != nil || !strings.HasPrefix(ref, "@outputs/") || len(ref) < 15 {
		t.Errorf("no call: %q, %v", ref, err)
	}
	none, err := NewRoots(p.dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := none.Keep(t.Context(), "c", "x"); err == nil {
		t.Error("kept without a root")
	}
}

func TestLocks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := NewLocks()
		release, err := l.acquire(t.Context(), "", "a", "b", "a")
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		if _, err := l.acquire(t.Context(), "", "c", "b"); err == nil || time.Since(start) != lockWait {
			t.Errorf("got %v after %s", err, time.Since(start))
		}
		other, err := l.acquire(t.Context(), "", "c") // given back when b could not be had
		if err != nil {
			t.Fatal(err)
		}
		other()
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := l.acquire(ctx, "", "a"); err != context.Canceled {
			t.Errorf("cancelled: %v", err)
		}
		got := make(chan struct{})
		go func() {
			again, err := l.acquire(t.Context(), "", "b")
			if err == nil {
				again()
			}
			close(got)
		}()
		synctest.Wait()
		release()
		<-got
	})
}

func TestTwoWritersOfOneFile(t *testing.T) {
	t.Parallel()
	p := newPlace(t, map[string]string{"f": ""})
	edit := Write(p.roots)
	var group sync.WaitGroup
	for range 20 {
		group.Go(func() {
			if res, err := edit.Run(t.Context(), []byte(`{"path":"f","content":"x\n","append":true}`)); err != nil || res.Failed {
				t.Errorf("%v %v", res, err)
			}
		})
	}
	group.Wait()
	if got := p.get("f"); got != strings.Repeat("x\n", 20) {
		t.Errorf("an append was lost: %q", got)
	}
}

var _ tool.Keep = (*Roots)(nil).Keep

// A link is judged as what it leads to as well: a name that looks harmless opens nothing else.
func TestAccessFollowsLinks(t *testing.T) {
	t.Parallel()
	p := newPlace(t, map[string]string{".git/config": "x\n", ".git/hooks/x": "x\n", ".env": "KEY=1\n", "docs/a.md": "a\n"})
	p.link("settings.ini", ".git/config")
	p.link("docs/samples", "../.git/hooks")
	p.link("notes.txt", ".env")
	for _, c := range []struct{ tool, args, want string }{
		{"write", `{"path":"settings.ini","content":"y"}`, "settings.ini .git/config"},
		{"edit", `{"path":"settings.ini","old_string":"x","new_string":"y"}`, "settings.ini .git/config"},
		{"apply_patch", `{"patch":"*** Begin Patch\n*** Add File: docs/samples/new\n+x\n*** End Patch\n"}`, "docs/samples/new .git/hooks/new"},
		{"read", `{"path":"notes.txt"}`, "notes.txt .env"},
		{"read", `{"path":"docs/a.md"}`, "docs/a.md"},
	} {
		found, args, err := p.set.Resolve(c.tool, []byte(c.args))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, a := range found.Access(args) {
			got = append(got, a.Detail)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s %s accesses %q, want %q", c.tool, c.args, got, c.want)
		}
	}
}

// A workspace that is held to one folder is not opened as another that takes its name, nor used when it was open before.
func TestHeldToOneFolder(t *testing.T) {
	t.Parallel()
	p := newPlace(t, map[string]string{"own": "mine\n"})
	before, err := os.Stat(p.dir)
	if err != nil {
		t.Fatal(err)
	}
	refused := errors.New("it is another folder")
	check := func(info fs.FileInfo) error {
		if os.SameFile(info, before) {
			return nil
		}
		return refused
	}
	roots, err := NewRoots(p.dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = roots.Close() })
	roots.Hold(check)
	if err := os.Rename(p.dir, p.dir+".aside"); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(p.outside, p.dir); err != nil {
		t.Fatal(err)
	}
	if _, err := roots.roots[Workspace].handle(true); !errors.Is(err, refused) {
		t.Error("it opens another folder:", err)
	}
	roots.Hold(nil)
	if _, err := roots.roots[Workspace].handle(false); err != nil {
		t.Error("nothing is held:", err)
	}
	roots.Hold(check)
	if _, err := roots.roots[Workspace].handle(false); !errors.Is(err, refused) {
		t.Error("it uses what was open:", err)
	}
}
