package catalog

// providers is the table, in the order in which a default is looked for.
var providers = []Provider{
	{
		Name: "anthropic", DefaultModel: "claude-sonnet-4-5", BaseURL: "https://api.anthropic.com", Prefixes: []string{"claude"},
		Settings: Settings{Key: []string{"anthropic_api_key", "api_key"}, Address: []string{"anthropic_base_url", "api_base", "base_url"}},
		Env:      map[string][]string{"anthropic_api_key": {"ANTHROPIC_API_KEY"}, "api_base": {"ANTHROPIC_BASE_URL"}},
		API:      "anthropic-messages",
	},
	{
		Name: "openai", DefaultModel: "gpt-5-mini", BaseURL: "https://api.openai.com/v1", Prefixes: []string{"gpt-", "chatgpt-", "o1", "o3", "o4"},
		Settings: Settings{Key: []string{"openai_api_key", "api_key"}, Address: []string{"openai_base_url", "api_base", "base_url"}, Other: []Setting{{Name: "openai_api"}}},
		Env:      map[string][]string{"openai_api_key": {"OPENAI_API_KEY"}, "api_base": {"OPENAI_BASE_URL"}},
		Key:      KeyUnlessAddress, Compatible: true, Assumed: true,
		MaxStops: 4, JoinText: true, ExtraFields: true,
		API: "openai-completions",
	},
	{
		Name: "google", Aliases: []string{"gemini"}, DefaultModel: "gemini-2.5-flash", BaseURL: "https://generativelanguage.googleapis.com", Prefixes: []string{"gemini"},
		Settings: Settings{Key: []string{"google_api_key", "gemini_api_key", "api_key"}, Address: []string{"google_base_url", "gemini_base_url", "api_base", "base_url"}},
		Env:      map[string][]string{"google_api_key": {"GEMINI_API_KEY", "GOOGLE_API_KEY"}, "api_base": {"GOOGLE_GEMINI_BASE_URL"}},
		Key:      KeyUnlessAddress,
		MaxStops: 5, JoinText: true, traits: geminiTraits,
		Telemetry: "gcp.gemini",
	},
	{
		Name: "openrouter", DefaultModel: "anthropic/claude-sonnet-4.5", BaseURL: "https://openrouter.ai/api/v1",
		Settings: Settings{Key: []string{"openrouter_api_key", "api_key"}, Address: []string{"openrouter_base_url", "api_base", "base_url"}},
		Env:      map[string][]string{"openrouter_api_key": {"OPENROUTER_API_KEY"}, "api_base": {"OPENROUTER_BASE_URL"}},
		MaxStops: 4, ExtraFields: true,
		API:    "openai-completions",
		lookup: lookupRouted,
	},
	{
		Name: "bedrock", DefaultModel: "global.anthropic.claude-sonnet-4-5-20250929-v1:0",
		Settings: Settings{
			Address: []string{"aws_endpoint_url_bedrock_runtime", "api_base", "base_url"},
			Other: []Setting{
				{Name: "aws_access_key", Aliases: []string{"aws_access_key_id"}, Secret: true},
				{Name: "aws_secret_key", Aliases: []string{"aws_secret_access_key"}, Secret: true},
				{Name: "aws_session_token", Secret: true},
				{Name: "aws_region", Aliases: []string{"aws_default_region", "region"}},
				{Name: "aws_profile"},
				{Name: "aws_bearer_token_bedrock", Secret: true},
			},
		},
		Env: map[string][]string{
			"aws_access_key": {"AWS_ACCESS_KEY_ID"}, "aws_secret_key": {"AWS_SECRET_ACCESS_KEY"}, "aws_session_token": {"AWS_SESSION_TOKEN"},
			"aws_region": {"AWS_REGION", "AWS_DEFAULT_REGION"}, "aws_profile": {"AWS_PROFILE"},
			"aws_bearer_token_bedrock": {"AWS_BEARER_TOKEN_BEDROCK"}, "api_base": {"AWS_ENDPOINT_URL_BEDROCK_RUNTIME"},
		},
		// AWS finds credentials in many places, but a profile for other work does
		// not mean that somebody wants to spend money here.
		Key: KeyOptional, Shown: [][]string{{"aws_region"}, {"aws_access_key", "aws_profile", "aws_bearer_token_bedrock", "api_base"}},
		Credentials: []string{"aws_access_key", "aws_bearer_token_bedrock"},
		Telemetry:   "aws.bedrock",
		lookup:      lookupBedrock, traits: bedrockTraits,
	},
	{
		Name: "ollama", DefaultModel: "llama3.2", BaseURL: "http://127.0.0.1:11434",
		Settings: Settings{Key: []string{"ollama_api_key", "api_key"}, Address: []string{"ollama_host", "ollama_base_url", "api_base", "base_url"}},
		Env:      map[string][]string{"ollama_api_key": {"OLLAMA_API_KEY"}, "ollama_host": {"OLLAMA_HOST"}},
		Key:      KeyOptional, Shown: [][]string{{"ollama_host"}}, Local: &Local{Start: "ollama serve", Pull: "ollama pull"},
		JoinText: true,
		unknown:  local, traits: ollamaTraits,
	},
	{
		Name: "completions", DefaultModel: "gpt-3.5-turbo-instruct", BaseURL: "https://api.openai.com/v1", BaseModels: true,
		Settings: Settings{Key: []string{"openai_completions_api_key", "api_key"}, Address: []string{"openai_completions_base_url", "api_base", "base_url"}},
		Env:      map[string][]string{"openai_completions_api_key": {"OPENAI_COMPLETIONS_API_KEY"}, "api_base": {"OPENAI_COMPLETIONS_BASE_URL"}},
		Key:      KeyUnlessAddress, Compatible: true,
		MaxStops: 4, ExtraFields: true,
	},
	{Name: "demo", DefaultModel: "guide", Key: KeyOptional, Offline: true},
}
