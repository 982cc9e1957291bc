package app

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"chorus/internal/agent"
	"chorus/internal/chat"
	"chorus/internal/config"
	"chorus/internal/datadir"
	"chorus/internal/journal"
	"chorus/internal/model"
	"chorus/internal/notice"
	"chorus/internal/participants"
	"chorus/internal/permit"
)

// conduct is the layered configuration of a home: read at the start, and again by
// whoever watches it. What was read last without an error holds.
type conduct struct {
	options config.Options

	mu    sync.Mutex
	files *config.Files
}

// openConduct reads the files. Every mistake in them is told.
func openConduct(env func(string) string, h *datadir.Home) (*conduct, error) {
	o, err := ConfigOptions(env, h.Dir(), "")
	if err != nil {
		return nil, err
	}
	if _, err := config.Read(h.Settings()); err != nil {
		return nil, err // it is JSON, and held to that
	}
	files, problems := config.ReadFiles(o)
	if err := problems.Err(); err != nil {
		return nil, err
	}
	return &conduct{options: o, files: files}, nil
}

func (c *conduct) now() *config.Files {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.files
}

// configFiles is the configuration as it was read last.
func (a *App) configFiles() *config.Files { return a.conduct.now() }

// watch keeps the configuration fresh until ctx ends. say hears, in a sentence, of a
// new version and of one that cannot be used.
func (c *conduct) watch(ctx context.Context, changed func(), say func(notice.Notice)) error {
	return config.Watch(ctx, config.WatchOptions{
		Options: c.options, Known: c.now(),
		Changed: func(files *config.Files) {
			c.mu.Lock()
			c.files = files
			c.mu.Unlock()
			changed()
			say(notice.Notice{Text: "the configuration was read again; it counts from the next run on"})
		},
		Broken: func(problems config.Problems) {
			say(notice.Notice{Bad: true, Text: fmt.Sprintf("the configuration was changed but cannot be used, so the version before it holds: %v", problems.Err())})
		},
	})
}

// attend does, once, what a process that stays around does beside its work: it keeps
// the configuration fresh and the list of models not too old, and sweeps once a day.
func (a *App) attend() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.unattend != nil {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	var work sync.WaitGroup
	a.unattend = func() { cancel(); work.Wait() }
	work.Go(func() {
		say := func(r notice.Notice) {
			a.notices.Post(r)
			level := slog.LevelInfo
			if r.Bad {
				level = slog.LevelWarn
			}
			a.Log.Log(ctx, level, r.Text, "component", "config")
		}
		if err := a.conduct.watch(ctx, a.renewed, say); err != nil {
			say(notice.Notice{Bad: true, Text: "changes of the configuration are not noticed: " + err.Error()})
		}
	})
	work.Go(func() {
		if !a.Models.stale() {
			return
		}
		if _, err := a.RefreshModels(ctx, nil); err != nil && ctx.Err() == nil {
			a.Log.Warn("the list of models was not renewed: "+err.Error(), "component", "models", "event", "models_not_renewed")
		}
	})
	work.Go(func() { a.sweepDaily(ctx) })
}

// renewed lets a new version of the configuration count for the models.
func (a *App) renewed() {
	if bot, err := a.bot(""); err == nil {
		a.Models.renew(bot.Vendors)
		a.Models.prefer(bot.DefaultProvider, bot.DefaultModel)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for bell := range a.bells {
		select {
		case bell <- struct{}{}:
		default: // it rings already
		}
	}
}

// renewals rings when the configuration was read again, until ctx ends.
func (a *App) renewals(ctx context.Context) <-chan struct{} {
	bell := make(chan struct{}, 1)
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.bells == nil {
		a.bells = map[chan struct{}]bool{}
	}
	a.bells[bell] = true
	context.AfterFunc(ctx, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.bells, bell)
	})
	return bell
}

// reread reads the configuration again at once, for whoever has just changed it.
func (a *App) reread() error {
	files, problems := config.ReadFiles(a.conduct.options)
	if err := problems.Err(); err != nil {
		return err
	}
	a.conduct.mu.Lock()
	a.conduct.files = files
	a.conduct.mu.Unlock()
	a.renewed()
	return nil
}

// bot is what holds for an agent wherever it is; "" is what holds for everybody.
func (a *App) bot(name string) (*config.Bot, error) { return a.botIn(name, "") }

// profile is the permission profile of that name: one of the configuration's own, a
// preset or a file of rules.
func profile(bot *config.Bot, name string) (*permit.Profile, error) {
	own, ok := bot.Profiles[name]
	if ok && (own.Allow != nil || own.Ask != nil || own.Deny != nil || !permit.IsPreset(name)) {
		return permit.Compile(name, permit.Rules{Allow: own.Allow, Ask: own.Ask, Deny: own.Deny})
	}
	return permit.Load(name)
}

