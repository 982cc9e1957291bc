// Package s3test gives tests a server that speaks S3 and checks signatures, written by others, and lets them break it.
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

// The one key that the server knows, and the bucket that it has.
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

// Fault may answer a request in the server's place; false: it has not. next is the server.
type Fault func(w http.ResponseWriter, r *http.Request, next http.Handler) bool

// New starts a server that ends with the test.
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

// Break has a fault asked first from now on; nil: none.
func (s *Server) Break(fault Fault) {
	if fault == nil {
		s.fault.Store(nil)
		return
	}
	s.fault.Store(&fault)
}

// BlobURL is what blobUrl would say.
func (s *Server) BlobURL(prefix string) string {
	return "s3://" + Bucket + "/" + prefix + "?endpoint=" + s.URL + "&region=eu-central-1"
}
