package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"chorus/cmd/chorus/helptext"
	"chorus/cmd/chorus/manpage"
	"chorus/internal/transport/repl"
)

// The manual has every command that people can see, and nothing in a text of theirs is taken for a request to man.
func TestManualHasEveryCommand(t *testing.T) {
	t.Parallel()
	root := (&program{getenv: os.Getenv}).root()
	page := manpage.Of(root, version, helptext.Example)
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		if cmd.Hidden {
			return
		}
		if len(cmd.Commands()) == 0 && !strings.Contains(page, "\n.SS "+strings.ReplaceAll(strings.TrimPrefix(cmd.CommandPath(), "chorus "), "-", `\-`)) {
			t.Errorf("`%s` is missing", cmd.CommandPath())
		}
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(root)
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, "'") || strings.HasPrefix(line, ".") && !strings.HasPrefix(line, ".TH ") && !strings.HasPrefix(line, ".S") && !strings.HasPrefix(line, ".B ") && !strings.HasPrefix(line, ".I ") && !strings.HasPrefix(line, ".TP") && !strings.HasPrefix(line, ".PP") && !strings.HasPrefix(line, ".nf") && !strings.HasPrefix(line, ".fi") {
			t.Errorf("a request that nobody wrote: %q", line)
		}
	}
}

// install.sh puts a release into place when its checksum is right, and writes nothing when it is not.
func TestInstallScriptChecksTheSum(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	script := `set -eu
cd "$1"
mkdir -p release chorus
printf '#!/bin/sh\necho chorus v9\n' >chorus/chorus
chmod +x chorus/chorus
for name in chorus.1 chorus.bash chorus.zsh chorus.fish LICENSE THIRD_PARTY_LICENSES; do echo x >chorus/$name; done
case $(uname -m) in x86_64|amd64) arch=amd64 ;; *) arch=arm64 ;; esac
os=$(uname -s | tr A-Z a-z)
tar -czf release/chorus-v9-$os-$arch.tar.gz chorus
cd release
{ sha256sum *.tar.gz 2>/dev/null || shasum -a 256 *.tar.gz; } >checksums.txt`
	if out, err := exec.Command("sh", "-c", script, "sh", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	install := func(env ...string) (string, error) {
		cmd := exec.Command("sh", "../../install.sh")
		cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "CHORUS_RELEASES=" + filepath.Join(dir, "release")}, env...)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	out, err := install()
	if err != nil || !strings.Contains(out, "Installed chorus v9 as "+dir+"/.local/bin/chorus") || !strings.Contains(out, "export PATH=") {
		t.Errorf("%v\n%s", err, out)
	}
	for _, name := range []string{"man/man1/chorus.1", "bash-completion/completions/chorus", "zsh/site-functions/_chorus", "fish/vendor_completions.d/chorus.fish", "doc/chorus/THIRD_PARTY_LICENSES"} {
		if _, err := os.Stat(filepath.Join(dir, ".local", "share", name)); err != nil {
			t.Error(err)
		}
	}
	if out, err := install("CHORUS_VERSION=v8"); err == nil || !strings.Contains(out, "names no archive") {
		t.Errorf("another version: %v\n%s", err, out)
	}
	archives, err := filepath.Glob(filepath.Join(dir, "release", "*.gz"))
	if err != nil || len(archives) != 1 {
		t.Fatal(archives, err)
	}
	f, err := os.OpenFile(archives[0], os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("x"); err != nil {
		t.Fatal(err)
	}
	f.Close()
	other := filepath.Join(dir, "other")
	if out, err := install("PREFIX=" + other); err == nil || !strings.Contains(out, "nothing was installed") {
		t.Errorf("a changed archive: %v\n%s", err, out)
	}
	if _, err := os.Stat(other); err == nil {
		t.Error("a changed archive was installed")
	}
}

// Commands are completed in a bash that has nothing but the script: the package bash-completion is not everywhere.
func TestBashCompletesByItself(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("there is no bash here")
	}
	dir := t.TempDir()
	var script bytes.Buffer
	c := &program{console: repl.Console{Out: &script, Err: io.Discard}, getenv: os.Getenv}
	if code := c.run([]string{"completion", "bash"}); code != 0 {
		t.Fatal(code)
	}
	if err := os.WriteFile(filepath.Join(dir, "script"), script.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	for typed, want := range map[string]string{"chorus approvals app": "approve", "chorus docs termi": "terminal"} {
		words := strings.Fields(typed)
		cmd := exec.Command("bash", "--norc", "--noprofile", "-c", `source ./script
COMP_LINE=$1 COMP_POINT=${#1} COMP_TYPE=9 COMP_WORDS=("${@:2}") COMP_CWORD=$(($# - 2))
__start_chorus
printf '%s\n' "${COMPREPLY[@]}"`, "bash", typed)
		cmd.Args = append(cmd.Args, words...)
		cmd.Dir, cmd.Env = dir, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "CHORUS_HOME=" + dir}
		out, err := cmd.Output() // that it is no key that was pressed is said on standard error
		if err != nil || strings.TrimSpace(string(out)) != want {
			t.Errorf("%s: %v\n%s", typed, err, out)
		}
	}
}
