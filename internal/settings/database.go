package settings

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"chorus/internal/config"
	"chorus/internal/datadir"
)

// DatabasePath is the file of a home's database, for those who do not open it.
func DatabasePath(env func(string) string, dir string) (string, error) {
	h, err := datadir.Open(dir)
	if err != nil {
		return "", err
	}
	c, err := OpenLiveConfig(env, h)
	if err != nil {
		return "", err
	}
	bot, problems := c.Now().Bot(config.Ask{})
	if err := problems.Err(); err != nil {
		return "", err
	}
	return DatabaseOf(h, bot)
}

// DatabaseOf is the file that the journal lives in: in the home, or where databaseUrl
// says. What this build cannot do is refused instead of being passed over: whoever names a
// server must not find out later that nothing was ever written there.
func DatabaseOf(h *datadir.Home, bot *config.Bot) (string, error) {
	if bot == nil {
		return h.DB(), nil
	}
	url := strings.TrimSpace(string(bot.DatabaseURL))
	kind, rest, ok := strings.Cut(url, ":")
	switch {
	case url == "":
		return h.DB(), nil
	case ok && (kind == "postgres" || kind == "postgresql"):
		return "", errors.New("databaseUrl names a PostgreSQL server, but this Chorus keeps its journal in SQLite only; leave it out, or say sqlite:PATH")
	case ok && (kind == "sqlite" || kind == "file"):
		return databaseFile(h, rest)
	default:
		return "", errors.New("databaseUrl must be sqlite:PATH (it is a secret, so it is not shown here); leave it out for chorus.db in the home folder")
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
