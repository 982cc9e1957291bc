//go:build unix

package permit

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"chorus/internal/permit/canonical"
)

// effectRules are the rule sets of testdata/effects.txt.
var effectRules = map[string]Rules{
	"N": {
		Allow: []string{`tool:bash:(ls|cat|echo|grep|head|wc|sort|find|test|true|git status|git log|git diff|npm test|go test)( .*)?`},
		Deny:  []string{`tool:bash:(.*/)?(rm|curl|wget|ssh|git push)( .*)?`},
		Ask:   []string{`tool:bash:.*`},
	},
	"NW": {
		Allow: []string{`tool:bash:(ls|cat|echo|cd|test|true)( .*)?`, `tool:write:[^/.@].*`},
		Deny:  []string{`tool:bash:(.*/)?(rm|curl|wget|ssh|git push)( .*)?`},
		Ask:   []string{`tool:bash:.*`},
	},
	"S": {
		Allow: []string{
			`tool:bash:(ls|cat|echo|sed|awk|tar|rsync|wget|split|timeout|nice|env|man|zip)( .*)?`, `tool:bash:python3 tools/.*`, `tool:bash:ssh host .*`,
			`tool:bash:git (status|log|diff|fetch|clone|rebase)( .*)?`,
		},
		Deny: []string{`tool:bash:(.*/)?rm( .*)?`},
		Ask:  []string{`tool:bash:.*`},
	},
}

// effectCase is a line of testdata/effects.txt.
type effectCase struct{ rules, effect, command string }

