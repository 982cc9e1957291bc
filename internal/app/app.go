package app

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/user"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"chorus/internal/background"
	"chorus/internal/background/watch"
	"chorus/internal/backup"
	"chorus/internal/bus"
	"chorus/internal/chat"
	"chorus/internal/config"
	connect "chorus/internal/connector/host"
	"chorus/internal/datadir"
	"chorus/internal/doctor"
	"chorus/internal/doctor/checks"
	"chorus/internal/engine"
	"chorus/internal/gate"
	"chorus/internal/hook/runner"
	"chorus/internal/imagecache"
	"chorus/internal/logging"
	"chorus/internal/memory"
	"chorus/internal/mirror"
	"chorus/internal/node"
	"chorus/internal/notice"
	"chorus/internal/overrides"
	"chorus/internal/owner"
	"chorus/internal/peernotify/natsnotify"
	"chorus/internal/provider"
	"chorus/internal/runsetup"
	"chorus/internal/sandbox"
	"chorus/internal/sandbox/host"
	"chorus/internal/sandbox/isolate"
	"chorus/internal/schedule"
	"chorus/internal/schedule/clock"
	"chorus/internal/service"
	"chorus/internal/service/memories"
	"chorus/internal/service/processes"
	"chorus/internal/service/savedcontext"
	"chorus/internal/service/schedules"
	"chorus/internal/service/summary"
	"chorus/internal/settings"
	"chorus/internal/skill/approved"
	"chorus/internal/store"
	hookstore "chorus/internal/store/hooks"
	processstore "chorus/internal/store/processes"
	schedulestore "chorus/internal/store/schedules"
	"chorus/internal/store/tasks"
	"chorus/internal/tool/files"
	"chorus/internal/tool/timer"
	"chorus/internal/transport/discord/account"
	"chorus/internal/transport/repl/local"
	"chorus/internal/work"
	"chorus/internal/workrun"
)

// Options are what the caller provides.
type Options struct {
	Env     func(string) string // nil: the process's
	Environ []string            // for programs that agents start; nil: the process's
	Home    string              // "": as Env says
	Version string              // of this program
	Log     *slog.Logger        // nil: the file of the home
	Warn    func(string)        // receives problems that do not stop anything; nil: nobody
	// Journal wraps the store before the engine gets it; tests kill the process in it.
	Journal func(engine.Journal) engine.Journal
	Now     func() time.Time // the clock of the journal; nil: time.Now. Tests advance it
	Nodes   bool             // ownership is kept in the database, among all processes that have it open; always so with PostgreSQL
	Sweep   time.Duration    // interval between checks of what other processes did; 0: the engine's own. Tests make it long
}

// App is an opened home with everything that works on it. Each part is a separate package. App creates the
// parts in the order in which they depend on each other, and holds what they share.
type App struct {
	Options
	Home      *datadir.Home
	DB        *store.DB
	Models    *provider.Models
	Executor  sandbox.Executor
	Shared    *config.Bot // the configuration for everybody, as found at the start
	Bus       *bus.Bus
	Notices   *notice.Board
	Overrides *overrides.Threads

	Logs      *logging.Logs
	Settings  *settings.Settings
	Discovery *provider.Discovery
	Isolation *isolate.Isolation
	Gate      *gate.Gate
	Skills    *approved.Library
	Setup     *runsetup.Setup
	Mirrors   *mirror.Follower
	Service   *service.Service
	Checks    *checks.Checks
	Sessions  *local.Sessions
	Host      *connect.Host
	Processes *watch.Watcher // the processes that agents left running

	mu             sync.Mutex
	engine         atomic.Pointer[engine.Engine] // nil until something must run
	owner          owner.Owner                   // assigns things to one process at a time
	member         *node.Member                  // nil: the database is not shared with other nodes
	sharedDatabase bool                          // other homes may use it
	toolGrace      time.Duration                 // time for tools that run when Close is called
	adopted        []func(chat.ThreadID) bool    // which threads this process may run, according to all callers
	stopBackground func()                        // nil: no background work
	serving        atomic.Bool                   // this process runs everybody's threads
	peers          peers
	telemetry      telemetryParts
	clock          clock.Clock   // runs schedules, while the server runs
	hooks          runner.Runner // runs hooks, while the server runs
	shownHooks     processes.ShownHooks
	stopServing    atomic.Pointer[context.CancelCauseFunc] // while the server runs
	work           *workrun.Runner                         // works on tasks, while the server runs
	working        atomic.Bool                             // this process is a worker, not a server
	members        workers
	queue          *tasks.Tasks
	taskOf         func(context.Context, chat.ThreadID) (work.Task, error)
}

