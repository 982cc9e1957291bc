package wire

import "net/http"

// idleConns is how many connections to one vendor are kept between requests. With the
// standard library's two, many conversations at once would shake hands anew for nearly every step.
const idleConns = 256

// writeBuffer holds most requests whole: they go out in one piece, and the library makes no buffer for
// what did not fit each time.
const writeBuffer = 64 << 10

// Transport is how vendors are reached unless somebody brings their own.
func Transport() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConns, t.MaxIdleConnsPerHost, t.WriteBufferSize = idleConns, idleConns, writeBuffer
	return t
}

// Client is a client with a transport of its own.
func Client() *http.Client { return &http.Client{Transport: Transport()} }
