package s3_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"chorus/internal/blobstorage"
	"chorus/internal/blobstorage/s3"
	"chorus/internal/blobstorage/s3test"
	"chorus/internal/chat"
)

func open(t *testing.T, server *s3test.Server, change func(*s3.Options)) *s3.Storage {
	t.Helper()
	o := s3.Options{Bucket: s3test.Bucket, Prefix: "a prefix/$ü", Endpoint: server.URL, Region: "eu-central-1", PathStyle: true,
		AccessKey: s3test.AccessKey, SecretKey: s3test.SecretKey, Timeout: 30 * time.Second}
	if change != nil {
		change(&o)
	}
	s, err := s3.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// xmlError answers as S3 does.
func xmlError(w http.ResponseWriter, status int, code, more string) {
	w.WriteHeader(status)
	fmt.Fprintf(w, "<?xml version=\"1.0\"?><Error><Code>%s</Code><Message>no</Message>%s</Error>", code, more)
}

// What is put is read, measured, listed and removed again, and putting twice is as once.
func TestBlobsAreKept(t *testing.T) {
	t.Parallel()
	s := open(t, s3test.New(t), nil)
	var want []string
	for n := range 5 {
		b := chat.NewBlob(bytes.Repeat([]byte{byte(n)}, 100_000+n))
		want = append(want, b.Hash)
		for range 2 {
			if err := s.Put(t.Context(), b.Hash, b.Data); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := s.Get(t.Context(), b.Hash); err != nil || !bytes.Equal(got, b.Data) {
			t.Fatalf("%d bytes, %v", len(got), err)
		}
		if size, err := s.Size(t.Context(), b.Hash); err != nil || size != int64(100_000+n) {
			t.Fatal(size, err)
		}
	}
	list := func(before time.Time) (out []string) {
		err := s.List(t.Context(), before, func(hash string, _ int64) error {
			out = append(out, hash)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	if got := list(time.Now().Add(time.Hour)); !slices.Equal(slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))) {
		t.Errorf("listed %v", got)
	}
	if got := list(time.Now().Add(-time.Hour)); len(got) != 0 {
		t.Errorf("too young, and listed: %v", got)
	}
	for range 2 {
		if err := s.Remove(t.Context(), want[0]); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Get(t.Context(), want[0]); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("removed: %v", err)
	}
	if _, err := s.Size(t.Context(), want[0]); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("removed: %v", err)
	}
	if err := s.Check(t.Context()); err != nil {
		t.Error(err)
	}
	if got := list(time.Now().Add(time.Hour)); len(got) != 4 {
		t.Errorf("after a check: %v", got)
	}
}

// Where a key may read and not ask for the size, reading tells it.
func TestSizeWithoutHead(t *testing.T) {
	t.Parallel()
	server := s3test.New(t)
	s := open(t, server, nil)
	b := chat.NewBlob(bytes.Repeat([]byte("x"), 70_000))
	if err := s.Put(t.Context(), b.Hash, b.Data); err != nil {
		t.Fatal(err)
	}
	server.Break(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if r.Method == http.MethodHead {
			w.WriteHeader(http.StatusForbidden)
		}
		return r.Method == http.MethodHead
	})
	if size, err := s.Size(t.Context(), b.Hash); size != 70_000 || err != nil {
		t.Error(size, err)
	}
}

// A list of several pages is read to its end, and a server that does not say where it goes on is not asked for ever.
func TestListHasPages(t *testing.T) {
	t.Parallel()
	server := s3test.New(t)
	s := open(t, server, func(o *s3.Options) { o.Prefix = "" })
	server.Break(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		hash := strings.Repeat("ab", 32)
		page, next := "1", "<IsTruncated>true</IsTruncated><NextContinuationToken>two</NextContinuationToken>"
		switch r.URL.Query().Get("continuation-token") {
		case "two":
			page, next = "2", "<IsTruncated>false</IsTruncated>"
		case "":
		default:
			t.Errorf("asked for %s", r.URL.RawQuery)
		}
		fmt.Fprintf(w, `<ListBucketResult>%s<Contents><Key>ab/%s%s</Key><LastModified>2026-01-0%sT00:00:00.000Z</LastModified><Size>7</Size></Contents>
			<Contents><Key>ab/README</Key><LastModified>2026-01-01T00:00:00Z</LastModified></Contents></ListBucketResult>`, next, hash[:63], page, page)
		return true
	})
	var got []string
	err := s.List(t.Context(), time.Now(), func(hash string, size int64) error {
		got = append(got, fmt.Sprint(hash[60:], size))
		return nil
	})
	if want := []string{"aba17", "aba27"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
	server.Break(func(w http.ResponseWriter, _ *http.Request, _ http.Handler) bool {
		fmt.Fprint(w, `<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>`)
		return true
	})
	if err := s.List(t.Context(), time.Now(), nil); err == nil {
		t.Error("a list without an end was read")
	}
}

// Buckets have names in the host, or in the path.
func TestAddresses(t *testing.T) {
	t.Parallel()
	for want, o := range map[string]s3.Options{
		"https://b.s3.eu-north-1.amazonaws.com/p/" + hash[:2] + "/" + hash:  {Bucket: "b", Prefix: "p", Region: "eu-north-1"},
		"https://s3.cn-north-1.amazonaws.com.cn/b/" + hash[:2] + "/" + hash: {Bucket: "b", Region: "cn-north-1", PathStyle: true},
		"http://b.minio:9000/" + hash[:2] + "/" + hash:                      {Bucket: "b", Endpoint: "http://minio:9000/", Region: "x"},
		"http://minio:9000/b/%2B%20%25/" + hash[:2] + "/" + hash:            {Bucket: "b", Prefix: "+ %", Endpoint: "http://minio:9000", Region: "x", PathStyle: true},
	} {
		got := ""
		o.AccessKey, o.SecretKey = "a", "b"
		o.Client = &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			got = r.URL.String()
			return httptest.NewRecorder().Result(), nil
		})}
		s, err := s3.New(o)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Put(t.Context(), hash, []byte("x")); err != nil || got != want {
			t.Errorf("%s, %v, want %s", got, err, want)
		}
	}
}

