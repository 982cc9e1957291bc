package jsonl

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// MaxLine is far more than any line of a tool result needs, even with pictures. Longer
// lines are skipped, so that a broken file cannot use up all memory.
const MaxLine = 64 << 20

// Line is one line of a file, without its newline.
type Line struct {
	No    int   // from 1
	At    int64 // offset of its first byte
	Text  []byte
	Ended bool // it had its newline
	Long  bool // over the limit; Text is empty
}

// Blank reports whether the line is blank.
func (l Line) Blank() bool { return !l.Long && len(bytes.TrimSpace(l.Text)) == 0 }

// Reader reads the lines of a file.
type Reader struct {
	No     int   // of the last line read
	Offset int64 // after that line
	in     *bufio.Reader
	limit  int
}

// NewReader reads lines of at most limit bytes.
func NewReader(r io.Reader, limit int) *Reader {
	return &Reader{in: bufio.NewReaderSize(r, 64<<10), limit: limit}
}

var utf8BOM = []byte("\xef\xbb\xbf")

// Next returns the next line, or io.EOF. A byte order mark is left out.
func (r *Reader) Next() (Line, error) {
	out := Line{No: r.No + 1, At: r.Offset}
	for {
		piece, err := r.in.ReadSlice('\n')
		r.Offset += int64(len(piece))
		if len(out.Text)+len(piece) > r.limit {
			out.Long, out.Text = true, nil
		}
		if !out.Long {
			out.Text = append(out.Text, piece...)
		}
		switch {
		case err == nil:
			out.Ended = true
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF):
			if r.Offset == out.At {
				return Line{}, io.EOF
			}
		default:
			return Line{}, err
		}
		break
	}
	r.No++
	out.Text = bytes.TrimSuffix(out.Text, []byte("\n"))
	if out.No == 1 {
		out.Text = bytes.TrimPrefix(out.Text, utf8BOM)
	}
	return out, nil
}
