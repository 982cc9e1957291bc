//go:build linux

package execgate

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// program is a program that is about to start, or has started.
type program struct {
	pid    int
	root   int    // root of the sandbox; negative: open the process's own
	path   string // resolved, as the sandbox sees it
	given  string // as the process named it
	id     fileID
	argv   []string
	file   string // where its file can be opened
	fd     int    // keeps the file reachable; 0: none
	mapped bool   // its own image may not be the program
	script bool   // it is the interpreter of a script that was judged
}

// isScriptOf reports whether the judged file is a script and p is the interpreter that its first line names.
// The kernel then puts the interpreter, and at most one word, before the script's path.
func (l *looked) isScriptOf(p *program) bool {
	tail := append([]string{l.given}, l.argv[min(1, len(l.argv)):]...)
	if before := len(p.argv) - len(tail); before < 1 || before > 2 || !slices.Equal(p.argv[before:], tail) {
		return false
	}
	script := &program{pid: p.pid, root: p.root, given: l.given}
	defer script.close()
	if err := script.resolve(unix.AT_FDCWD, 0); err != nil || script.id != l.id {
		return false
	}
	file, err := os.Open(script.file)
	if err != nil {
		return false
	}
	defer func() { _ = file.Close() }()
	var head [2]byte
	_, err = file.ReadAt(head[:], 0)
	return err == nil && string(head[:]) == "#!"
}

func (p *program) close() {
	if p != nil && p.fd > 0 {
		_ = unix.Close(p.fd)
		p.fd = 0
	}
}

// fileID identifies a file.
type fileID struct{ device, inode uint64 }

func identify(stat *unix.Stat_t) fileID { return fileID{uint64(stat.Dev), stat.Ino} }

// look reads what a process wants to start.
func (g *Gate) look(n *notification) (*program, error) {
	p := &program{pid: int(n.pid), root: g.root}
	folder, path, argv, flags := int32(unix.AT_FDCWD), n.call.args[0], n.call.args[1], uint64(0)
	if n.call.number == unix.SYS_EXECVEAT {
		folder, path, argv, flags = int32(n.call.args[0]), n.call.args[1], n.call.args[2], n.call.args[4]
	}
	var err error
	if p.given, p.argv, err = g.memory.call(p.pid, path, argv); err != nil {
		return p, err
	}
	return p, p.resolve(folder, flags)
}

// resolve finds the named file and holds it open.
func (p *program) resolve(folder int32, flags uint64) error {
	fd, err := p.open(folder, flags)
	if err != nil {
		return err
	}
	p.fd, p.file = fd, "/proc/self/fd/"+strconv.Itoa(fd)
	var stat unix.Stat_t
	if err = unix.Fstat(fd, &stat); err == nil {
		p.id = identify(&stat)
		p.path, err = os.Readlink(p.file)
	}
	if err != nil {
		p.close()
	}
	return err
}

func isLoader(name string) bool {
	return strings.HasPrefix(name, "ld-") || strings.HasPrefix(name, "ld.so") || strings.HasPrefix(name, "ld64.so")
}

// loaded returns the program that a dynamic loader, started by hand, would run, or nil if p is not a
// loader. known are p's other names: a loader that a command has copied may have any name.
func (p *program) loaded(known []string) *program {
	if !isLoader(filepath.Base(p.path)) && !slices.ContainsFunc(known, isLoader) {
		return nil
	}
	for i := 1; i < len(p.argv); i++ {
		switch word := p.argv[i]; {
		case slices.Contains([]string{"--library-path", "--inhibit-rpath", "--audit", "--preload", "--argv0", "--glibc-hwcaps-prepend", "--glibc-hwcaps-mask"}, word):
			i++
		case strings.HasPrefix(word, "-"):
		default:
			inner := &program{pid: p.pid, given: word, path: word, root: p.root, argv: p.argv[i:]}
			_ = inner.resolve(unix.AT_FDCWD, 0) // a program has a name even if its file is missing
			return inner
		}
	}
	return nil
}

func (p *program) proc(name string) string { return "/proc/" + strconv.Itoa(p.pid) + "/" + name }

// dir returns the directory in which it starts.
func (p *program) dir() string {
	dir, _ := os.Readlink(p.proc("cwd"))
	return dir
}

