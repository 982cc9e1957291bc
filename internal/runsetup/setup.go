package runsetup

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"chorus/internal/agent"
	"chorus/internal/agent/attempt"
	"chorus/internal/agent/deadline"
	"chorus/internal/agent/toolcall"
	"chorus/internal/agents"
	"chorus/internal/chat"
	"chorus/internal/config"
	"chorus/internal/engine"
	"chorus/internal/gate"
	"chorus/internal/id"
	"chorus/internal/images"
	"chorus/internal/journal"
	"chorus/internal/model"
	"chorus/internal/modelrouter"
	"chorus/internal/overrides"
	"chorus/internal/provider"
	"chorus/internal/sandbox"
	"chorus/internal/sandbox/isolate"
	"chorus/internal/settings"
	"chorus/internal/skill"
	"chorus/internal/tool"
	"chorus/internal/tool/delegate"
	"chorus/internal/tool/files"
	"chorus/internal/tool/git"
	"chorus/internal/tool/mcp"
	"chorus/internal/tool/notes"
	"chorus/internal/tool/process"
	"chorus/internal/tool/search"
	"chorus/internal/tool/selfedit"
	"chorus/internal/tool/shell"
	"chorus/internal/tool/toolsearch"
	"chorus/internal/tool/web"
	"chorus/internal/transcript"
)

// ForRun returns the setup of a run, including how people are asked in it.
func (setup *Setup) ForRun(ctx context.Context, row journal.Thread, work engine.Work) (engine.Setup, error) {
	s, err := setup.forRun(ctx, row, work)
	if err != nil {
		return s, err
	}
	bot, err := setup.Settings.BotFor(row)
	if err != nil {
		return s, err
	}
	g := setup.Gate.For(row, bot, work)
	terms := g.Granted(setup.terms(g.Choice, work))
	setup.hookTools(s.Agent, row, bot, func() (sandbox.Executor, error) { return setup.hookSandbox(row, bot, g, terms) })
	s.Asking, err = setup.Gate.Asking(row, bot, cmp.Or(terms.Profile, bot.Permissions))
	return s, err
}

// Toolbox is what one thread works with: its directory and its tools.
type Toolbox struct {
	isolate.Site
	Roots    *files.Roots
	Notes    *notes.File
	Tools    *tool.Set   // the built-in ones
	List     []tool.Tool // the same as a list
	executor *isolate.SwitchedExecutor
	shown    []sandbox.Root // what commands see if they are isolated
	left     *ownProcesses  // what the agent left running here
	Web      *web.Client
	Self     *self // the agent, for its own tools; nil if it was never created

	skills skill.Where // where its skills are looked for
	called string      // what the current run was told about the skill that its prompt calls

	mu           sync.Mutex
	styledModels map[string]styledModel            // by model name
	hub          *mcp.Hub                          // nil: no servers are configured
	listing      func(context.Context) mcp.Listing // what the hub's servers offer and may be used
	servers      string                            // identifies the hub's configuration
	many         *tool.Set                         // with the servers' tools
	offered      *tool.Set                         // what the last run was shown
	manyOf       string                            // identifies the tools in many
	prompt       string                            // the note with the server prompt that the run's message asks for
}

// Toolbox returns a thread's tools. It makes them once and keeps them.
func (s *Setup) Toolbox(thread chat.ThreadID, dir string) (*Toolbox, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b := s.toolboxes[thread]; b != nil && b.Dir == dir {
		return b, nil
	}
	b, err := s.NewToolbox(thread, dir)
	if err != nil {
		return nil, err
	}
	s.closeIdle()
	if s.toolboxes == nil {
		s.toolboxes = map[chat.ThreadID]*Toolbox{}
	}
	s.toolboxes[thread] = b
	return b, nil
}

