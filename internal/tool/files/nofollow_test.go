package files

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"chorus/internal/tool"
)

// judgedCall runs a call as the loop does: with what it touched when it was judged.
func judgedCall(t *testing.T, p *place, name, args string) (tool.Result, []tool.Access) {
	t.Helper()
	found, plain, err := p.set.Resolve(name, []byte(args))
	if err != nil {
		t.Fatal(err)
	}
	touches := found.Access(plain)
	return runJudged(t, found, plain, touches), touches
}

func runJudged(t *testing.T, found tool.Tool, args []byte, touches []tool.Access) tool.Result {
	t.Helper()
	res, err := found.Run(tool.WithCall(t.Context(), tool.Call{ID: "c", Touches: touches}), args)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// A link that was there before the call is judged with where it leads, and written there; one that leads elsewhere by
// then is refused with the reason.
func TestLinkThatChangedSinceItWasJudged(t *testing.T) {
	t.Parallel()
	p := newPlace(t, map[string]string{"a/x": "a\n", ".git/config": "g\n"})
	p.link("now", "a/x")
	if res, _ := judgedCall(t, p, "write", `{"path":"now","content":"b\n"}`); res.Failed || p.get("a/x") != "b\n" {
		t.Errorf("%s; a/x is %q", res.Blocks.Text(), p.get("a/x"))
	}
	found, args, err := p.set.Resolve("write", []byte(`{"path":"now","content":"evil\n"}`))
	if err != nil {
		t.Fatal(err)
	}
	touches := found.Access(args)
	if err := os.Remove(filepath.Join(p.dir, "now")); err != nil {
		t.Fatal(err)
	}
	p.link("now", ".git/config")
	if res := runJudged(t, found, args, touches); !res.Failed || !strings.Contains(res.Blocks.Text(), "has just been changed") || p.get(".git/config") != "g\n" {
		t.Errorf("%s; config is %q", res.Blocks.Text(), p.get(".git/config"))
	}
}

// Folders that git takes for a repository's own are known by what they hold, whatever their names are.
func TestGitDirectoriesByAnyName(t *testing.T) {
	t.Parallel()
	p := newPlace(t, map[string]string{
		"srv/HEAD": "ref: refs/heads/main\n", "srv/objects/x": "", "srv/refs/x": "", "srv/config": "",
		"wt/HEAD": "x\n", "wt/commondir": "../srv\n",
		"half/HEAD": "x\n", "half/objects/x": "",
		"src/HEAD": "a heading\n",
	})
	p.link("store", "srv")
	patch := func(names ...string) string {
		var text strings.Builder
		text.WriteString(`{"patch":"*** Begin Patch\n`)
		for _, name := range names {
			text.WriteString(`*** Add File: ` + name + `\n+x\n`)
		}
		return text.String() + `*** End Patch\n"}`
	}
	for _, c := range []struct {
		tool, args string
		want       bool
	}{
		{"write", `{"path":"srv/config","content":""}`, true},
		{"write", `{"path":"srv/hooks/post-checkout","content":""}`, true},
		{"write", `{"path":"store/config","content":""}`, true},
		{"write", `{"path":"wt/config.worktree","content":""}`, true},
		{"edit", `{"path":"srv/HEAD","old_string":"main","new_string":"x"}`, true},
		{"write", `{"path":"half/config","content":""}`, false},
		{"write", `{"path":"half/refs/x","content":""}`, true}, // then it is one
		{"write", `{"path":"src/refs","content":""}`, false},
		{"write", `{"path":"other/config","content":""}`, false},
		{"apply_patch", patch("new/config", "new/HEAD", "new/objects/x", "new/refs/x"), true},
		{"apply_patch", patch("new/config", "new/HEAD"), false},
	} {
		found, args, err := p.set.Resolve(c.tool, []byte(c.args))
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range found.Access(args) {
			if a.Git != c.want {
				t.Errorf("%s %s: %+v", c.tool, c.args, a)
			}
		}
	}
	// What becomes one after it was judged is not written.
	found, args, err := p.set.Resolve("write", []byte(`{"path":"half/config","content":"evil"}`))
	if err != nil {
		t.Fatal(err)
	}
	touches := found.Access(args)
	p.put("half/refs/x", "")
	if res := runJudged(t, found, args, touches); !res.Failed {
		t.Error(res.Blocks.Text())
	}
}

func TestHiddenFilesAreNotListed(t *testing.T) {
	t.Parallel()
	p := newPlace(t, map[string]string{"a": "", "keys/b": ""})
	p.link("c", "keys")
	found, args, err := p.set.Resolve("list_files", []byte(`{"path":"c"}`))
	if err != nil {
		t.Fatal(err)
	}
	ctx := tool.WithCall(context.Background(), tool.Call{ID: "c", Hides: func(path string) bool { return strings.HasPrefix(path, "keys/") }})
	if res, err := found.Run(ctx, args); err != nil || res.Blocks.Text() != noFiles {
		t.Errorf("%v %v", res.Blocks.Text(), err)
	}
}
