package repl

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"chorus/internal/chat"
)

// pty is a real terminal whose other end the test holds.
type pty struct {
	t      *testing.T
	master *os.File
	slave  *os.File
	mu     sync.Mutex
	seen   bytes.Buffer
	wrote  chan struct{}
	done   chan struct{}
}

func openPTY(t *testing.T, width, height uint16) *pty {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skipf("no pseudo-terminals here: %v", err)
	}
	control := func(f func(fd int) error) {
		t.Helper()
		conn, err := master.SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		var inner error
		if err := conn.Control(func(fd uintptr) { inner = f(int(fd)) }); err != nil || inner != nil {
			t.Fatal(err, inner)
		}
	}
	var n int
	control(func(fd int) error { return unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0) })
	control(func(fd int) (err error) { n, err = unix.IoctlGetInt(fd, unix.TIOCGPTN); return err })
	control(func(fd int) error {
		return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: height, Col: width})
	})
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	p := &pty{t: t, master: master, slave: slave, wrote: make(chan struct{}, 1), done: make(chan struct{})}
	go p.read()
	t.Cleanup(func() {
		slave.Close()
		master.Close()
		<-p.done
	})
	return p
}

func (p *pty) read() {
	defer close(p.done)
	buf := make([]byte, 4096)
	for {
		n, err := p.master.Read(buf)
		p.mu.Lock()
		p.seen.Write(buf[:n])
		p.mu.Unlock()
		select {
		case p.wrote <- struct{}{}:
		default:
		}
		if err != nil {
			return
		}
	}
}

func (p *pty) types(keys string) {
	p.t.Helper()
	if _, err := io.WriteString(p.master, keys); err != nil {
		p.t.Fatal(err)
	}
}

// waits until the terminal has been sent a text.
func (p *pty) waits(text string) {
	p.t.Helper()
	ctx := within(p.t)
	for {
		p.mu.Lock()
		seen := p.seen.String()
		p.mu.Unlock()
		if strings.Contains(seen, text) {
			return
		}
		select {
		case <-p.wrote:
		case <-ctx.Done():
			p.t.Fatalf("the terminal never showed %q; it got %q", text, seen)
		}
	}
}

func TestChatOnATerminal(t *testing.T) {
	p := openPTY(t, 70, 20)
	before, err := term.GetState(int(p.slave.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	f := newFake()
	f.onSend = func(f *fake, text string, seq int64) Receipt {
		f.put(starts(seq)...)
		f.put(asking(1, 1), delta(1, 1, 0, "Let me \x1b]0;owned\x07see"), says(1, 1, "Let me \x1b]0;owned\x07see **it**.", edit.Call))
		f.asks(edit)
		return Receipt{}
	}
	f.onAnswer = func(f *fake, _ string, ok bool, note string) {
		f.put(chat.ToolRan{Call: "c1", Name: "edit", Outcome: chat.Denied, Blocks: chat.TextBlocks("denied: " + note)},
			asking(2, 1), says(2, 1, "Then not."), ends(chat.EndDone))
	}
	con := Console{In: p.slave, Out: p.slave, Err: p.slave, InTTY: true, OutTTY: true, ErrTTY: true, Look: sixteen(),
		Size: func() (int, int) { return 70, 20 }}
	type result struct {
		exit int
		err  error
	}
	results := make(chan result, 1)
	go func() {
		exit, err := Chat(within(t), f, ChatOptions{Console: con})
		results <- result{exit, err}
	}()
	p.waits("demo/guide · standard")
	p.types("\x1b[200~pasted\nprompt\x1b[201~")
	p.waits("pasted")
	p.types("\r")
	p.waits("Allow edit to run this?")
	p.waits("y yes")
	p.types("r")
	p.waits("why not?")
	p.types("better not\r")
	p.waits("Then not.")
	p.waits("2 steps")
	p.types("/exit\r")
	got := <-results
	if got.exit != 0 || got.err != nil {
		t.Errorf("exit %d, %v", got.exit, got.err)
	}
	if want := "send \"pasted\\nprompt\"\nanswer a1 false \"better not\" false"; f.logged() != want {
		t.Errorf("calls %q, want %q", f.logged(), want)
	}
	p.mu.Lock()
	seen := p.seen.String()
	p.mu.Unlock()
	if strings.Contains(seen, "owned") || strings.Contains(seen, "\x1b[?1049h") {
		t.Error("the model set the title, or the alternate screen was used")
	}
	after, err := term.GetState(int(p.slave.Fd()))
	if err != nil || !reflect.DeepEqual(before, after) {
		t.Errorf("the terminal was left in another mode: %v", err)
	}
}

// The spinner and the stream of a run, on a terminal.
func TestRunOnATerminal(t *testing.T) {
	p := openPTY(t, 60, 20)
	f := newFake()
	f.put(starts(1)...)
	f.put(asking(1, 1), delta(1, 1, 0, "# Title\n\nIt is **bo"))
	con := Console{In: p.slave, Out: p.slave, Err: p.slave, InTTY: true, OutTTY: true, ErrTTY: true, Look: sixteen(),
		Size: func() (int, int) { return 60, 20 }}
	results := make(chan int, 1)
	go func() {
		exit, err := Run(within(t), f, RunOptions{Console: con, Interrupts: make(chan os.Signal)})
		if err != nil {
			t.Error(err)
		}
		results <- exit
	}()
	p.waits("writing")
	p.waits("It is **bo")
	f.put(says(1, 1, "# Title\n\nIt is **bold**.", bash.Call))
	p.waits("\x1b[1mbold\x1b[0m")
	f.asks(bash)
	p.waits("[y]es")
	p.types("y\n")
	p.waits("\n")
	f.put(chat.ToolBegan{Call: "c1", Name: "bash"}, chat.Progress{Run: "r1", Call: "c1", Text: "halfway"})
	p.waits("halfway")
	f.put(ran("c1", "bash", 10), says(2, 1, "Done."), ends(chat.EndDone))
	if exit := <-results; exit != 0 {
		t.Errorf("exit %d", exit)
	}
	p.waits("Done.")
	if f.logged() != `answer a1 true "" false` {
		t.Errorf("calls %q", f.logged())
	}
}