// hold makes file tools refuse a workspace that has been replaced by
// another folder. "" accepts any folder of that name.
func (b *Toolbox) hold(folder string) {
	if folder == "" {
		b.Roots.Hold(nil)
		return
	}
	b.Roots.Hold(func(info fs.FileInfo) error {
		if sandbox.FolderID(info) == folder {
			return nil
		}
		return fmt.Errorf("%s: another folder has taken its place since this run began; the next prompt works there, if that is allowed", b.Dir)
	})
}

// OpenToolbox returns a thread's toolbox if it is in memory, or nil.
func (s *Setup) OpenToolbox(thread chat.ThreadID) *Toolbox {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.toolboxes[thread]
}

// NotesOf returns the work notes of a thread's agent: the instance that its tools have open, if any.
func (s *Setup) NotesOf(thread chat.ThreadID) *notes.File {
	if b := s.OpenToolbox(thread); b != nil {
		return b.Notes
	}
	return notes.NewFile(s.notesFile(thread))
}

func (s *Setup) notesFile(thread chat.ThreadID) string {
	return filepath.Join(s.Home.ThreadDir(thread), "notes.json")
}

// PrepareToolbox makes the tools of a thread that is about to run, in the background: describing
// them all takes milliseconds. An error appears again when the run is set up.
func (s *Setup) PrepareToolbox(thread chat.ThreadID, dir string) {
	s.preparing.Go(func() { _, _ = s.Toolbox(thread, dir) })
}

// CloseToolboxes closes the tools of all threads.
func (s *Setup) CloseToolboxes() error {
	s.preparing.Wait()
	var errs []error
	for _, b := range s.toolboxes {
		errs = append(errs, b.Close())
	}
	return errors.Join(errs...)
}

// NewToolbox makes the tools of a thread that works in a directory.
func (s *Setup) NewToolbox(thread chat.ThreadID, dir string) (*Toolbox, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return nil, fmt.Errorf("the working directory %s is not there: %w", dir, err)
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("%s is not a directory", dir)
	}
	named := []files.Root{{Name: "outputs", Dir: s.Home.Outputs(thread), Writable: true}}
	if name := thread.Agent(); name != "" {
		if docs := filepath.Join(s.Home.AgentDir(name), "docs"); IsDir(docs) {
			named = append(named, files.Root{Name: "docs", Dir: docs, Writable: true})
		}
	}
	if thread.Transport() != "cli" { // at a terminal, files are used in place
		handed, err := s.Home.Ensure(s.Attachments(thread))
		if err != nil {
			return nil, err
		}
		named = append(named, files.Root{Name: "attachments", Dir: handed})
	}
	where := s.SkillsAt(thread, dir)
	view, err := s.Home.Ensure(s.Skills.ViewDir(where))
	if err != nil {
		return nil, err
	}
	named = append(named, files.Root{Name: "skills", Dir: view})
	roots, err := files.NewRoots(dir, append(named, s.memoryRoots(thread)...)...)
	if err != nil {
		return nil, err
	}
	roots.WithLocks(s.fileLocks(), string(thread))
	roots.BeforeSave = s.announce(thread)
	roots.Fit = func(data []byte) ([]byte, string, error) {
		fitted, media, _, _, err := images.Fit(data, images.Limits{}, MaxPixels)
		return fitted, media, err
	}
	var beside []sandbox.Root
	if s.Roots != nil {
		if beside, err = s.Roots(thread); err != nil {
			return nil, err
		}
	}
	executor := &isolate.SwitchedExecutor{Inner: s.Executor}
	b := &Toolbox{Site: isolate.Site{Dir: dir, Agent: thread.Agent(), Proxy: &isolate.EgressProxy{Thread: thread}, Roots: beside}, Roots: roots, executor: executor, shown: isolate.WorkspaceRoots(dir, named), left: &ownProcesses{setup: s, thread: thread}, skills: where, Notes: notes.NewFile(s.notesFile(thread)), styledModels: map[string]styledModel{}}
	list := files.Tools(roots)
	list = append(list, search.New(roots, search.Options{}))
	list = append(list, shell.New(executor, shell.Options{Dir: dir, Env: roots.Env(), Keep: s.Logs.RedactingKeep(roots.Keep), Roots: b.shown}))
	list = append(list, process.New(executor, b.left, process.Options{Dir: dir, Env: roots.Env(), Keep: s.Logs.RedactingKeep(roots.Keep), Roots: b.shown})...)
	list = append(list, git.Tools(executor, roots, s.Logs.RedactingKeep(roots.Keep))...)
	list = append(list, notes.New(b.Notes))
	b.Web = web.New(web.Options{Leaks: func(text string) bool { return s.Logs.Redactor().HasKnown(text) }})
	list = append(list, b.Web.Tools()...)
	list = append(list, s.memoryTools(thread, roots)...)
	if b.Self = s.selfOf(thread); b.Self != nil {
		list = append(list, selfedit.Tools(b.Self)...)
	}
	list = append(list, delegate.Tools(otherAgents{s, thread}, thread.Agent())...)
	list = append(list, s.ChannelTools(thread, roots)...)
	b.List = list
	for _, other := range s.toolboxes { // any will do: threads differ in what tools reach, not in how they are described
		tool.Share(list, other.List)
		break
	}
	if b.Tools, err = tool.NewSet(list...); err != nil {
		return nil, err
	}
	return b, nil
}

