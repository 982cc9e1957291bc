package toollog

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"

	"chorus/internal/mirror/jsonl"
)

// rewrite passes every entry of a file to edit, which may change it and reports whether
// to keep it. Lines that are not entries are kept. An unchanged file is not written,
// one without lines is removed, and a missing one is no error. With needles, a file
// that contains none of them is not parsed.
func (w *Writer) rewrite(name string, edit func(*Entry) bool, needles ...string) error {
	path := filepath.Join(w.dir, name)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	found := func(needle string) bool { return bytes.Contains(data, quote(needle)) }
	if len(needles) > 0 && !slices.ContainsFunc(needles, found) {
		return nil
	}
	var out bytes.Buffer
	for line := range bytes.Lines(data) {
		kept, err := rewriteLine(line, edit)
		if err != nil {
			return err
		}
		out.Write(kept)
	}
	switch {
	case len(bytes.TrimSpace(out.Bytes())) == 0:
		return os.Remove(path)
	case bytes.Equal(out.Bytes(), data):
		return nil
	default:
		return jsonl.Replace(path, out.Bytes())
	}
}

func rewriteLine(line []byte, edit func(*Entry) bool) ([]byte, error) {
	var e Entry
	if json.Unmarshal(line, &e) != nil {
		return line, nil // lines that Chapter3 wrote differently are kept unchanged
	}
	before, err := encode(e)
	if err != nil {
		return nil, err
	}
	if !edit(&e) {
		return nil, nil
	}
	after, err := encode(e)
	if err != nil || bytes.Equal(before, after) {
		return line, err
	}
	return after, nil
}

// repairTail completes or removes an incomplete last line, and returns the number of the last
// entry. Entries are in the order of the journal, so no other has a higher number.
func (w *Writer) repairTail(name string) (last int64, err error) {
	f, err := os.OpenFile(filepath.Join(w.dir, name), os.O_RDWR, 0)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	for size := int64(64 << 10); ; size *= 8 { // most lines are short, but any may be long
		from := max(0, info.Size()-size)
		tail, err := io.ReadAll(io.NewSectionReader(f, from, info.Size()-from))
		if err != nil {
			return 0, err
		}
		done, last, err := repair(f, tail, from)
		if err != nil || done || from == 0 {
			return last, err
		}
	}
}

// repair works on the end of a file. done is false if the tail is too short to tell.
func repair(f *os.File, tail []byte, from int64) (done bool, last int64, err error) {
	whole := tail[:bytes.LastIndexByte(tail, '\n')+1]
	torn := tail[len(whole):]
	var e Entry
	if len(torn) > 0 && (len(whole) > 0 || from == 0) {
		if json.Unmarshal(torn, &e) == nil {
			_, err := f.WriteAt([]byte("\n"), from+int64(len(tail)))
			return true, cmp.Or(e.Seq, math.MaxInt64), err
		}
		if err := f.Truncate(from + int64(len(whole))); err != nil {
			return false, 0, err
		}
	}
	line := bytes.TrimSuffix(whole, []byte("\n"))
	start := bytes.LastIndexByte(line, '\n') + 1
	if start == 0 && from > 0 {
		return false, 0, nil
	}
	if json.Unmarshal(line[start:], &e) != nil || e.Seq == 0 {
		return true, math.MaxInt64, nil // not ours, so the lines before it must be read
	}
	return true, e.Seq, nil
}
