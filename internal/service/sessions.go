package service

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"chorus/internal/chat"
	"chorus/internal/config"
	"chorus/internal/feed"
	"chorus/internal/id"
	"chorus/internal/journal"
	"chorus/internal/operation"
	"chorus/internal/operations"
	"chorus/internal/room/threadname"
	"chorus/internal/runsetup"
	"chorus/internal/sample"
	"chorus/internal/settings"
	"chorus/internal/store"
)

// standing is what was requested when a session was created. It is stored in the settings of the thread, so that it
// applies to every prompt, in any process.
type Standing struct {
	Terms  chat.Terms    `json:"terms"`
	Forked chat.ThreadID `json:"forked,omitempty"`
}

// threadScope is the scope of standings in the settings.
const threadScope = "thread"

func (o *Handler) putStanding(ctx context.Context, thread chat.ThreadID, s Standing) error {
	data, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return o.app.DB.SetSetting(ctx, threadScope, string(thread), string(data))
}

func (o *Handler) Standing(ctx context.Context, thread chat.ThreadID) (Standing, error) {
	all, err := o.standings(ctx, []chat.ThreadID{thread})
	return all[thread], err
}

func (o *Handler) standings(ctx context.Context, threads []chat.ThreadID) (map[chat.ThreadID]Standing, error) {
	keys := make([]string, len(threads))
	for i, t := range threads {
		keys[i] = string(t)
	}
	found, err := o.app.DB.SettingsOf(ctx, threadScope, keys)
	if err != nil {
		return nil, err
	}
	out := map[chat.ThreadID]Standing{}
	for key, text := range found {
		var s Standing
		if err := json.Unmarshal([]byte(text), &s); err != nil {
			return nil, fmt.Errorf("what was asked for in %s cannot be read: %w", key, err)
		}
		out[chat.ThreadID(key)] = s
	}
	return out, nil
}

// maxTitle is what fits into a list.
const maxTitle = 200

// CreateSession implements the operation of that name.
func (o *Handler) CreateSession(ctx context.Context, by operation.Caller, in operations.NewSession) (operations.CreatedSession, error) {
	name := id.New()
	if in.Key != "" {
		name = id.Of("session", by.Principal.String(), in.Key)
	}
	thread, err := newThread(by, name, in.Agent)
	if err != nil {
		return operations.CreatedSession{}, err
	}
	terms, dir, err := o.plan(by, in, thread)
	if err != nil {
		return operations.CreatedSession{}, err
	}
	before, err := o.history(ctx, by, thread, in.History)
	if err != nil {
		return operations.CreatedSession{}, err
	}
	if in.Sample {
		if err := o.layOutSample(ctx, thread, dir); err != nil {
			return operations.CreatedSession{}, err
		}
	}
	made := Standing{Terms: terms}
	if err := o.begin(ctx, by, journal.Thread{ID: thread, Owner: by.Principal, Dir: dir, Title: in.Title}, made, in.Key != "", in.Message, before...); err != nil {
		return operations.CreatedSession{}, err
	}
	out, err := o.created(ctx, by, name)
	if strings.TrimSpace(in.Message) != "" {
		out.Seq = int64(len(before)) + 1 // they were written in one commit
	}
	return out, err
}

// PreviewSession implements the operation of that name.
func (o *Handler) PreviewSession(_ context.Context, by operation.Caller, in operations.NewSession) (operations.Session, error) {
	thread, err := newThread(by, "new", in.Agent)
	if err != nil {
		return operations.Session{}, err
	}
	terms, dir, err := o.plan(by, in, thread)
	if err != nil {
		return operations.Session{}, err
	}
	if dir == o.Scratch(thread) {
		dir = "" // its own folder has its id as its name
	}
	now := o.app.DB.Now()
	s := o.view(journal.Thread{ID: thread, Agent: thread.Agent(), Owner: by.Principal, Dir: dir, Title: in.Title, Next: 1, Created: now, LastActive: now}, store.Ends{}, Standing{Terms: terms}, o.Defaults(thread.Agent()))
	s.ID, s.Thread = "", ""
	o.addFacts(&s)
	return s, nil
}

// newThread returns the name of a new session.
func newThread(by operation.Caller, name, agent string) (chat.ThreadID, error) {
	thread, err := chat.NewThreadID("web", by.Principal.OwnPlace(), name, cmp.Or(agent, chat.DefaultAgent))
	if err != nil {
		return "", operation.InvalidField("agent", "%q cannot be an agent's name: 2 to 32 of a–z, 0–9 and hyphens", agent)
	}
	return thread, nil
}

