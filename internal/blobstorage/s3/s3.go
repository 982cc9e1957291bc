// Package s3 stores blobs in a bucket of Amazon S3, or of a server with
// the same protocol, such as MinIO, Ceph or Garage.
//
// It makes the five calls that it needs over net/http; the vendor's library signs them. Each
// call ends: an attempt is limited to a time that grows with its bytes, and what failed because
// the server was away, busy or disconnected is retried for some seconds. If retrying does not
// help, the error names the bucket and what helps.
package s3

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"chorus/internal/awsauth"
	"chorus/internal/blobstorage"
	"chorus/internal/digest"
)

// Options say where the bucket is and how to reach it.
type Options struct {
	Bucket    string
	Prefix    string // prefix of all names, without slashes at its ends; "" for none
	Endpoint  string // https://host[:port] of the server; "": Amazon's in the region
	Region    string // "": from the environment or the profile, or else us-east-1
	Profile   string // of the AWS configuration files
	PathStyle bool   // https://host/bucket/name instead of https://bucket.host/name
	AccessKey string // with SecretKey; "": found like Amazon's own programs do
	SecretKey string

	Client   *http.Client     // nil: a new one
	Now      func() time.Time // nil: time.Now
	RetryFor time.Duration    // how long an unavailable server is retried; 0: 10 s
	Timeout  time.Duration    // per attempt, in addition to the time for its bytes; 0: 15 s
}

const (
	defaultRetryFor = 10 * time.Second
	defaultTimeout  = 15 * time.Second
	maxTries        = 6
	// slowest is the lowest expected speed of the connection, in bytes per second.
	slowest = 256 << 10
	// maxObject limits what is read into memory; blobs are far smaller.
	maxObject   = 1 << 30
	maxReport   = 64 << 10 // of an error
	maxPage     = 16 << 20 // of a list
	emptySHA256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
)

// Storage is a bucket, or the part of it below a prefix.
type Storage struct {
	o     Options
	base  *url.URL // of the server, without a path
	chain *awsauth.Chain
}

var _ blobstorage.Storage = (*Storage)(nil)

// New creates a storage. It makes no request.
func New(o Options) (*Storage, error) {
	if o.Bucket == "" {
		return nil, errors.New("no bucket is named")
	}
	s := &Storage{o: o, chain: awsauth.New(awsauth.Options{AccessKey: o.AccessKey, SecretKey: o.SecretKey, Region: o.Region, Profile: o.Profile})}
	if o.Endpoint != "" {
		base, err := url.Parse(o.Endpoint)
		if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" || strings.Trim(base.Path, "/") != "" || base.RawQuery != "" || base.User != nil {
			return nil, fmt.Errorf("the endpoint %q is not one: it is written https://HOST or https://HOST:PORT", o.Endpoint)
		}
		s.base = &url.URL{Scheme: base.Scheme, Host: base.Host}
	}
	if o.Client == nil {
		transport := http.DefaultTransport.(*http.Transport).Clone()
		transport.MaxIdleConnsPerHost, transport.IdleConnTimeout = 8, 45*time.Second
		s.o.Client = &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	}
	if o.Now == nil {
		s.o.Now = time.Now
	}
	s.o.RetryFor, s.o.Timeout = cmp.Or(o.RetryFor, defaultRetryFor), cmp.Or(o.Timeout, defaultTimeout)
	return s, nil
}

// Name implements blobstorage.Storage. It does not include the endpoint,
// because machines may reach one server by different names.
func (s *Storage) Name() string {
	return strings.TrimSuffix("s3://"+s.o.Bucket+"/"+s.o.Prefix, "/")
}

// Close implements blobstorage.Storage.
func (s *Storage) Close() error {
	s.o.Client.CloseIdleConnections()
	return nil
}

// below returns the prefix of every name.
func (s *Storage) below() string {
	if s.o.Prefix == "" {
		return ""
	}
	return s.o.Prefix + "/"
}

func (s *Storage) key(hash string) string { return s.below() + hash[:2] + "/" + hash }

// Put implements blobstorage.Storage. The hash is signed with the request, so a server
// that checks signatures refuses bytes that were changed in transit.
func (s *Storage) Put(ctx context.Context, hash string, data []byte) error {
	return s.again(ctx, func(ctx context.Context) error {
		_, _, err := s.do(ctx, call{method: http.MethodPut, key: s.key(hash), payload: hash, body: data})
		return err
	})
}