var hash = strings.Repeat("0a", 32)

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// What mends itself is tried again.
func TestFaultsThatPass(t *testing.T) {
	t.Parallel()
	b := chat.NewBlob(bytes.Repeat([]byte("x"), 200_000))
	cut := func(w http.ResponseWriter, r *http.Request, next http.Handler) {
		w.Header().Set("Content-Length", "200000")
		_, _ = w.Write(b.Data[:1000])
		panic(http.ErrAbortHandler)
	}
	for name, fault := range map[string]func(http.ResponseWriter, *http.Request, http.Handler){
		"slow down":     func(w http.ResponseWriter, _ *http.Request, _ http.Handler) { xmlError(w, 503, "SlowDown", "") },
		"internal":      func(w http.ResponseWriter, _ *http.Request, _ http.Handler) { xmlError(w, 500, "InternalError", "") },
		"a proxy's 502": func(w http.ResponseWriter, _ *http.Request, _ http.Handler) { w.WriteHeader(502) },
		"cut off":       func(http.ResponseWriter, *http.Request, http.Handler) { panic(http.ErrAbortHandler) },
		"body cut":      cut,
		"other bytes": func(w http.ResponseWriter, r *http.Request, next http.Handler) {
			if r.Method == http.MethodGet {
				_, _ = w.Write(bytes.Repeat([]byte("y"), 200_000))
				return
			}
			next.ServeHTTP(w, r)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := s3test.New(t)
			s := open(t, server, nil)
			once := func() {
				var hit atomic.Bool
				server.Break(func(w http.ResponseWriter, r *http.Request, next http.Handler) bool {
					if hit.Swap(true) {
						return false
					}
					fault(w, r, next)
					return true
				})
			}
			once()
			if err := s.Put(t.Context(), b.Hash, b.Data); err != nil {
				t.Fatal(err)
			}
			// A body that was cut looks like one that was put; here it is put for sure.
			server.Break(nil)
			if err := s.Put(t.Context(), b.Hash, b.Data); err != nil {
				t.Fatal(err)
			}
			once()
			if got, err := s.Get(t.Context(), b.Hash); err != nil || !bytes.Equal(got, b.Data) {
				t.Errorf("%d bytes, %v", len(got), err)
			}
		})
	}
}

