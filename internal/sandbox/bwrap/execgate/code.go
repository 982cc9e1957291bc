//go:build linux

package execgate

import (
	"bytes"
	"os"
)

// segment is a part of a file.
type segment struct{ at, size int64 }

// coded is a program of the machine and where its machine code lies.
type coded struct {
	segment
	path  string
	names []string
}

const (
	// leastCode is less than any program worth a rule has. Anything smaller
	// is mostly what compilers put into every program.
	leastCode = 4 * page
	// otherSize is how much longer or shorter the code of a changed copy may be.
	// It keeps the number of programs that are read small.
	otherSize = 16 * page
	// mostPages of a program are compared, spread over its code. mostOther of them may differ.
	mostPages, mostOther = 32, 8
)

// sameCode returns the names of the programs that share most of their code with the file:
// it is a copy in which somebody changed bytes, including the build id. Programs that only
// have libraries in common have them at different offsets.
func (k *Programs) sameCode(file *os.File, code segment) []string {
	if code.size < leastCode {
		return nil
	}
	var names []string
	for _, c := range k.byCode {
		if d := c.size - code.size; c.size < leastCode || d > otherSize || d < -otherSize {
			continue
		}
		other, err := os.Open(c.path)
		if err != nil {
			continue
		}
		if samePages(file, code, other, c.segment) {
			names = append(names, c.names...)
		}
		_ = other.Close()
	}
	return names
}

// samePages reports whether three out of four compared pages are the same.
func samePages(a *os.File, ofA segment, b *os.File, ofB segment) bool {
	pages := min(ofA.size, ofB.size) / page
	compared := min(pages, mostPages)
	left := mostOther * compared / mostPages
	var one, two [page]byte
	for i := range compared {
		at := i * pages / compared * page
		_, errA := a.ReadAt(one[:], ofA.at+at)
		_, errB := b.ReadAt(two[:], ofB.at+at)
		if errA == nil && errB == nil && bytes.Equal(one[:], two[:]) {
			continue
		}
		if left--; left < 0 {
			return false
		}
	}
	return true
}
