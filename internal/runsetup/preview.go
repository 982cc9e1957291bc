package runsetup

import (
	"cmp"
	"context"
	"errors"
	"os"
	"slices"

	"chorus/internal/agents"
	"chorus/internal/chat"
	"chorus/internal/config"
	"chorus/internal/engine"
	"chorus/internal/journal"
	"chorus/internal/model"
	"chorus/internal/tool"
	"chorus/internal/tool/selfedit"
	"chorus/internal/transcript"
)

// PreviewRequest says whose first request to show. Thread is a thread that was never begun.
type PreviewRequest struct {
	Thread chat.ThreadID
	Dir    string
	By     chat.Principal
	Agent  agents.Agent // the agent as it is or would be
}

// Preview is what a model is shown when a conversation begins.
type Preview struct {
	Model         string
	ContextWindow int
	Profile       string
	Head          *model.Head
	Tools         []tool.Spec
	Searched      []string // tools that are found by searching
	Refused       []string // tools that the profile never allows
	Servers       []string // MCP servers, which are not started
	Notes         []chat.Noted
}

// Preview assembles what a run of a new thread would begin with, using the functions of a real run. It
// asks no model and starts no server, and removes what it created in the home.
func (s *Setup) Preview(ctx context.Context, q PreviewRequest) (out Preview, err error) {
	bot, err := s.draftBot(q.Agent)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(s.Home.ThreadDir(q.Thread))) }()
	if _, err := s.Home.Ensure(q.Dir); err != nil {
		return out, err
	}
	b, err := s.NewToolbox(q.Thread, q.Dir)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	if b.Self == nil && q.Agent.Name != chat.DefaultAgent { // once created, the agent will have them
		b.List = append(b.List, selfedit.Tools(nil)...)
		if b.Tools, err = tool.NewSet(b.List...); err != nil {
			return out, err
		}
	}
	row := journal.Thread{ID: q.Thread, Agent: q.Agent.Name, Place: q.Thread.Place(), Dir: q.Dir, Owner: q.By}
	work := engine.Work{Senders: []transcript.Sender{{Principal: q.By, Seq: 1}}, Seq: 1}
	g := s.Gate.For(row, bot, work)
	now := g.Granted(work.Terms)
	who, err := s.persona(ctx, q.Agent.Name, bot)
	if err != nil {
		return out, err
	}
	who.prompt, who.tools, who.rare, who.worker = bot.SystemPrompt, q.Agent.Tools, q.Agent.RareTools, q.Agent.Worker
	rules, err := g.Limits.Load(bot.Permissions)
	if err != nil {
		return out, err
	}
	b.Web.Configure(s.webConfig(bot, s.Isolation.Plan(bot, rules, row, now, work).Hosts))
	offered, err := s.offer(ctx, b, row.ID, bot, who, g, now, serverTerms{unstarted: true})
	if err != nil {
		return out, err
	}
	out.Profile, out.Tools = rules.Name(), offered.Specs()
	out.Model, out.ContextWindow = s.previewModel(bot)
	out.Searched, out.Refused = besides(offered)
	servers, _ := s.servers(q.Dir, bot, nil, false)
	for _, one := range servers {
		out.Servers = append(out.Servers, one.Name)
	}
	if out.Head, err = s.freshHead(ctx, beginning{row: row, bench: b, tools: offered, now: now, who: who, bot: bot, gate: g}); err != nil {
		return out, err
	}
	sources := append(s.noteSources(row.ID, offered), s.skillsNote(offered, g.Withholds))
	out.Notes = s.notes(ctx, sources, NoteContext{Row: row, Toolbox: b, Log: transcript.New(nil), Head: out.Head}, map[string]int64{})
	return out, nil
}

// draftBot returns the configuration that an agent would have. Empty
// fields take the values that apply to everybody.
func (s *Setup) draftBot(a agents.Agent) (*config.Bot, error) {
	bot, err := s.Settings.Bot(a.Name)
	if err != nil {
		return nil, err
	}
	all, err := s.Settings.Bot("")
	if err != nil {
		return nil, err
	}
	draft := *bot
	draft.SystemPrompt = cmp.Or(a.SystemPrompt, all.SystemPrompt)
	draft.ContinuationModel = cmp.Or(a.Model, all.ContinuationModel)
	draft.Permissions = cmp.Or(a.Permissions, all.Permissions)
	return &draft, nil
}

// previewModel returns the model that would answer. A model that is
// not available now is shown by its name alone.
func (s *Setup) previewModel(bot *config.Bot) (name string, window int) {
	models, err := s.Models.For(bot.Vendors)
	if err != nil {
		return bot.ContinuationModel, 0
	}
	if name, err = models.Name("", bot.ContinuationModel); err != nil {
		return bot.ContinuationModel, 0
	}
	if made, err := models.Resolve(name); err == nil {
		window = made.Entry.ContextWindow
	}
	return name, window
}

// besides returns the tools that the model is not shown: those that it must
// search for, and those that its profile never allows.
func besides(offered *chosen) (searched, refused []string) {
	there := map[string]bool{}
	for _, spec := range offered.Specs() {
		there[spec.Name] = true
	}
	for _, spec := range offered.Unlisted() {
		there[spec.Name] = true
		searched = append(searched, spec.Name)
	}
	for _, spec := range offered.all.Specs() {
		if !there[spec.Name] && offered.has(spec) {
			refused = append(refused, spec.Name)
		}
	}
	slices.Sort(searched)
	slices.Sort(refused)
	return searched, refused
}