// windowed reports whether the agent's window rolls. Coding sessions are summarised
// instead, unless somebody asked for a window.
func windowed(bot *config.Bot) bool {
	for _, key := range []string{"recencyWindow.messages", "recencyWindow.characters", "recencyWindow.hardMax", "rollingThreshold"} {
		if bot.IsSet(key) {
			return true
		}
	}
	return told(bot)
}

// told reports whether the agent's conversations are told with everybody's names.
func told(bot *config.Bot) bool { return bot.IsSet("mode") }

// windowOf are the limits of what the agent is shown.
func windowOf(bot *config.Bot) chat.Window {
	w := chat.Window{NoImages: !bot.IncludeImages}
	if windowed(bot) || bot.IsSet("maxImages") || bot.IsSet("maxImageBytes") {
		w.Images, w.ImageBytes = bot.MaxImages, int64(bot.MaxImageBytes)
		w.NoImages = w.NoImages || bot.MaxImages == 0
	}
	if windowed(bot) {
		w.CacheImages = bot.CacheImages && !w.NoImages
		w.Messages, w.Characters, w.HardMax, w.Threshold = bot.WindowMessages, bot.WindowCharacters, bot.WindowHardMax, bot.RollingThreshold
	}
	return w
}

// settingsOf are the numbers a run is rendered with, as far as they do not depend on
// the model.
func settingsOf(bot *config.Bot) chat.Settings {
	s := chat.Settings{
		MaxTokens: bot.MaxTokens, Temperature: bot.Temperature, TopP: bot.TopP, ThinkingBudget: bot.ThinkingBudget,
		PresencePenalty: bot.PresencePenalty, FrequencyPenalty: bot.FrequencyPenalty, NoCache: !bot.PromptCaching,
		ContextWindow: bot.CompactionContextWindow, Window: windowOf(bot),
	}
	// What nobody set depends on the model's window.
	if bot.IsSet("compaction.reserveTokens") {
		s.Reserve = bot.CompactionReserveTokens
	}
	if bot.IsSet("compaction.keepRecentTokens") {
		s.KeepRecent = bot.CompactionKeepRecentTokens
	}
	if !told(bot) { // else the stop sequences are part of how it is told
		s.Stop = bot.StopSequences
	}
	return s
}

// backoff is how failed calls are made again.
func backoff(bot *config.Bot) model.Backoff {
	b := model.Backoff{Retries: bot.LLMRetries, Base: time.Duration(bot.RetryBaseDelayMS) * time.Millisecond}
	if !bot.RetryEnabled || bot.LLMRetries == 0 {
		b.Retries = -1
	}
	return b
}

// style is how an agent's conversations are told to a model.
func style(bot *config.Bot, name string) participants.Style {
	s := participants.Style{
		Mode: participants.Mode(bot.Mode), Bot: bot.InnerName, Separator: bot.PrefillSeparator, Opening: bot.PrefillOpening,
		Delimiter: bot.MessageDelimiter, TurnEnd: bot.TurnEndToken, ContextPrefix: bot.ContextPrefix, PrefillThinking: bot.PrefillThinking,
		Persona: bot.ChatPersonaPrompt, PersonaPrefill: bot.ChatPersonaPrefill, OwnAsUser: !bot.ChatBotAsAssistant,
		RecentParticipants: bot.RecentParticipantCount, Stop: bot.StopSequences, NoCache: !bot.PromptCaching, Stable: true,
	}
	if name != "" && name != bot.InnerName {
		s.Aliases = []string{name}
	}
	return s
}

// engineOf resolves models for one thread: as the configuration tells them.
func engineOf(models *Models, row journal.Thread, bot *config.Bot, b *bench) func(string) (agent.Engine, error) {
	if !told(bot) {
		return models.Resolve
	}
	return func(name string) (agent.Engine, error) {
		made, err := models.Resolve(name)
		if err != nil {
			return made, err
		}
		made.Model = b.tell(style(bot, row.Agent), name, made)
		return made, nil
	}
}

// teller is a model that is told conversations in a style; it remembers what it told,
// so it is kept as long as the style stays.
type teller struct {
	style string
	inner model.Model
	model model.Model
}

func (b *bench) tell(s participants.Style, name string, e agent.Engine) model.Model {
	key := fmt.Sprintf("%+v", s)
	b.mu.Lock()
	defer b.mu.Unlock()
	if t, ok := b.tellers[name]; ok && t.style == key && t.inner == e.Model {
		return t.model
	}
	t := teller{key, e.Model, s.Wrap(e.Model, e.Entry)}
	b.tellers[name] = t
	return t.model
}
