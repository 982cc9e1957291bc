package host

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"chorus/internal/programtest"
	"chorus/internal/sandbox"
)

// TestPlainIsWhatTheShellDoes runs the same commands both ways.
func TestPlainIsWhatTheShellDoes(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("no bash")
	}
	dir := t.TempDir()
	programtest.Write(t, filepath.Join(dir, "script"), "#!/bin/sh\necho \"$# $1\"; exit 7\n")
	programtest.Write(t, filepath.Join(dir, "bare"), "echo no shebang $1\n")
	if err := os.WriteFile(filepath.Join(dir, "data"), []byte("x\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	e := New(os.Environ())
	for _, command := range []string{"expr 1 + 2", "expr 1 - 1", "./script 'a b' ''", "./bare x", "./data", "./missing", "nosuch-program", "cat data nosuch", "env -u HOME pwd", "ls -1", "cat '' data",
		"true 5", "cd . && ls -1 | cat", "echo one two > made; cat made", "cat nosuch 2>/dev/null || echo no", "exit 3", "echo 'a;  b'", "false && echo x", "cat < data", "pwd"} {
		plain, err := e.Run(context.Background(), sandbox.Command{Shell: command, Dir: dir, Merge: true})
		if err != nil {
			t.Errorf("%q: %v", command, err)
			continue
		}
		shell, err := e.Run(context.Background(), sandbox.Command{Argv: []string{"bash", "-c", command}, Dir: dir, Merge: true})
		if err != nil {
			t.Fatal(err)
		}
		out := strings.ReplaceAll(shell.Output, "bash: ", e.shell()+": ") // bash names itself as it was called
		if plain.ExitCode != shell.ExitCode || strings.ReplaceAll(plain.Output, "bash: ", e.shell()+": ") != out && !strings.Contains(out, e.shell()) {
			t.Errorf("%q: %d %q, by the shell %d %q", command, plain.ExitCode, plain.Output, shell.ExitCode, out)
		}
	}
}
