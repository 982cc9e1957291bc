package client_test

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"chorus/internal/operation"
)

// script is the example client, as somebody sits before it.
type script struct {
	*testing.T
	in    io.WriteCloser
	lines chan string
	cmd   *exec.Cmd
}

func node(t *testing.T, h *served, token string, flags ...string) *script {
	t.Helper()
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("SKIPPED: the example client was NOT tried, there is no node here")
	}
	cmd := exec.CommandContext(t.Context(), "node", append([]string{filepath.Join("..", "..", "examples", "server-client.mjs"), "--base", h.server.URL}, flags...)...)
	cmd.Env = append(os.Environ(), "CHORUS_TOKEN="+token)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	s := &script{t, in, make(chan string, 1000), cmd}
	go func() {
		defer close(s.lines)
		for scan := bufio.NewScanner(out); scan.Scan(); {
			s.lines <- scan.Text()
		}
	}()
	return s
}

// TestExampleHelps: it says what it can be given, also to whoever guessed wrong.
func TestExampleHelps(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("node"); err != nil {
		t.Skip("SKIPPED: the example client was NOT tried, there is no node here")
	}
	for flag, code := range map[string]int{"--help": 0, "--nonsense": 2} {
		cmd := exec.CommandContext(t.Context(), "node", filepath.Join("..", "..", "examples", "server-client.mjs"), flag)
		out, _ := cmd.CombinedOutput() // the code is looked at
		if cmd.ProcessState.ExitCode() != code || !strings.Contains(string(out), "--workspace DIR") || strings.Contains(string(out), "    at ") {
			t.Errorf("%s: %d %s", flag, cmd.ProcessState.ExitCode(), out)
		}
	}
}

// sees waits for a line with these words and gives it.
func (s *script) sees(words string) string {
	s.Helper()
	deadline := time.After(time.Minute)
	var before []string
	for {
		select {
		case line, ok := <-s.lines:
			if !ok {
				s.Fatalf("it ended without %q:\n%s", words, strings.Join(before, "\n"))
			}
			if strings.Contains(line, words) {
				return line
			}
			before = append(before, line)
		case <-deadline:
			s.Fatalf("it never said %q:\n%s", words, strings.Join(before, "\n"))
		}
	}
}

func (s *script) types(line string) {
	s.Helper()
	if _, err := io.WriteString(s.in, line+"\n"); err != nil {
		s.Fatal(err)
	}
}

func (s *script) ends() {
	s.Helper()
	for range s.lines { // to its end
	}
	if err := s.cmd.Wait(); err != nil {
		s.Error(err)
	}
}

func TestExample(t *testing.T) {
	t.Parallel()
	h := openServer(t)
	token, _ := h.token("ada", operation.Chat, operation.Approve)
	one := node(t, h, token, "--model", "demo/script", "--permissions", "standard")
	id := strings.Fields(one.sees("session "))[1]
	one.types("")
	one.types("!say hello there")
	one.sees("hello there")
	one.sees("• done")
	one.types("y") // no question is open: it is words like any other
	one.sees("• done")
	one.types(`!call bash {"command":"touch first"}`)
	one.sees("? 1.")
	one.types("please say something nice") // no answer
	one.sees("still waits")

	// Somebody else resumes the live session, sees the question and answers it.
	two := node(t, h, token, "--session", id)
	two.sees("waiting")
	two.sees("? 1.")
	two.types("/approve all is well")
	two.sees("approved by")
	one.sees("approved by")
	one.sees("✓ bash ran")
	two.sees("• done") // the run with the question
	two.sees("please say something nice")
	two.sees("• done")
	two.types("/approve")
	two.sees("nothing waits")
	two.types("/abort")
	two.sees("nothing is running")
	two.types("/nonsense")
	two.sees("there is no /nonsense")
	two.types("/exit")
	two.ends()
	one.in.Close()
	one.ends()
}

func TestExampleWithoutToken(t *testing.T) {
	t.Parallel()
	h := openServer(t)
	s := node(t, h, "")
	for range s.lines { // to its end
	}
	if err := s.cmd.Wait(); err == nil || s.cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("it ended with %v", err)
	}
}