// Open opens the home and its database. Close closes them.
func Open(ctx context.Context, o Options) (*App, error) {
	if o.Env == nil {
		o.Env = os.Getenv
	}
	if o.Environ == nil {
		o.Environ = os.Environ()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Warn == nil {
		o.Warn = func(string) {}
	}
	a := &App{Options: o, Bus: &bus.Bus{}, Notices: &notice.Board{Fallback: o.Warn}, Overrides: &overrides.Threads{}}
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
	switch cutOff, err := backup.FindUnfinished(a.Home.Dir()); {
	case err != nil:
		return nil, err
	case cutOff != nil:
		return nil, cutOff
	}
	if err := a.readConfig(); err != nil {
		return nil, err
	}
	if a.Shared.NATSURL != "" {
		if err := natsnotify.Check(string(a.Shared.NATSURL)); err != nil {
			return nil, err
		}
	}
	at, err := settings.DatabaseOf(a.Home, a.Shared)
	if err != nil {
		return nil, err
	}
	a.owner = owner.Files{Dir: a.Home.Locks()}
	opening := at.Options(a.Home)
	opening.Durability, opening.Notify, opening.Now, opening.Follow = a.Shared.Durability, a.databaseChanged, o.Now, tasks.Follow
	if o.Nodes || at.OnServer() {
		a.member = &node.Member{Env: o.Env, Version: o.Version, Log: a.Log, Now: o.Now, Home: a.Home, Running: a.Running, Serving: a.serving.Load, ToolTime: a.toolTime}
		a.owner, opening.Owns, opening.Placement = a.member, a.member.Owns, a.member.Placement
	}
	if a.DB, err = store.Open(ctx, opening); err != nil {
		return nil, err
	}
	if a.member != nil {
		a.member.DB = a.DB
	}
	a.sharedDatabase = at.OnServer() || at.Path != a.Home.DB()
	if err := a.openDocuments(ctx); err != nil {
		return nil, errors.Join(err, a.DB.Close())
	}
	a.wire()
	a.Setup.SharedStore = a.sharedDatabase
	a.Setup.Memory.Copies = a.Settings.Documents
	if err := a.openMoreDocuments(ctx); err != nil {
		return nil, errors.Join(err, a.Close())
	}
	return a, nil
}

// readConfig reads the configuration and prepares what opening the database needs.
func (a *App) readConfig() error {
	live, err := settings.OpenLiveConfig(a.Env, a.Home)
	if err != nil {
		return err
	}
	if a.Settings == nil {
		a.Logs = &logging.Logs{Env: a.Env, Environ: a.Environ, Home: a.Home, Log: a.Log, Warn: a.Warn, ConfigFiles: func() *config.Files { return a.Settings.Live.Now() }}
		a.Settings = &settings.Settings{Env: a.Env, Home: a.Home, Warn: a.Warn, Logs: a.Logs}
	}
	a.Settings.Live = live
	if a.Log == nil {
		a.Log = a.Logs.OpenLog()
		a.Logs.Log = a.Log
	}
	if a.Shared, err = a.Settings.Bot(""); err != nil {
		return err
	}
	a.Models = provider.NewModels(a.Env, a.Shared.DefaultProvider, a.Shared.DefaultModel).In(a.Home)
	a.Models.Timeouts = provider.TimeoutsOf(a.Shared)
	a.Executor = host.New(a.Environ)
	return nil
}

// wire creates the parts. A part knows those above it in this list. What it
// needs from those below it is passed in as a function.
func (a *App) wire() {
	o := a.Options
	a.Discovery = &provider.Discovery{Home: a.Home, Models: a.Models}
	a.Isolation = &isolate.Isolation{Env: o.Env, Environ: o.Environ, Executor: a.Executor, Home: a.Home, Log: a.Log, Notices: a.Notices, Logs: a.Logs}
	a.Gate = &gate.Gate{DB: a.DB, Environ: o.Environ, Home: a.Home, Log: a.Log, Notices: a.Notices, Overrides: a.Overrides, Warn: o.Warn,
		Logs: a.Logs, Settings: a.Settings, Engine: a.Engine, Me: a.Me}
	a.Skills = &approved.Library{Home: a.Home, Lock: a.Settings.TrustStore(), Diff: files.UnifiedWhole, Now: o.Now}
	a.Setup = &runsetup.Setup{Skills: a.Skills, DB: a.DB, Environ: o.Environ, Executor: a.Executor, Home: a.Home, Log: a.Log, Models: a.Models, Notices: a.Notices,
		Overrides: a.Overrides, Shared: a.Shared, Discovery: a.Discovery, Gate: a.Gate, Isolation: a.Isolation, Logs: a.Logs, Settings: a.Settings,
		Me: a.Me, Running: a.Running, Memory: memory.NewKeeper(a.Home.Dir(), a.DB, o.Now)}
	a.Processes = &watch.Watcher{Store: processstore.New(a.DB), Dir: a.Home.Processes(), Environ: o.Environ, Now: o.Now, Log: a.Log, Judge: a.Setup.JudgeProcess,
		Act: func(ctx context.Context, p background.Process, f background.Fire, output string) (watch.Acted, error) {
			handler := a.Service.Guest
			if a.serving.Load() {
				handler = a.Service.Handler
			}
			return a.processesOf(handler()).Act(ctx, p, f, output)
		}}
	a.Setup.Processes = a.Processes
	a.Mirrors = &mirror.Follower{DB: a.DB, Env: o.Env, Home: a.Home, Settings: a.Settings}
	fetched := &imagecache.Cache{Dir: a.Home.ImageCache(o.Env)}
	contexts := &savedcontext.Contexts{DB: a.DB, Home: a.Home, Log: a.Log, Settings: a.Settings, Summaries: &summary.Writer{DB: a.DB, Models: a.Models, Settings: a.Settings}}
	a.Service = &service.Service{Images: fetched, Contexts: contexts, DB: a.DB, Home: a.Home, Log: a.Log, Models: a.Models, Overrides: a.Overrides, Shared: a.Shared, Version: o.Version,
		Discovery: a.Discovery, Gate: a.Gate, Isolation: a.Isolation, Logs: a.Logs, Settings: a.Settings, Setup: a.Setup,
		Engine: a.Engine, Examine: a.Examine, Me: a.Me, Now: o.Now,
		Mirror: func(ctx context.Context, thread chat.ThreadID) error { return a.Mirrors.CatchUp(ctx, thread) }}
	if files, ok := a.owner.(owner.Files); ok {
		a.Service.Held = func(thread chat.ThreadID) bool { return files.Held(owner.Thread(thread)) }
	}
	a.clock.DB, a.clock.Now, a.clock.Log = schedulestore.New(a.DB), o.Now, a.Log
	a.clock.Say = func(ctx context.Context, s schedule.Schedule, due time.Time) (clock.Said, error) {
		return a.Schedules(a.Service.Handler()).Say(ctx, s, due)
	}
	a.hooks.DB, a.hooks.Now, a.hooks.Log = hookstore.New(a.DB), o.Now, a.Log
	a.Checks = &checks.Checks{DB: a.DB, Env: o.Env, Environ: o.Environ, Home: a.Home, Log: a.Log, Models: a.Models, Isolation: a.Isolation,
		Settings: a.Settings}
	a.Sessions = &local.Sessions{DB: a.DB, Executor: a.Executor, Home: a.Home, Models: a.Models, Notices: a.Notices, Overrides: a.Overrides,
		Shared: a.Shared, Gate: a.Gate, Isolation: a.Isolation, Mirrors: a.Mirrors, Service: a.Service, Settings: a.Settings, Setup: a.Setup,
		Engine: a.Engine, Me: a.Me, StartBackground: a.StartBackground}
	a.Host = &connect.Host{Images: fetched, Contexts: contexts, DB: a.DB, Home: a.Home, Log: a.Log, Models: a.Models, Warn: o.Warn,
		Discovery: a.Discovery, Gate: a.Gate, Logs: a.Logs, Mirrors: a.Mirrors, Service: a.Service, Settings: a.Settings, Setup: a.Setup,
		Engine: a.Engine, Running: a.Running, Owner: a.owner}
	a.Host.Timers = func(thread chat.ThreadID) timer.Timers {
		return schedules.RoomTimers(a.Service, thread, a.schedulesChanged)
	}
	a.Host.Platforms = []connect.Platform{(&account.Source{Env: o.Env, Settings: a.Settings, Log: a.Log, Version: o.Version}).Platform()}

	a.Settings.DB, a.Settings.Models, a.Settings.Profile = a.DB, a.Models, a.Setup.Profile
	a.Setup.AwaitFiles, a.Setup.ChannelTools, a.Setup.RecallChannel = a.Host.AwaitFiles, a.Host.ChannelTools, a.Host.RecallChannel
	a.Setup.OperationTools, a.Setup.Recall = a.Service.OperationTools, memories.New(a.Service).RecallFor
	a.Setup.NoteSources = append(a.Setup.NoteSources, schedules.FutureNote(a.Service))
	a.wireWork()
	a.wireNode()
}

// Engine starts the engine on first use. The engine runs the threads that adopt allows, in this or an
// earlier call, and takes them over from processes that died; nil: no further threads.
func (a *App) Engine(adopt func(chat.ThreadID) bool) *engine.Engine {
	a.mu.Lock()
	defer a.mu.Unlock()
	if adopt != nil {
		a.adopted = append(a.adopted, adopt)
	}
	if e := a.engine.Load(); e != nil {
		return e
	}
	var j engine.Journal = a.DB
	if a.Journal != nil {
		j = a.Journal(j)
	}
	if a.telemetry.counts != nil {
		j = timed{j, a.telemetry.counts}
	}
	a.followRuns()
	e := engine.New(engine.Config{
		Journal: j, Bus: a.Bus, Setup: a.Setup.ForRun, Takes: a.takes, Adopt: a.adopts, Owner: a.owner, Here: a.here(),
		MaxWaiting: a.Shared.MaxQueuedReplies, MaxRuns: a.Shared.MaxRuns, IdleAfter: time.Duration(a.Shared.IdleTimeoutMS) * time.Millisecond, Log: a.Log,
		Bounds: provider.BoundsOf(a.Shared), FirstSweep: firstSweep, AfterRush: a.Setup.CloseIdle, SweepEvery: a.Sweep, Now: a.Now, Peers: a.Peers(), NotifyRuns: a.remotePeers(), Elsewhere: a.elsewhere(),
	})
	a.engine.Store(e)
	return e
}

// firstSweep lets a start ask its model before it looks for what others left behind.
const firstSweep = 50 * time.Millisecond

// Examine examines this home as doctor does.
func (a *App) Examine(ctx context.Context) doctor.Report {
	return checks.Examine(ctx, checks.Options{Env: a.Env, Environ: a.Environ, Home: a.Home.Dir(), Warn: a.Warn}, checks.Examination{Version: a.Version})
}

// Running returns the engine, or nil until something must run.
func (a *App) Running() *engine.Engine { return a.engine.Load() }

// adopts reports whether somebody in this process wants the thread to be run here.
func (a *App) adopts(thread chat.ThreadID) bool {
	if thread.Transport() == chat.WorkTransport && (a.serving.Load() || a.working.Load()) {
		return a.hasTask(thread)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.ContainsFunc(a.adopted, func(adopt func(chat.ThreadID) bool) bool { return adopt(thread) })
}

// stopTimeout is how long a stop waits for tools and streams, beyond
// the time that tools have to end by themselves.
const stopTimeout = 10 * time.Second

// Close stops what runs and closes the store. Interrupted work continues at the next start.
func (a *App) Close() error {
	var errs []error
	a.Service.StopStreams()
	if e := a.Running(); e != nil {
		ctx, cancel := context.WithTimeout(context.Background(), a.toolGrace+stopTimeout)
		defer cancel()
		errs = append(errs, e.StopGently(ctx, a.toolGrace))
	}
	if a.stopBackground != nil {
		a.stopBackground()
	}
	a.Setup.CloseLogins()
	errs = append(errs, a.Setup.CloseToolboxes(), a.Setup.Memory.Close())
	a.Isolation.Close()
	a.telemetry.close()
	a.closePeers()
	errs = append(errs, a.member.Leave(), a.DB.Close())
	a.Logs.CloseLog()
	return errors.Join(errs...)
}

// Me returns the person at this terminal.
func (a *App) Me() chat.Principal { return Me(a.Env) }

// Me returns the person at this terminal, without a home.
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
