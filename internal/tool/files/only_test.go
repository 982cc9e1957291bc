package files_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"chorus/internal/tool"
	"chorus/internal/tool/files"
)

// A root of which only some files can be reached gives nothing else of its directory, by no name and through no link,
// and tells what is about to be written.
func TestOnlySomeFilesOfADirectory(t *testing.T) {
	t.Parallel()
	work, home := t.TempDir(), t.TempDir()
	for name, text := range map[string]string{"secret.db": "secret", "MEMORY.md": "- old\n", "sub/MEMORY.md": "below"} {
		path := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	roots, err := files.NewRoots(work, files.Root{Name: "memory/global", Dir: home, Writable: true, Only: []string{"MEMORY.md", "LINK.md"}})
	if err != nil {
		t.Fatal(err)
	}
	defer roots.Close()
	if err := os.Symlink("secret.db", filepath.Join(home, "LINK.md")); err != nil {
		t.Fatal(err)
	}
	var told []string
	roots.BeforeSave = func(_ context.Context, toolName string, place files.Place, content string) error {
		told = append(told, toolName+" "+place.String()+" "+content)
		if strings.Contains(content, "forbidden") {
			return tool.Mistake("not that")
		}
		return nil
	}
	set, err := tool.NewSet(files.Tools(roots)...)
	if err != nil {
		t.Fatal(err)
	}
	call := func(name, args string) string {
		t.Helper()
		chosen, plain, err := set.Resolve(name, []byte(args))
		if err != nil {
			return err.Error()
		}
		res, err := chosen.Run(tool.WithCall(t.Context(), tool.Call{Touches: chosen.Access(plain)}), plain)
		if err != nil {
			t.Fatal(err)
		}
		return res.Blocks.Text()
	}
	for _, path := range []string{"@memory", "@memory/", "@memory/global", "@memory/global/.", "@memory/global/secret.db", "@memory/global/sub/MEMORY.md", "@memory/global/../secret.db",
		"@memory/channel/MEMORY.md", "@memory/global/LINK.md", "@memory/global/MEMORY.md/../secret.db", filepath.Join(home, "secret.db")} {
		for _, name := range []string{"read", "list_files"} {
			if got := call(name, `{"path":"`+path+`"}`); strings.Contains(got, "secret\n") || strings.Contains(got, "below") || !strings.Contains(got, "there are @memory/global/MEMORY.md") &&
				!strings.Contains(got, "leads outside") && !strings.Contains(got, "outside of the workspace") {
				t.Errorf("%s %s: %s", name, path, got)
			}
		}
		if got := call("write", `{"path":"`+path+`","content":"x"}`); strings.HasPrefix(got, "Wrote") {
			t.Errorf("write %s: %s", path, got)
		}
	}
	if len(told) > 0 {
		t.Errorf("told of writes that were refused: %q", told)
	}
	if got := call("read", `{"path":"@memory/global/MEMORY.md"}`); !strings.Contains(got, "- old") {
		t.Error(got)
	}
	call("edit", `{"path":"@memory/global/MEMORY.md","old_string":"old","new_string":"new"}`)
	call("apply_patch", `{"patch":"*** Begin Patch\n*** Update File: @memory/global/MEMORY.md\n@@\n-- new\n+- newer\n*** End Patch"}`)
	if got := call("write", `{"path":"@memory/global/MEMORY.md","content":"forbidden"}`); got != "not that" {
		t.Error(got)
	}
	if data, _ := os.ReadFile(filepath.Join(home, "MEMORY.md")); string(data) != "- newer\n" {
		t.Errorf("%q", data)
	}
	if got := strings.Join(told, "|"); got != "edit @memory/global/MEMORY.md - new\n|apply_patch @memory/global/MEMORY.md - newer\n|write @memory/global/MEMORY.md forbidden" {
		t.Errorf("told: %q", got)
	}
	if env := strings.Join(roots.Env(), " "); strings.Contains(env, home) {
		t.Errorf("commands are told of it: %s", env)
	}
}
