package permit

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"chorus/internal/permit/canonical"
)

// jail is a folder in which commands really run. Whatever runs the program canary, under whatever name, leaves a
// mark.
type jail struct {
	dir, mark string
	profile   *Profile
}

func newJail(t testing.TB) *jail {
	t.Helper()
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("there is no bash")
	}
	dir := t.TempDir()
	j := &jail{dir: filepath.Join(dir, "work"), mark: filepath.Join(dir, "mark")}
	for _, name := range []string{"bin/canary", "work/canary", "work/evil/ls", "work/evil/cat", "work/evil/echo", "work/evil/bash"} {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte("#!/bin/sh\n: > '"+j.mark+"'\n"), 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(j.dir, "f"), []byte("one\ntwo\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	j.profile = mustCompile(t, Rules{
		Allow: []string{`tool:bash:(ls|cat|echo|grep|head|wc|sort|test|true|printf|\[|cd|env|find|bash -c|sh -c)( .*)?`, `tool:(read|write):.*`},
		Deny:  []string{`tool:bash:(.*/)?canary( .*)?`, `tool:bash:(\./)?evil/.*`},
		Ask:   []string{`tool:bash:.*`},
	})
	return j
}

// fires judges a command as a call would be and runs what would run. It reports that the command was allowed and
// ran the forbidden program all the same.
func (j *jail) fires(t testing.TB, command string) (allowed, fired bool) {
	t.Helper()
	if j.profile.Judge([]Request{{Tool: "bash", Command: command}}, JudgeOptions{Workspace: j.dir}).Verdict != Allow {
		return false, false
	}
	text, err := canonical.Text(command)
	if err != nil {
		t.Fatalf("%q is allowed and has no canonical text: %v", command, err)
	}
	return true, j.runs(t, text)
}

// runs runs a text and reports whether the forbidden program ran.
func (j *jail) runs(t testing.TB, text string) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", text)
	cmd.Dir, cmd.WaitDelay = j.dir, 100*time.Millisecond
	cmd.Env = []string{"PATH=" + filepath.Join(filepath.Dir(j.dir), "bin") + ":/usr/bin:/bin", "HOME=" + j.dir}
	_ = cmd.Run() // how it ends does not matter
	return os.Remove(j.mark) == nil
}

// attacks are ways to run canary that got past a judge that reads the text a shell runs.
func attacks(t testing.TB) (list []string) {
	t.Helper()
	data, err := os.ReadFile("canonical/testdata/attacks.txt")
	if err != nil {
		t.Fatal(err)
	}
	unescape := strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\r`, "\r")
	for line := range strings.Lines(string(data)) {
		list = append(list, unescape.Replace(strings.TrimSuffix(line, "\n")))
	}
	return list
}

// No attack on the reading of a command is allowed and runs what is denied.
func TestAttacksOnTheParser(t *testing.T) {
	t.Parallel()
	j := newJail(t)
	effective := 0
	for _, command := range attacks(t) {
		if j.runs(t, command) {
			effective++
		}
		if _, fired := j.fires(t, command); fired {
			t.Errorf("%q was allowed and ran the canary", command)
		}
	}
	if all := len(attacks(t)); effective < all/2 {
		t.Errorf("only %d of %d attacks work in plain bash: the jail proves little", effective, all)
	}
}

// fragments are what bash and other parsers read differently when they stand beside each other.
var fragments = []string{"\\\n", "\n", "#", " # ", "'", `"`, "`", `\`, "$", "$(", ")", "((", "))", "{", "}", "[", "]", "[[", "]]", ";", "&", "|", "&&", "||", "<", ">", "<<E", "<<'E'", "<<-E", "\nE\n", "\nE",
	"<<<", "<(", "$'", `$"`, "${x}", "${x:-", "${x/", "$((", "$[", "!", "~", "*", "\t", " ", "=", "x=", "a[", "canary", " canary ", ";canary;", "\ncanary\n", "$(canary)", "`canary`", "ls", " ls ", "echo ", "cat ", "x",
	"bash -c '", "sh -c \"", "env ", "eval ", "if ", "then ", "fi", "for x in ", "do ", "done", "case x in ", "esac", "f() {", "[ ", " ]", "test ", " -v ", `"$1"`, "$1", `"$@"`, "set -- ", "'a[$(canary)]'", "read ", "HISTCMD=", "for x; do ", "?", "\x0c", "\r", "é", "\u00a0", "\u2028"}

// mutate changes a command a little, with pieces of others.
func mutate(r *rand.Rand, seeds []string) string {
	s := []byte(seeds[r.IntN(len(seeds))])
	for range 1 + r.IntN(5) {
		at := r.IntN(len(s) + 1)
		switch r.IntN(5) {
		case 0, 1:
			s = append(s[:at:at], append([]byte(fragments[r.IntN(len(fragments))]), s[at:]...)...)
		case 2:
			end := min(at+1+r.IntN(4), len(s))
			s = append(s[:at:at], s[end:]...)
		case 3:
			other := seeds[r.IntN(len(seeds))]
			from := r.IntN(len(other) + 1)
			s = append(s[:at:at], append([]byte(other[from:min(from+1+r.IntN(12), len(other))]), s[at:]...)...)
		default:
			s = append(s, fragments[r.IntN(len(fragments))]...)
		}
	}
	return string(s)
}

// Judge and shell agree on generated commands: what is denied never runs when a command was allowed. SHELL_FUZZ says
// for how long (make fuzz-shell: ten minutes); by default it is a few seconds.
func TestJudgeAndBashAgree(t *testing.T) {
	t.Parallel()
	long, err := time.ParseDuration(os.Getenv("SHELL_FUZZ"))
	if err != nil {
		long = 3 * time.Second
	}
	j := newJail(t)
	seeds := append(attacks(t), "ls", "echo a b", "cat f | wc -l", `x=1; echo "$x" $((x + 1))`, "for i in 1 2; do echo $i; done", "if test -f f; then cat f; fi", "cat <<E\na\nE", "bash -c 'ls; echo \"$1\"' x y",
		"f() { ls; }; f", "case f in f) ls;; esac", "ls > /dev/null 2>&1", "echo $(ls | head -1)", "env ls", "find . -name f", "{ ls; echo; } | sort", `printf '%s\n' "${x:-y}"`, "! test -f g && echo no")
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 1))
	allowed, tried := 0, 0
	for end := time.Now().Add(long); time.Now().Before(end); tried++ {
		command := mutate(r, seeds)
		ok, fired := j.fires(t, command)
		if ok {
			allowed++
			seeds = append(seeds, command)
		}
		if fired {
			t.Errorf("seed %d: %q was allowed and ran the canary", seed, command)
		}
	}
	t.Logf("%d commands, %d allowed", tried, allowed)
	if allowed == 0 {
		t.Error("nothing was allowed: this proves nothing")
	}
}
