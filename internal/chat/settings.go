package chat

// Terms are what somebody asked for along with a prompt. They travel with it, so
// that whoever answers it, in whatever process, answers on these terms and not on
// its own. Zero fields mean the agent's own, else the default.
type Terms struct {
	Model    string `json:"model,omitempty"`
	Mode     string `json:"mode,omitempty"`
	Profile  string `json:"profile,omitempty"`
	MaxSteps int    `json:"maxSteps,omitempty"`
	Yes      bool   `json:"yes,omitempty"` // every approval is answered yes
	By       string `json:"by,omitempty"`  // the session that sent it
	Sandbox  string `json:"sandbox,omitempty"`
	// Attended says that somebody waits for the answer and would rather hear of a failure soon
	// than of an answer late.
	Attended bool `json:"attended,omitempty"`
	// MaxCost is what the run may spend at most, in billionths of a dollar; 0: what budgets allow.
	MaxCost int64 `json:"maxCost,omitempty"`
	// Tools are the only ones that the run has, with commas between them; "": all of the agent's.
	Tools string `json:"tools,omitempty"`
}

// Settings are the numbers a request is rendered with. Zero means the model's
// or the provider's own default.
type Settings struct {
	MaxTokens      int      `json:"maxTokens,omitempty"`
	Temperature    *float64 `json:"temperature,omitempty"`
	TopP           *float64 `json:"topP,omitempty"`
	Stop           []string `json:"stop,omitempty"`
	ThinkingBudget int      `json:"thinkingBudget,omitempty"`

	PresencePenalty  *float64 `json:"presencePenalty,omitempty"` // where the provider knows it
	FrequencyPenalty *float64 `json:"frequencyPenalty,omitempty"`
	NoCache          bool     `json:"noCache,omitempty"` // no marks for the provider's cache

	ContextWindow int      `json:"contextWindow,omitempty"` // tokens the model can take
	Reserve       int      `json:"reserve,omitempty"`       // kept free for system prompt, tools and answer
	KeepRecent    int      `json:"keepRecent,omitempty"`    // tokens kept verbatim by a compaction
	Summary       Summary  `json:"summary,omitzero"`
	Dialogue      Dialogue `json:"dialogue,omitzero"`
	MaxSteps      int      `json:"maxSteps,omitempty"`
	Mode          string   `json:"mode,omitempty"`
	Profile       string   `json:"profile,omitempty"`
	Window        Window   `json:"window,omitzero"`
	Fallback      []string `json:"fallback,omitempty"` // models to turn to when the run's own cannot answer, in order
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
	// AgeSeconds is how old a message may be when a run begins.
	AgeSeconds int `json:"ageSeconds,omitempty"`
	// CacheImages lets pictures stand before the lasting cache mark too.
	CacheImages bool `json:"cacheImages,omitempty"`
}

// Dialogue is how the turns of a conversation are put to the model.
type Dialogue struct {
	Speaker       string `json:"speaker,omitempty"`       // stands before what people say, with {user} for the name
	MergeTurns    bool   `json:"mergeTurns,omitempty"`    // user messages in a row are one turn
	DropToolText  bool   `json:"dropToolText,omitempty"`  // of answers with calls only the calls are shown again
	ReportActions bool   `json:"reportActions,omitempty"` // an answer without words says what was done
}

// Summary is when and how the older part of a conversation is summarised, beside what the model's window asks for.
type Summary struct {
	AfterMessages int  `json:"afterMessages,omitempty"` // of people and answers; 0: the window alone counts
	KeepMessages  int  `json:"keepMessages,omitempty"`
	MaxTokens     int  `json:"maxTokens,omitempty"`    // 0: by the reserve
	Conversation  bool `json:"conversation,omitempty"` // of what was talked about, and acknowledged by the model
}