// layOutSample puts the sample project into the folder of a session that has its own. If the process is killed in
// between, the folder exists without a session: the next attempt makes another.
func (o *Handler) layOutSample(ctx context.Context, thread chat.ThreadID, dir string) error {
	if dir != o.Scratch(thread) {
		return operation.InvalidField("workspacePath", "the sample project needs its own folder; leave out workspacePath and agent")
	}
	if _, err := o.app.Home.Ensure(dir); err != nil {
		return err
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		return err // the same key again
	}
	return sample.Write(ctx, dir)
}

// created describes a session that was just created.
func (o *Handler) created(ctx context.Context, by operation.Caller, id string) (operations.CreatedSession, error) {
	s, err := o.GetSession(ctx, by, operations.SessionRef{ID: id})
	return operations.CreatedSession{SessionID: s.ID, Session: s}, err
}

// Begin creates a thread with its standing. The standing is written first: one without a thread is harmless, but a
// thread without it would forget what was requested.
func (o *Handler) Begin(ctx context.Context, row journal.Thread, made Standing, again bool, events ...chat.Event) error {
	return o.begin(ctx, operation.Caller{}, row, made, again, "", events...)
}

// begin is Begin with a first message; "": none.
func (o *Handler) begin(ctx context.Context, by operation.Caller, row journal.Thread, made Standing, again bool, message string, events ...chat.Event) error {
	if again {
		there, err := o.app.DB.Thread(ctx, row.ID)
		switch {
		case err == nil:
			before, err := o.Standing(ctx, row.ID)
			if err == nil && (before != made || there.Dir != row.Dir) {
				err = operation.Errorf(operation.Conflict, "this key was used for a session with other options; use a new key")
			}
			return err
		case !errors.Is(err, journal.ErrUnknown):
			return err
		}
	}
	if err := o.putStanding(ctx, row.ID, made); err != nil {
		return err
	}
	if dir := o.Scratch(row.ID); row.Dir == dir {
		if _, err := o.app.Home.Ensure(dir); err != nil {
			return err
		}
	}
	return o.write(ctx, by, journal.Commit{Thread: row.ID, Create: &row, Events: events}, message, made.Terms)
}

// Scratch is the folder of a session that has no other.
func (o *Handler) Scratch(thread chat.ThreadID) string { return o.app.Home.Scratch(thread) }

// plan turns a request into terms and a directory, or says what is wrong with it.
func (o *Handler) plan(by operation.Caller, in operations.NewSession, thread chat.ThreadID) (chat.Terms, string, error) {
	dir, err := o.Workplace(by, in, thread)
	if err != nil {
		return chat.Terms{}, "", err
	}
	if len(in.Title) > maxTitle {
		return chat.Terms{}, "", operation.InvalidField("title", "the title is longer than %d bytes", maxTitle)
	}
	if in.MaxIterations < 0 {
		return chat.Terms{}, "", operation.InvalidField("maxIterations", "maxIterations must be 0 (as configured) or more")
	}
	if err := o.within(by, in); err != nil {
		return chat.Terms{}, "", err
	}
	checked := runsetup.SessionOptions{Dir: o.app.Home.Dir(), Agent: in.Agent, Provider: in.Provider, Model: in.Model, Profile: in.Permissions, Mode: in.Mode, Sandbox: in.Sandbox}
	if err := o.app.Setup.Check(&checked); err != nil {
		return chat.Terms{}, "", &operation.Error{Kind: operation.Invalid, Message: o.app.Logs.Redactor().Text(err.Error()), Err: err}
	}
	if checked.Agent != chat.DefaultAgent && !o.app.Settings.Agents().Exists(checked.Agent) {
		return chat.Terms{}, "", operation.InvalidField("agent", "there is no agent %q", checked.Agent)
	}
	return chat.Terms{Model: checked.Model, Mode: in.Mode, Profile: in.Permissions, Sandbox: in.Sandbox, MaxSteps: in.MaxIterations, By: ServedBy, Attended: in.Attended}, dir, nil
}

