package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/hinshun/vt10x"
	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"
)

// terminal runs a program on a real terminal and plays a person there. The file
// has one step a line:
//
//	expect REGEX   wait until it is shown, after what the last expect found
//	shown REGEX    wait until it is shown, or was at any time
//	screen REGEX   wait until it stands on the screen, as a person sees it now
//	gone REGEX     wait until it no longer stands there
//	never REGEX    it has not been shown so far
//	send TEXT      type it
//	line TEXT      type it and press Enter
//	paste TEXT     paste it, as terminals do where programs ask to be told; \n is a new line
//	key NAME…      enter, esc, ctrl-c, ctrl-d, up, tab, alt-enter; several at once
//	size W H       the terminal's size changes; as the first step: it begins with that one
//	background #C  the terminal says that its background has this colour, when it is asked; without it, it says nothing
//	look TEXT SGR  wait until the text is painted so: the codes of colours that stand before it
//	fits           no line on the screen is wider than the terminal, and its last column is free
//	make FILE      an empty file appears in the program's directory
//	save FROM TO   a file is saved as another, from and in the program's directory
//	kill           kill -9
//	exit CODE      the program ends with that code; -1 is a death by signal
//
// What was shown is looked at without colours and cursor movements, and becomes
// stdout of the story; stderr is the same with them.
func terminal(ts *testscript.TestScript, neg bool, args []string) {
	need(ts, !neg && len(args) >= 2, "term FILE PROGRAM ARGS…")
	steps := ts.ReadFile(stageOf(ts).file(ts, args[0]))
	width, height := uint16(100), uint16(30)
	first, rest, _ := strings.Cut(strings.TrimSpace(steps), "\n")
	if strings.HasPrefix(first, "size ") {
		_, err := fmt.Sscanf(first, "size %d %d", &width, &height)
		ts.Check(err)
		steps = "\n" + rest
	}
	p, slave, err := openTerminal(width, height)
	ts.Check(err)
	defer p.close()
	if color, ok := strings.CutPrefix(strings.TrimSpace(rest), "background "); ok { // before it can be asked
		p.background, _, _ = strings.Cut(color, "\n")
	}
	cmd := storyProgram(ts, args[1], args[2:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	err = cmd.Start()
	slave.Close()
	ts.Check(err)
	exited := make(chan struct{})
	go func() {
		defer close(exited)
		_ = cmd.Wait() // the state says all
	}()
	defer func() {
		_ = cmd.Process.Kill() // it may have ended
		<-exited
	}()
	for i, step := range strings.Split(steps, "\n") {
		step = strings.TrimSpace(step)
		if step == "" || strings.HasPrefix(step, "#") {
			continue
		}
		if err := p.step(step, cmd, exited); err != nil {
			ts.Fatalf("%s:%d: %s: %v; shown so far:\n%s\non the screen:\n%s", args[0], i+1, step, err, p.text(), p.screen())
		}
	}
	fmt.Fprint(ts.Stdout(), p.text())
	fmt.Fprint(ts.Stderr(), p.raw())
}

// screenKeys are the keys a person can press.
var screenKeys = map[string]string{
	"enter": "\r", "esc": "\x1b", "ctrl-c": "\x03", "ctrl-d": "\x04", "up": "\x1b[A", "tab": "\t", "alt-enter": "\x1b\r",
	"down": "\x1b[B", "ctrl-r": "\x12", "ctrl-g": "\x07", "ctrl-o": "\x0f", "ctrl-x": "\x18", "ctrl-e": "\x05", "ctrl-u": "\x15",
}

// screenTime is how long something may take to be shown.
const screenTime = storyTime

// person holds the other end of a terminal.
type person struct {
	master     *os.File
	mu         sync.Mutex
	seen       bytes.Buffer
	vt         vt10x.Terminal // what a person sees of it
	background string         // what it says when it is asked
	held       []byte         // the beginning of a sequence that was not yet read to its end
	at         int            // how much of the text the last expect has used
	wake       chan struct{}
	done       chan struct{}
}

func openTerminal(width, height uint16) (*person, *os.File, error) {
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, err
	}
	p := &person{master: master, vt: vt10x.New(vt10x.WithSize(int(width), int(height)), vt10x.WithWriter(io.Discard)), wake: make(chan struct{}, 1), done: make(chan struct{})}
	var n int
	err = p.control(func(fd int) error {
		if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
			return err
		}
		var err error
		n, err = unix.IoctlGetInt(fd, unix.TIOCGPTN)
		return err
	})
	if err == nil {
		err = p.resize(width, height)
	}
	var slave *os.File
	if err == nil {
		slave, err = os.OpenFile(filepath.Join("/dev/pts", fmt.Sprint(n)), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		master.Close()
		return nil, nil, err
	}
	go p.watch()
	return p, slave, nil
}

func (p *person) control(f func(fd int) error) error {
	conn, err := p.master.SyscallConn()
	if err != nil {
		return err
	}
	var inner error
	if err := conn.Control(func(fd uintptr) { inner = f(int(fd)) }); err != nil {
		return err
	}
	return inner
}

func (p *person) resize(width, height uint16) error {
	return p.control(func(fd int) error {
		return unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: height, Col: width})
	})
}

