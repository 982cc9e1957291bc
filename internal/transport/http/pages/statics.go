package pages

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"mime"
	"net/http"
	"path"
	"strings"
)

//go:embed static/*
var staticFiles embed.FS

// statics serves what never changes while the program runs: packed once, in a folder
// named by what is in it, and kept by browsers for good. One folder for all, so that a
// module that imports another gets the one that the page has.
type statics struct {
	files map[string]staticFile
	sum   string
}

type staticFile struct {
	plain, packed []byte
	media         string
}

func loadStatics() (*statics, error) {
	s := &statics{files: map[string]staticFile{}}
	entries, err := staticFiles.ReadDir("static")
	if err != nil {
		return nil, err
	}
	all := sha256.New()
	for _, e := range entries {
		data, err := staticFiles.ReadFile("static/" + e.Name())
		if err != nil {
			return nil, err
		}
		var packed bytes.Buffer
		z, _ := gzip.NewWriterLevel(&packed, gzip.BestCompression)
		if _, err := z.Write(data); err != nil {
			return nil, err
		}
		if err := z.Close(); err != nil {
			return nil, err
		}
		all.Write(data)
		s.files[e.Name()] = staticFile{data, packed.Bytes(), mediaOf(e.Name())}
	}
	s.sum = hex.EncodeToString(all.Sum(nil)[:6])
	return s, nil
}

func mediaOf(name string) string {
	switch path.Ext(name) {
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	case ".webmanifest":
		return "application/manifest+json"
	}
	return mime.TypeByExtension(path.Ext(name))
}

// href is the address of a file as it is now.
func (s *statics) href(name string) string { return "/static/" + s.sum + "/" + name }

// ServeHTTP implements http.Handler.
func (s *statics) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	folder, name, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/static/"), "/")
	f, ok := s.files[name]
	if !ok {
		http.Error(w, "there is no such file", http.StatusNotFound)
		return
	}
	h := w.Header()
	h.Set("Content-Type", f.media)
	h.Set("Vary", "Accept-Encoding")
	h.Set("Cache-Control", "no-cache") // an older page asks for what is no more
	if folder == s.sum {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	body := f.plain
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		h.Set("Content-Encoding", "gzip")
		body = f.packed
	}
	_, _ = w.Write(body)
}