// Workplace returns where a session works: in the given folder, in its agent's workspace, or in its own folder.
func (o *Handler) Workplace(by operation.Caller, in operations.NewSession, thread chat.ThreadID) (string, error) {
	if in.WorkspacePath == "" {
		if in.Agent != "" && in.Agent != chat.DefaultAgent && runsetup.IsDir(o.app.Home.AgentDir(in.Agent)) {
			return o.app.Settings.Agents().Workspace(in.Agent), nil
		}
		return o.Scratch(thread), nil
	}
	if !filepath.IsAbs(in.WorkspacePath) {
		return "", operation.InvalidField("workspacePath", "workspacePath must be an absolute path on the server, not %.200q", in.WorkspacePath)
	}
	dir := filepath.Clean(in.WorkspacePath)
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	if !by.May(operation.Admin) { // before revealing what exists
		if err := o.app.Settings.CheckChosenPlace(thread, dir); err != nil {
			return "", forbidden(err)
		}
	}
	if !runsetup.IsDir(dir) {
		return "", operation.InvalidField("workspacePath", "there is no directory %.200s on the server; create it first, or leave it out to get a new folder", in.WorkspacePath)
	}
	return dir, nil
}

// MayWork restricts a caller without the admin scope to the folders that are open to them, even in their own session: it
// may have been created when its folder was open to them, or through a link that now leads elsewhere.
func (o *Handler) MayWork(by operation.Caller, row journal.Thread) error {
	if by.May(operation.Admin) {
		return nil
	}
	return o.CheckPlace(row.ID, row.Dir)
}

// CheckPlace says why somebody without the admin scope may not work in a folder.
func (o *Handler) CheckPlace(thread chat.ThreadID, dir string) error {
	return forbidden(o.app.Settings.CheckPlace(thread, dir))
}

// CheckScheduledPlace says why a schedule may not work in a folder, whoever adds it.
func (o *Handler) CheckScheduledPlace(thread chat.ThreadID, dir string) error {
	return forbidden(o.app.Settings.CheckScheduledPlace(thread, dir))
}

// forbidden is the error for a folder where the caller may not work.
func forbidden(err error) error {
	var place *settings.PlaceError
	if !errors.As(err, &place) {
		return err
	}
	return &operation.Error{Kind: operation.Forbidden, Message: place.Error(), Field: "workspacePath", Err: err}
}

// narrow are the profiles that everybody who may chat may choose.
var narrow = []string{"", "standard", "locked"}

// within restricts a caller without the admin scope to what the owner of the home has set up: a token for chatting does
// not give access to the machine.
func (o *Handler) within(by operation.Caller, in operations.NewSession) error {
	if by.May(operation.Admin) {
		return nil
	}
	if !o.MayChoose(by, in.Permissions) {
		return operation.Errorf(operation.Forbidden, "the profile %.80q needs the scope admin; leave it out, or choose standard or locked", in.Permissions)
	}
	if in.Sandbox != "" && in.Sandbox != "bwrap" && in.Sandbox != "auto" && in.Sandbox != o.app.Shared.Sandbox {
		return operation.Errorf(operation.Forbidden, "the sandbox %.80q needs the scope admin; leave it out", in.Sandbox)
	}
	return nil
}

// StandardProfile is the default profile.
const StandardProfile = "standard"

// MayChoose reports whether a caller may choose a permission profile.
func (o *Handler) MayChoose(by operation.Caller, profile string) bool {
	return by.May(operation.Admin) || slices.Contains(narrow, profile) || profile == o.app.Shared.Permissions
}

// statuses are the API's names for the states of a thread.
var statuses = map[string]chat.Status{"": "", "idle": chat.Idle, "running": chat.Running, "waiting": chat.Waiting, "failed": chat.Failed, queued: "", interrupted: chat.Running}

// ListSessions implements the operation of that name.
func (o *Handler) ListSessions(ctx context.Context, by operation.Caller, q operations.SessionQuery) (operation.List[operations.Session], error) {
	var out operation.List[operations.Session]
	status, known := statuses[q.Status]
	if !known {
		return out, operation.InvalidField("status", "there is no status %.40q; use idle, queued, running, interrupted or waiting", q.Status)
	}
	if q.Status == queued {
		return o.listQueued(ctx, by, q)
	}
	f := store.ThreadFilter{Agent: q.Agent, Status: status, Title: q.Search, Limit: operation.Limit(q.Limit, 50, 200) + 1}
	switch {
	case q.Listing == "all":
	case q.Listing != "":
		f.Listing = q.Listing
	case q.Parent == "" && q.Status == "":
		f.Listing = store.Unarchived
	}
	switch q.Kind {
	case "talk":
		f.Not = chat.WorkTransport
	case "task":
		f.Transport = chat.WorkTransport
	}
	if !by.May(operation.Admin) {
		if q.Kind == "task" {
			return operation.List[operations.Session]{Items: []operations.Session{}}, nil // the lists of tasks link to them
		}
		f.Transport, f.Place = "web", by.Principal.OwnPlace()
	}
	var err error
	if f.Before, err = readCursor(q.Cursor); err != nil {
		return out, err
	}
	if q.Parent != "" {
		parent, err := o.Find(ctx, by, q.Parent)
		if err != nil {
			return out, err
		}
		f.Parent = parent.ID
	}
	rows, err := o.app.DB.Threads(ctx, f)
	if err != nil {
		return out, err
	}
	if len(rows) == f.Limit {
		rows = rows[:f.Limit-1]
		out.Next = writeCursor(rows[len(rows)-1])
	}
	out.Items, err = o.Views(ctx, rows)
	if status == chat.Running { // only now is it known which of them nobody runs, so a page may have fewer than requested
		out.Items = slices.DeleteFunc(out.Items, func(s operations.Session) bool { return s.Status != q.Status })
	}
	return out, err
}

