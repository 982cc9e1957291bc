package search

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"runtime"
	"strings"

	"golang.org/x/sync/errgroup"

	"chorus/internal/tool/files"
)

const (
	sniffed = 8192     // a NUL in the first bytes makes a file binary
	maxLine = 1 << 20  // bytes of a line that are matched; the rest is ignored
	endless = 64 << 20 // a longer line is not text: a sparse file may claim any length, and reading it would never end
)

// match is one line that matched, with the lines around it.
type match struct {
	name  string
	line  int // from 1
	first int // number of the first of lines
	lines []string
}

// batch searches files in parallel and returns up to limit matches in the order of the files.
func (s *searcher) batch(ctx context.Context, q *query, batch []files.Entry, limit int) ([]match, error) {
	candidates, err := s.narrow(ctx, q, batch)
	if err != nil {
		return nil, err
	}
	results := make([][]match, len(candidates))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, e := range candidates {
		group.Go(func() error {
			var err error
			results[i], err = s.file(ctx, q, e, limit)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var all []match
	for _, r := range results {
		all = append(all, r...)
		if len(all) >= limit {
			return all[:limit], nil
		}
	}
	return all, nil
}

// file searches one file. A file that is gone or unreadable has no matches.
func (s *searcher) file(ctx context.Context, q *query, e files.Entry, limit int) ([]match, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	open := s.roots.OpenEntry
	if !q.hides { // every file may be read then, so it does not matter if a link has just replaced this one
		open = func(e files.Entry) (*os.File, fs.FileInfo, error) { return s.roots.Open(e.Place) }
	}
	file, info, err := open(e)
	if err != nil || info.IsDir() {
		return nil, nil
	}
	defer file.Close()
	in := bufio.NewReaderSize(file, 64<<10)
	start, err := in.Peek(sniffed)
	if err != nil && !errors.Is(err, io.EOF) || bytes.IndexByte(start, 0) >= 0 {
		return nil, nil
	}
	return q.scan(ctx, in, e.Place.String(), limit)
}

// scan matches line by line, and remembers as many lines as the context needs.
func (q *query) scan(ctx context.Context, in *bufio.Reader, name string, limit int) ([]match, error) {
	var (
		found  []match
		recent []string // up to surround lines before the current one
		open   []int    // matches that still need lines after them
		buf    []byte
	)
	for number := 1; ; number++ {
		if number%4096 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		line, end, err := readLine(in, &buf)
		if err != nil || end && len(line) == 0 {
			return found, nil
		}
		if number == 1 {
			line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
		}
		hit := len(found) < limit && q.expr.Match(line)
		if hit || q.surround > 0 {
			text := shown(line)
			open = extend(found, open, text, q.surround, number)
			if hit {
				lines := append(append(make([]string, 0, 1+2*q.surround), recent...), text)
				found = append(found, match{name: name, line: number, first: number - len(recent), lines: lines})
				open = append(open, len(found)-1)
			}
			if q.surround > 0 {
				if len(recent) == q.surround {
					recent = recent[1:]
				}
				recent = append(recent, text)
			}
		}
		if end || len(found) >= limit && (q.surround == 0 || len(open) == 0) {
			return found, nil
		}
	}
}

// extend adds a line to the earlier matches that still need it, and returns those that need more.
func extend(found []match, open []int, text string, surround, number int) []int {
	still := open[:0]
	for _, i := range open {
		m := &found[i]
		if number <= m.line+surround {
			m.lines = append(m.lines, text)
		}
		if number < m.line+surround {
			still = append(still, i)
		}
	}
	return still
}

// readLine reads one line without its line ending. Of a line longer than maxLine it
// returns only the beginning. end is true for the last line.
func readLine(in *bufio.Reader, buf *[]byte) (line []byte, end bool, err error) {
	piece, err := in.ReadSlice('\n')
	if err == nil {
		return bytes.TrimSuffix(piece[:len(piece)-1], []byte("\r")), false, nil
	}
	*buf = append((*buf)[:0], piece...)
	for length := len(piece); errors.Is(err, bufio.ErrBufferFull); length += len(piece) {
		if length > endless {
			return *buf, true, nil
		}
		piece, err = in.ReadSlice('\n')
		*buf = append(*buf, piece[:min(len(piece), maxLine-len(*buf))]...)
	}
	line = bytes.TrimSuffix(bytes.TrimSuffix(*buf, []byte("\n")), []byte("\r"))
	if errors.Is(err, io.EOF) {
		return line, true, nil
	}
	return line, false, err
}

// shown returns a line as it is shown: cut, and valid UTF-8.
func shown(line []byte) string {
	if len(line) > maxShown {
		return strings.ToValidUTF8(string(line[:maxShown]), "") + "…"
	}
	return strings.ToValidUTF8(string(line), "\uFFFD")
}
