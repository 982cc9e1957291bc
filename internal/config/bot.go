package config

import "time"

// Bot is what applies to one bot in one channel: effective values, with
// defaults filled in. The tags name the key in the table.
type Bot struct {
	Name string // of its file

	InnerName     string `key:"innerName"` // Name if nobody set it
	DiscordToken  Secret `key:"discordToken"`
	Preamble      string `key:"preamble"`      // may be set to "" for none
	SystemPrompt  string `key:"systemPrompt"`  // or the contents of systemPromptFile, whichever was set in the stronger layer
	ContextPrefix string `key:"contextPrefix"` // likewise

	Mode              string   `key:"mode"`              // prefill or chat
	ContinuationModel string   `key:"continuationModel"` // "": DefaultModel
	Fallback          []string `key:"fallback"`
	Temperature       *float64 `key:"temperature"` // nil: the model's own
	TopP              *float64 `key:"topP"`
	PresencePenalty   *float64 `key:"presencePenalty"`
	FrequencyPenalty  *float64 `key:"frequencyPenalty"`
	MaxTokens         int      `key:"maxTokens"` // 0: the catalog's
	ThinkingBudget    int      `key:"thinkingBudget"`
	StopSequences     []string `key:"stopSequences"`
	PromptCaching     bool     `key:"promptCaching"`
	LLMRetries        int      `key:"llmRetries"`
	RetryEnabled      bool     `key:"retry.enabled"`
	RetryBaseDelayMS  int      `key:"retry.baseDelayMs"`
	FirstByteMS       int      `key:"timeouts.firstByteMs"` // 0: the provider's default
	IdleMS            int      `key:"timeouts.idleMs"`      // likewise
	ToolMS            int      `key:"timeouts.toolMs"`      // 0: the default
	SetupMS           int      `key:"timeouts.setupMs"`
	OutageMS          int      `key:"timeouts.providerOutageMs"`
	DrainMS           int      `key:"timeouts.drainMs"`
	Vendors           []Vendor // in file order

	WindowMessages         int    `key:"recencyWindow.messages"` // 0: no limit
	WindowCharacters       int    `key:"recencyWindow.characters"`
	WindowHardMax          int    `key:"recencyWindow.hardMax"` // never below WindowCharacters
	WindowAge              string `key:"recencyWindow.age"`     // parsed by HowLong
	RollingThreshold       int    `key:"rollingThreshold"`
	RecentParticipantCount int    `key:"recentParticipantCount"`
	IncludeImages          bool   `key:"includeImages"`
	MaxImages              int    `key:"maxImages"`
	MaxImageBytes          int    `key:"maxImageBytes"`
	CacheImages            bool   `key:"cacheImages"`
	IncludeTextAttachments bool   `key:"includeTextAttachments"`
	MaxTextAttachmentKB    int    `key:"maxTextAttachmentKb"`
	SpeakerPrefix          string `key:"speakerPrefix"`
	MergeTurns             bool   `key:"mergeTurns"`
	DropToolText           bool   `key:"dropToolText"`
	MaxMessageChars        int    `key:"maxMessageChars"` // 0: never cut

	CompactionEnabled          bool   `key:"compaction.enabled"`
	CompactionContextWindow    int    `key:"compaction.contextWindow"` // 0: the catalog's
	CompactionReserveTokens    int    `key:"compaction.reserveTokens"`
	CompactionKeepRecentTokens int    `key:"compaction.keepRecentTokens"`
	CompactionAfterMessages    int    `key:"compaction.afterMessages"` // 0: only the window counts
	CompactionKeepMessages     int    `key:"compaction.keepMessages"`
	CompactionSummaryTokens    int    `key:"compaction.summaryTokens"` // 0: derived from the reserve
	CompactionForm             string `key:"compaction.form"`          // work or conversation
	IdleSummaryEnabled         bool   `key:"idleSummary.enabled"`
	IdleSummaryAfterMinutes    int    `key:"idleSummary.afterMinutes"`

	PrefillSeparator   string `key:"prefillSeparator"`
	PrefillOpening     string `key:"prefillOpening"` // may be set to "" for none
	MessageDelimiter   string `key:"messageDelimiter"`
	TurnEndToken       string `key:"turnEndToken"`
	PrefillThinking    bool   `key:"prefillThinking"`
	DebugThinking      bool   `key:"debugThinking"`
	ChatPersonaPrompt  bool   `key:"chatPersonaPrompt"`
	ChatPersonaPrefill bool   `key:"chatPersonaPrefill"`
	ChatBotAsAssistant bool   `key:"chatBotAsAssistant"`

	ToolsEnabled      bool        `key:"toolsEnabled"`
	Footer            string      `key:"footer"`
	ToolOutputVisible bool        `key:"toolOutputVisible"`
	MaxToolDepth      int         `key:"maxToolDepth"`
	ReportActions     bool        `key:"reportActions"`
	HashlineEdit      bool        `key:"hashlineEdit"`
	OperationTools    bool        `key:"operationTools"`
	MCPServers        []MCPServer // those that are not disabled, in file order
	WorkerKind        string      `key:"worker.kind"` // claude, codex, acp; "": our own agent
	WorkerCommand     []string    `key:"worker.command"`
	WorkerArgs        []string    `key:"worker.args"`
	WorkerModel       string      `key:"worker.model"`
	WorkerEnv         Values
	WorkerHosts       []string         `key:"worker.hosts"`
	WorkerPaths       []string         `key:"worker.paths"` // as written
	WorkerQuietMS     int              `key:"worker.quietMs"`
	WorkerSandbox     string           `key:"worker.sandbox"`
	SearchProviders   []SearchProvider // in file order
	ToolHooks         []ToolHook       // in file order

	Routing                 string   `key:"routing"` // reply, thread or room
	Answer                  string   `key:"answer"`  // bound, mentioned or all
	Intake                  string   `key:"intake"`  // queue, inject or interrupt
	MaxQueuedReplies        int      `key:"maxQueuedReplies"`
	MaxRuns                 int      `key:"maxRuns"`
	Workers                 int      `key:"workers"`
	TaskTimeoutMS           int      `key:"taskTimeoutMs"`
	WorkTokensDaily         int      `key:"workTokensDaily"`
	TaskReminderMS          int      `key:"taskReminderMs"`
	ProjectChannels         bool     `key:"projectChannels"`
	TaskEscalationMS        int      `key:"taskEscalationMs"`
	ReplyOnRandom           int      `key:"replyOnRandom"` // one in so many; 0: never
	ReplyOnName             bool     `key:"replyOnName"`
	AutoReplyOwnChannel     bool     `key:"autoReplyOwnChannel"`
	MaxBotReplyChainDepth   int      `key:"maxBotReplyChainDepth"`
	BotReplyChainDepthEmote string   `key:"botReplyChainDepthEmote"`
	ChannelHistory          bool     `key:"channelHistory"`
	ProjectAgent            string   `key:"projectAgent"` // "": the bot's own
	AuthorizedRoles         []string `key:"authorizedRoles"`
	Blocked                 []string `key:"blocked"`
	CooldownSeconds         int      `key:"cooldownSeconds"`
	NotifyPeople            bool     `key:"notifyPeople"`
	Greeting                bool     `key:"greeting"`
	Retention               string   `key:"retention"` // forget or keep
	DiscordBackoffMaxMS     int      `key:"discordBackoffMax"`

	Permissions       string             `key:"permissions"`
	Profiles          map[string]Profile // by name
	Access            []Grant            // in file order
	AccessDefault     string             `key:"accessDefault"` // checked
	Editors           []string           `key:"editors"`
	Channels          []Channel          // in file order
	ChannelsAllow     []string           `key:"channels.allow"` // names or ids, as written
	ChannelsDeny      []string           `key:"channels.deny"`  // likewise
	Workspaces        []string           `key:"workspaces"`     // as written: absolute, or beginning with ~
	Sandbox           string             `key:"sandbox"`
	SandboxContainer  string             `key:"sandboxContainer"`
	SandboxRoots      []string           `key:"sandboxRoots"` // as written
	SandboxGit        string             `key:"sandboxGit"`
	EgressHosts       []string           `key:"egress.hosts"` // for every profile; a profile's own hosts are in Profiles
	Secrets           []SecretRule       // in file order
	Prices            map[string]Price   // by model name
	Budgets           []Budget           // limits in the table's order, roles last
	ApprovalsDeadline string             `key:"approvals.deadline"` // parsed by HowLong
	ApprovalsRemind   string             `key:"approvals.remind"`   // likewise
	ApprovalsBy       string             `key:"approvals.by"`       // checked

	BudgetSoft float64  `key:"budgets.soft"`
	BudgetTask *float64 `key:"budgets.task"` // US dollars for one task; nil: no limit

	DefaultProvider string `key:"defaultProvider"`
	DefaultModel    string `key:"defaultModel"`
	IdleTimeoutMS   int    `key:"idleTimeoutMs"`
	Durability      string `key:"durability"`
	ImageCacheMB    int    `key:"imageCacheMb"`
	LogDays         int    `key:"logDays"`
	KeepDeleted     int    `key:"keepDeleted"` // days
	CheckpointFile  string `key:"audit.checkpointFile"`
	CheckpointKey   string `key:"audit.checkpointKey"`
	CheckpointURL   Secret `key:"audit.checkpointUrl"`
	CheckpointGit   string `key:"audit.checkpointGit"`
	CheckpointEvery int    `key:"audit.checkpointMinutes"`
	DatabaseURL     Secret `key:"databaseUrl"`
	BlobURL         string `key:"blobUrl"`
	BlobAccessKey   Secret `key:"blobAccessKey"`
	BlobSecretKey   Secret `key:"blobSecretKey"`
	NATSURL         Secret `key:"natsUrl"`
	NodeAddress     string `key:"nodeAddress"`
	PublicURL       string `key:"publicUrl"`
	OnNodeLost      string `key:"onNodeLost"`
	NodeLostAfter   int    `key:"nodeLostSeconds"`
	Theme           string `key:"theme"`

	merged merged
	pinned []leaf // profiles that pins name as limits
}