// A removal without an answer is not repeated: what is on its way may still come, and must not meet what was put meanwhile.
func TestRemoveIsTriedOnce(t *testing.T) {
	t.Parallel()
	server := s3test.New(t)
	s := open(t, server, nil)
	server.Break(func(http.ResponseWriter, *http.Request, http.Handler) bool { panic(http.ErrAbortHandler) })
	if err := s.Remove(t.Context(), hash); !errors.Is(err, blobstorage.ErrAway) || server.Calls.Load() != 1 {
		t.Errorf("%v after %d calls", err, server.Calls.Load())
	}
}

// What stays is an error that says what helps, and nothing that is only missing is taken for it.
func TestFaultsThatStay(t *testing.T) {
	t.Parallel()
	answers := func(status int, code, more string) s3test.Fault {
		return func(w http.ResponseWriter, _ *http.Request, _ http.Handler) bool {
			xmlError(w, status, code, more)
			return true
		}
	}
	for name, c := range map[string]struct {
		change func(*s3.Options)
		fault  s3test.Fault
		away   bool
		want   string
	}{
		"no bucket":     {change: func(o *s3.Options) { o.Bucket = "nowhere" }, want: "there is no bucket nowhere"},
		"unknown key":   {change: func(o *s3.Options) { o.AccessKey = "AKIDOTHER" }, want: "does not know the access key AKIDOTHER"},
		"wrong secret":  {change: func(o *s3.Options) { o.SecretKey = "other" }, want: "the secret key is not the one of the access key AKIDTEST"},
		"clock":         {change: func(o *s3.Options) { o.Now = func() time.Time { return time.Now().Add(-3 * time.Hour) } }, want: "the clock of this machine is"},
		"denied":        {fault: answers(403, "AccessDenied", ""), want: "needs s3:GetObject, s3:PutObject"},
		"region":        {fault: answers(301, "PermanentRedirect", ""), want: "another region"},
		"region named":  {fault: answers(400, "AuthorizationHeaderMalformed", "<Region>eu-west-9</Region>"), want: "write ?region=eu-west-9"},
		"not S3":        {fault: func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool { http.NotFound(w, r); return true }, want: "check that blobUrl leads to an S3 server"},
		"always busy":   {fault: answers(503, "SlowDown", ""), away: true, want: "SlowDown"},
		"nobody there":  {change: func(o *s3.Options) { o.Endpoint = "http://127.0.0.1:1" }, away: true, want: "cannot be reached"},
		"no half a key": {change: func(o *s3.Options) { o.SecretKey = "" }, want: "blobAccessKey and blobSecretKey"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := s3test.New(t)
			s := open(t, server, func(o *s3.Options) {
				o.RetryFor = time.Nanosecond
				if c.change != nil {
					c.change(o)
				}
			})
			server.Break(c.fault)
			_, reading := s.Get(t.Context(), hash)
			_, measuring := s.Size(t.Context(), hash)
			for _, err := range []error{s.Put(t.Context(), hash, []byte("x")), reading, measuring, s.Check(t.Context())} {
				if err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, blobstorage.ErrAway) != c.away || !strings.Contains(err.Error(), c.want) && !(c.away && err == measuring) {
					t.Errorf("%v", err)
				}
				if err != nil && strings.Contains(err.Error(), s3test.SecretKey) {
					t.Errorf("the secret is shown: %v", err)
				}
			}
		})
	}
}

// A server that says nothing, or stops in the middle, does not hold anybody for longer than the limit.
func TestAServerThatHangs(t *testing.T) {
	t.Parallel()
	for _, begun := range []bool{false, true} {
		server := s3test.New(t)
		end := make(chan struct{})
		server.Break(func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
			if begun {
				w.Header().Set("Content-Length", "10")
				_, _ = w.Write([]byte("x"))
				_ = http.NewResponseController(w).Flush()
			}
			<-end
			return true
		})
		s := open(t, server, func(o *s3.Options) { o.Timeout, o.RetryFor = 50*time.Millisecond, time.Nanosecond })
		if _, err := s.Get(t.Context(), hash); !errors.Is(err, blobstorage.ErrAway) || !strings.Contains(err.Error(), "in time") {
			t.Errorf("%v", err)
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := s.Get(ended, hash); !errors.Is(err, context.Canceled) {
			t.Errorf("%v", err)
		}
		close(end)
	}
}