// MaxPixels is the largest picture that is decoded for scaling down: 40 megapixels.
const MaxPixels = 40_000_000

// IsDir reports whether path is a directory, following links.
func IsDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// terms returns the terms of a piece of work: those that came with it and, if it belongs
// to this session, what the person at the terminal has chosen since.
func (s *Setup) terms(choice *overrides.Thread, work engine.Work) chat.Terms {
	t := work.Terms
	began := transcript.Sender{Principal: s.Me(), Terms: t, Seq: work.Seq}
	if now := choice.Snapshot(); now.Own(began) {
		t.Yes = t.Yes || now.Yes
		if t.By != now.By { // the session was resumed, so its present flags apply
			t.Model, t.Profile = cmp.Or(now.Model, t.Model), cmp.Or(now.Profile, t.Profile)
			t.MaxSteps = max(t.MaxSteps, now.MaxSteps)
		}
	}
	return t
}

// forRun returns the setup of a thread's next run.
func (s *Setup) forRun(ctx context.Context, row journal.Thread, work engine.Work) (engine.Setup, error) {
	folder, err := s.Gate.HoldPlace(ctx, row, work.Senders)
	if err != nil {
		return engine.Setup{}, err
	}
	b, err := s.Toolbox(row.ID, row.Dir)
	if err != nil {
		return engine.Setup{}, err
	}
	b.hold(folder)
	bot, err := s.Settings.BotFor(row)
	if err != nil {
		return engine.Setup{}, err
	}
	g := s.Gate.For(row, bot, work)
	now := g.Granted(s.terms(g.Choice, work))
	who, err := s.persona(ctx, row.Agent, bot)
	if err != nil {
		return engine.Setup{}, err
	}
	rules, err := g.Limits.Load(cmp.Or(now.Profile, bot.Permissions))
	if err != nil {
		return engine.Setup{}, err
	}
	plan := s.Isolation.Plan(bot, rules, row, now, work)
	plan.Programs, plan.Folder = s.programs(g, row, bot, rules.Name()), folder
	b.Web.Configure(s.webConfig(bot, plan.Hosts))
	models, err := s.Models.For(bot.Vendors)
	if err != nil {
		return engine.Setup{}, err
	}
	host := &serverHost{setup: s, row: row, bot: bot, profile: rules.Name(), gate: g, models: models, terms: now}
	offered, err := s.offer(ctx, b, row.ID, bot, who, g, now, serverTerms{plan: plan, host: host})
	if err != nil {
		return engine.Setup{}, err
	}
	program, err := s.external(b, row, bot, who, plan)
	if err != nil {
		return engine.Setup{}, err
	}
	if err := s.isolate(ctx, b, plan, program == nil && offered.offers(shell.Name)); err != nil {
		return engine.Setup{}, err
	}
	b.left.serve(host)
	b.Self.serve(work)
	silent := map[string]int64{}
	sources := append(s.noteSources(row.ID, offered), s.skillsNote(offered, g.Withholds), s.calledNote())
	sources = append(sources, s.changedFiles(func(ctx context.Context) []Document {
		return s.quoted(ctx, row, bot, b, offered.onFiles(), g.Withholds)
	}, func() string {
		return touchedFiles(s.Home.Identity(), filepath.Join(s.Home.AgentDir(row.Agent), "docs"), filepath.Join(row.Dir, "AGENTS.md"), filepath.Join(row.Dir, "CLAUDE.md"))
	}))
	var head *model.Head // of the run
	return engine.Setup{
		Dir:   row.Dir,
		Price: PriceOf(models, bot), Budget: BudgetOf(bot, now.Yes),
		Gate: g,
		Agent: &agent.Agent{
			Tools:   s.Logs.Redacting(offered),
			Program: program,
			Model:   modelsFor(models, row, bot, b),
			Head:    s.Head,
			Begin: func(ctx context.Context, log *transcript.Log, prompt transcript.Waiting) (agent.Beginning, error) {
				s.AwaitFiles(ctx, row.ID, log)
				s.fetchAttachments(ctx, row.ID, log)
				s.RecallChannel(ctx, row, bot, log, prompt)
				b.fetchPrompt(ctx, prompt)
				with := beginning{row, b, models, offered, now, who, bot, rules.Name(), log, g}
				if program != nil {
					return beginExternal(with, program.Name)
				}
				out, err := s.begin(ctx, with)
				if err == nil {
					head, err = model.ParseHead(out.Head.Data)
				}
				return out, err
			},
			Notes: func(ctx context.Context, log *transcript.Log) []chat.Noted {
				if program != nil {
					return nil // it has its own context
				}
				if run := log.Run(); head == nil && run != nil { // begun by another process
					head, _ = s.Head(run.Head)
				}
				return s.notes(ctx, sources, NoteContext{Row: row, Toolbox: b, Log: log, Head: head}, silent)
			},
			Defer: func(ctx context.Context, call toolcall.Call, run *transcript.Run) (agent.Deferral, error) {
				return s.deferral(ctx, row, call, run)
			},
			Reap: func(ctx context.Context, call string) error {
				_, err := b.executor.Reap(ctx, call)
				return err
			},
			Retry:       attempt.Policy{Backoff: settings.Backoff(bot), FallsBack: modelrouter.Next, Random: rand.Float64, Outage: outage(row, bot, work.Terms)},
			Bounds:      deadline.Bounds{Tool: provider.Milliseconds(bot.ToolMS)},
			CacheMissed: s.CacheMissed,
			Now:         time.Now,
		},
	}, nil
}

