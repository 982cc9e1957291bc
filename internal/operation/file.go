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

// File is bytes, going in or coming out. It is read once; whoever receives one from an operation closes it.
type File struct {
	io.ReadCloser
	Name      string // for whoever saves it; "": none
	MediaType string
	Size      int64  // 0: not known
	Hash      string // names the bytes: the same hash never stands for others, so caches may keep them
}

var fileType = reflect.TypeFor[File]()

// Upload makes a File of bytes to be sent. Nothing is closed.
func Upload(name string, from io.Reader) File {
	return File{Name: name, ReadCloser: io.NopCloser(from)}
}

// Generated is a body that write produces while it is read, for content that is never held whole.
// write runs once, when the body is first read; where it fails, reading fails.
func Generated(write func(io.Writer) error) io.ReadCloser { return &generated{write: write} }

type generated struct {
	write func(io.Writer) error
	pipe  *io.PipeReader
}

// WriteTo spares io.Copy the pipe.
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

// Close ends write if it still runs: its next write fails.
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

// ParseOutput reads the output, or one item of a stream, from the wire.
func (d *Definition) ParseOutput(data []byte) (any, error) {
	if d.Parse != nil {
		return d.Parse(data)
	}
	out := reflect.New(d.Out)
	err := json.Unmarshal(data, out.Interface())
	return out.Elem().Interface(), err
}
