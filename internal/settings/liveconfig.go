package settings

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"chorus/internal/await"
	"chorus/internal/chat"
	"chorus/internal/config"
	"chorus/internal/datadir"
	"chorus/internal/model"
	"chorus/internal/notice"
	"chorus/internal/participants"
	"chorus/internal/permit"
	"chorus/internal/room/route"
)

// LiveConfig is the layered configuration of a home: read at the start, and again by whoever
// watches it. The version that was last read without an error applies.
type LiveConfig struct {
	Options config.Options

	mu    sync.Mutex
	Files *config.Files
}

// NewLiveConfig returns a configuration that was already read.
func NewLiveConfig(files *config.Files) *LiveConfig { return &LiveConfig{Files: files} }

// OpenLiveConfig reads the files. It reports every mistake in them.
func OpenLiveConfig(env func(string) string, h *datadir.Home) (*LiveConfig, error) {
	o, err := ConfigOptions(env, h.Dir(), "")
	if err != nil {
		return nil, err
	}
	files, problems := config.ReadFiles(o)
	if err := problems.Err(); err != nil {
		return nil, err
	}
	return &LiveConfig{Options: o, Files: files}, nil
}

// Now returns the files in force.
func (c *LiveConfig) Now() *config.Files {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.Files
}

// Watch keeps the configuration up to date until ctx ends. It calls say, with a
// sentence, for each new version and each unusable one.
func (c *LiveConfig) Watch(ctx context.Context, changed func(), say func(notice.Notice)) error {
	return config.Watch(ctx, config.WatchOptions{
		Options: c.Options, Known: c.Now(),
		Changed: func(files *config.Files) {
			c.mu.Lock()
			c.Files = files
			c.mu.Unlock()
			changed()
			say(notice.Notice{Text: "the configuration was read again; it takes effect from the next run on"})
		},
		Broken: func(problems config.Problems) {
			say(notice.Notice{Bad: true, Text: fmt.Sprintf("the configuration was changed but cannot be used, so the previous version stays in force: %v", problems.Err())})
		},
	})
}

// Changed applies a new version of the configuration to the models.
func (s *Settings) Changed() {
	if bot, err := s.Bot(""); err == nil {
		s.Models.Renew(bot.Vendors)
		s.Models.Prefer(bot.DefaultProvider, bot.DefaultModel)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for wake := range s.changes {
		await.Notify(wake)
	}
}

// Changes returns a channel that receives a value whenever the configuration was reread, until ctx ends.
func (s *Settings) Changes(ctx context.Context) <-chan struct{} {
	wake := make(chan struct{}, 1)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changes == nil {
		s.changes = map[chan struct{}]bool{}
	}
	s.changes[wake] = true
	context.AfterFunc(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.changes, wake)
	})
	return wake
}

// Reread rereads the configuration at once, for whoever has just changed it.
func (s *Settings) Reread() error {
	files, problems := config.ReadFiles(s.Live.Options)
	if err := problems.Err(); err != nil {
		return err
	}
	s.Live.mu.Lock()
	s.Live.Files = files
	s.Live.mu.Unlock()
	s.Changed()
	return nil
}

// Bot returns the configuration of an agent, wherever it is; "" means that for everybody.
func (s *Settings) Bot(name string) (*config.Bot, error) { return s.BotIn(name, "") }

// Profile returns the permission profile of that name: one of the
// configuration's own, a preset or a file of rules.
func Profile(bot *config.Bot, name string) (*permit.Profile, error) {
	own, ok := bot.Profiles[name]
	if ok && (own.Allow != nil || own.Ask != nil || own.Deny != nil || !permit.IsPreset(name)) {
		return permit.Compile(name, permit.Rules{Allow: own.Allow, Ask: own.Ask, Deny: own.Deny})
	}
	return permit.Load(name)
}

// Sandboxed reports whether commands under a profile run in a sandbox, or not at all if none
// works. chosen is what was requested; "" means what is configured.
func Sandboxed(bot *config.Bot, chosen, profile string) bool {
	switch cmp.Or(chosen, bot.Sandbox) {
	case "host":
		return false
	case "", "auto":
		return bot.Profiles[profile].Sandbox != "none"
	default:
		return true
	}
}

