package runsetup_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"chorus/internal/app"
	"chorus/internal/programtest"
	"chorus/internal/runsetup"
	"chorus/internal/sandbox"
	"chorus/internal/sandbox/docker"
)

// dockerWithout is a docker program without a daemon: its container is this machine with another folder where the home of
// Chorus is, so that what is copied there is not what lies here.
func dockerWithout(t *testing.T, home, box, path string) string {
	t.Helper()
	if out, err := exec.Command("bwrap", "--dev-bind", "/", "/", "true").CombinedOutput(); err != nil {
		t.Skipf("there is no bwrap that works: %v %s", err, out)
	}
	program := filepath.Join(t.TempDir(), "docker")
	programtest.Write(t, program, fmt.Sprintf(`#!/bin/sh
case $1 in
container) echo '[{"State":{"Status":"running","Running":true}}]'; exit ;;
exec) shift ;;
*) echo "unknown command: $*" >&2; exit 125 ;;
esac
while [ "${1#-}" != "$1" ]; do
	case $1 in
	--interactive) ;;
	--workdir) dir=$2; shift ;;
	*) shift ;;
	esac
	shift
done
shift
exec bwrap --dev-bind / / --bind %s %s --setenv PATH %s --chdir "$dir" "$@"
`, shellQuote(box), shellQuote(home), shellQuote(path)))
	return program
}

func shellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// The archive reaches the container through the docker program and is unpacked by the container's own tar: names, bits, links and
// bytes are those that were approved, whatever a command did to them before.
func TestSkillsReachAContainer(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	work, home, box := filepath.Join(dir, "work"), filepath.Join(dir, "it's a home"), filepath.Join(dir, "box")
	a, err := app.Open(t.Context(), app.Options{Env: func(string) string { return "" }, Environ: []string{}, Home: home})
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	folder := filepath.Join(a.Home.Skills(), "deploy")
	long := strings.Repeat("a-long-folder-name/", 10) + "a file’s name.md"
	large := strings.Repeat("0123456789abcdef", 128<<10)
	for name, text := range map[string]string{"SKILL.md": "---\nname: deploy\ndescription: d\n---\nrun {baseDir}/scripts/go.sh\n", "scripts/go.sh": "#!/bin/sh\necho gone from $0\n", long: "far away", "large.bin": large} {
		path := filepath.Join(folder, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.MkdirAll(work, 0o755), os.MkdirAll(box, 0o755), os.Chmod(filepath.Join(folder, "scripts", "go.sh"), 0o755), os.Symlink("scripts/go.sh", filepath.Join(folder, "run"))); err != nil {
		t.Fatal(err)
	}
	b, err := a.Setup.NewToolbox("cli:here:x@chorus", work)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	where := a.Setup.SkillsAt("cli:here:x@chorus", work)
	list, _ := a.Skills.Find(where)
	if err := a.Skills.Approve(list[0], list[0].Tree.Digest, "ada"); err != nil {
		t.Fatal(err)
	}
	inside, err := docker.New(docker.Options{Container: "box", Host: work, Program: dockerWithout(t, home, box, os.Getenv("PATH")), Environ: os.Environ()})
	if err != nil {
		t.Fatal(err)
	}
	view := a.Skills.ViewDir(where)
	sh := func(script string) string {
		t.Helper()
		res, err := inside.Run(t.Context(), sandbox.Command{Shell: "cd " + shellQuote(filepath.Join(view, "deploy")) + " && " + script, Dir: work, Merge: true})
		if err != nil {
			t.Fatal(err)
		}
		return res.Output
	}
	if got := sh("ls"); !strings.Contains(got, "No such file") && !strings.Contains(got, "can't cd") {
		t.Fatalf("the container has the files of this machine: %q", got)
	}
	for range 2 { // what a command changed is gone with the next run
		runsetup.SkillsInContainer(a.Setup, t.Context(), b, inside)
		if got := sh("./run && ls -d own 2>/dev/null; cat " + shellQuote(long)); got != "gone from ./run\nfar away" {
			t.Errorf("%q", got)
		}
		if got := sh("find . -type f -perm -u+x; find . -type l; wc -c < large.bin; grep run SKILL.md"); got != fmt.Sprintf("./scripts/go.sh\n./run\n%d\nrun %s/deploy/scripts/go.sh\n", len(large), view) {
			t.Errorf("%q", got)
		}
		sh("chmod -R u+w . && echo echo evil > scripts/go.sh && : > own")
	}
	data, err := os.ReadFile(filepath.Join(view, "deploy", "scripts", "go.sh"))
	if err != nil || !strings.Contains(string(data), "gone from") {
		t.Errorf("what lies here was changed: %s, %v", data, err)
	}
}