func effectCases(t testing.TB) (out []effectCase) {
	t.Helper()
	data, err := os.ReadFile("testdata/effects.txt")
	if err != nil {
		t.Fatal(err)
	}
	unescape := strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\r`, "\r")
	for line := range strings.Lines(string(data)) {
		if f := strings.SplitN(strings.TrimSuffix(line, "\n"), "\t", 3); len(f) == 3 {
			out = append(out, effectCase{f[0], f[1], unescape.Replace(f[2])})
		}
	}
	return out
}

// project is a folder with a repository, its remote, and files beside it; commands that were allowed really run there.
type project struct {
	template, dir string
}

func newProject(t testing.TB) *project {
	t.Helper()
	for _, name := range []string{"bash", "git"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skip("there is no " + name)
		}
	}
	root := t.TempDir()
	p := &project{template: filepath.Join(root, "template"), dir: filepath.Join(root, "run")}
	for name, text := range map[string]string{
		"ws/f": "one\ntwo\n", "ws/canary": "", "ws/list": "origin\n", "ws/big": strings.Repeat("a line of some length to sort\n", 20_000), "ws/sub/g": "", "outside/precious": "safe\n",
		"ws/evil/ls": "#!/bin/sh\n: > PWNED\n", "ws/x.sh": "#!/bin/sh\ntouch PWNED\nexit 1\n", "ws/x.js": "require('fs').writeFileSync('PWNED', '')\n", "ws/push.sh": "#!/bin/sh\ngit push origin main\n",
		"ws/e.awk": "BEGIN { system(\"touch PWNED\") }\n", "ws/e.sed": "1e touch PWNED\n", "ws/evil.mk": "a:\n\tgit push origin main\n", "ws/Makefile": "a:\n\techo made\n", "ws/tools/ok.py": "", "ws/tools/a/b": "", "ws/sub:/x": "", "ws/tools/x.pl": "1;\n",
		"ws/evil.py": "import os\nos.system('git push origin main')\n", "ws/cfg": "Host *\n  ProxyCommand git push origin main\n", "evil.py": "open('PWNED', 'w')\n", "ws/package.json": `{"scripts":{"test":"true"}}`,
		"ws/go.mod": "module x\n", "ws/x_test.go": "package x\n\nimport \"testing\"\n\nfunc Test(t *testing.T) {}\n",
	} {
		path := filepath.Join(p.template, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	// Programs that would talk to other machines only leave a line in a log.
	for _, name := range []string{"gh", "kubectl", "aws", "helm", "terraform", "gcloud", "uv", "nc", "sudo"} {
		path := filepath.Join(p.template, "bin", name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte("#!/bin/sh\necho \"$0 $*\" >> \"$ROOT/log\"\n"), 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	p.must(t, p.template, `git init -q --bare remote.git && cd ws && tar cf a.tar f && git init -q -b main . && git add -A && git commit -q -m one && echo three >> f && git commit -qam two &&
		echo four >> f && git commit -qam three && git remote add origin "$ROOT/remote.git" && git submodule -q add ./ 2> /dev/null; rm -f .git/hooks/*`)
	return p
}

func (p *project) must(t testing.TB, dir, script string) {
	t.Helper()
	cmd := p.command(t.Context(), dir, script)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

func (p *project) command(ctx context.Context, dir, script string) *exec.Cmd {
	root := dir
	if filepath.Base(dir) == "ws" {
		root = filepath.Dir(dir)
	}
	cmd := exec.CommandContext(ctx, "bash", "-c", script)
	cmd.Dir = dir
	cmd.Env = []string{"ROOT=" + root, "HOME=" + root, "PATH=" + filepath.Join(root, "bin") + ":" + os.Getenv("PATH"), "GIT_CONFIG_NOSYSTEM=1", "GOFLAGS=-mod=mod", "GOCACHE=" + os.Getenv("GOCACHE"),
		"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.org", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.org", "TERM=dumb", "GIT_SEQUENCE_EDITOR=true", "GIT_EDITOR=true", "LC_ALL=C.UTF-8"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 300 * time.Millisecond
	return cmd
}

// reset makes a fresh copy.
func (p *project) reset(t testing.TB) {
	t.Helper()
	if err := errors.Join(os.RemoveAll(p.dir), os.CopyFS(p.dir, os.DirFS(p.template))); err != nil {
		t.Fatal(err)
	}
	ws := filepath.Join(p.dir, "ws")
	// The copy of the repository must push to the copy of its remote.
	config := filepath.Join(ws, ".git/config")
	text, err := os.ReadFile(config)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(config, []byte(strings.ReplaceAll(string(text), p.template, p.dir)), 0o644); err != nil {
		t.Fatal(err)
	}
}

// does runs a command in a fresh copy and reports whether it has the effect.
func (p *project) does(t testing.TB, command, effect string) bool {
	t.Helper()
	p.reset(t)
	before, _ := p.read(effect)
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
	defer cancel()
	_ = p.command(ctx, filepath.Join(p.dir, "ws"), command).Run() // how it ends does not matter
	after, err := p.read(effect)
	switch effect[0] {
	case '+':
		return err == nil
	case '-':
		return errors.Is(err, fs.ErrNotExist)
	default:
		return before != after
	}
}

// read is the file that an effect is about.
func (p *project) read(effect string) (string, error) {
	name := effect[1:]
	if effect == "+pushed" {
		name = "remote.git/refs/heads/main"
	}
	data, err := os.ReadFile(filepath.Join(p.dir, name))
	return string(data), err
}

func effectProfile(t testing.TB, rules string) *Profile {
	t.Helper()
	if r, ok := effectRules[rules]; ok {
		return mustCompile(t, r)
	}
	return mustPreset(t, rules)
}

// No known way around the rules is both allowed and effective: by what a shell reads otherwise, by options, by the
// directory, by a detour in a path.
func TestEffects(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	cases := effectCases(t)
	for _, c := range cases {
		j := effectProfile(t, c.rules).Judge([]Request{{Tool: "bash", Command: c.command}}, JudgeOptions{Workspace: filepath.Join(p.dir, "ws")})
		if c.effect == "none" {
			if j.Verdict != Deny {
				t.Errorf("%s: %q is %s", c.rules, c.command, j.Verdict)
			}
			continue
		}
		if j.Verdict != Allow {
			continue
		}
		text, err := canonical.Text(c.command)
		if err != nil {
			t.Errorf("%s: %q is allowed and has no canonical text: %v", c.rules, c.command, err)
			continue
		}
		if p.does(t, text, c.effect) {
			t.Errorf("%s: %q was allowed, and did %s\n%s", c.rules, c.command, c.effect, drawTree(c.rules, j, false))
		} else {
			t.Logf("%s: %q is allowed, without effect", c.rules, c.command)
		}
	}
	if len(cases) < 280 {
		t.Errorf("there are only %d cases", len(cases))
	}
}

// The test above is worth something only if the commands do what they are said to do when nobody judges them. EFFECTS=all
// runs all of them; by default it is a sample.
func TestEffectsAreReal(t *testing.T) {
	t.Parallel()
	p := newProject(t)
	every := 20
	if os.Getenv("EFFECTS") == "all" {
		every = 1
	}
	ran, real := 0, 0
	for i, c := range effectCases(t) {
		if c.effect == "none" || i%every != 0 || strings.Contains(c.command, "go test") {
			continue
		}
		ran++
		if p.does(t, c.command, c.effect) {
			real++
		} else {
			t.Logf("%s: %q does not do %s here", c.rules, c.command, c.effect)
		}
	}
	if real < ran/2 {
		t.Errorf("only %d of %d commands do what they are said to do", real, ran)
	}
}
