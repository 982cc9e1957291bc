// Package app wires Chorus together: which parts there are, in which order they
// start and stop. It is the one place where a provider, a tool, the store and a
// transport meet.
package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/user"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"chorus/internal/bus"
	"chorus/internal/chat"
	"chorus/internal/config"
	"chorus/internal/datadir"
	"chorus/internal/doctor"
	"chorus/internal/engine"
	"chorus/internal/journal"
	"chorus/internal/notice"
	"chorus/internal/overrides"
	"chorus/internal/peernotify"
	"chorus/internal/sandbox"
	"chorus/internal/sandbox/host"
	"chorus/internal/store"
	"chorus/internal/tool/files"
	"chorus/internal/transport/discord"
)

// Options are what the outside gives.
type Options struct {
	Env     func(string) string // nil: the process's
	Environ []string            // for programs that agents start; nil: the process's
	Home    string              // "": as Env says
	Version string              // of this program
	Log     *slog.Logger        // nil: the file of the home
	Warn    func(string)        // hears what went wrong without stopping anything; nil: nobody does
	// Journal wraps the store before the engine gets it; tests kill the process in it.
	Journal func(engine.Journal) engine.Journal
	Sweep   time.Duration // between looks at what other processes did; 0: the engine's own. Tests make it long
}

// App is an opened home with everything that works on it.
type App struct {
	Options
	Home     *datadir.Home
	DB       *store.DB
	Models   *Models
	Executor sandbox.Executor
	conduct  *conduct
	shared   *config.Bot // what holds for everybody, as the start found it
	bus      *bus.Bus
	engine   *engine.Engine // nil until something must run
	agents   theRoster

	mu        sync.Mutex
	benches   map[chat.ThreadID]*bench
	locks     *files.Locks               // of files that are changed; nil: nobody has changed one yet
	adopted   []func(chat.ThreadID) bool // which threads this process may run, as far as anybody asked
	discord   *discordHouse              // nil: no bot is connected
	board     pinboard                   // what is pinned in channels
	heads     heads                      // what prompts begin with
	walls     walls                      // what is known about bubblewrap here
	notices   *notice.Board              // for sessions
	overrides *overrides.Threads
	kept      keeping
	lastRules lastRules
	bells     map[chan struct{}]bool // of those who follow the configuration
	unattend  func()                 // ends what goes on beside; nil: nothing does

	log    *logFiles // nil: somebody else's
	logged sync.Map  // what logOnce has written
	hide   hiding

	guildFiles sync.Mutex // one writer of what `/settings` keeps
	served     serving    // what the doors need

	watched watching // what machines are told

	onDiscord atomic.Pointer[discordHouse] // nil: nothing is connected

	tuneDiscord func(*discord.Options) // for tests; nil: nobody is in a hurry
	quietMinute time.Duration          // for tests; 0: a minute
}

// Open opens the home and its database. Close ends it.
func Open(ctx context.Context, o Options) (*App, error) {
	if o.Env == nil {
		o.Env = os.Getenv
	}
	if o.Environ == nil {
		o.Environ = os.Environ()
	}
	if o.Warn == nil {
		o.Warn = func(string) {}
	}
	a := &App{Options: o, bus: &bus.Bus{}, notices: &notice.Board{Fallback: o.Warn}, overrides: &overrides.Threads{}}
	dir := o.Home
	var err error
	if dir == "" {
		if dir, err = datadir.Find(o.Env); err != nil {
			return nil, err
		}
	}
	if a.Home, err = datadir.Open(dir); err != nil {
		return nil, err
	}
	if a.conduct, err = openConduct(o.Env, a.Home); err != nil {
		return nil, err
	}
	if a.Log == nil {
		a.Log = a.openLog()
	}
	if a.shared, err = a.bot(""); err != nil {
		return nil, err
	}
	a.Models = NewModels(o.Env, a.shared.DefaultProvider, a.shared.DefaultModel).In(a.Home)
	a.Models.patience = patienceOf(a.shared)
	a.Executor = host.New(o.Environ)
	path, err := databasePath(a.Home, a.shared)
	if err != nil {
		return nil, err
	}
	a.DB, err = store.Open(ctx, store.Options{Path: path, BlobDir: a.Home.Blobs(), Durability: a.shared.Durability})
	if err != nil {
		return nil, err
	}
	return a, nil
}

