//go:build linux

package execgate

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// The kernel's own limits.
const (
	maxPath  = 4096
	maxWord  = 128<<10 + 1
	maxWords = 4 << 20
)

const (
	page    = 4096
	pointer = 8 // bytes
)

// memoryReader reads the arguments of calls, and files of /proc. It reuses its
// buffer: every program that is started is read twice.
type memoryReader struct {
	text []byte
	from []unix.RemoteIovec
}

// call reads the path and the arguments that a process passed to execve. Most fit into two reads.
func (m *memoryReader) call(pid int, path, argv uint64) (given string, words []string, err error) {
	if given, words, ok := m.short(pid, path, argv); ok {
		return given, words, nil
	}
	if given, err = readString(pid, path, maxPath); err != nil {
		return "", nil, fmt.Errorf("its path: %w", err)
	}
	if words, err = readWords(pid, argv); err != nil {
		return given, nil, fmt.Errorf("its arguments: %w", err)
	}
	return given, words, nil
}

// Limits of short. The caller reads longer or more words in another way.
const (
	shortWords = 64
	shortWord  = 256
)

// short reads a call with few words: path and pointers in one read, then all words in another.
func (m *memoryReader) short(pid int, path, argv uint64) (given string, words []string, ok bool) {
	if argv == 0 || argv%pointer != 0 {
		return "", nil, false
	}
	m.from = append(m.from[:0], piece(path, maxPath), piece(argv, (shortWords+1)*pointer))
	text, ok := m.read(pid)
	if !ok {
		return "", nil, false
	}
	name := text[:m.from[0].Len]
	end := bytes.IndexByte(name, 0)
	if end < 0 {
		return "", nil, false
	}
	given = string(name[:end])
	pointers, last := text[m.from[0].Len:], false
	m.from = m.from[:0]
	for ; len(pointers) >= pointer && !last; pointers = pointers[pointer:] {
		at := binary.NativeEndian.Uint64(pointers)
		if last = at == 0; !last {
			m.from = append(m.from, piece(at, shortWord))
		}
	}
	if !last {
		return "", nil, false
	}
	if len(m.from) == 0 {
		return given, nil, true
	}
	if text, ok = m.read(pid); !ok {
		return "", nil, false
	}
	words = make([]string, len(m.from))
	total := 0
	for i, from := range m.from {
		word := text[:from.Len]
		text = text[from.Len:]
		end := bytes.IndexByte(word, 0)
		if end >= 0 {
			words[i] = string(word[:end])
		} else {
			rest, err := readString(pid, uint64(from.Base)+uint64(from.Len), maxWord-from.Len)
			if err != nil {
				return "", nil, false
			}
			words[i] = string(word) + rest
		}
		if total += len(words[i]) + 1; total > maxWords {
			return "", nil, false
		}
	}
	return given, words, true
}

// piece returns what can be read at an address in one read: the next page may not be mapped.
func piece(at uint64, most int) unix.RemoteIovec {
	return unix.RemoteIovec{Base: uintptr(at), Len: min(most, int(page-at%page))}
}

// read reads all pieces, one after another. The result is valid until the next read.
func (m *memoryReader) read(pid int) ([]byte, bool) {
	size := 0
	for _, from := range m.from {
		size += from.Len
	}
	m.grow(size)
	n, err := unix.ProcessVMReadv(pid, []unix.Iovec{{Base: &m.text[0], Len: uint64(size)}}, m.from, 0)
	return m.text[:size], err == nil && n == size
}

func (m *memoryReader) grow(size int) {
	if len(m.text) < size {
		m.text = make([]byte, max(size, 2*len(m.text), 4*page))
	}
}

// file reads a file of /proc. The result is valid until the next read.
func (m *memoryReader) file(path string) ([]byte, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = unix.Close(fd) }()
	for size := 0; ; {
		if size == len(m.text) {
			old := m.text
			m.text = nil
			m.grow(max(2*size, 1))
			copy(m.text, old)
		}
		n, err := unix.Read(fd, m.text[size:])
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return nil, err
		case n == 0:
			return m.text[:size], nil
		}
		size += max(n, 0)
	}
}

func readString(pid int, at uint64, most int) (string, error) {
	var out []byte
	var buf [512]byte
	for len(out) < most {
		n, err := readMemory(pid, at, buf[:min(len(buf), int(page-at%page))])
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
	for at != 0 {
		n := min(len(buf), int(page-at%page)) &^ (pointer - 1)
		if n == 0 {
			n = pointer // a pointer that crosses a page boundary
		}
		n, err := readMemory(pid, at, buf[:n])
		if err != nil {
			return nil, err
		}
		for i := 0; i+pointer <= n; i += pointer {
			to := binary.NativeEndian.Uint64(buf[i:])
			if to == 0 {
				return out, nil
			}
			word, err := readString(pid, to, maxWord)
			if err != nil {
				return nil, err
			}
			if total += len(word) + 1; total > maxWords {
				return nil, errors.New("they are too long")
			}
			out = append(out, word)
		}
		at += uint64(n) &^ (pointer - 1)
	}
	return out, nil
}

func readMemory(pid int, at uint64, into []byte) (int, error) {
	local := []unix.Iovec{{Base: &into[0], Len: uint64(len(into))}}
	return unix.ProcessVMReadv(pid, local, []unix.RemoteIovec{{Base: uintptr(at), Len: len(into)}}, 0)
}
