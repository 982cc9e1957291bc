package settings

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"chorus/internal/blobstorage"
	"chorus/internal/config"
	"chorus/internal/database"
	"chorus/internal/datadir"
	"chorus/internal/store"
)

// Database is where the journal is stored: a file, or a database on a PostgreSQL server.
type Database struct {
	Path string        // of the file; "" with a server
	URL  config.Secret // of the server's database; "" with a file
	// Blobs is where large blobs are stored outside the database and the home; nil: nowhere.
	Blobs blobstorage.Storage
}

// String returns the file, or the server's URL without its password.
func (d Database) String() string {
	if d.URL != "" {
		return database.RedactURL(string(d.URL))
	}
	return d.Path
}

// OnServer reports whether the database is on a server.
func (d Database) OnServer() bool { return d.URL != "" }

// Options returns the options with which it is opened.
func (d Database) Options(h *datadir.Home) store.Options {
	if d.OnServer() {
		return store.Options{URL: string(d.URL), Blobs: d.Blobs}
	}
	return store.Options{Path: d.Path, BlobDir: h.Blobs(), Blobs: d.Blobs}
}

// DatabaseIn returns where a home's journal is stored, for callers that do not open it.
func DatabaseIn(env func(string) string, dir string) (Database, error) {
	return Elsewhere{}.In(env, dir)
}

// Elsewhere says from or to where data is moved, other than what the
// configuration of a home says; "" means as configured.
type Elsewhere struct{ DatabaseURL, BlobURL string }

// In returns where the journal of a home would then be stored.
func (e Elsewhere) In(env func(string) string, dir string) (Database, error) {
	h, err := datadir.Open(dir)
	if err != nil {
		return Database{}, err
	}
	c, err := OpenLiveConfig(env, h)
	if err != nil {
		return Database{}, err
	}
	found, problems := c.Now().Bot(config.Ask{})
	if err := problems.Err(); err != nil {
		return Database{}, err
	}
	bot := *found
	bot.DatabaseURL = config.Secret(cmp.Or(e.DatabaseURL, string(bot.DatabaseURL)))
	bot.BlobURL = cmp.Or(e.BlobURL, bot.BlobURL)
	return DatabaseOf(h, &bot)
}

// DatabaseOf returns where the journal is stored: in the home, or where databaseUrl says. What
// this build does not support is an error instead of being ignored: whoever names a server
// must not find out later that nothing was ever written there.
func DatabaseOf(h *datadir.Home, bot *config.Bot) (Database, error) {
	if bot == nil {
		return Database{Path: h.DB()}, nil
	}
	blobs, err := BlobsOf(bot)
	if err != nil {
		return Database{}, err
	}
	at, err := databaseOf(h, strings.TrimSpace(string(bot.DatabaseURL)))
	at.Blobs = blobs
	return at, err
}

func databaseOf(h *datadir.Home, url string) (Database, error) {
	kind, rest, ok := strings.Cut(url, ":")
	switch {
	case url == "":
		return Database{Path: h.DB()}, nil
	case database.IsPostgres(url):
		return Database{URL: config.Secret(url)}, nil
	case ok && (kind == "sqlite" || kind == "file"):
		path, err := databaseFile(h, rest)
		return Database{Path: path}, err
	default:
		return Database{}, errors.New("databaseUrl must be postgres://USER:PASSWORD@HOST/DATABASE or sqlite:PATH (it is a secret, so it is not shown here); leave it out for chorus.db in the home folder")
	}
}

func databaseFile(h *datadir.Home, path string) (string, error) {
	if rest, ok := strings.CutPrefix(path, "//"); ok {
		host, below, _ := strings.Cut(rest, "/")
		if host != "" && host != "localhost" {
			return "", fmt.Errorf("databaseUrl: a file on another machine cannot be used; write three slashes for a file on this one (sqlite:///%s/%s)", host, below)
		}
		path = "/" + below
	}
	if path == "" || strings.ContainsAny(path, "?#") || strings.HasSuffix(path, "/") {
		return "", errors.New("databaseUrl: sqlite: must be followed by the path of a file, without parameters")
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(h.Dir(), path)
	}
	return filepath.Clean(path), nil
}