// interrupted is the status of a terminal's session whose process ended during a run. Only a terminal continues it;
// other sessions continue as soon as a server runs.
const interrupted = "interrupted"

// abandoned reports a session whose run nobody continues unless somebody asks.
func (o *Handler) abandoned(row journal.Thread) bool {
	return row.Status == chat.Running && row.ID.Transport() == "cli" && o.app.Held != nil && !o.app.Held(row.ID)
}

// queued is the status of a session whose run waits until fewer others run. The journal does not know it, because it
// concerns the process that would run it.
const queued = "queued"

// listQueued lists the sessions that wait to run, in the order of the queue.
func (o *Handler) listQueued(ctx context.Context, by operation.Caller, q operations.SessionQuery) (out operation.List[operations.Session], err error) {
	most := operation.Limit(q.Limit, 50, 200)
	var rows []journal.Thread
	for _, id := range o.Engine.Queued() {
		row, err := o.app.DB.Thread(ctx, id)
		if errors.Is(err, journal.ErrUnknown) {
			continue
		}
		if err != nil {
			return out, err
		}
		if len(rows) < most && by.Sees(row.ID, row.Owner) && (q.Agent == "" || q.Agent == row.Agent) {
			rows = append(rows, row)
		}
	}
	out.Items, err = o.Views(ctx, rows)
	return out, err
}

func writeCursor(t journal.Thread) string {
	return base64.RawURLEncoding.EncodeToString([]byte(strconv.FormatInt(t.LastActive.UnixMicro(), 36) + " " + string(t.ID)))
}

func readCursor(text string) (*store.Cursor, error) {
	if text == "" {
		return nil, nil
	}
	data, err := base64.RawURLEncoding.DecodeString(text)
	at, thread, ok := strings.Cut(string(data), " ")
	micros, nerr := strconv.ParseInt(at, 36, 64)
	if err != nil || nerr != nil || !ok {
		return nil, operation.InvalidField("cursor", "the cursor %.80q is not from this list", text)
	}
	return &store.Cursor{LastActive: time.UnixMicro(micros), ID: chat.ThreadID(thread)}, nil
}

// GetSession implements the operation of that name.
func (o *Handler) GetSession(ctx context.Context, by operation.Caller, in operations.SessionRef) (operations.Session, error) {
	row, err := o.Find(ctx, by, in.ID)
	if err != nil {
		return operations.Session{}, err
	}
	views, err := o.Views(ctx, []journal.Thread{row})
	if err != nil {
		return operations.Session{}, err
	}
	s := views[0]
	o.addFacts(&s)
	s.Runs, err = o.runs(ctx, row.ID)
	return s, err
}

// addFacts adds what follows from a session's settings: how many tokens are kept in view (0: unknown), and where commands run.
func (o *Handler) addFacts(s *operations.Session) {
	bot, err := o.app.Settings.Bot(s.Agent)
	if err != nil {
		bot = o.app.Shared
	}
	s.RunsIn = o.app.Isolation.Describe(s.Sandbox, bot, s.Permissions)
	s.Window = o.window(*s, bot)
}

func (o *Handler) window(s operations.Session, bot *config.Bot) int {
	if bot.CompactionContextWindow > 0 {
		return bot.CompactionContextWindow
	}
	models, err := o.app.Models.For(bot.Vendors)
	if err != nil {
		models = o.app.Models
	}
	name := s.Model
	if s.Provider != "" {
		name = s.Provider + "/" + name
	}
	return models.Window(name)
}

