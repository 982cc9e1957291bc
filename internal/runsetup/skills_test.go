package runsetup_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"chorus/internal/app"
	"chorus/internal/runsetup"
	"chorus/internal/sandbox"
)

// container runs commands on this machine as if they were in a container.
type container struct{ ran []sandbox.Command }

func (c *container) Name() string                              { return "docker" }
func (c *container) Reap(context.Context, string) (int, error) { return 0, nil }
func (c *container) Run(ctx context.Context, cmd sandbox.Command) (sandbox.Result, error) {
	c.ran = append(c.ran, cmd)
	return sandbox.Result{}, nil
}

// What is copied into a container lies at the path that the skill's texts name; a folder that is mounted there is left alone.
func TestSkillsInAContainer(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	a, err := app.Open(t.Context(), app.Options{Env: func(string) string { return "" }, Environ: []string{}, Home: filepath.Join(dir, "home")})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	folder := filepath.Join(a.Home.Skills(), "deploy")
	if err := errors.Join(os.MkdirAll(folder, 0o755), os.WriteFile(filepath.Join(folder, "go.sh"), []byte("echo gone\n"), 0o755), os.Symlink("go.sh", filepath.Join(folder, "run.sh")),
		os.WriteFile(filepath.Join(folder, "SKILL.md"), []byte("---\nname: deploy\ndescription: d\n---\nrun {baseDir}/go.sh\n"), 0o644)); err != nil {
		t.Fatal(err)
	}
	b, err := a.Setup.NewToolbox("cli:here:x@chorus", dir)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	inside := &container{}
	runsetup.SkillsInContainer(a.Setup, t.Context(), b, inside)
	if len(inside.ran) != 0 {
		t.Error("there is nothing to copy")
	}
	where := a.Setup.SkillsAt("cli:here:x@chorus", dir)
	list, _ := a.Skills.Find(where)
	if err := a.Skills.Approve(list[0], list[0].Tree.Digest, "ada"); err != nil {
		t.Fatal(err)
	}
	runsetup.SkillsInContainer(a.Setup, t.Context(), b, inside)
	if len(inside.ran) != 1 {
		t.Fatalf("%d commands", len(inside.ran))
	}
	view := a.Skills.ViewDir(where)
	there := filepath.Join(dir, "container") // its files are somewhere else
	cmd := strings.ReplaceAll(inside.ran[0].Shell, view, there)
	run := func() {
		t.Helper()
		sh := exec.Command("sh", "-c", cmd)
		sh.Stdin = strings.NewReader(string(inside.ran[0].Stdin))
		if out, err := sh.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	run()
	run() // over itself
	if out, err := exec.Command("sh", filepath.Join(there, "deploy", "run.sh")).CombinedOutput(); err != nil || string(out) != "gone\n" {
		t.Errorf("%s, %v", out, err)
	}
	if data, _ := os.ReadFile(filepath.Join(there, "deploy", "SKILL.md")); !strings.Contains(string(data), view+"/deploy/go.sh") {
		t.Errorf("%s", data)
	}
	if err := os.Remove(filepath.Join(there, ".copied")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(there, "own"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	run()
	if _, err := os.Stat(filepath.Join(there, "own")); err != nil {
		t.Error("a mounted folder is emptied")
	}
}

// File tools reach a skill by its place and by its path, and do not write there.
func TestSkillsRoot(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	a, err := app.Open(t.Context(), app.Options{Env: func(string) string { return "" }, Environ: []string{}, Home: filepath.Join(dir, "home")})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	work := filepath.Join(dir, "work")
	if err := os.Mkdir(work, 0o755); err != nil {
		t.Fatal(err)
	}
	b, err := a.Setup.NewToolbox("cli:here:x@chorus", work)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	view := a.Skills.ViewDir(a.Setup.SkillsAt("cli:here:x@chorus", work))
	for _, name := range []string{"@skills/deploy/SKILL.md", filepath.Join(view, "deploy", "SKILL.md")} {
		place, err := b.Roots.Find(name)
		if err != nil || place.String() != "@skills/deploy/SKILL.md" {
			t.Errorf("%s: %v, %v", name, place, err)
		}
	}
	write, args, err := b.Tools.Resolve("write", []byte(`{"path":"@skills/deploy/SKILL.md","content":"x"}`))
	if err != nil {
		t.Fatal(err)
	}
	if res, err := write.Run(t.Context(), args); err != nil || !res.Failed {
		t.Errorf("agents write skills: %+v, %v", res, err)
	}
}
