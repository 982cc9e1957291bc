// Package s3test gives tests a third-party server that speaks S3 and
// checks signatures, and lets them inject faults.
package s3test

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rclone/gofakes3"
	"github.com/rclone/gofakes3/s3mem"
)

// The only key that the server knows, and its bucket.
const (
	AccessKey = "AKIDTEST"
	SecretKey = "test-secret"
	Bucket    = "chorus-test"
)

// Server is a bucket in memory.
type Server struct {
	URL   string
	Calls atomic.Int64
	fault atomic.Pointer[Fault]
	real  http.Handler
}

// Fault may answer a request in place of the server. It returns false if it did not. next is the server.
type Fault func(w http.ResponseWriter, r *http.Request, next http.Handler) bool

// New starts a server that stops with the test.
func New(t testing.TB) *Server {
	t.Helper()
	backend := s3mem.New()
	if err := backend.CreateBucket(t.Context(), Bucket); err != nil {
		t.Fatal(err)
	}
	fake := gofakes3.New(backend, gofakes3.WithV4Auth(map[string]string{AccessKey: SecretKey}), gofakes3.WithHostBucket(false), gofakes3.WithTimeSkewLimit(time.Hour))
	s := &Server{real: fake.Server()}
	server := httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(server.Close)
	s.URL = server.URL
	return s
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	s.Calls.Add(1)
	if fault := s.fault.Load(); fault != nil && (*fault)(w, r, s.real) {
		return
	}
	s.real.ServeHTTP(w, r)
}

// Break makes a fault handle requests first from now on; nil removes it.
func (s *Server) Break(fault Fault) {
	if fault == nil {
		s.fault.Store(nil)
		return
	}
	s.fault.Store(&fault)
}

// BlobURL returns the value for blobUrl.
func (s *Server) BlobURL(prefix string) string {
	return "s3://" + Bucket + "/" + prefix + "?endpoint=" + s.URL + "&region=eu-central-1"
}
