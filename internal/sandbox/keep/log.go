package keep

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// The log is a few files, each named after the position of its first byte in the whole
// output. Thus positions stay valid when the oldest file is removed.
const logPrefix = "log."

// LogLimit is the maximum size of a command's log.
const LogLimit = 16 << 20

// parts is the number of files that make up the log. When the newest is full, the oldest is removed.
const parts = 4

// logWriter writes a log.
type logWriter struct {
	dir   string
	part  int64 // maximum size of one file
	file  *os.File
	begin int64 // position of the file's first byte
	next  int64 // position of the next byte
}

func newLog(dir string, limit int64) *logWriter {
	return &logWriter{dir: dir, part: max(limit/parts, 1)}
}

// Write implements io.Writer.
func (l *logWriter) Write(p []byte) (n int, err error) {
	for n < len(p) {
		if l.file == nil || l.next-l.begin >= l.part {
			if err := l.rotate(); err != nil {
				return n, err
			}
		}
		w, err := l.file.Write(p[n:min(len(p), n+int(l.part-(l.next-l.begin)))])
		n, l.next = n+w, l.next+int64(w)
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// rotate begins a new file. It removes the oldest first, so that the limit is never exceeded.
func (l *logWriter) rotate() error {
	if l.file != nil {
		if err := l.file.Close(); err != nil {
			return err
		}
		l.file = nil
	}
	all, err := logFiles(l.dir)
	if err != nil {
		return err
	}
	for ; len(all) >= parts; all = all[1:] {
		if err := os.Remove(all[0].path); err != nil {
			return err
		}
	}
	l.file, err = os.OpenFile(filepath.Join(l.dir, fmt.Sprintf("%s%015d", logPrefix, l.next)), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	l.begin = l.next
	return err
}

func (l *logWriter) Close() error {
	if l.file == nil {
		return nil
	}
	return l.file.Close()
}

type logFile struct {
	path  string
	begin int64
}

// logFiles returns the files of a log, oldest first.
func logFiles(dir string) ([]logFile, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var all []logFile
	for _, e := range entries {
		if digits, ok := strings.CutPrefix(e.Name(), logPrefix); ok {
			if begin, err := strconv.ParseInt(digits, 10, 64); err == nil {
				all = append(all, logFile{filepath.Join(dir, e.Name()), begin})
			}
		}
	}
	slices.SortFunc(all, func(a, b logFile) int { return int(min(max(a.begin-b.begin, -1), 1)) })
	return all, nil
}

// Output is a piece of what a command printed.
type Output struct {
	Text  string
	From  int64 // position of its first byte; later than requested if that part is gone
	Next  int64 // position from which to continue reading
	Total int64 // size of the output so far
}

// ReadLog reads the output from a position on, at most that many bytes.
func ReadLog(dir string, from int64, most int) (Output, error) {
	for {
		out, err := readLog(dir, from, most)
		if !errors.Is(err, fs.ErrNotExist) {
			return out, err
		}
		if _, err := os.Stat(dir); err != nil {
			return Output{}, fmt.Errorf("read the output of a process: %w", err)
		}
		// The file was just removed for a newer one; try again.
	}
}

// Tail reads the last bytes of the output.
func Tail(dir string, most int) (Output, error) {
	out, err := ReadLog(dir, 0, 0)
	if err != nil {
		return out, err
	}
	return ReadLog(dir, max(out.Total-int64(most), 0), most)
}

func readLog(dir string, from int64, most int) (Output, error) {
	all, err := logFiles(dir)
	if err != nil {
		return Output{}, err
	}
	if len(all) == 0 {
		return Output{}, nil
	}
	last := all[len(all)-1]
	info, err := os.Stat(last.path)
	if err != nil {
		return Output{}, err
	}
	out := Output{Total: last.begin + info.Size()}
	out.From = min(max(from, all[0].begin), out.Total)
	out.Next = out.From
	var text strings.Builder
	for i, f := range all {
		if i+1 < len(all) && all[i+1].begin <= out.Next {
			continue
		}
		n, err := copyFrom(&text, f, out.Next, int64(most-text.Len()))
		if err != nil {
			return Output{}, err
		}
		out.Next += n
	}
	out.Text = text.String()
	out.Total = max(out.Total, out.Next)
	return out, nil
}

func copyFrom(w io.Writer, f logFile, from, most int64) (int64, error) {
	if most <= 0 {
		return 0, nil
	}
	file, err := os.Open(f.path)
	if err != nil {
		return 0, err
	}
	defer func() { _ = file.Close() }()
	return io.Copy(w, io.NewSectionReader(file, from-f.begin, most))
}