// open opens what the process named, as the kernel would for that process.
func (p *program) open(folder int32, flags uint64) (int, error) {
	const how = unix.O_PATH | unix.O_CLOEXEC
	if p.given == "" {
		if flags&unix.AT_EMPTY_PATH == 0 {
			return -1, unix.ENOENT
		}
		return unix.Open(p.proc("fd/"+strconv.Itoa(int(folder))), how, 0)
	}
	path := p.given
	// "self" means the process here, not us.
	for _, self := range []string{"/proc/self/", "/proc/thread-self/", "/dev/fd/"} {
		if rest, ok := strings.CutPrefix(filepath.Clean(path), self); ok {
			if self == "/dev/fd/" {
				rest = "fd/" + rest
			}
			return unix.Open(p.proc(rest), how, 0)
		}
	}
	if !filepath.IsAbs(path) {
		from := "cwd"
		if folder != unix.AT_FDCWD {
			from = "fd/" + strconv.Itoa(int(folder))
		}
		base, err := os.Readlink(p.proc(from))
		if err != nil {
			return -1, err
		}
		path = filepath.Join(base, path)
	}
	root := p.root
	if root < 0 {
		var err error
		if root, err = unix.Open(p.proc("root"), how, 0); err != nil {
			return -1, err
		}
		defer func() { _ = unix.Close(root) }()
	}
	return unix.Openat2(root, path, &unix.OpenHow{Flags: how, Resolve: unix.RESOLVE_IN_ROOT})
}

// lookAgain reads what the kernel loaded.
func (g *Gate) lookAgain(p *program) error {
	line, err := g.memory.file(p.proc("cmdline"))
	if err != nil {
		return err
	}
	p.argv = words(line)
	var stat unix.Stat_t
	p.file = p.proc("exe")
	if err := unix.Stat(p.file, &stat); err != nil {
		return err
	}
	p.id = identify(&stat)
	return nil
}

// named sets the names of a program that is already running.
func (p *program) named() (err error) {
	p.path, err = os.Readlink(p.proc("exe"))
	p.given = p.path
	return err
}

// words splits the kernel's text into words. A text without any word yields one empty word.
func words(text []byte) []string {
	return strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00")
}

// parent returns the arguments of the process that starts the program. Before the
// start, that is its own image, or its parent's right after a fork.
func (p *program) parent() []string {
	stat, err := os.ReadFile(p.proc("stat"))
	if err != nil {
		return nil
	}
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 2 {
		return nil
	}
	line, err := os.ReadFile("/proc/" + string(fields[1]) + "/cmdline")
	if err != nil || len(line) == 0 {
		return nil
	}
	return words(line)
}

// writableLibrary refuses a program of the machine into which code was loaded from
// where commands can write: its name then says nothing about what it does. It only
// checks if the environment asks the loader for libraries.
func (g *Gate) writableLibrary(p *program) error {
	environ, err := g.memory.file(p.proc("environ"))
	if err != nil {
		return err
	}
	if !asksLoader(environ) {
		return nil
	}
	if p.path == "" {
		if err := p.named(); err != nil {
			return err
		}
	}
	if !ofMachine(p.path) {
		return nil
	}
	maps, err := mappedFiles(p)
	if err != nil {
		return err
	}
	for _, path := range maps {
		if !ofMachine(path) {
			return fmt.Errorf("it is a program of this machine, and would run with the library %s, which commands can change", path)
		}
	}
	return nil
}

// asksLoader reports whether an environment names libraries or their folders.
func asksLoader(environ []byte) bool {
	for entry := range bytes.SplitSeq(environ, []byte{0}) {
		if !bytes.HasPrefix(entry, []byte("LD_")) {
			continue
		}
		switch name, _, _ := bytes.Cut(entry, []byte("=")); string(name) {
		case "LD_PRELOAD", "LD_AUDIT", "LD_LIBRARY_PATH":
			return true
		}
	}
	return false
}

// ofMachine reports whether commands cannot change the file.
func ofMachine(path string) bool {
	return slices.ContainsFunc([]string{"/usr/", "/bin/", "/sbin/", "/lib/", "/lib64/", "/lib32/", "/nix/", "/gnu/"}, func(dir string) bool {
		return strings.HasPrefix(path, dir)
	})
}

// mappedFiles returns the files whose code is mapped into the process.
func mappedFiles(p *program) ([]string, error) {
	text, err := os.ReadFile(p.proc("maps"))
	if err != nil {
		return nil, err
	}
	var out []string
	for line := range bytes.Lines(text) {
		// from-to rwxp offset device inode path
		fields := bytes.Fields(line)
		if len(fields) < 6 || len(fields[1]) < 3 || fields[1][2] != 'x' || string(fields[4]) == "0" {
			continue
		}
		path := string(bytes.Join(fields[5:], []byte(" ")))
		if !slices.Contains(out, path) {
			out = append(out, path)
		}
	}
	return out, nil
}