// Views returns threads, with one query to the store for all of them.
func (o *Handler) Views(ctx context.Context, rows []journal.Thread) ([]operations.Session, error) {
	ids := make([]chat.ThreadID, len(rows))
	for i, row := range rows {
		ids[i] = row.ID
	}
	ends, err := o.app.DB.EndsOf(ctx, ids)
	if err != nil {
		return nil, err
	}
	wishes, err := o.standings(ctx, ids)
	if err != nil {
		return nil, err
	}
	places := map[chat.ThreadID]int{}
	for i, id := range o.Engine.Queued() {
		places[id] = i + 1
	}
	defaults := map[string]operations.Session{}
	out := make([]operations.Session, 0, len(rows))
	for _, row := range rows {
		own, ok := defaults[row.Agent]
		if !ok {
			own = o.Defaults(row.Agent)
			defaults[row.Agent] = own
		}
		s := o.view(row, ends[row.ID], wishes[row.ID], own)
		if s.Position = places[row.ID]; s.Position > 0 {
			s.Status = queued
		} else if o.abandoned(row) {
			s.Status = interrupted
		}
		out = append(out, s)
	}
	return out, o.saysUntil(ctx, rows, out)
}

// Defaults are the settings of an agent's sessions if nobody chose others.
func (o *Handler) Defaults(agent string) operations.Session {
	bot, err := o.app.Settings.Bot(agent)
	if err != nil {
		bot = o.app.Shared
	}
	name, err := o.app.Models.Name("", bot.ContinuationModel)
	if err != nil {
		name = bot.ContinuationModel
	}
	return operations.Session{Model: name, Permissions: bot.Permissions, Sandbox: bot.Sandbox}
}

func (o *Handler) view(row journal.Thread, ends store.Ends, made Standing, own operations.Session) operations.Session {
	hide := o.app.Logs.Redactor()
	s := operations.Session{
		ID: row.ID.Thread(), Thread: string(row.ID), Title: threadname.Plain(hide.Clipped(row.Title)), WorkspacePath: row.Dir, Agent: row.Agent,
		Model: cmp.Or(made.Terms.Model, own.Model), Permissions: cmp.Or(made.Terms.Profile, own.Permissions),
		Sandbox: cmp.Or(made.Terms.Sandbox, own.Sandbox), Mode: made.Terms.Mode, Owner: row.Owner.String(),
		CreatedAt: row.Created, MovedAt: row.LastActive, Status: "idle", Queue: row.Waiting, Seq: row.Next - 1,
		LastOutcome: string(ends.Last.Reason), Usage: usageOf(ends.Usage), Cost: feed.USD(ends.Cost),
	}
	if provider, name, ok := strings.Cut(s.Model, "/"); ok {
		s.Provider, s.Model = provider, name
	}
	switch row.Status {
	case chat.Running, chat.Delegated:
		s.Status = "running"
	case chat.Waiting:
		s.Status = "waiting"
	}
	if made.Forked != "" {
		s.ForkedFrom = made.Forked.Thread()
	}
	s.Parent, s.Listing = row.Parent.Thread.Thread(), row.Listing
	if ends.Last.Error != nil {
		s.Error = hide.Text(ends.Last.Error.Message)
	} else if ends.Last.Reason != chat.EndDone {
		s.Error = hide.Text(ends.Last.Text)
	}
	return s
}

func usageOf(u chat.Usage) feed.Usage {
	return feed.Usage{InputTokens: u.Input, OutputTokens: u.Output, CacheReadTokens: u.CacheRead, CacheWriteTokens: u.CacheWrite}
}

// shownRuns is how many runs a session shows.
const shownRuns = 20

func (o *Handler) runs(ctx context.Context, thread chat.ThreadID) ([]operations.RunSummary, error) {
	found, err := o.app.DB.RunsOf(ctx, thread, shownRuns)
	if err != nil {
		return nil, err
	}
	var out []operations.RunSummary
	for _, r := range found {
		start := r.Start.Body.(chat.RunStarted)
		run := operations.RunSummary{Run: start.Run, Seq: r.Start.Seq, Model: start.Model, StartedAt: r.Start.At}
		if r.End != nil {
			end := r.End.Body.(chat.RunEnded)
			run.Outcome, run.Steps, run.EndedAt = string(end.Reason), end.Steps, r.End.At
			run.Usage, run.Cost = usageOf(end.Usage), feed.USD(end.Cost)
		}
		out = append(out, run)
	}
	return out, nil
}