// isolate makes a run's commands run as the plan says. If the model may
// run commands, a sandbox is started while it thinks.
func (s *Setup) isolate(ctx context.Context, b *Toolbox, plan isolate.Plan, commands bool) error {
	executor, err := s.Isolation.ExecutorFor(&b.Site, plan)
	if err != nil {
		return err
	}
	b.executor.Switch(executor)
	s.skillsInContainer(ctx, b, executor)
	if commands {
		b.executor.StartEarly(sandbox.Command{Dir: b.Dir, Roots: b.shown})
	}
	return nil
}

// outage returns how long the run waits for a provider that is down. A person at a
// terminal is told of the failure instead, and can try again.
func outage(row journal.Thread, bot *config.Bot, terms chat.Terms) time.Duration {
	if row.ID.Transport() == "cli" || terms.Attended {
		return 0
	}
	return provider.Milliseconds(cmp.Or(bot.OutageMS, defaultOutageMS))
}

// defaultOutageMS is longer than most outages of providers.
const defaultOutageMS = 900_000

// CacheMissed logs that an answer cost more than it should have.
func (s *Setup) CacheMissed(m attempt.CacheMiss) {
	why := "the prompt begins like the one before, so the provider dropped it"
	if m.Fragment >= 0 {
		why = fmt.Sprintf("message %d is not what it was: %s", m.Fragment+1, m.Text)
	}
	s.Log.Warn("the provider's cache held less of the prompt than it should", "component", "cache", "run", m.Run, "step", m.Step,
		"model", m.Model, "expected", m.Expected, "read", m.Read, "why", why)
}

