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
var assetFiles embed.FS

// assets serves the embedded files, compressed once. Their paths contain a hash of all files, so browsers can cache them
// forever. There is one hash for all, so that a module that imports another gets the version of the same page.
type assets struct {
	files   map[string]asset
	version string
}

type asset struct {
	plain, gzipped []byte
	media          string
}

func loadAssets() (*assets, error) {
	s := &assets{files: map[string]asset{}}
	entries, err := assetFiles.ReadDir("static")
	if err != nil {
		return nil, err
	}
	all := sha256.New()
	z, err := gzip.NewWriterLevel(nil, gzip.BestCompression) // shared by all: each takes a megabyte
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		data, err := assetFiles.ReadFile("static/" + e.Name())
		if err != nil {
			return nil, err
		}
		var packed bytes.Buffer
		z.Reset(&packed)
		if _, err := z.Write(data); err != nil {
			return nil, err
		}
		if err := z.Close(); err != nil {
			return nil, err
		}
		all.Write(data)
		s.files[e.Name()] = asset{data, packed.Bytes(), mediaType(e.Name())}
	}
	s.version = hex.EncodeToString(all.Sum(nil)[:6])
	return s, nil
}

func mediaType(name string) string {
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

// href returns the path of a file in this version.
func (s *assets) href(name string) string { return "/static/" + s.version + "/" + name }

func (s *assets) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	folder, name, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/static/"), "/")
	f, ok := s.files[name]
	if !ok {
		http.Error(w, "file not found", http.StatusNotFound)
		return
	}
	h := w.Header()
	h.Set("Content-Type", f.media)
	h.Set("Vary", "Accept-Encoding")
	h.Set("Cache-Control", "no-cache") // the path is of another version
	if folder == s.version {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	body := f.plain
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		h.Set("Content-Encoding", "gzip")
		body = f.gzipped
	}
	_, _ = w.Write(body)
}
