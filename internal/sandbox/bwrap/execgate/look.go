//go:build linux

package execgate

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// program is what is to be started, or was.
type program struct {
	pid    int
	path   string // resolved, as the sandbox sees it
	given  string // as it was named
	id     fileID
	argv   []string
	dir    string
	file   string // where its file can be opened
	fd     int    // held for that; 0: none
	mapped bool   // its own image may not be the program
	script bool   // it is the interpreter of a script that was judged
}

// isScriptOf says whether what was judged is a script, and p what its first line names: the
// kernel then puts the interpreter, and one word at most, before the script's path.
func (l *looked) isScriptOf(p *program) bool {
	tail := append([]string{l.given}, l.argv[min(1, len(l.argv)):]...)
	if before := len(p.argv) - len(tail); before < 1 || before > 2 || !slices.Equal(p.argv[before:], tail) {
		return false
	}
	script := &program{pid: p.pid, given: l.given, dir: p.dir}
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

// fileID tells a file from all others.
type fileID struct{ device, inode uint64 }

func identify(stat *unix.Stat_t) fileID { return fileID{uint64(stat.Dev), stat.Ino} }

// The most that the kernel takes itself.
const (
	maxPath  = 4096
	maxWord  = 128<<10 + 1
	maxWords = 4 << 20
)

// look reads what a process wants to start.
func look(n *notification) (*program, error) {
	p := &program{pid: int(n.pid)}
	folder, path, argv, flags := int32(unix.AT_FDCWD), n.call.args[0], n.call.args[1], uint64(0)
	if n.call.number == unix.SYS_EXECVEAT {
		folder, path, argv, flags = int32(n.call.args[0]), n.call.args[1], n.call.args[2], n.call.args[4]
	}
	var err error
	if p.given, err = readString(p.pid, path, maxPath); err != nil {
		return p, fmt.Errorf("its path: %w", err)
	}
	if p.argv, err = readWords(p.pid, argv); err != nil {
		return p, fmt.Errorf("its arguments: %w", err)
	}
	p.dir, _ = os.Readlink(p.proc("cwd"))
	return p, p.resolve(folder, flags)
}

// resolve finds the file that is meant.
func (p *program) resolve(folder int32, flags uint64) (err error) {
	if p.fd, err = p.open(folder, flags); err != nil {
		p.fd = 0
		return err
	}
	var stat unix.Stat_t
	if err := unix.Fstat(p.fd, &stat); err != nil {
		return err
	}
	p.id, p.file = identify(&stat), fmt.Sprintf("/proc/self/fd/%d", p.fd)
	p.path, err = os.Readlink(p.file)
	return err
}

// loaded is the program that a dynamic loader, started by hand, would run; nil when this is none.
func (p *program) loaded() *program {
	base := filepath.Base(p.path)
	if !strings.HasPrefix(base, "ld-") && !strings.HasPrefix(base, "ld.so") && !strings.HasPrefix(base, "ld64.so") {
		return nil
	}
	for i := 1; i < len(p.argv); i++ {
		switch word := p.argv[i]; {
		case slices.Contains([]string{"--library-path", "--inhibit-rpath", "--audit", "--preload", "--argv0", "--glibc-hwcaps-prepend", "--glibc-hwcaps-mask"}, word):
			i++
		case strings.HasPrefix(word, "-"):
		default:
			inner := &program{pid: p.pid, given: word, path: word, argv: p.argv[i:], dir: p.dir}
			_ = inner.resolve(unix.AT_FDCWD, 0) // what is not there has a name nevertheless
			return inner
		}
	}
	return nil
}

func (p *program) proc(name string) string { return fmt.Sprintf("/proc/%d/%s", p.pid, name) }

// open opens what the process named, as the kernel would for it.
func (p *program) open(folder int32, flags uint64) (int, error) {
	const how = unix.O_PATH | unix.O_CLOEXEC
	if p.given == "" {
		if flags&unix.AT_EMPTY_PATH == 0 {
			return -1, unix.ENOENT
		}
		return unix.Open(p.proc(fmt.Sprintf("fd/%d", folder)), how, 0)
	}
	path := p.given
	// What "self" means there is the process, and not us.
	for _, self := range []string{"/proc/self/", "/proc/thread-self/", "/dev/fd/"} {
		if rest, ok := strings.CutPrefix(filepath.Clean(path), self); ok {
			if self == "/dev/fd/" {
				rest = "fd/" + rest
			}
			return unix.Open(p.proc(rest), how, 0)
		}
	}
	if !filepath.IsAbs(path) {
		base := p.dir
		if folder != unix.AT_FDCWD {
			var err error
			if base, err = os.Readlink(p.proc(fmt.Sprintf("fd/%d", folder))); err != nil {
				return -1, err
			}
		}
		path = filepath.Join(base, path)
	}
	root, err := unix.Open(p.proc("root"), how, 0)
	if err != nil {
		return -1, err
	}
	defer func() { _ = unix.Close(root) }()
	return unix.Openat2(root, path, &unix.OpenHow{Flags: how, Resolve: unix.RESOLVE_IN_ROOT})
}

// lookAgain reads what the kernel took.
func lookAgain(n *notification) (*program, error) {
	p := &program{pid: int(n.pid)}
	line, err := os.ReadFile(p.proc("cmdline"))
	if err != nil {
		return p, err
	}
	p.argv = words(line)
	if p.path, err = os.Readlink(p.proc("exe")); err != nil {
		return p, err
	}
	p.given = p.path
	p.dir, _ = os.Readlink(p.proc("cwd"))
	var stat unix.Stat_t
	if err := unix.Stat(p.proc("exe"), &stat); err != nil {
		return p, err
	}
	p.id, p.file = identify(&stat), p.proc("exe")
	return p, nil
}

// words takes a text of the kernel's apart; what has no word at all has one that is empty.
func words(text []byte) []string {
	return strings.Split(strings.TrimSuffix(string(text), "\x00"), "\x00")
}

// parent are the arguments of the process that starts it: before the start that is its own
// image, or its parent's right after a fork.
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

// foreignLibrary says whether code from where commands can write was loaded into a program of
// the machine's: then its name says nothing about what it does. It is looked at where the
// environment asks the loader for such, or where a program was loaded by another one.
func foreignLibrary(p *program) error {
	environ, err := os.ReadFile(p.proc("environ"))
	if err != nil {
		return err
	}
	asked := false
	for entry := range bytes.SplitSeq(environ, []byte{0}) {
		name, _, _ := strings.Cut(string(entry), "=")
		asked = asked || slices.Contains([]string{"LD_PRELOAD", "LD_AUDIT", "LD_LIBRARY_PATH"}, name)
	}
	if !asked || !ofMachine(p.path) {
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

// ofMachine says whether commands cannot change the file.
func ofMachine(path string) bool {
	for _, dir := range []string{"/usr/", "/bin/", "/sbin/", "/lib/", "/lib64/", "/lib32/", "/nix/", "/gnu/"} {
		if strings.HasPrefix(path, dir) {
			return true
		}
	}
	return false
}

// mappedFiles are the files whose code the process has in its memory.
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

const page = 4096

// read reads the memory of a process.
func read(pid int, at uint64, into []byte) (int, error) {
	local := []unix.Iovec{{Base: &into[0], Len: uint64(len(into))}}
	return unix.ProcessVMReadv(pid, local, []unix.RemoteIovec{{Base: uintptr(at), Len: len(into)}}, 0)
}

func readString(pid int, at uint64, most int) (string, error) {
	var out []byte
	var buf [512]byte
	for len(out) < most {
		n, err := read(pid, at, buf[:min(len(buf), int(page-at%page))])
		if err != nil {
			return "", err
		}
		if end := bytes.IndexByte(buf[:n], 0); end >= 0 {
			return string(append(out, buf[:end]...)), nil
		}
		out = append(out, buf[:n]...)
		at += uint64(n)
	}
	return "", errors.New("it is too long")
}

func readWords(pid int, at uint64) ([]string, error) {
	var out []string
	total := 0
	var buf [512]byte
	const size = uint64(unsafe.Sizeof(at))
	for at != 0 {
		n := min(len(buf), int(page-at%page)) &^ int(size-1)
		if n == 0 {
			n = int(size) // one that lies across two pages
		}
		n, err := read(pid, at, buf[:n])
		if err != nil {
			return nil, err
		}
		for i := 0; i+int(size) <= n; i += int(size) {
			pointer := *(*uint64)(unsafe.Pointer(&buf[i]))
			if pointer == 0 {
				return out, nil
			}
			word, err := readString(pid, pointer, maxWord)
			if err != nil {
				return nil, err
			}
			if total += len(word) + 1; total > maxWords {
				return nil, errors.New("they are too long")
			}
			out = append(out, word)
		}
		at += uint64(n) &^ (size - 1)
	}
	return out, nil
}