// chosen is the subset of the tools that a run may use. A model that calls another tool is
// told why it is not available, rather than that it does not exist.
type chosen struct {
	*tool.Set
	all     *tool.Set
	has     func(tool.Spec) bool // whether the agent has the tool in this mode, whatever the profile says
	mode    string
	servers *serverChanges // what MCP servers have added since
}

func (c *chosen) Resolve(name string, args []byte) (tool.Tool, []byte, error) {
	t, plain, err := c.Set.Resolve(name, args)
	if err == nil {
		return t, plain, nil
	}
	if t, plain, aerr := c.all.Resolve(name, args); aerr == nil && c.has(t.Spec()) {
		return t, plain, nil // not offered: the gate will deny it and say why
	}
	if t, plain, set := c.servers.find(name, args); set != nil {
		return t, plain, nil
	}
	if t, _, aerr := c.all.Resolve(name, args); aerr == nil && !slices.ContainsFunc(c.Specs(), func(s tool.Spec) bool { return s.Name == t.Spec().Name }) {
		why := "this agent does not have it"
		if !InMode(c.mode, t.Spec().Name, t.Spec().ReadOnly) {
			why = "mode " + c.mode + " does not allow it"
		}
		return nil, nil, tool.Mistake(t.Spec().Name + " is not available: " + why)
	}
	return nil, nil, err
}

// offers reports whether the model is shown the tool.
func (c *chosen) offers(name string) bool {
	_, ok := c.Named(name)
	return ok
}

// onFiles reports whether the run has any tool that is not about Chorus and its
// agents. Only then does a repository's advice matter.
func (c *chosen) onFiles() bool {
	return slices.ContainsFunc(append(c.Specs(), c.Unlisted()...), func(s tool.Spec) bool {
		return s.Group == "" && s.Name != "list_agents" && !toolsearch.Searches(s.Name)
	})
}

func (c *chosen) Validate(t tool.Tool, args []byte) error {
	if set := c.servers.holds(t); set != nil {
		return set.Validate(t, args)
	}
	if c.Has(t) {
		return c.Set.Validate(t, args)
	}
	return c.all.Validate(t, args)
}

// beginning is what a new run of a thread is made of.
type beginning struct {
	row     journal.Thread
	bench   *Toolbox
	models  *provider.Models
	tools   *chosen
	now     chat.Terms
	who     persona
	bot     *config.Bot
	profile string
	log     *transcript.Log
	gate    *gate.Judge
}

