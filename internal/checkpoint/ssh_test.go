package checkpoint

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// sshHost is a folder with keys, and the port of an sshd that lets them in. It is no part of a usual machine.
func sshHost(t *testing.T) (dir, port string) {
	t.Helper()
	sshd, err := exec.LookPath("sshd")
	if err != nil {
		sshd = "/usr/sbin/sshd"
	}
	if _, err := os.Stat(sshd); err != nil {
		t.Skip("there is no sshd: apt-get install openssh-server")
	}
	dir = t.TempDir()
	sh(t, dir, `git init -q --bare remote
		for key in host other plain; do ssh-keygen -q -t ed25519 -N '' -f $key; done
		ssh-keygen -q -t ed25519 -N secret -f locked
		cat plain.pub locked.pub > allowed`)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ = net.SplitHostPort(listener.Addr().String())
	_ = listener.Close()
	config := fmt.Sprintf("ListenAddress 127.0.0.1:%s\nHostKey %s/host\nAuthorizedKeysFile %s/allowed\nStrictModes no\nUsePAM no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nPidFile none\n", port, dir, dir)
	if err := os.WriteFile(filepath.Join(dir, "sshd_config"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	if os.Getuid() == 0 {
		_ = os.MkdirAll("/run/sshd", 0o755) // as its package does at the start of the machine
	}
	ctx, cancel := context.WithCancel(context.Background())
	server := exec.CommandContext(ctx, sshd, "-D", "-e", "-f", filepath.Join(dir, "sshd_config"))
	said, err := server.StderrPipe()
	if err == nil {
		err = server.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	up, lines := make(chan bool, 1), bufio.NewScanner(said)
	var text strings.Builder
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for lines.Scan() {
			if strings.Contains(lines.Text(), "Server listening") {
				up <- true
			}
			_, _ = text.WriteString(lines.Text() + "\n")
		}
		up <- false
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
		_ = server.Wait()
	})
	select {
	case ok := <-up:
		if !ok {
			t.Skipf("sshd does not start here: %s", text.String())
		}
	case <-time.After(time.Minute):
		t.Fatal("sshd does not start")
	}
	return dir, port
}

// A remote is reached by ssh as the working copy's settings say. Nobody is asked anything: what a person would be asked is an error
// that says what to do.
func TestGitOverSSH(t *testing.T) {
	if os.Getenv("GIT_SSH_COMMAND") != "" {
		t.Skip("GIT_SSH_COMMAND is set, which goes before a repository's settings")
	}
	dir, port := sshHost(t)
	t.Setenv("SSH_AUTH_SOCK", "")
	for name, c := range map[string]struct{ known, key, want string }{
		"taken":           {"host", "plain", ""},
		"an unknown host": {"", "plain", "connect once by hand as that user"},
		"another host":    {"other", "plain", "host's key has changed"},
		"a locked key":    {"host", "locked", "work without a passphrase"},
		"a foreign key":   {"host", "other", "ssh-agent"},
	} {
		t.Run(name, func(t *testing.T) {
			known := filepath.Join(dir, strings.ReplaceAll(name, " ", "-")+".known")
			line := ""
			if c.known != "" {
				line = fmt.Sprintf("[127.0.0.1]:%s %s", port, sh(t, dir, "cat "+c.known+".pub"))
			}
			if err := os.WriteFile(known, []byte(line), 0o600); err != nil {
				t.Fatal(err)
			}
			k := working(t, dir, strings.ReplaceAll(name, " ", "-"))
			k.Pause = time.Millisecond
			sh(t, k.Git, fmt.Sprintf("git remote set-url origin ssh://127.0.0.1:%s%s/remote; git config core.sshCommand 'ssh -F none -oIdentitiesOnly=yes -i %s/%s -oUserKnownHostsFile=%s -oGlobalKnownHostsFile=none'", port, dir, dir, c.key, known))
			_, err := send(t, k, memoryLog{"a"})
			switch {
			case c.want == "" && err != nil:
				t.Errorf("it was not taken: %v", err)
			case c.want == "":
				if got := sh(t, dir, remoteFile); !strings.Contains(got, `"home":"test"`) {
					t.Errorf("the remote has %q", got)
				}
			case err == nil || !strings.Contains(err.Error(), c.want):
				t.Errorf("%v does not say what to do: %s", err, c.want)
			}
		})
	}
}

// overdue is a context whose time is up when it is cancelled.
type overdue struct{ context.Context }

func (o overdue) Err() error {
	if o.Context.Err() != nil {
		return context.DeadlineExceeded
	}
	return nil
}

// A host that takes the connection and says nothing: whoever waits for it says so, and no ssh is left behind.
func TestSilentSSH(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("ssh"); err != nil {
		t.Skip("there is no ssh")
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	dir := t.TempDir()
	sh(t, dir, "git init -q --bare remote")
	k := working(t, dir, "copy")
	sh(t, k.Git, "git remote set-url origin ssh://"+listener.Addr().String()+"/x; git config core.sshCommand 'ssh -F none'")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := k.git(overdue{ctx}, "fetch", "--quiet")
		ended <- err
	}()
	_ = listener.(*net.TCPListener).SetDeadline(time.Now().Add(time.Minute))
	conn, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	cancel()
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "check whether the remote of "+k.Git+" answers") {
		t.Errorf("%v", err)
	}
	_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
	for err = error(nil); err == nil; { // until ssh is gone
		_, err = conn.Read(make([]byte, 4096))
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("an ssh is left that waits for the host")
	}
}
