package wire

import (
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// idleConns is how many connections to one vendor are kept between requests. With the standard library's
// two, many concurrent conversations would need a new handshake for nearly every step.
const idleConns = 256

// idleTime is how long such a connection is kept: between the steps
// of a run, but not between messages of people.
const idleTime = 45 * time.Second

// Transport returns how vendors are reached by default.
func Transport() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConns, t.MaxIdleConnsPerHost, t.IdleConnTimeout = idleConns, idleConns, idleTime
	dial, buffers := t.DialContext, &sync.Pool{New: func() any { return new([32 << 10]byte) }}
	t.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &bufferedConn{c, buffers}, nil
	}
	return t
}

// bufferedConn is a connection that lends a buffer for sending a body. The library
// would allocate one for each request, as large as the request.
type bufferedConn struct {
	net.Conn
	buffers *sync.Pool
}

// ReadFrom implements io.ReaderFrom, which the library looks for.
func (c *bufferedConn) ReadFrom(r io.Reader) (int64, error) {
	buffer := c.buffers.Get().(*[32 << 10]byte)
	defer c.buffers.Put(buffer)
	return io.CopyBuffer(struct{ io.Writer }{c.Conn}, r, buffer[:])
}

// Client returns a client with its own transport.
func Client() *http.Client { return &http.Client{Transport: Transport()} }