// Get implements blobstorage.Storage. If the bytes do not match the hash, they are
// read a second time, because they may have changed in transit.
func (s *Storage) Get(ctx context.Context, hash string) (data []byte, err error) {
	for range 2 {
		err = s.again(ctx, func(ctx context.Context) (err error) {
			_, data, err = s.do(ctx, call{method: http.MethodGet, key: s.key(hash), most: maxObject})
			return err
		})
		if err != nil || digest.Of(data) == hash {
			break
		}
	}
	return data, err
}

// Size implements blobstorage.Storage.
func (s *Storage) Size(ctx context.Context, hash string) (size int64, err error) {
	err = s.again(ctx, func(ctx context.Context) error {
		head, _, err := s.do(ctx, call{method: http.MethodHead, key: s.key(hash)})
		size = head.length
		if failed, ok := errors.AsType[*Error](err); ok && !failed.busy() {
			// A response to HEAD has no body, so it cannot say whether the bytes or the bucket are
			// missing, or what else is wrong. A wrong bucket must not make a blob count as lost.
			head, _, err = s.do(ctx, call{method: http.MethodGet, key: s.key(hash), first: true, most: maxObject})
			size = head.length
		}
		return err
	})
	return size, err
}

// Remove implements blobstorage.Storage. An attempt without a response
// may still be carried out, so it is not repeated.
func (s *Storage) Remove(ctx context.Context, hash string) error {
	_, _, err := s.do(ctx, call{method: http.MethodDelete, key: s.key(hash)})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// page is a response to ListObjectsV2.
type page struct {
	Contents []struct {
		Key          string
		LastModified time.Time
		Size         int64
	}
	IsTruncated           bool
	NextContinuationToken string
}

// List implements blobstorage.Storage.
func (s *Storage) List(ctx context.Context, before time.Time, found func(hash string, size int64) error) error {
	for token := ""; ; {
		list, err := s.list(ctx, token, 0)
		if err != nil {
			return err
		}
		for _, object := range list.Contents {
			hash, ours := strings.CutPrefix(object.Key, s.below())
			folder, hash, _ := strings.Cut(hash, "/")
			if !ours || !blobstorage.IsHash(hash) || folder != hash[:2] || !object.LastModified.Before(before) {
				continue
			}
			if err := found(hash, object.Size); err != nil {
				return err
			}
		}
		if !list.IsTruncated {
			return nil
		}
		if list.NextContinuationToken == "" || list.NextContinuationToken == token {
			return fmt.Errorf("%s: the server says that its list goes on, and not where", s.Name())
		}
		token = list.NextContinuationToken
	}
}

func (s *Storage) list(ctx context.Context, token string, most int) (list page, err error) {
	query := url.Values{"list-type": {"2"}, "prefix": {s.below()}}
	if token != "" {
		query.Set("continuation-token", token)
	}
	if most > 0 {
		query.Set("max-keys", strconv.Itoa(most))
	}
	err = s.again(ctx, func(ctx context.Context) error {
		_, body, err := s.do(ctx, call{method: http.MethodGet, query: query, most: maxPage})
		if err != nil {
			return err
		}
		list = page{}
		if err := xml.Unmarshal(body, &list); err != nil {
			return &Error{where: s, Status: http.StatusOK, Message: "its list cannot be read: " + err.Error()}
		}
		return nil
	})
	return list, err
}

// Owner implements blobstorage.Storage.
func (s *Storage) Owner(ctx context.Context) (string, error) {
	var name []byte
	err := s.again(ctx, func(ctx context.Context) (err error) {
		_, name, err = s.do(ctx, call{method: http.MethodGet, key: s.below() + blobstorage.OwnerFile, most: maxReport})
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return strings.TrimSpace(string(name)), err
}

// SetOwner implements blobstorage.Storage.
func (s *Storage) SetOwner(ctx context.Context, owner string) error {
	return s.put(ctx, s.below()+blobstorage.OwnerFile, []byte(owner+"\n"))
}

// put stores something other than a blob.
func (s *Storage) put(ctx context.Context, key string, data []byte) error {
	payload := digest.Of(data)
	return s.again(ctx, func(ctx context.Context) error {
		_, _, err := s.do(ctx, call{method: http.MethodPut, key: key, payload: payload, body: data})
		return err
	})
}

// Check implements blobstorage.Storage.
func (s *Storage) Check(ctx context.Context) error {
	key, data := s.below()+".probe-"+rand.Text(), []byte("written by chorus doctor")
	if err := s.put(ctx, key, data); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	_, read, err := s.do(ctx, call{method: http.MethodGet, key: key, most: maxReport})
	if err != nil {
		return fmt.Errorf("read: %w", err)
	}
	if !bytes.Equal(read, data) {
		return fmt.Errorf("read: %s gives other bytes than were put", s.Name())
	}
	if _, err := s.list(ctx, "", 1); err != nil {
		return fmt.Errorf("list: %w", err)
	}
	if _, _, err := s.do(ctx, call{method: http.MethodDelete, key: key}); err != nil {
		return fmt.Errorf("remove: %w", err)
	}
	return nil
}

// call is one request.
type call struct {
	method  string
	key     string // "" for the bucket
	query   url.Values
	payload string // the SHA-256 of the body; "" if there is none
	body    []byte
	first   bool  // only the first byte is needed
	most    int64 // maximum length of the response body
}

// answer is what is needed from a response besides its body.
type answer struct{ length int64 }

// do makes one attempt. Its time limit grows with the number of bytes.
func (s *Storage) do(ctx context.Context, c call) (answer, []byte, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	limit := s.o.Timeout + carrying(int64(len(c.body)))
	timer := time.AfterFunc(limit, func() { cancel(errSlow) })
	defer timer.Stop()
	req, keys, err := s.request(ctx, c)
	if err != nil {
		return answer{}, nil, err
	}
	res, err := s.o.Client.Do(req)
	if err != nil {
		return answer{}, nil, s.unreachable(ctx, err)
	}
	defer res.Body.Close()
	ok := res.StatusCode >= 200 && res.StatusCode < 300
	most := int64(maxReport)
	if ok {
		most = cmp.Or(c.most, most)
	}
	timer.Reset(s.o.Timeout + carrying(min(res.ContentLength, most)))
	body, err := io.ReadAll(io.LimitReader(res.Body, most+1))
	switch {
	case err != nil && c.method != http.MethodHead:
		return answer{}, nil, s.unreachable(ctx, err)
	case !ok:
		return answer{}, nil, s.refused(res, body, keys)
	case int64(len(body)) > most:
		return answer{}, nil, &Error{where: s, Status: res.StatusCode, Message: "its answer is longer than any that is expected"}
	}
	length := res.ContentLength
	if _, all, ok := strings.Cut(res.Header.Get("Content-Range"), "/"); ok { // bytes 0-0/1234
		if length, err = strconv.ParseInt(all, 10, 64); err != nil {
			return answer{}, nil, &Error{where: s, Status: res.StatusCode, Message: "it does not say how long an object is"}
		}
	}
	return answer{length: length}, body, nil
}

// carrying returns how long a number of bytes may take.
func carrying(n int64) time.Duration {
	return time.Duration(max(n, 0)) * time.Second / slowest
}

// errSlow ends an attempt that took too long.
var errSlow = errors.New("there was no answer in time")

// request builds and signs a request.
func (s *Storage) request(ctx context.Context, c call) (*http.Request, awsauth.Keys, error) {
	keys, err := s.chain.Credentials(ctx)
	if err != nil {
		return nil, keys, &Error{where: s, Code: "NoCredentials", Message: err.Error()}
	}
	region, _ := s.chain.Region(ctx) // an unreadable profile already caused an error above
	region = cmp.Or(region, "us-east-1")
	address := s.address(region, c.key)
	address.RawQuery = c.query.Encode()
	req, err := http.NewRequestWithContext(ctx, c.method, address.String(), bytes.NewReader(c.body))
	if err != nil {
		return nil, keys, err
	}
	payload := cmp.Or(c.payload, emptySHA256)
	req.Header.Set("X-Amz-Content-Sha256", payload)
	if c.payload != "" {
		req.Header.Set("Content-Type", "application/octet-stream")
	}
	if c.first {
		req.Header.Set("Range", "bytes=0-0")
	}
	return req, keys, keys.Sign(ctx, req, payload, "s3", region, true, s.o.Now())
}

// address returns the URL of a name.
func (s *Storage) address(region, key string) *url.URL {
	var at url.URL
	if s.base != nil {
		at = *s.base
	} else {
		at = url.URL{Scheme: "https", Host: "s3." + region + ".amazonaws.com"}
		if strings.HasPrefix(region, "cn-") {
			at.Host += ".cn"
		}
	}
	path := "/" + key
	if s.o.PathStyle {
		path = strings.TrimSuffix("/"+s.o.Bucket+"/"+key, "/")
	} else {
		at.Host = s.o.Bucket + "." + at.Host
	}
	at.Path, at.RawPath = path, escaped(path)
	return &at
}

// escaped returns a path as S3 signs it: everything but letters, digits and a few signs is percent-encoded.
func escaped(path string) string {
	var out strings.Builder
	for i := range len(path) {
		c := path[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("/-._~", c) >= 0 {
			out.WriteByte(c)
		} else {
			fmt.Fprintf(&out, "%%%02X", c)
		}
	}
	return out.String()
}
