package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"chorus/internal/chat"
	"chorus/internal/tool"
)

func numbered(n int) string {
	var out strings.Builder
	for i := range n {
		fmt.Fprintf(&out, "l%d\n", i+1)
	}
	return out.String()
}

func TestRead(t *testing.T) {
	t.Parallel()
	p := newPlace(t, map[string]string{
		"ten": numbered(10), "five": numbered(5), "no-end": "a\nb", "crlf": "a\r\nb\r\n", "empty": "", "blank": "\n",
		"bom": "\ufeffx\n", "latin": "caf\xe9\n", "bin": "a\x00b", "late-bin": strings.Repeat("x", sniffed) + "\x00",
		"wide": strings.Repeat("é", 3000) + "\nnext\n", "edge": strings.Repeat("x", maxLine) + "\n",
		"dir/b.txt": "", "dir/a.txt": "", "dir/sub/x": "",
	})
	if err := os.Mkdir(filepath.Join(p.dir, "void"), 0o755); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, tool, args, want string
		failed                 bool
	}{
		{"whole", "read", `{"path":"five"}`, "     1\tl1\n     2\tl2\n     3\tl3\n     4\tl4\n     5\tl5", false},
		{"range", "read", `{"path":"ten","offset":3,"limit":2}`, "     3\tl3\n     4\tl4\n[Showing lines 3-4 of 10. Continue with offset=5.]", false},
		{"their range", "ReadFile", `{"path":"ten","startLine":3,"endLine":4}`, "     3\tl3\n     4\tl4\n[Showing lines 3-4 of 10. Continue with offset=5.]", false},
		{"to the end", "view", `{"path":"ten","offset":10}`, "    10\tl10\n[Showing lines 10-10 of 10.]", false},
		{"past the end", "view", `{"path":"five","offset":99}`, "[No lines: five has 5 lines, offset 99 is past its end.]", false},
		{"before the start", "view", `{"path":"five","offset":-3,"limit":1}`, "     1\tl1\n[Showing lines 1-1 of 5. Continue with offset=2.]", false},
		{"no last newline", "read_file", `{"path":"no-end"}`, "     1\ta\n     2\tb", false},
		{"crlf", "read", `{"path":"crlf"}`, "     1\ta\n     2\tb", false},
		{"empty", "read", `{"path":"empty"}`, "(empty file)", false},
		{"blank", "read", `{"path":"blank"}`, "     1\t", false},
		{"bom", "read", `{"path":"bom"}`, "     1\tx", false},
		{"not UTF-8", "read", `{"path":"latin"}`, "     1\tcaf\ufffd", false},
		{"binary", "read", `{"path":"bin"}`, "bin is a binary file (3 bytes) and cannot be shown.", true},
		{"long line", "read", `{"path":"wide"}`, "     1\t" + strings.Repeat("é", 1000) + "… [line cut, it has 6001 bytes]\n     2\tnext", false},
		{"longest line", "read", `{"path":"edge"}`, "     1\t" + strings.Repeat("x", maxLine), false},
		{"directory", "read", `{"path":"dir"}`, "a.txt\nb.txt\nsub/", false},
		{"empty directory", "read", `{"path":"void/"}`, "(empty directory)", false},
		{"missing", "read", `{"path":"none"}`, "none does not exist.", true},
		{"through a file", "read", `{"path":"five/x"}`, "five/x: a part of the path is not a directory.", true},
		{"no path", "view", `{}`, "Invalid arguments for read: 'path' is missing.\nParameters:\n- 'path' (string, required): file or directory\n- 'offset' (integer, optional): first line, from 1\n- 'limit' (integer, optional): number of lines", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			want(t, p.call(tt.tool, tt.args), tt.want, tt.failed)
		})
	}
}

func TestReadStaysWithinLimits(t *testing.T) {
	t.Parallel()
	p := newPlace(t, map[string]string{
		"many": numbered(5000), "heavy": strings.Repeat(strings.Repeat("x", 999)+"\n", 200), "one": strings.Repeat("ü", 100<<10),
	})
	want := map[string]string{
		"many": "  2000\tl2000\n[Showing lines 1-2000 of 5000. Continue with offset=2001.]", "heavy": "of 200. Continue with offset=51.]", "one": "[line cut, it has 204800 bytes]",
	}
	for name, end := range want {
		res := p.call("read", `{"path":"`+name+`","limit":99999}`)
		text := res.Blocks.Text()
		if !strings.HasSuffix(text, end) || len(text) > tool.MaxBytes || !utf8.ValidString(text) {
			t.Errorf("%s: %d bytes, ends %q", name, len(text), text[max(0, len(text)-100):])
		}
	}
}

func TestReadHugeFile(t *testing.T) {
	t.Parallel()
	p := newPlace(t, nil)
	file, err := os.Create(filepath.Join(p.dir, "huge"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := file.WriteString(strings.Repeat("x", sniffed) + "\nsecond\n"); err != nil {
		t.Fatal(err)
	}
	if err := file.Truncate(countLimit * 4); err != nil { // a hole: costs no disk
		t.Skip(err)
	}
	res := p.call("read", `{"path":"huge","offset":2,"limit":1}`)
	want(t, res, "     2\tsecond\n[Showing lines 2-2 of more than 3. Continue with offset=3.]", false)
}

func TestReadCancelled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p := newPlace(t, map[string]string{"f": "x"})
	if _, err := p.roots.read(ctx, readIn{Path: "f"}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestReadImages(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ data, media string }{
		"a.png":  {"\x89PNG\r\n\x1a\n\x00rest", "image/png"},
		"b.txt":  {"\xff\xd8\xff\xe0\x00rest", "image/jpeg"}, // the content decides
		"c.gif":  {"GIF89a\x00", "image/gif"},
		"d.webp": {"RIFF\x00\x00\x00\x00WEBPVP8 ", "image/webp"},
	}
	files := map[string]string{"big.png": "\x89PNG\r\n\x1a\n" + strings.Repeat("\x00", maxImage), "fake.png": "just text\n"}
	for name, tt := range tests {
		files[name] = tt.data
	}
	p := newPlace(t, files)
	for name, tt := range tests {
		res := p.call("read", `{"path":"`+name+`"}`)
		if res.Failed || len(res.Blocks) != 2 || len(res.Blobs) != 1 {
			t.Errorf("%s: %+v", name, res)
			continue
		}
		img, ok := res.Blocks[1].(chat.Image)
		if !ok || img.MediaType != tt.media || img.Blob != res.Blobs[0].Hash || !bytes.Equal(res.Blobs[0].Data, []byte(tt.data)) || img.Size != int64(len(tt.data)) {
			t.Errorf("%s: %+v", name, res.Blocks[1])
		}
	}
	wantPart(t, p.call("read", `{"path":"big.png"}`), "too large to look at", true)
	want(t, p.call("read", `{"path":"fake.png"}`), "     1\tjust text", false)

	// Where pictures are made to fit, a large one is shown small.
	p.roots.Fit = func(data []byte) ([]byte, string, error) {
		if len(data) < maxImage {
			return nil, "", errors.New("it is broken")
		}
		return []byte("small"), "image/jpeg", nil
	}
	res := p.call("read", `{"path":"big.png"}`)
	if img, ok := res.Blocks[1].(chat.Image); !ok || img.MediaType != "image/jpeg" || img.Size != 5 || string(res.Blobs[0].Data) != "small" {
		t.Errorf("%+v", res.Blocks)
	}
	wantPart(t, p.call("read", `{"path":"a.png"}`), "a.png cannot be looked at: it is broken.", true)
}
