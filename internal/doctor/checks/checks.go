package checks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"chorus/internal/config"
	"chorus/internal/database"
	"chorus/internal/datadir"
	"chorus/internal/doctor"
	"chorus/internal/logging"
	"chorus/internal/notice"
	"chorus/internal/provider"
	"chorus/internal/sandbox/isolate"
	"chorus/internal/settings"
	"chorus/internal/store"
	"chorus/internal/text"
)

// Options say which home is examined.
type Options struct {
	Env     func(string) string // nil: the process's
	Environ []string            // for programs that are tried; nil: the process's
	Home    string              // "": as Env says
	Warn    func(string)        // nil: warnings are dropped
}

// newUnopened returns a home of which nothing was read.
func newUnopened(o Options) *Checks {
	log := slog.New(slog.DiscardHandler)
	notices := &notice.Board{}
	logs := &logging.Logs{Env: o.Env, Environ: o.Environ, Log: log, Warn: o.Warn}
	return &Checks{Env: o.Env, Environ: o.Environ, Log: log, Settings: &settings.Settings{Env: o.Env, Warn: o.Warn, Logs: logs},
		Isolation: &isolate.Isolation{Env: o.Env, Environ: o.Environ, Log: log, Notices: notices, Logs: logs}}
}

// Examination says how thorough to be.
type Examination struct {
	Version  string         // of this program
	Online   bool           // ask the vendors whether they accept the keys
	Thorough bool           // read the whole database and audit log, however long it takes
	Heard    func([]string) // receives the sections that are not finished; may be nil
}

// How long each kind of check may take. Without --online and --thorough everything is
// over in a few seconds, because the checks run at the same time.
const (
	readTime     = 3 * time.Second  // for reading a database that may be big
	sandboxTime  = 5 * time.Second  // for trying sandboxes, even on a busy machine
	onlineTime   = 15 * time.Second // for vendors
	thoroughTime = 30 * time.Minute
)

// Examine checks everything and changes nothing. It does not open the home in
// the usual way, because it must work when that fails.
func Examine(ctx context.Context, o Options, e Examination) doctor.Report {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	p := newChecker(ctx, o, e)
	defer p.close()
	defer cancel() // before the store is closed: a read in progress would hold it
	reading, asking := readTime, readTime
	if e.Thorough {
		reading = thoroughTime
	}
	if e.Online {
		asking = onlineTime
	}
	return doctor.Run(ctx, []doctor.Check{
		{Section: "program", Do: p.program},
		{Section: "home", Do: p.homeFolder},
		{Section: "home", Do: p.Locks},
		{Section: "database", Do: p.database},
		{Section: "database", Within: reading, Do: p.sound},
		{Section: "database", Within: reading, Do: p.attachments},
		{Section: "database", Within: reading, Do: p.blobs},
		{Section: "database", Within: reading, Do: p.contexts},
		{Section: "database", Within: max(reading, storageTime), Do: p.storage},
		{Section: "configuration", Do: p.configuration},
		{Section: "audit log", Within: reading, Do: p.audit},
		{Section: "models", Within: asking, Do: p.models},
		{Section: "models", Do: p.Local},
		{Section: "tools", Do: p.tools},
		{Section: "MCP servers", Do: p.servers},
		{Section: "sandboxes", Within: sandboxTime, Do: p.sandbox},
		{Section: "budgets", Do: p.budgets},
		{Section: "approvals", Do: p.approvals},
	}, e.Heard)
}

// checker is a home that may be broken.
type checker struct {
	Examination
	app  *Checks // not opened: without a store, and with a configuration only if that is usable
	lost error   // why the location of the home is not known

	db     atomic.Pointer[store.DB] // once it is open
	found  func() foundHome
	read   func() readConfig
	opened func() openedStore
}

// foundHome is the folder before anything in it is read.
type foundHome struct {
	there bool
	err   error // why nothing in it can be read
}

// readConfig is the configuration, as far as it is usable.
type readConfig struct {
	files    *config.Files
	problems config.Problems
	err      error       // what is wrong besides the problems
	bot      *config.Bot // the configuration for everybody; nil: something is broken
}

// openedStore is the database, as far as it is usable.
type openedStore struct {
	database.Inspection
	err error     // why it is not usable
	db  *store.DB // nil: it is not usable, or is of an older version
}

// newChecker returns what the checks of one examination share. Nothing is opened before a check needs it.
func newChecker(ctx context.Context, o Options, e Examination) *checker {
	o = o.complete()
	p := &checker{Examination: e, app: newUnopened(o)}
	dir, err := settings.HomeFolder(o.Env, o.Home)
	p.lost, p.app.Home = err, datadir.At(dir)
	p.app.Settings.Home, p.app.Isolation.Home = p.app.Home, p.app.Home
	p.found = sync.OnceValue(func() foundHome { return findHome(dir, p.lost) })
	p.app.Models = provider.NewModels(o.Env, "", "").In(p.app.Home)
	p.read = sync.OnceValue(p.readConfig)
	p.opened = sync.OnceValue(func() openedStore { return p.openStore(ctx) })
	return p
}

