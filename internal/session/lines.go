package session

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// maxLine is far above any line a tool result can make; a longer one is skipped
// so that a broken file cannot take all memory.
const maxLine = 64 << 20

// line is one line of a file, without its newline.
type line struct {
	no    int   // from 1
	at    int64 // offset of its first byte
	text  []byte
	ended bool // it had its newline
	long  bool // over maxLine; text is empty
}

type lines struct {
	in     *bufio.Reader
	no     int
	offset int64
	limit  int
}

func newLines(r io.Reader) *lines {
	return &lines{in: bufio.NewReaderSize(r, 64<<10), limit: maxLine}
}

var utf8BOM = []byte("\xef\xbb\xbf")

// next gives the next line; io.EOF when there is none.
func (l *lines) next() (line, error) {
	out := line{no: l.no + 1, at: l.offset}
	for {
		piece, err := l.in.ReadSlice('\n')
		l.offset += int64(len(piece))
		if len(out.text)+len(piece) > l.limit {
			out.long, out.text = true, nil
		}
		if !out.long {
			out.text = append(out.text, piece...)
		}
		switch {
		case err == nil:
			out.ended = true
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF):
			if l.offset == out.at {
				return line{}, io.EOF
			}
		default:
			return line{}, err
		}
		break
	}
	l.no++
	out.text = bytes.TrimSuffix(out.text, []byte("\n"))
	if out.no == 1 {
		out.text = bytes.TrimPrefix(out.text, utf8BOM)
	}
	return out, nil
}

func (l line) blank() bool { return !l.long && len(bytes.TrimSpace(l.text)) == 0 }
