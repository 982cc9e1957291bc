package files

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"chorus/internal/chat"
	"chorus/internal/tool"
)

// The limits of read.
const (
	maxLine    = 2000     // bytes shown of one line: minified files have lines of megabytes
	sniffed    = 8192     // a NUL in the first bytes makes a file binary
	countLimit = 64 << 20 // further bytes read only to count lines
	room       = 300      // part of tool.MaxBytes for the notice
)

type readIn struct {
	Path   string `json:"path" jsonschema:"file or directory"`
	Offset int    `json:"offset,omitempty" jsonschema:"first line, from 1"`
	Limit  int    `json:"limit,omitempty" jsonschema:"number of lines"`
}

// Read returns the read tool.
func Read(r *Roots) tool.Tool {
	return tool.New(tool.Func[readIn]{
		Name: "read", Description: readProse, ReadOnly: true, Risk: tool.Low,
		Aliases: readAliases(),
		Access:  func(in readIn) []tool.Access { return r.Access("read", in.Path) },
		Label:   func(in readIn) string { return "read " + in.Path },
		Run: func(ctx context.Context, in readIn) (tool.Result, error) {
			res, err := r.read(ctx, in)
			if err != nil {
				return tool.Answer(err)
			}
			return res, nil
		},
	})
}

func (r *Roots) read(ctx context.Context, in readIn) (tool.Result, error) {
	place, err := r.Find(in.Path)
	if err != nil {
		return tool.Result{}, err
	}
	file, info, err := r.OpenJudged(ctx, "read", place)
	if err != nil {
		return tool.Result{}, err
	}
	defer file.Close()
	if info.IsDir() {
		return r.listing(ctx, place, file)
	}
	in.Offset = max(in.Offset, 1)
	if in.Limit <= 0 || in.Limit > tool.MaxLines {
		in.Limit = tool.MaxLines
	}
	buffered := bufio.NewReaderSize(file, 64<<10)
	start, err := buffered.Peek(sniffed)
	if err != nil && !errors.Is(err, io.EOF) {
		return tool.Result{}, r.explain(place, err)
	}
	if media := chat.ImageType(start); media != "" {
		return r.image(place, media, buffered, info.Size())
	}
	if bytes.IndexByte(start, 0) >= 0 {
		return tool.Result{}, tool.Mistake(fmt.Sprintf("%s is a binary file (%d bytes) and cannot be shown.", place, info.Size()))
	}
	w := window{first: in.Offset, limit: in.Limit, hashes: r.lineHashes.Load()}
	if err := w.scan(ctx, buffered); err != nil {
		if ctx.Err() != nil {
			return tool.Result{}, ctx.Err()
		}
		return tool.Result{}, r.explain(place, err)
	}
	res := tool.OK(w.render(place.String()))
	if w.shown > 0 {
		res.UntrustedFrom = source(place)
	}
	res.Read = []string{place.String()}
	return res, nil
}

// source marks a text as the contents of a file.
func source(place Place) string { return "file " + place.String() }

// listing lists a directory's names, directories with a slash.
func (r *Roots) listing(ctx context.Context, place Place, dir *os.File) (tool.Result, error) {
	entries, err := dir.ReadDir(-1)
	if err != nil {
		return tool.Result{}, r.explain(place, err)
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
		if e.Type()&fs.ModeDir != 0 {
			names[i] += "/"
		}
	}
	slices.Sort(names)
	if len(names) == 0 {
		return tool.OK("(empty directory)"), nil
	}
	return tool.From("names of files", tool.Clip(ctx, strings.Join(names, "\n"), tool.Head, nil)), nil
}

// window picks lines from a file that may be larger than memory.
type window struct {
	first, limit int
	out          strings.Builder
	shown        int // lines in out
	total        int // lines seen
	full         bool
	more         bool // the rest was not counted
	hashes       bool // each line is shown with its hash
}

// scan reads the requested lines and counts the others.
func (w *window) scan(ctx context.Context, in *bufio.Reader) error {
	var line []byte // the beginning of the current line
	length, read := 0, 0
	for pieces := 0; ; pieces++ {
		if pieces%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		piece, err := in.ReadSlice('\n')
		read += len(piece)
		length += len(piece)
		if keep := min(len(piece), maxLine+1-len(line)); keep > 0 && w.wants() {
			line = append(line, piece[:keep]...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			if length > countLimit || w.full && read > countLimit {
				w.add(line, length)
				w.more = true
				return nil
			}
			continue
		}
		if length > 0 {
			w.add(line, length)
		}
		line, length = line[:0], 0
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case read > countLimit && w.full:
			w.more = true
			return nil
		}
	}
}

func (w *window) wants() bool { return !w.full && w.total+1 >= w.first }

// add adds one line with its line ending. Only the line's beginning may be given.
func (w *window) add(line []byte, length int) {
	wanted := w.wants()
	w.total++
	if !wanted {
		return
	}
	text := string(bytes.TrimRight(line, "\r\n"))
	if w.total == 1 {
		text = strings.TrimPrefix(text, "\uFEFF")
	}
	if length > maxLine+2 {
		text = strings.ToValidUTF8(text[:min(len(text), maxLine)], "")
		text += fmt.Sprintf("… [line cut, it has %d bytes]", length)
	}
	switch cut := length > maxLine+2; {
	case w.hashes && !cut:
		text = fmt.Sprintf("%d#%s|%s\n", w.total, lineHash(text, w.total), strings.ToValidUTF8(text, "\uFFFD"))
	case w.hashes:
		text = fmt.Sprintf("%d|%s\n", w.total, text) // a hash covers the whole line, which nobody has read here
	default:
		text = fmt.Sprintf("%6d\t%s\n", w.total, strings.ToValidUTF8(text, "\uFFFD"))
	}
	if w.shown > 0 && w.out.Len()+len(text) > tool.MaxBytes-room {
		w.full = true
		return
	}
	w.out.WriteString(text)
	w.shown++
	w.full = w.shown >= w.limit
}

func (w *window) render(name string) string {
	last := w.first + w.shown - 1
	switch {
	case w.total == 0:
		return "(empty file)"
	case w.shown == 0:
		return fmt.Sprintf("[No lines: %s has %d lines, offset %d is past its end.]", name, w.total, w.first)
	case w.more:
		return fmt.Sprintf("%s[Showing lines %d-%d of more than %d. Continue with offset=%d.]", w.out.String(), w.first, last, w.total, last+1)
	case last < w.total:
		return fmt.Sprintf("%s[Showing lines %d-%d of %d. Continue with offset=%d.]", w.out.String(), w.first, last, w.total, last+1)
	case w.first > 1:
		return fmt.Sprintf("%s[Showing lines %d-%d of %d.]", w.out.String(), w.first, last, w.total)
	}
	return strings.TrimSuffix(w.out.String(), "\n")
}