// Engine starts the engine on first use. It runs, and takes over from processes that
// died, the threads that adopt allows, now or in an earlier call; nil: no further ones.
func (a *App) Engine(adopt func(chat.ThreadID) bool) *engine.Engine {
	a.mu.Lock()
	defer a.mu.Unlock()
	if adopt != nil {
		a.adopted = append(a.adopted, adopt)
	}
	if a.engine != nil {
		return a.engine
	}
	var j engine.Journal = a.DB
	if a.Journal != nil {
		j = a.Journal(j)
	}
	if a.watched.counts != nil {
		j = timed{j, a.watched.counts}
	}
	a.follow()
	a.engine = engine.New(engine.Config{
		Journal: j, Bus: a.bus, Setup: a.setupAsking, Takes: a.takes, Adopt: a.adopts, LockDir: a.Home.Locks(),
		MaxWaiting: a.shared.MaxQueuedReplies, IdleAfter: time.Duration(a.shared.IdleTimeoutMS) * time.Millisecond, Log: a.Log,
		Bounds: boundsOf(a.shared), FirstSweep: firstSweep, SweepEvery: a.Sweep, Neighbours: peernotify.In(a.Home.Bells()),
	})
	return a.engine
}

// firstSweep lets a start ask its model before it looks for what others left behind.
const firstSweep = 50 * time.Millisecond

// examine looks at this home as doctor does.
func (a *App) examine(ctx context.Context) doctor.Report {
	return Examine(ctx, CheckOptions{Env: a.Env, Environ: a.Environ, Home: a.Home.Dir(), Warn: a.Warn}, Examination{Version: a.Version})
}

// running is the engine; nil until something must run.
func (a *App) running() *engine.Engine { return a.engine }

// adopts reports whether somebody in this process wants the thread to be run here.
func (a *App) adopts(thread chat.ThreadID) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.ContainsFunc(a.adopted, func(adopt func(chat.ThreadID) bool) bool { return adopt(thread) })
}

// stopTimeout is how long a stop waits for tools and streams to let go.
const stopTimeout = 10 * time.Second

// Close stops what runs and closes the store. What was on goes on at the next start.
func (a *App) Close() error {
	var errs []error
	a.stopStreams()
	if a.engine != nil {
		ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
		defer cancel()
		errs = append(errs, a.engine.Stop(ctx))
	}
	if a.unattend != nil {
		a.unattend()
	}
	errs = append(errs, a.closeBenches())
	a.watched.close()
	errs = append(errs, a.DB.Close())
	a.closeLog()
	return errors.Join(errs...)
}

// Me is the person at this terminal.
func (a *App) Me() chat.Principal { return Me(a.Env) }

// Me is the person at this terminal, without a home.
func Me(env func(string) string) chat.Principal {
	name := env("USER")
	if name == "" {
		if u, err := user.Current(); err == nil {
			name = u.Username
		} else {
			name = strconv.Itoa(os.Getuid())
		}
	}
	return chat.Principal{Kind: chat.LocalUser, ID: name, Name: name, Roles: []string{"owner"}}
}

// FindThread finds a thread by its whole id, or by the end of it that people see:
// the session id or a unique beginning of one.
func (a *App) FindThread(ctx context.Context, name string) (journal.Thread, error) {
	if id, err := chat.ParseThreadID(name); err == nil {
		row, err := a.DB.Thread(ctx, id)
		if errors.Is(err, journal.ErrUnknown) {
			return row, fmt.Errorf("there is no thread %s: %w; `chorus thread list` shows them", name, err)
		}
		return row, err
	}
	found, err := a.DB.ThreadsNamed(ctx, name)
	if err != nil {
		return journal.Thread{}, err
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return journal.Thread{}, fmt.Errorf("there is no thread %q: %w; `chorus thread list` shows them", name, journal.ErrUnknown)
	default:
		return journal.Thread{}, fmt.Errorf("%q is the beginning of %d threads; give more of it", name, len(found))
	}
}