// watch reads until the program has gone and the last line with it.
func (p *person) watch() {
	defer close(p.done)
	buf := make([]byte, 4096)
	for {
		n, err := p.master.Read(buf)
		p.mu.Lock()
		p.seen.Write(buf[:n])
		p.held = append(p.held, buf[:n]...)
		end := len(p.held)
		if cut := unfinished.FindIndex(p.held); cut != nil {
			end = cut[0]
		}
		_, _ = p.vt.Write(keyboards.ReplaceAll(p.held[:end], nil)) // it takes everything
		p.held = append([]byte(nil), p.held[end:]...)
		answer := ""
		if color := p.background; color != "" && bytes.Contains(buf[:n], []byte("\x1b]11;?")) {
			answer = fmt.Sprintf("\x1b]11;rgb:%s/%s/%s\x1b\\", color[1:3], color[3:5], color[5:7])
		}
		p.mu.Unlock()
		_ = p.types(answer) // it may be gone by now
		select {
		case p.wake <- struct{}{}:
		default:
		}
		if err != nil {
			return
		}
	}
}

func (p *person) close() {
	p.master.Close()
	<-p.done
}

func (p *person) raw() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seen.String()
}

// control sequences, titles and single controls; a move to the right stands for
// blanks that are there already. One whose end was not read yet is not text either.
var (
	unfinished = regexp.MustCompile(`\x1b(?:\[[0-?]*[ -/]*|\][^\x07\x1b]*\x1b?|[PX^_][^\x1b]*\x1b?|[ -/]*)$`)
	moveRight  = regexp.MustCompile(`\x1b\[\d*C`)
	sequences  = regexp.MustCompile(`\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[PX^_][^\x1b]*\x1b\\|\x1b[ -/]*[0-~]|[\x00-\x08\x0b-\x1f\x7f]`)
)

func (p *person) text() string {
	whole := unfinished.ReplaceAllString(p.raw(), "")
	return sequences.ReplaceAllString(moveRight.ReplaceAllString(whole, " "), "")
}

