//go:build linux

package execgate

import (
	"crypto/sha256"
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Programs identifies the programs of this machine by their contents: a copy, a link or
// a file in memory has the names of the program that it copies.
type Programs struct {
	Dirs []string // folders of programs

	mu      sync.Mutex
	changed time.Time // the newest folder time when they were read
	byFile  map[fileID][]string
	bySize  map[int64][]string  // non-ELF files, compared by digest
	byBuild map[string][]string // names by build id; nil: not read yet
	byCode  []coded             // all ELF files
	copies  map[copyKey][]string
}

// copyKey identifies a file that commands can write, as it was when it was read.
type copyKey struct {
	id      fileID
	size    int64
	changed unix.Timespec
}

// maxNames is how many names a judge is asked about. A program with more names,
// such as busybox, does what the name it was called by says.
const maxNames = 8

// names returns the names of a program: those of its path, and every
// name of the same program on this machine.
func (k *Programs) names(p *program) []string {
	own := []string{filepath.Base(p.path)}
	if given := filepath.Base(p.given); p.given != "" && given != own[0] {
		own = append(own, given)
	}
	known := slices.Clone(k.known(p))
	if p.mapped {
		files, _ := mappedFiles(p)
		for _, file := range files {
			if base := filepath.Base(file); ofMachine(file) && !strings.Contains(base, ".so") {
				known = append(known, base)
			}
		}
	}
	if len(known) > maxNames {
		if called := filepath.Base(strings.Join(p.argv[:min(1, len(p.argv))], "")); slices.Contains(known, called) {
			return append(own, called)
		}
		slices.SortStableFunc(known, func(a, b string) int { return len(a) - len(b) })
		known = known[:maxNames]
	}
	all := append(own, known...)
	slices.Sort(all)
	return slices.Compact(all)
}

// known returns the names of the same program on this machine.
func (k *Programs) known(p *program) []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	if names, ok := k.byFile[p.id]; ok || ofMachine(p.path) {
		return names
	}
	return k.copyOf(p)
}

// refresh rereads the folders if one has changed. It is called for each command that starts programs.
func (k *Programs) refresh() {
	k.mu.Lock()
	defer k.mu.Unlock()
	var newest time.Time
	for _, dir := range k.Dirs {
		if info, err := os.Stat(dir); err == nil && info.ModTime().After(newest) {
			newest = info.ModTime()
		}
	}
	if k.byFile != nil && newest.Equal(k.changed) {
		return
	}
	k.changed, k.byFile, k.byBuild, k.copies = newest, map[fileID][]string{}, nil, map[copyKey][]string{}
	for _, path := range k.files() {
		var stat unix.Stat_t
		if err := unix.Stat(path, &stat); err != nil || stat.Mode&unix.S_IFMT != unix.S_IFREG {
			continue
		}
		id, name := identify(&stat), filepath.Base(path)
		if !slices.Contains(k.byFile[id], name) {
			k.byFile[id] = append(k.byFile[id], name)
		}
	}
}

// files returns the paths of all programs and of the dynamic loaders,
// which can run any program and are kept elsewhere.
func (k *Programs) files() []string {
	var out []string
	for _, dir := range k.Dirs {
		entries, _ := os.ReadDir(dir)
		for _, entry := range entries {
			out = append(out, filepath.Join(dir, entry.Name()))
		}
	}
	for _, pattern := range []string{"/lib64/ld-*.so*", "/lib/ld-*.so*", "/lib/*/ld-*.so*", "/lib32/ld-*.so*", "/lib64/ld64.so*"} {
		found, _ := filepath.Glob(pattern)
		out = append(out, found...)
	}
	return out
}