// Vendor is where models come from.
type Vendor struct {
	Name     string
	Config   Values // snake_case names; several keys are on a line each
	Provides []string
	Headers  Values
	Extra    map[string]any
	// Reread returns the vendor with its references resolved again from the
	// environment and files, for a key that was refused.
	Reread func() (Vendor, error) `json:"-"`
}

// Get returns the current value of a config key, or "" if it is not set.
func (v Vendor) Get(key string) (string, error) {
	now, err := v.Reread()
	return now.Config[key], err
}

// MCPServer is a server whose tools the bot may use.
type MCPServer struct {
	Name         string
	Type         string // stdio, http or sse
	Command      string
	Args         []string
	Env          Values
	Dir          string // cwd
	URL          string
	Headers      Values
	StartTimeout time.Duration
	CallTimeout  time.Duration
	TaskTimeout  time.Duration
	Hosts        []string // that its program may reach
	HostsNamed   bool
	Sandbox      string // auto or off
}

// ToolHook is a command that runs before or after tool calls.
type ToolHook struct {
	Name    string
	Event   string // before or after
	Tools   string // separated by |; "": all
	Command string
	Seconds int // time limit; 0: ten
}

// SearchProvider is a provider that web_search asks.
type SearchProvider struct {
	Name string
	Type string // brave, tavily, exa, kagi or searxng
	Key  Secret
	URL  string // "": the provider's own
}