func (p *person) step(step string, cmd *exec.Cmd, exited <-chan struct{}) error {
	verb, rest, _ := strings.Cut(step, " ")
	switch verb {
	case "expect":
		return p.expect(rest)
	case "shown":
		at := p.at
		p.at = 0
		err := p.expect(rest)
		p.at = at
		return err
	case "screen":
		return p.waitScreen(rest, true)
	case "gone":
		return p.waitScreen(rest, false)
	case "fits":
		return p.fits()
	case "paste":
		return p.types("\x1b[200~" + strings.ReplaceAll(rest, `\n`, "\n") + "\x1b[201~")
	case "never":
		re, err := regexp.Compile(rest)
		if err != nil {
			return err
		}
		if re.MatchString(p.text()) {
			return fmt.Errorf("it was shown")
		}
		return nil
	case "send":
		return p.types(rest)
	case "line":
		return p.types(rest + "\r") // one write: two would reach the program together or apart, as it happens
	case "key":
		var keys string
		for _, name := range strings.Fields(rest) {
			key, ok := screenKeys[name]
			if !ok {
				return fmt.Errorf("unknown key %q", name)
			}
			keys += key
		}
		return p.types(keys)
	case "size":
		var w, h uint16
		if _, err := fmt.Sscan(rest, &w, &h); err != nil {
			return err
		}
		p.mu.Lock()
		p.vt.Resize(int(w), int(h))
		p.mu.Unlock()
		return p.resize(w, h)
	case "background":
		p.mu.Lock()
		p.background = rest
		p.mu.Unlock()
		return nil
	case "look":
		what, codes, _ := strings.Cut(rest, " ")
		return p.waitPainted(what, codes)
	case "make":
		return os.WriteFile(filepath.Join(cmd.Dir, rest), nil, 0o644)
	case "save":
		from, to, _ := strings.Cut(rest, " ")
		return save(filepath.Join(cmd.Dir, from), filepath.Join(cmd.Dir, to))
	case "kill":
		return cmd.Process.Kill()
	case "exit":
		select {
		case <-exited:
		case <-time.After(screenTime):
			return fmt.Errorf("it does not end")
		}
		<-p.done
		if got := fmt.Sprint(cmd.ProcessState.ExitCode()); got != rest {
			return fmt.Errorf("exit code %s", got)
		}
		return nil
	default:
		return fmt.Errorf("unknown step %q", verb)
	}
}

// save writes a file as editors do: whole, beside the old one, then in its place.
func save(from, to string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(to+".new", data, 0o600); err != nil {
		return err
	}
	return os.Rename(to+".new", to)
}

func (p *person) types(keys string) error {
	_, err := io.WriteString(p.master, keys)
	return err
}

// keyboards are questions and settings of how keys are sent, which the emulator takes for moves of the cursor.
var keyboards = regexp.MustCompile(`\x1b\[[<>=?][0-9;]*u`)

// screen is what a person sees now, without blanks at the ends of lines.
func (p *person) screen() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	lines := strings.Split(p.vt.String(), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " \x00")
	}
	return strings.TrimRight(strings.Join(lines, "\n"), "\n")
}

// waitScreen waits until something stands on the screen, or no longer does.
func (p *person) waitScreen(pattern string, there bool) error {
	re, err := regexp.Compile("(?m)" + pattern)
	if err != nil {
		return err
	}
	deadline := time.After(screenTime)
	for re.MatchString(p.screen()) != there {
		select {
		case <-p.wake:
		case <-p.done:
			if re.MatchString(p.screen()) != there {
				return fmt.Errorf("not before the end")
			}
		case <-deadline:
			return fmt.Errorf("it does not become so")
		}
	}
	return nil
}

// waitPainted waits until a text is shown in these colours.
func (p *person) waitPainted(what, codes string) error {
	deadline := time.After(screenTime)
	for !strings.Contains(p.raw(), "\x1b["+codes+"m"+what) {
		select {
		case <-p.wake:
		case <-p.done:
			if !strings.Contains(p.raw(), "\x1b["+codes+"m"+what) {
				return fmt.Errorf("not before the end")
			}
		case <-deadline:
			return fmt.Errorf("it is not painted so")
		}
	}
	return nil
}

// fits fails when the terminal had to break a line: its last column is never written to.
func (p *person) fits() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	width, height := p.vt.Size()
	for y := range height {
		if c := p.vt.Cell(width-1, y).Char; c != ' ' && c != 0 {
			return fmt.Errorf("line %d reaches the last column", y+1)
		}
	}
	return nil
}

func (p *person) expect(pattern string) error {
	re, err := regexp.Compile("(?m)" + pattern)
	if err != nil {
		return err
	}
	deadline := time.After(screenTime)
	for {
		text := p.text()
		if m := re.FindStringIndex(text[min(p.at, len(text)):]); m != nil {
			p.at += m[1]
			return nil
		}
		select {
		case <-p.wake:
		case <-p.done:
			if m := re.FindStringIndex(p.text()[p.at:]); m != nil {
				p.at += m[1]
				return nil
			}
			return fmt.Errorf("it was not shown before the end")
		case <-deadline:
			return fmt.Errorf("it was not shown")
		}
	}
}
