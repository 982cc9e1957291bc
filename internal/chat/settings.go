package chat

// Terms are what somebody asked for along with a prompt. They travel with it, so
// that whichever process answers uses these terms and not its own. Zero fields
// mean the agent's setting or else the default.
type Terms struct {
	Model    string `json:"model,omitempty"`
	Mode     string `json:"mode,omitempty"`
	Profile  string `json:"profile,omitempty"`
	MaxSteps int    `json:"maxSteps,omitempty"`
	Yes      bool   `json:"yes,omitempty"` // every approval is answered yes automatically
	By       string `json:"by,omitempty"`  // the session that sent it
	Sandbox  string `json:"sandbox,omitempty"`
	// Attended says that somebody is waiting and prefers an early failure to a late answer.
	Attended bool `json:"attended,omitempty"`
	// MaxCost is the most that the run may spend, in billionths of a dollar; 0 leaves it to the budgets.
	MaxCost int64 `json:"maxCost,omitempty"`
	// Above are such limits of the runs that this one is a part of, the topmost first: "RUN=MOST", separated by commas.
	Above string `json:"above,omitempty"`
	// Tools lists the only tools of the run, separated by commas; "" means all of the agent's tools.
	Tools string `json:"tools,omitempty"`
}

// Settings are the numbers used to render a request. Zero means the default of the model or the provider.
type Settings struct {
	MaxTokens      int      `json:"maxTokens,omitempty"`
	Temperature    *float64 `json:"temperature,omitempty"`
	TopP           *float64 `json:"topP,omitempty"`
	Stop           []string `json:"stop,omitempty"`
	ThinkingBudget int      `json:"thinkingBudget,omitempty"`

	PresencePenalty  *float64 `json:"presencePenalty,omitempty"` // where the provider supports it
	FrequencyPenalty *float64 `json:"frequencyPenalty,omitempty"`
	NoCache          bool     `json:"noCache,omitempty"` // no cache marks for the provider

	ContextWindow int      `json:"contextWindow,omitempty"` // tokens the model can take
	Reserve       int      `json:"reserve,omitempty"`       // kept free for system prompt, tools and answer
	KeepRecent    int      `json:"keepRecent,omitempty"`    // tokens kept verbatim by a compaction
	Summary       Summary  `json:"summary,omitzero"`
	Dialogue      Dialogue `json:"dialogue,omitzero"`
	MaxSteps      int      `json:"maxSteps,omitempty"`
	Mode          string   `json:"mode,omitempty"`
	Profile       string   `json:"profile,omitempty"`
	Window        Window   `json:"window,omitzero"`
	Fallback      []string `json:"fallback,omitempty"` // models to try in order when the run's own cannot answer
}

// Window is how much of a conversation is shown; 0 means no limit.
type Window struct {
	Messages   int   `json:"messages,omitempty"`   // kept by a roll
	Characters int   `json:"characters,omitempty"` // kept by a roll
	HardMax    int   `json:"hardMax,omitempty"`    // characters; beyond it a roll does not wait
	Threshold  int   `json:"threshold,omitempty"`  // messages between two rolls
	Images     int   `json:"images,omitempty"`     // newest pictures shown
	ImageBytes int64 `json:"imageBytes,omitempty"` // of those, together
	NoImages   bool  `json:"noImages,omitempty"`
	// AgeSeconds is the greatest age of a message when a run begins.
	AgeSeconds int `json:"ageSeconds,omitempty"`
	// CacheImages allows pictures before the lasting cache mark too.
	CacheImages bool `json:"cacheImages,omitempty"`
}

// Dialogue is how the turns of a conversation are presented to the model.
type Dialogue struct {
	Speaker       string `json:"speaker,omitempty"`       // prefix for what people say, with {user} for the name
	MergeTurns    bool   `json:"mergeTurns,omitempty"`    // consecutive user messages become one turn
	DropToolText  bool   `json:"dropToolText,omitempty"`  // answers with calls are shown again without their text
	ReportActions bool   `json:"reportActions,omitempty"` // an answer without words says what was done
}

// Summary says when and how the older part of a conversation is summarised,
// in addition to the limits of the model's window.
type Summary struct {
	AfterMessages int  `json:"afterMessages,omitempty"` // messages of people and answers; 0: only the window counts
	KeepMessages  int  `json:"keepMessages,omitempty"`
	MaxTokens     int  `json:"maxTokens,omitempty"`    // 0: derived from the reserve
	Conversation  bool `json:"conversation,omitempty"` // summarise what was talked about, and let the model acknowledge it
}