// Profile is a custom permission profile. A profile without any rules adds its
// sandbox and hosts to the built-in profile of the same name.
type Profile struct {
	Allow, Ask, Deny []string
	Sandbox          string // required, preferred, none; "": depends on whether people are asked
	Hosts            []string
	Children         string // how programs that a command starts are judged: deny, judge, ask, allow; "": deny
}

// SecretRule is a value that tools may use without seeing it.
type SecretRule struct {
	Name  string
	Value Secret
	Hosts []string
}

// Price is what a model costs, in US dollars for a million tokens.
type Price struct{ Input, Output, CacheRead, CacheWrite float64 }

// Budget is one spending limit, in US dollars.
type Budget struct {
	Scope  string // guild, channel, agent, person or role
	Role   string // of scope role
	Period string // day or month
	USD    float64
}

// Origin returns where a key's value came from, or [BuiltIn] if nobody set it. The
// key may be a path below a map, with the names people chose.
func (b *Bot) Origin(key string) Place {
	if l := b.merged.get(key); l != nil {
		return l.at
	}
	return Place{}
}

// FileToken returns the token of a chat platform that a file gives the bot,
// or "" if none does, whatever the environment says.
func (b *Bot) FileToken() string {
	if b.Origin("discordToken").Layer == Environment {
		return ""
	}
	return string(b.DiscordToken)
}

// IsSet reports whether anybody set the key, even to 0, false or "".
func (b *Bot) IsSet(key string) bool { return b.merged.get(key) != nil }