// windowRolls reports whether the agent's window rolls. Coding sessions are
// summarised instead, unless somebody configured a window.
func windowRolls(bot *config.Bot) bool {
	if slices.ContainsFunc([]string{"recencyWindow.messages", "recencyWindow.characters", "recencyWindow.hardMax", "rollingThreshold"}, bot.IsSet) {
		return true
	}
	return NamesParticipants(bot)
}

// NamesParticipants reports whether the agent's conversations are told with everybody's names.
func NamesParticipants(bot *config.Bot) bool { return bot.IsSet("mode") }

// windowOf returns the limits of what the agent is shown.
func windowOf(bot *config.Bot) chat.Window {
	w := chat.Window{NoImages: !bot.IncludeImages}
	if windowRolls(bot) || bot.IsSet("maxImages") || bot.IsSet("maxImageBytes") {
		w.Images, w.ImageBytes = bot.MaxImages, int64(bot.MaxImageBytes)
		w.NoImages = w.NoImages || bot.MaxImages == 0
	}
	if windowRolls(bot) {
		w.CacheImages = bot.CacheImages && !w.NoImages
		w.Messages, w.Characters, w.HardMax, w.Threshold = bot.WindowMessages, bot.WindowCharacters, bot.WindowHardMax, bot.RollingThreshold
	}
	return w
}

// WindowAge returns how old the messages may be that a run in a thread is shown; 0: any age. Agents
// that answer by reply on a platform forget what is older than a day unless configured otherwise. A
// room has its message count, and a session at the terminal is summarised.
func WindowAge(bot *config.Bot, thread chat.ThreadID) time.Duration {
	if !bot.IsSet("recencyWindow.age") && !(thread.OnPlatform() && route.Routing(bot.Routing) == route.Reply) {
		return 0
	}
	age, _ := config.HowLong(bot.WindowAge) // checked when it was read
	return age
}

// SettingsOf returns the settings with which a run is rendered, as far as they do not depend on the model.
func SettingsOf(bot *config.Bot) chat.Settings {
	s := chat.Settings{
		MaxTokens: bot.MaxTokens, Temperature: bot.Temperature, TopP: bot.TopP, ThinkingBudget: bot.ThinkingBudget,
		PresencePenalty: bot.PresencePenalty, FrequencyPenalty: bot.FrequencyPenalty, NoCache: !bot.PromptCaching,
		ContextWindow: bot.CompactionContextWindow, Window: windowOf(bot),
		Summary:  chat.Summary{AfterMessages: bot.CompactionAfterMessages, MaxTokens: bot.CompactionSummaryTokens, Conversation: bot.CompactionForm == "conversation"},
		Dialogue: chat.Dialogue{Speaker: bot.SpeakerPrefix, MergeTurns: bot.MergeTurns, DropToolText: bot.DropToolText, ReportActions: bot.ReportActions},
	}
	if s.Summary.AfterMessages > 0 {
		s.Summary.KeepMessages = bot.CompactionKeepMessages
	}
	// Unset values depend on the model's window.
	if bot.IsSet("compaction.reserveTokens") {
		s.Reserve = bot.CompactionReserveTokens
	}
	if bot.IsSet("compaction.keepRecentTokens") {
		s.KeepRecent = bot.CompactionKeepRecentTokens
	}
	if !NamesParticipants(bot) { // otherwise the stop sequences are part of the style
		s.Stop = bot.StopSequences
	}
	return s
}

// Backoff returns how failed calls are retried.
func Backoff(bot *config.Bot) model.Backoff {
	b := model.Backoff{Retries: bot.LLMRetries, Base: time.Duration(bot.RetryBaseDelayMS) * time.Millisecond}
	if !bot.RetryEnabled || bot.LLMRetries == 0 {
		b.Retries = -1
	}
	return b
}

// Style returns how an agent's conversations are told to a model.
func Style(bot *config.Bot, name string) participants.Style {
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
