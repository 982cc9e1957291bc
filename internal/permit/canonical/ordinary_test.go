package canonical

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// ordinary is what agents and people really type: one command a line, with \n and \\ escaped.
func ordinary(t testing.TB) (commands []string) {
	t.Helper()
	data, err := os.ReadFile("testdata/ordinary.txt")
	if err != nil {
		t.Fatal(err)
	}
	unescape := strings.NewReplacer(`\\`, `\`, `\n`, "\n")
	for line := range strings.Lines(string(data)) {
		commands = append(commands, unescape.Replace(strings.TrimSuffix(line, "\n")))
	}
	return commands
}

// Few ordinary commands have no canonical text: people are not asked without need.
func TestOrdinaryCommandsAreRarelyOpaque(t *testing.T) {
	t.Parallel()
	all := ordinary(t)
	var opaque []string
	for _, c := range all {
		if _, err := Text(c); err != nil {
			opaque = append(opaque, fmt.Sprintf("%q: %v", c, err))
		}
	}
	if limit := len(all) * 8 / 100; len(opaque) > limit || len(all) < 300 {
		t.Errorf("%d of %d are opaque, at most %d may be:\n%s", len(opaque), len(all), limit, strings.Join(opaque, "\n"))
	}
}

// The canonical text of an ordinary command does what the command does: the same output, exit code and files.
func TestOrdinaryCommandsBehaveAsBefore(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("there is no bash")
	}
	dir := t.TempDir()
	p := &project{template: filepath.Join(dir, "template"), work: filepath.Join(dir, "work")}
	makeProject(t, p.template)
	for _, c := range ordinary(t) {
		canon, err := Text(c)
		if err != nil || canon == strings.TrimSpace(c) || isVolatile(c) {
			continue
		}
		before := p.outcome(t, c)
		if after := p.outcome(t, canon); after != before {
			t.Errorf("%q became\n%s\nand does something else:\n%s\ninstead of\n%s", c, canon, after, before)
		}
	}
}

// project is a folder that commands work on, made anew after each that changed it.
type project struct {
	template, work string
	fresh          string // digest of the files as they were
}

// isVolatile reports commands that give another answer each time.
func isVolatile(command string) bool {
	return slices.ContainsFunc([]string{"$$", "rand", "mktemp", "http.server", "watch -n1", "ps aux", "time -p", "nohup", "go "}, func(s string) bool { return strings.Contains(command, s) })
}

// outcome runs a command on a fresh project and describes what came of it.
func (p *project) outcome(t *testing.T, command string) string {
	t.Helper()
	if p.fresh == "" || p.digest(t) != p.fresh {
		if err := errors.Join(os.RemoveAll(p.work), os.CopyFS(p.work, os.DirFS(p.template))); err != nil {
			t.Fatal(err)
		}
		p.fresh = p.digest(t)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", command)
	cmd.Dir, cmd.WaitDelay = p.work, time.Second
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + filepath.Dir(p.work), "USER_NAME=ann", "LC_ALL=C.UTF-8", "TZ=UTC",
		"GIT_AUTHOR_DATE=2024-01-01T00:00:00Z", "GIT_COMMITTER_DATE=2024-01-01T00:00:00Z", "GIT_CONFIG_NOSYSTEM=1"}
	out, err := cmd.Output()
	code := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		code = exit.ExitCode()
	} else if err != nil && !errors.Is(err, exec.ErrWaitDelay) {
		t.Fatalf("%q: %v", command, err)
	}
	files := p.digest(t)
	if strings.Contains(command, "git") {
		p.fresh = "" // git keeps more than the digest sees
	}
	return fmt.Sprintf("exit %d, files %s, output:\n%s", code, files, out)
}

// digest is a sum of all files but those of git.
func (p *project) digest(t *testing.T) string {
	t.Helper()
	files := sha256.New()
	err := filepath.WalkDir(p.work, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.Name() == ".git" && d.IsDir() {
			return fs.SkipDir
		}
		var data []byte
		if d.Type().IsRegular() {
			data, _ = os.ReadFile(path)
		}
		fmt.Fprintf(files, "%s %s %q\n", path, d.Type(), data)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", files.Sum(nil)[:6])
}

// makeProject makes what the ordinary commands work on.
func makeProject(t *testing.T, dir string) {
	t.Helper()
	var log strings.Builder
	for i := range 60 {
		fmt.Fprintf(&log, "2024-01-01 10:00:%02d %s request id=%d ms=%d /api/v0\n", i, []string{"INFO", "WARN", "ERROR"}[i%3], i, i*7%50)
	}
	for name, text := range map[string]string{
		"main.go": "package main\n\nfunc main() { println(Add(1, 2)) }\n", "util.go": "package main\n\n// Add adds.\nfunc Add(a, b int) int { return a + b }\n\n// todo: more\n",
		"go.mod": "module example.org/app\n\ngo 1.22\n", "app.py": "import sys\nprint('hello', sys.argv[1:])\n", "users.csv": "id,name,score\n1,ann,90\n2,bob,75\n3,cy,81\n",
		"notes.txt": "one\ntwo\nthree\ntwo\n", "config.yaml": "host: localhost\nport: 8080\ndebug: true\n", ".env": "# settings\nAPI_KEY=abc\nDB_URL=x\n",
		"README.md": "# App\n\nText.\n\n## Install\n\nRun it.\n\n## Use\n\nUse it.\n", "docs/guide.md": "one\nguide\n", "file with space.txt": "spaces\n",
		"data.json":    `{"total": 2, "users": [{"id": 1, "name": "Ann", "age": 31, "tags": ["a"]}, {"id": 2, "name": "Bob", "age": 25, "tags": []}]}` + "\n",
		"package.json": `{"name": "app", "version": "1.2.3", "scripts": {"test": "true"}, "dependencies": {"react": "1"}}` + "\n",
		"src/index.js": "console.log('index')\n", "src/lib.js": "module.exports = 1\n", "pkg/a/a.go": "package a\n\nconst Name = \"a\"\n", "pkg/b/b.go": "package b\n\nconst Name = \"b\"\n",
		"scripts/build.sh": "#!/bin/sh\necho building $1\n", "Makefile": "build:\n\t@echo built\ntest:\n\t@echo tested $(V)\n", "build/out.o": "object\x00code here\n", "logs/server.log": log.String(),
	} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	script := `git init -q -b main . && git config user.email a@example.org && git config user.name Ann && git config gc.auto 0 && git config maintenance.auto false &&
		git add -A && git commit -q -m first && git checkout -q -b feature && echo f > feat.txt && git add -A && git commit -q -m feature && git checkout -q main &&
		echo four >> docs/guide.md && git commit -q -am second && git tag v1.0 && rm -f .git/hooks/*`
	cmd := exec.Command("bash", "-c", script)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "HOME="+dir, "GIT_AUTHOR_DATE=2024-01-01T00:00:00Z", "GIT_COMMITTER_DATE=2024-01-01T00:00:00Z")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}