// copyOf finds out whether a file that commands can write is a copy of a program.
func (k *Programs) copyOf(p *program) []string {
	file, err := os.Open(p.file)
	if err != nil {
		return nil
	}
	defer func() { _ = file.Close() }()
	var stat unix.Stat_t
	if err := unix.Fstat(int(file.Fd()), &stat); err != nil || stat.Mode&unix.S_IFMT != unix.S_IFREG {
		return nil
	}
	key := copyKey{identify(&stat), stat.Size, stat.Ctim}
	if names, ok := k.copies[key]; ok {
		return names
	}
	k.readBuilds()
	id, code := build(file)
	names := k.byBuild[id]
	if names == nil && code.size > 0 {
		names = k.sameCode(file, code)
	}
	if names == nil {
		names = k.sameText(file, stat.Size)
	}
	if len(k.copies) > 4096 {
		clear(k.copies)
	}
	k.copies[key] = names
	return names
}

// readBuilds reads the build ids of all programs. That takes tens of
// milliseconds, so it waits until an unknown program runs.
func (k *Programs) readBuilds() {
	if k.byBuild != nil {
		return
	}
	k.byBuild, k.bySize, k.byCode = map[string][]string{}, map[int64][]string{}, nil
	done := map[fileID]bool{}
	for _, path := range k.files() {
		var stat unix.Stat_t
		if err := unix.Stat(path, &stat); err != nil || stat.Mode&unix.S_IFMT != unix.S_IFREG || done[identify(&stat)] {
			continue
		}
		done[identify(&stat)] = true
		file, err := os.Open(path)
		if err != nil {
			continue
		}
		id, code := build(file)
		if id != "" {
			k.byBuild[id] = append(k.byBuild[id], k.byFile[identify(&stat)]...)
		} else {
			k.bySize[stat.Size] = append(k.bySize[stat.Size], path)
		}
		if code.size > 0 {
			k.byCode = append(k.byCode, coded{code, path, k.byFile[identify(&stat)]})
		}
		_ = file.Close()
	}
}

// build returns the id that a linker wrote into a program, which stays when something is
// appended to the file, or "". code is where the machine code lies.
func build(file *os.File) (id string, code segment) {
	program, err := elf.NewFile(file)
	if err != nil {
		return "", segment{}
	}
	for _, part := range program.Progs {
		if part.Type == elf.PT_LOAD && part.Flags&elf.PF_X != 0 && int64(part.Filesz) > code.size {
			code = segment{int64(part.Off), int64(part.Filesz)}
		}
		if part.Type != elf.PT_NOTE || part.Filesz > 1<<16 || id != "" {
			continue
		}
		data, err := io.ReadAll(part.Open())
		if err != nil {
			continue
		}
		id = buildID(program.ByteOrder, data)
	}
	return id, code
}

// buildID finds the linker's note.
func buildID(order binary.ByteOrder, data []byte) string {
	const note = 4 // NT_GNU_BUILD_ID is 3, Go's own is 4
	for len(data) >= 12 {
		name, size, kind := order.Uint32(data), order.Uint32(data[4:]), order.Uint32(data[8:])
		at := 12 + (uint64(name)+3)&^3
		end := at + (uint64(size)+3)&^3
		if end > uint64(len(data)) || at+uint64(size) > uint64(len(data)) {
			break
		}
		if text := string(data[12:min(12+uint64(name), at)]); kind == 3 && text == "GNU\x00" || kind == note && text == "Go\x00\x00" {
			return hex.EncodeToString(data[at : at+uint64(size)])
		}
		data = data[end:]
	}
	return ""
}

// sameText returns the names of the programs with the same bytes.
func (k *Programs) sameText(file *os.File, size int64) []string {
	const most = 64 << 20
	var names []string
	sum := ""
	for _, path := range k.bySize[size] {
		if sum == "" {
			if sum = digest(file, most); sum == "" {
				return nil
			}
		}
		other, err := os.Open(path)
		if err != nil {
			continue
		}
		if digest(other, most) == sum {
			names = append(names, filepath.Base(path))
		}
		_ = other.Close()
	}
	return names
}

func digest(file *os.File, most int64) string {
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return ""
	}
	h := sha256.New()
	if n, err := io.Copy(h, io.LimitReader(file, most)); err != nil || n == most {
		return ""
	}
	return hex.EncodeToString(h.Sum(nil))
}