// complete fills empty options with the process's values.
func (o Options) complete() Options {
	if o.Env == nil {
		o.Env = os.Getenv
	}
	if o.Environ == nil {
		o.Environ = os.Environ()
	}
	if o.Warn == nil {
		o.Warn = func(string) {}
	}
	return o
}

func findHome(dir string, lost error) foundHome {
	if lost != nil {
		return foundHome{err: lost}
	}
	_, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return foundHome{}
	}
	if err == nil {
		_, err = os.ReadDir(dir)
	}
	return foundHome{there: true, err: err}
}

// errNoHome refers to the check of the folder, which says what is wrong with it.
var errNoHome = errors.New("the home folder cannot be read")

// close does not wait for a check that hangs in a dead file system.
func (p *checker) close() {
	if db := p.db.Load(); db != nil {
		_ = db.Close() // nothing was written
	}
}

func (p *checker) readConfig() readConfig {
	env := p.app.Env
	if p.found().err != nil {
		return readConfig{err: errNoHome}
	}
	var out readConfig
	o, err := settings.ConfigOptions(env, p.app.Home.Dir(), "")
	if err != nil {
		return readConfig{err: err}
	}
	out.files, out.problems, out.err = settings.CheckConfig(o, env, p.app.Home.Dir())
	if out.err != nil || out.problems.Err() != nil {
		return out
	}
	bot, problems := out.files.Bot(config.Ask{})
	if out.err = problems.Err(); out.err == nil {
		out.bot = bot
	}
	return out
}

// openStore opens the database only if that changes nothing: it exists, is of this version, and can be read.
func (p *checker) openStore(ctx context.Context) openedStore {
	var out openedStore
	if home := p.found(); home.err != nil || !home.there {
		if home.err != nil {
			out.err = errNoHome
		}
		return out
	}
	looking, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	at, err := settings.DatabaseOf(p.app.Home, p.read().bot)
	if err != nil {
		out.err = err
		return out
	}
	if at.OnServer() {
		out.Inspection, out.err = store.InspectServer(looking, string(at.URL))
	} else {
		out.Inspection, out.err = store.Inspect(looking, at.Path, p.app.Home.Blobs())
	}
	if out.err == nil && out.Exists && !out.Older() {
		out.db, out.err = store.Open(looking, at.Options(p.app.Home))
		p.db.Store(out.db)
	}
	return out
}

// databaseAt returns where the database is. If that cannot be determined, it returns the home's.
func (p *checker) databaseAt() settings.Database {
	if at, err := settings.DatabaseOf(p.app.Home, p.read().bot); err == nil {
		return at
	}
	return settings.Database{Path: p.app.Home.DB()}
}

// databasePath returns the database file, or "" if the database is on a server.
func (p *checker) databasePath() string { return p.databaseAt().Path }

// withStore runs a check that needs the database, or says why there is none.
func (p *checker) withStore(name string, do func(*store.DB) []doctor.Finding) []doctor.Finding {
	s := p.opened()
	switch {
	case s.db != nil:
		return do(s.db)
	case s.err != nil:
		return []doctor.Finding{doctor.Noted(name, "", "not checked: %s", unopened(s.err))}
	case s.Older():
		return []doctor.Finding{doctor.Noted(name, "chorus migrate", "not checked: the database is of an older version")}
	default:
		return []doctor.Finding{doctor.Good(name, "none yet")}
	}
}

func unopened(err error) string {
	if errors.Is(err, errNoHome) {
		return err.Error()
	}
	return "the database cannot be opened"
}

func (p *checker) program(context.Context) []doctor.Finding {
	return []doctor.Finding{
		doctor.Good("version", "chorus %s", cmp.Or(p.Version, "dev")),
		doctor.Good("go", "%s", runtime.Version()),
		doctor.Good("platform", "%s/%s, %s", runtime.GOOS, runtime.GOARCH, text.Count(runtime.NumCPU(), "core")),
	}
}

// bytesWords formats a size for people.
func bytesWords(n int64) string {
	for _, unit := range []struct {
		bytes int64
		name  string
	}{{1 << 40, "TiB"}, {1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if n >= unit.bytes {
			return fmt.Sprintf("%.1f %s", float64(n)/float64(unit.bytes), unit.name)
		}
	}
	return fmt.Sprintf("%d bytes", n)
}