// begin starts a new run of the thread.
func (setup *Setup) begin(ctx context.Context, with beginning) (agent.Beginning, error) {
	out := agent.Beginning{Run: id.New()}
	row, now, bot := with.row, with.now, with.bot
	wanted := cmp.Or(now.Model, bot.ContinuationModel)
	name, err := with.models.Name("", wanted)
	if err != nil {
		out.Start.Model = wanted
		return out, err
	}
	out.Start.Model = name
	made, err := with.models.Resolve(name)
	if err != nil && len(bot.Fallback) == 0 {
		return out, err
	}
	base := settings.SettingsOf(bot)
	base.Window.AgeSeconds = int(settings.WindowAge(bot, row.ID).Seconds())
	base.MaxSteps, base.Mode, base.Profile = now.MaxSteps, now.Mode, with.profile
	if base.MaxSteps == 0 {
		if base.MaxSteps = agent.DefaultMaxSteps; bot.IsSet("maxToolDepth") {
			base.MaxSteps = bot.MaxToolDepth
		}
	}
	for _, other := range bot.Fallback {
		other, err := with.models.Name("", other)
		if err != nil {
			return out, fmt.Errorf("fallback: %w", err)
		}
		base.Fallback = append(base.Fallback, other)
	}
	out.Start.Settings = provider.RunSettings(made.Entry, base)
	if !bot.CompactionEnabled {
		out.Start.Settings.ContextWindow, out.Start.Settings.Summary = 0, chat.Summary{}
	}
	fresh, err := setup.freshHead(ctx, with)
	if err != nil {
		return out, err
	}
	head := setup.kept(with.log, name, fresh)
	data, err := head.Bytes()
	if err != nil {
		return out, err
	}
	out.Head = chat.NewBlob(data)
	return out, nil
}

// freshHead builds the head of a new conversation's requests.
func (setup *Setup) freshHead(ctx context.Context, with beginning) (*model.Head, error) {
	row, now, who := with.row, with.now, with.who
	specs := with.tools.Specs()
	prompt := PromptData{Preamble: preamble(with.bot, len(specs) > 0), Name: row.Agent, Dir: row.Dir, Git: InGit(row.Dir), Mode: now.Mode, Identity: who.identity, Agent: who.prompt, Docs: who.docs}
	if with.tools.onFiles() {
		prompt.Instructions = Instructions(ctx, with.bench.Roots, with.gate.Withholds)
	}
	return newHead(prompt, specs)
}

// InGit reports whether the directory is in a git repository.
func InGit(dir string) bool {
	for {
		if _, err := os.Stat(filepath.Join(dir, ".git")); err == nil {
			return true
		}
		up := filepath.Dir(dir)
		if up == dir {
			return false
		}
		dir = up
	}
}

// persona is who an agent is: its own prompt, its choices, its docs.
type persona struct {
	identity string
	prompt   string
	docs     []Document
	tools    []string // empty: all
	rare     []string // found by searching
	worker   string   // another program that does its work; "" means none
	asBuilt  bool     // it is built in, and its tools are unchanged
}

// has reports whether the agent names a tool or its group, or names no tools at all.
func (p persona) has(s tool.Spec) bool {
	named := func(list []string) bool {
		return slices.Contains(list, s.Name) || s.Group != "" && slices.Contains(list, s.Group+".*")
	}
	return len(p.tools)+len(p.rare) == 0 || named(p.tools) || named(p.rare)
}

// persona reads the agent's configuration. An agent that was never created is the plain one.
func (s *Setup) persona(ctx context.Context, name string, bot *config.Bot) (persona, error) {
	var p persona
	if text, ok := ReadText(s.Home.Identity()); ok {
		p.identity = strings.TrimSpace(text)
	}
	p.prompt = strings.TrimSpace(bot.SystemPrompt)
	if name == "" || !s.Settings.Agents().Exists(name) {
		return p, nil
	}
	who, err := s.Settings.Agents().Get(ctx, name)
	var file *agents.FileError
	switch {
	case errors.As(err, &file): // the last good version applies
		s.Logs.LogOnce(err.Error(), "roster")
	case errors.Is(err, journal.ErrUnknown):
		return p, nil
	case err != nil:
		return p, err
	}
	p.tools, p.rare, p.worker = who.Tools, who.RareTools, who.Worker
	p.asBuilt = s.Settings.Agents().AsBuilt(who)
	p.docs = Docs(filepath.Join(s.Home.AgentDir(name), "docs"))
	return p, nil
}
