package operation

import (
	"encoding/json"
	"io"
	"reflect"
)

// List is a page of a list. Next is the cursor of the following page; "": this is the last.
type List[T any] struct {
	Items []T    `json:"items"`
	Next  string `json:"next,omitempty"`
}

// File is a stream of bytes, in or out. It is read once; whoever receives one from an operation closes it.
type File struct {
	io.ReadCloser
	Name      string // suggested file name; "": none
	MediaType string
	Size      int64  // 0: unknown
	Hash      string // identifies the bytes: equal hashes mean equal bytes, so caches may keep them
}

var fileType = reflect.TypeFor[File]()

// Upload makes a File from bytes to send. It does not close the reader.
func Upload(name string, from io.Reader) File {
	return File{Name: name, ReadCloser: io.NopCloser(from)}
}

// Generated is a body that write produces while it is read, for content that never fits in memory. write runs once, when
// the body is first read; if it fails, reading fails.
func Generated(write func(io.Writer) error) io.ReadCloser { return &generated{write: write} }

type generated struct {
	write func(io.Writer) error
	pipe  *io.PipeReader
}

// WriteTo avoids the pipe for io.Copy.
func (g *generated) WriteTo(w io.Writer) (int64, error) {
	if g.pipe != nil {
		return io.Copy(w, g.pipe)
	}
	counted := &counter{Writer: w}
	err := g.write(counted)
	return counted.n, err
}

func (g *generated) Read(into []byte) (int, error) {
	if g.pipe == nil {
		from, to := io.Pipe()
		g.pipe = from
		go func() { to.CloseWithError(g.write(to)) }()
	}
	return g.pipe.Read(into)
}

// Close stops write if it still runs: its next write fails.
func (g *generated) Close() error {
	if g.pipe == nil {
		return nil
	}
	return g.pipe.Close()
}

type counter struct {
	io.Writer
	n int64
}

func (c *counter) Write(data []byte) (int, error) {
	n, err := c.Writer.Write(data)
	c.n += int64(n)
	return n, err
}

// ParseOutput parses the output, or one item of a stream.
func (d *Definition) ParseOutput(data []byte) (any, error) {
	if d.Parse != nil {
		return d.Parse(data)
	}
	out := reflect.New(d.Out)
	err := json.Unmarshal(data, out.Interface())
	return out.Elem().Interface(), err
}
