package config

import "chorus/internal/theme"

// at returns a bound of a range.
func at(f float64) *float64 { return &f }

// Keys is the table of everything that can be set. Adding a key here gives it its checks, its variable, its
// line in the schema and the reference. It also needs its field in [Bot] (a test checks that).
func Keys() []Key {
	var all []Key
	for _, s := range Sections() {
		all = append(all, s.Keys...)
	}
	return all
}

// Section is a part of the table that people read together.
type Section struct {
	Title string
	Keys  []Key
}

// Sections returns the parts of the table, in reading order.
func Sections() []Section {
	return []Section{{"Who the bot is", identityKeys()}, {"The model", modelKeys()}, {"What the model sees", contextKeys()}, {"How it is written", formatKeys()},
		{"Tools", toolKeys()}, {"Conversation", conversationKeys()}, {"Rights and money", trustKeys()}, {"The whole process", homeKeys()}}
}

// groups returns the objects of the table.
func groups() []group {
	return []group{
		{path: "recencyWindow", short: "messages", doc: "How much of the conversation the model sees after a roll; a number alone counts messages."},
		{path: "idleSummary", short: "enabled", doc: "Summing up a conversation that has been quiet for a while."},
		{path: "compaction", short: "enabled", doc: "Summarising the older part of a conversation that outgrows the model's window."},
		{path: "timeouts", doc: "How long a run waits for what is outside of it. Nothing is waited for without an end; 0 means the default."},
		{path: "retry", doc: "Calling a model again after a failure that may pass."},
		{path: "vendors", named: true, doc: "Where models come from, in order: the first whose patterns match a model gives it. More than one file may add vendors; new ones come last."},
		{path: "vendors.*", doc: "One vendor."},
		{path: "vendors.*.config", doc: "Its credentials and address."},
		{path: "vendors.*.headers", doc: "Headers sent with every request."},
		{path: "mcpServers", named: true, doc: "MCP servers whose tools the bot may use."},
		{path: "mcpServers.*", doc: "One server: command for a program, url for one on the network."},
		{path: "mcpServers.*.env", doc: "Environment variables for the program."},
		{path: "mcpServers.*.headers", doc: "Headers sent to the url."},
		{path: "worker", short: "kind", doc: "Another program that does the agent's work instead of a model and our tools; a text alone is its kind. See docs/guides/workers.md."},
		{path: "worker.env", doc: "Environment variables for the program."},
		{path: "searchProviders", named: true, doc: "Whom the tool web_search asks, in order, until one answers. Without any, those whose variable is set: BRAVE_API_KEY, TAVILY_API_KEY, EXA_API_KEY, KAGI_API_KEY, SEARXNG_URL."},
		{path: "toolHooks", named: true, doc: "Commands that run before and after calls of tools, as you and outside of the sandbox. They read the call as JSON; one before a call can deny it (exit 2) or rewrite its arguments, and one that fails denies it."},
		{path: "searchProviders.*", short: "key", doc: "One provider; a text alone is its key."},
		{path: "profiles", doc: "Permission profiles of your own, by name."},
		{path: "profiles.*", doc: "One profile."},
		{path: "access", doc: "What agents may do for people, also where the agent itself may do more: a profile for anyone, local, discord, token, discord:123, role:NAME or discord/role:NAME. The closest name counts. Without it, local: open, discord and token: standard."},
		{path: "channels", doc: "What may be done in some channels, by their name or id; * stands for any characters."},
		{path: "channels.*", short: "permissions", doc: "Those channels."},
		{path: "egress", doc: "What sandboxed commands may reach, through a proxy of ours."},
		{path: "secrets", doc: "Values that tools may use without seeing them, by name."},
		{path: "secrets.*", short: "value", doc: "One secret; a text alone is its value."},
		{path: "approvals", short: "deadline", doc: "Asking people before something is done. How long is written 90s, 15m, 24h; none: as long as it takes."},
		{path: "approvals.profiles", doc: "The same where one permission profile holds, by its name."},
		{path: "approvals.profiles.*", short: "deadline", doc: "One profile."},
		{path: "audit", doc: "Keeping the head of the audit log elsewhere."},
		{path: "prices", doc: "What models cost, by their full name or the part behind the slash, where the catalog does not know it or is wrong; in US dollars for a million tokens."},
		{path: "prices.*", doc: "One model."},
		{path: "budgets", doc: "Ceilings of what may be spent, in US dollars."},
		{path: "budgets.guild", short: "month", doc: "All of a guild together."},
		{path: "budgets.channel", short: "month", doc: "Each channel."},
		{path: "budgets.agent", short: "month", doc: "Each agent."},
		{path: "budgets.person", short: "month", doc: "Each person."},
		{path: "budgets.role", doc: "Each person who has the role, by the role's name."},
		{path: "budgets.role.*", short: "month", doc: "One role."},
	}
}

func identityKeys() []Key {
	return []Key{
		{Path: "innerName", Label: "Name in the conversation", Kind: Text, Pins: true, Aliases: []string{"name"}, Doc: "The name the bot has in the conversation the model sees; without it, the bot's file name."},
		{Path: "discordToken", Label: "Discord token", Kind: Text, Secret: true, Doc: "The bot's token; a file in bots/ with a token is a bot."},
		{Path: "systemPrompt", Label: "System prompt", Kind: Text, Pins: true, Doc: "Who the bot is; comes before the conversation."},
		{Path: "preamble", Label: "Instructions for using tools", Kind: Text, Doc: "What stands before systemPrompt where the bot has tools, in place of Chorus's own lines on how to use them; an empty text: nothing. {name}, {dir} and {os} are filled in. Without tools there is none."},
		{Path: "systemPromptFile", Label: "File with the system prompt", Kind: Text, Doc: "A file with the system prompt, relative to the file that names it."},
		{Path: "contextPrefix", Label: "Text before the conversation", Kind: Text, Pins: true, Doc: "Text that stands before the conversation, as if said earlier."},
		{Path: "contextPrefixFile", Label: "File with the text before the conversation", Kind: Text, Doc: "A file with the context prefix, relative to the file that names it."},
	}
}

func modelKeys() []Key {
	return []Key{
		{Path: "mode", Label: "Form of the conversation", Kind: Text, Pins: true, Default: "prefill", Choices: []string{"prefill", "chat"}, Doc: "How the conversation is put to the model: as one text to go on with, or as turns."},
		{Path: "continuationModel", Label: "Model", Kind: Text, Pins: true, Aliases: []string{"model"}, Doc: "The model: provider/model, or a name that the vendors' patterns match."},
		{Path: "fallback", Label: "Fallback models", Kind: List, Pins: true, Doc: "Models to try, in order, when the model cannot be reached or refuses the key."},
		{Path: "temperature", Label: "Temperature", Kind: Number, Pins: true, Least: at(0), Most: at(2), Doc: "How freely the model chooses; without it, the model's own."},
		{Path: "topP", Label: "Share of likely words (top-p)", Kind: Number, Pins: true, Least: at(0), Most: at(1), Doc: "The share of likely words to choose from; without it, the model's own."},
		{Path: "presencePenalty", Label: "Penalty for words already used", Kind: Number, Pins: true, Least: at(-2), Most: at(2), Doc: "Discourages words that were used, where the provider knows it."},
		{Path: "frequencyPenalty", Label: "Penalty for words used often", Kind: Number, Pins: true, Least: at(-2), Most: at(2), Doc: "Discourages words by how often they were used, where the provider knows it."},
		{Path: "maxTokens", Label: "Longest answer", Kind: Integer, Pins: true, Least: at(1), Doc: "The longest answer, in tokens; without it, what the catalog has for the model."},
		{Path: "thinkingBudget", Label: "Tokens for thinking", Kind: Integer, Pins: true, Default: 0, Least: at(0), Doc: "Tokens the model may think before it answers; 0: none asked for."},
		{Path: "stopSequences", Label: "Texts that end an answer", Kind: List, Pins: true, Doc: "Further texts at which the answer ends."},
		{Path: "promptCaching", Label: "Prompt caching", Kind: Bool, Pins: true, Default: true, Doc: "Mark the part of the prompt that stays the same, so that the provider keeps it."},
		{Path: "llmRetries", Label: "Number of retries", Kind: Integer, Pins: true, Default: 3, Least: at(0), Most: at(20), Aliases: []string{"retry.maxRetries"}, Doc: "How often a failed model call is made again."},
		{Path: "retry.enabled", Label: "Retry failed model calls", Kind: Bool, Pins: true, Default: true, Doc: "Whether a failed model call is made again at all."},
		{Path: "retry.baseDelayMs", Label: "First pause before a retry", Kind: Integer, Pins: true, Default: 1000, Least: at(0), Doc: "The first pause in milliseconds; each next one is twice as long."},
		{Path: "timeouts.firstByteMs", Label: "Longest wait for an answer to begin", Kind: Integer, Home: true, Default: 0, Least: at(0), Doc: "For an answer to begin, in milliseconds; by default two minutes, and up to ten for models that think silently or must be loaded."},
		{Path: "timeouts.idleMs", Label: "Longest wait for the next piece of an answer", Kind: Integer, Home: true, Default: 0, Least: at(0), Doc: "For the next piece of an answer, in milliseconds; by default 90 seconds, and up to ten minutes for models that think silently."},
		{Path: "timeouts.toolMs", Label: "Time limit for a tool call", Kind: Integer, Default: 900_000, Least: at(0), Doc: "For one call of a tool, in milliseconds; most tools have shorter limits of their own."},
		{Path: "timeouts.providerOutageMs", Label: "Longest wait for a provider that is down", Kind: Integer, Default: 900_000, Least: at(0), Doc: "For a provider that is out of order (overloaded, too many requests, not to be reached), in milliseconds from the first failure, when nobody waits at a terminal or at /v1; those fail after retry.maxRetries."},
		{Path: "timeouts.drainMs", Label: "Time for tools to finish when the server stops", Kind: Integer, Home: true, Default: 20_000, Least: at(0), Doc: "For tools that run when the server is told to stop, in milliseconds; what is then not done is interrupted."},
		{Path: "timeouts.setupMs", Label: "Time to prepare a run", Kind: Integer, Home: true, Default: 180_000, Least: at(0), Doc: "For settings, servers and the sandbox before a run begins, in milliseconds."},
		{Path: "vendors.*.config.*", Label: "Vendor *: setting *", Kind: Text, Secret: true, Lines: true, Doc: "anthropic_api_key, openai_api_key, api_base, aws_region …; a list of keys, or a file with one a line, is used in turn."},
		{Path: "vendors.*.provides", Label: "Vendor *: models", Kind: List, Doc: "The models it gives: whole names; * and ? are globs; one with \\ or .* is an anchored regular expression."},
		{Path: "vendors.*.headers.*", Label: "Vendor *: header *", Kind: Text, Secret: true, Doc: "One header."},
		{Path: "vendors.*.extra", Label: "Vendor *: further fields of requests", Kind: Free, Doc: "Fields added to the body of every request."},
	}
}

func contextKeys() []Key {
	return []Key{
		{Path: "recencyWindow.messages", Label: "Messages kept when older ones are left out", Kind: Integer, Pins: true, Default: 0, Least: at(0), Aliases: []string{"recencyWindowMessages"}, Doc: "Messages kept at a roll, when older ones are left out; 0: characters alone decide."},
		{Path: "recencyWindow.characters", Label: "Characters kept when older ones are left out", Kind: Integer, Pins: true, Default: 100_000, Least: at(1), Aliases: []string{"recencyWindowCharacters"}, Doc: "Characters kept at a roll."},
		{Path: "recencyWindow.hardMax", Label: "Most characters in a request", Kind: Integer, Pins: true, Default: 500_000, Least: at(1), Aliases: []string{"hardMaxCharacters"}, Doc: "Characters at which a roll is made at once."},
		{Path: "recencyWindow.age", Label: "Oldest message in a request", Kind: Text, Period: true, Pins: true, Default: "24h", Aliases: []string{"rollingWindow"}, Doc: "How old a message may be when the bot begins to answer, as 90m, 24h or 168h; older ones leave the request in steps of a 24th of it, and stay in the journal. none: any age. Where nobody sets it, it holds for conversations by reply on a platform, and others have none."},
		{Path: "rollingThreshold", Label: "Messages until older ones are left out", Kind: Integer, Pins: true, Default: 50, Least: at(1), Doc: "Messages between two rolls; the prompt's beginning stays the same in between."},
		{Path: "recentParticipantCount", Label: "Recent speakers whose names end an answer", Kind: Integer, Pins: true, Default: 10, Least: at(0), Doc: "How many recent speakers' names stop an answer."},
		{Path: "includeImages", Label: "Show pictures to the model", Kind: Bool, Pins: true, Default: true, Doc: "Whether the model sees pictures."},
		{Path: "maxImages", Label: "Most pictures in a request", Kind: Integer, Pins: true, Default: 5, Least: at(0), Doc: "The newest pictures that are sent."},
		{Path: "maxImageBytes", Label: "Largest size of all pictures in a request", Kind: Integer, Pins: true, Default: 15 << 20, Least: at(0), Doc: "All pictures of one request together, in bytes."},
		{Path: "cacheImages", Label: "Cache pictures at the provider", Kind: Bool, Pins: true, Default: false, Doc: "Keep pictures in the part of the prompt that the provider caches too."},
		{Path: "includeTextAttachments", Label: "Read attached text files", Kind: Bool, Pins: true, Default: true, Doc: "Whether text files that people attach are read."},
		{Path: "maxTextAttachmentKb", Label: "Longest part of an attached text file", Kind: Integer, Pins: true, Default: 100, Least: at(0), Doc: "How much of one text file is read, in kilobytes."},
		{Path: "speakerPrefix", Label: "Text before each message of a person", Kind: Text, Pins: true, Default: "", Doc: "What stands before each message of a person, with {user} for their name, such as [from {user}]: ; empty: nothing."},
		{Path: "mergeTurns", Label: "Join messages that follow each other", Kind: Bool, Pins: true, Default: false, Doc: "Whether messages that follow each other without an answer between them are one turn of the user."},
		{Path: "dropToolText", Label: "Leave out what was said beside tool calls", Kind: Bool, Pins: true, Default: false, Doc: "Leave out of later requests what the model said beside its calls of tools; the conversation keeps it."},
		{Path: "maxMessageChars", Label: "Longest message", Kind: Integer, Pins: true, Default: 0, Least: at(0), Doc: "Longer messages are cut with a note; 0: never."},
		{Path: "compaction.enabled", Label: "Summarise long conversations", Kind: Bool, Pins: true, Default: true, Doc: "Whether it is done."},
		{Path: "compaction.contextWindow", Label: "Context window", Kind: Integer, Pins: true, Default: 0, Least: at(0), Doc: "The window in tokens; 0: what the catalog has for the model."},
		{Path: "compaction.reserveTokens", Label: "Tokens kept free for the answer", Kind: Integer, Pins: true, Default: 16_384, Least: at(0), Doc: "Tokens kept free for the answer."},
		{Path: "compaction.keepRecentTokens", Label: "Newest tokens that are not summarised", Kind: Integer, Pins: true, Default: 20_000, Least: at(0), Doc: "Tokens of the newest messages that are never summarised."},
		{Path: "compaction.afterMessages", Label: "Messages until a summary", Kind: Integer, Pins: true, Default: 0, Least: at(0), Doc: "Messages of people and answers after which the older ones are summarised, whatever the window; 0: only the window counts."},
		{Path: "compaction.keepMessages", Label: "Messages kept beside a summary", Kind: Integer, Pins: true, Default: 14, Least: at(1), Doc: "How many of them stay then."},
		{Path: "compaction.summaryTokens", Label: "Longest summary", Kind: Integer, Pins: true, Default: 0, Least: at(0), Doc: "The longest summary, in tokens; 0: four fifths of reserveTokens."},
		{Path: "compaction.form", Label: "Form of the summary", Kind: Text, Pins: true, Default: "work", Choices: []string{"work", "conversation"}, Doc: "What the summary is: of work on files, with sections; or of a conversation, in a few sentences, which the model acknowledges."},
		{Path: "idleSummary.enabled", Label: "Summarise quiet conversations", Kind: Bool, Pins: true, Default: false, Doc: "Whether it is done."},
		{Path: "idleSummary.afterMinutes", Label: "Quiet minutes until a summary", Kind: Integer, Pins: true, Default: 30, Least: at(1), Doc: "Minutes without a message before it is done."},
	}
}

func formatKeys() []Key {
	return []Key{
		{Path: "prefillSeparator", Label: "Text between two messages", Kind: Text, Pins: true, Default: "\n\n", Doc: "What stands between two messages in prefill mode."},
		{Path: "prefillOpening", Label: "First message of the user", Kind: Text, Pins: true, Default: "<cmd>cat untitled.txt</cmd>", Doc: "The user turn that prefill mode begins with."},
		{Path: "messageDelimiter", Label: "End of each message, in place of the separator", Kind: Text, Pins: true, Default: "", Doc: "Ends each message instead of the separator, and stops the answer; for base models, such as </s>."},
		{Path: "turnEndToken", Label: "End of each message, before the separator", Kind: Text, Pins: true, Default: "", Doc: "Ends each message before the separator, and stops the answer."},
		{Path: "prefillThinking", Label: "Begin answers with thinking", Kind: Bool, Pins: true, Default: false, Doc: "Begin the answer with <thinking> in prefill mode."},
		{Path: "debugThinking", Label: "Post what the model thought", Kind: Bool, Pins: true, Default: false, Doc: "Post what the model thought as a dot message."},
		{Path: "chatPersonaPrompt", Label: "Tell the model which name is its own", Kind: Bool, Pins: true, Default: true, Doc: "Tell the model in chat mode which of the names it is."},
		{Path: "chatPersonaPrefill", Label: "End the last message with the bot's name", Kind: Bool, Pins: true, Default: true, Doc: "End the last user turn in chat mode with the bot's name and a colon."},
		{Path: "chatBotAsAssistant", Label: "Send the bot's messages as the assistant's", Kind: Bool, Pins: true, Default: true, Doc: "Send the bot's own messages as the assistant's in chat mode."},
	}
}

func toolKeys() []Key {
	return []Key{
		{Path: "toolsEnabled", Label: "Use tools", Kind: Bool, Pins: true, Default: true, Doc: "Whether the bot has tools."},
		{Path: "footer", Label: "Small print under an answer", Kind: Text, Pins: true, Default: "short", Choices: []string{"off", "short", "full"}, Doc: "Small print under an answer: none; cost and time of one that cost something; steps, tokens, cost and time."},
		{Path: "toolOutputVisible", Label: "Post tool calls and their results", Kind: Bool, Pins: true, Default: false, Doc: "Post each tool call and its result as dot messages."},
		{Path: "maxToolDepth", Label: "Most model calls in one run", Kind: Integer, Pins: true, Default: 100, Least: at(1), Doc: "Model calls in one run."},
		{Path: "reportActions", Label: "Name the tools when an answer has no words", Kind: Bool, Pins: true, Default: false, Doc: "Whether an answer without words becomes Done., with the tools that were called, instead of a notice that it was empty."},
		{Path: "hashlineEdit", Label: "Edit files by line", Kind: Bool, Default: false, Doc: "Whether agents edit files by line: read shows each line with a short hash, and the tool hashline_edit names lines by number and hash. An agent whose tools name it has it, too."},
		{Path: "operationTools", Label: "Tools to look into Chorus", Kind: Bool, Default: false, Doc: "Whether agents find tools to look into Chorus itself, such as sessions, models and costs, with the rights of the person they work for."},
		{Path: "mcpServers.*.type", Label: "MCP server *: how it is spoken to", Kind: Text, Choices: []string{"stdio", "http", "streamable-http", "sse"}, Doc: "How it is spoken to; told from command and url when absent."},
		{Path: "mcpServers.*.command", Label: "MCP server *: program", Kind: Text, Doc: "The program to start."},
		{Path: "mcpServers.*.args", Label: "MCP server *: arguments", Kind: List, Doc: "Its arguments."},
		{Path: "mcpServers.*.env.*", Label: "MCP server *: variable *", Kind: Text, Secret: true, Doc: "One variable."},
		{Path: "mcpServers.*.cwd", Label: "MCP server *: working directory", Kind: Text, Doc: "The directory it is started in."},
		{Path: "mcpServers.*.url", Label: "MCP server *: address", Kind: Text, Doc: "The address of a server on the network."},
		{Path: "mcpServers.*.headers.*", Label: "MCP server *: header *", Kind: Text, Secret: true, Doc: "One header."},
		{Path: "mcpServers.*.startTimeout", Label: "MCP server *: time to start", Kind: Number, Default: 30, Least: at(0), Doc: "Seconds it may take to start."},
		{Path: "mcpServers.*.callTimeout", Label: "MCP server *: time for a call", Kind: Number, Default: 60, Least: at(0), Doc: "Seconds one call may take."},
		{Path: "mcpServers.*.taskTimeout", Label: "MCP server *: time for a task", Kind: Number, Default: 3600, Least: at(0), Doc: "Seconds a call may take at most that the server carries out as a task; less where the server keeps it for less."},
		{Path: "mcpServers.*.hosts", Label: "MCP server *: hosts that it may reach", Kind: List, Doc: "Hosts that its program may reach from its sandbox, written as in egress.hosts; absent: those of egress.hosts."},
		{Path: "mcpServers.*.sandbox", Label: "MCP server *: sandbox", Kind: Text, Default: "auto", Choices: []string{"auto", "off"}, Doc: "auto: its program runs in a sandbox wherever commands do; off: it runs as you, with your files and network."},
		{Path: "mcpServers.*.disabled", Label: "MCP server *: leave out", Kind: Bool, Default: false, Doc: "Leave it out."},
		{Path: "worker.kind", Label: "Worker", Kind: Text, Default: "", Choices: []string{"", "claude", "codex", "acp"}, Doc: "claude or codex: that command line; acp: any agent that speaks the Agent Client Protocol; empty: none, the agent is our own."},
		{Path: "worker.command", Label: "Worker: program", Kind: List, Doc: "The program with its first arguments; absent: claude or codex."},
		{Path: "worker.args", Label: "Worker: further arguments", Kind: List, Doc: "Further arguments of claude or codex."},
		{Path: "worker.model", Label: "Worker: model", Kind: Text, Doc: "The model that claude or codex is told to use; absent: its own choice."},
		{Path: "worker.env.*", Label: "Worker: variable *", Kind: Text, Secret: true, Doc: "One variable, such as ANTHROPIC_API_KEY: ${ANTHROPIC_API_KEY}."},
		{Path: "worker.hosts", Label: "Worker: hosts that it may reach", Kind: List, Doc: "Hosts that the program may reach from its sandbox, written as in egress.hosts; absent: those of egress.hosts."},
		{Path: "worker.paths", Label: "Worker: folders and files that it may change", Kind: List, Doc: "Folders and files of yours that the program may read and change in its sandbox, such as ~/.claude."},
		{Path: "worker.quietMs", Label: "Worker: longest silence", Kind: Integer, Default: 900_000, Least: at(1), Doc: "How long the program may print nothing before it is ended, in milliseconds."},
		{Path: "worker.sandbox", Label: "Worker: sandbox", Kind: Text, Default: "auto", Choices: []string{"auto", "off"}, Doc: "auto: the program runs in a sandbox wherever commands do; off: it runs as you, with your files and network."},
		{Path: "toolHooks.*.event", Label: "Tool hook *: when it runs", Kind: Text, Choices: []string{"before", "after"}, Default: "before", Doc: "When it runs."},
		{Path: "toolHooks.*.tools", Label: "Tool hook *: tools", Kind: Text, Doc: "The tools it is for, as in bash|write; absent: all."},
		{Path: "toolHooks.*.command", Label: "Tool hook *: command", Kind: Text, Doc: "The command, for the shell, in the folder that the agent works in."},
		{Path: "toolHooks.*.timeout", Label: "Tool hook *: time limit", Kind: Integer, Least: at(1), Most: at(60), Default: 10, Doc: "Seconds that it may take."},
		{Path: "searchProviders.*.type", Label: "Search provider *: kind", Kind: Text, Choices: []string{"brave", "tavily", "exa", "kagi", "searxng"}, Doc: "What kind it is; absent: as it is called."},
		{Path: "searchProviders.*.key", Label: "Search provider *: API key", Kind: Text, Secret: true, Doc: "Its API key; searxng needs none."},
		{Path: "searchProviders.*.url", Label: "Search provider *: address", Kind: Text, Doc: "Its address; for searxng that of the instance, for others only where it is not the provider's own."},
	}
}

func conversationKeys() []Key {
	return []Key{
		{Path: "routing", Label: "What one conversation is", Kind: Text, Pins: true, Default: "reply", Choices: []string{"reply", "thread", "room"}, Doc: "What one conversation is: a chain of replies, the platform's thread, or the whole channel."},
		{Path: "answer", Label: "Which messages are answered", Kind: Text, Pins: true, Default: "bound", Choices: []string{"bound", "mentioned", "all"}, Doc: "Outside of rooms, which messages are for the bot. bound: in channels that are bound to it (made or taken by /agent init, called like it, named in channels.allow, and direct messages) all but those that notify everyone, mention only others, or answer another person; elsewhere those that mention it or reply to it. mentioned: only those. all: every message that is not for another bot of this Chorus."},
		{Path: "intake", Label: "Messages while the bot works", Kind: Text, Pins: true, Default: "queue", Choices: []string{"queue", "inject", "interrupt"}, Doc: "What happens to a message while the bot works: it waits for its own turn, is given to the model after the current calls, or ends those first. Where nobody sets it, replies inject and other messages queue."},
		{Path: "maxQueuedReplies", Label: "Most messages that wait in a conversation", Kind: Integer, Pins: true, Default: 5, Least: at(1), Most: at(1000), Aliases: []string{"maxQueueDepth"}, Doc: "Messages that may wait in one conversation; the next is told that the bot is busy."},
		{Path: "maxRuns", Label: "Most runs at the same time", Kind: Integer, Home: true, Default: 100, Least: at(1), Most: at(10_000), Doc: "Runs that are on at the same time in one server; further ones wait, and people take turns. One that waits for an approval or for another agent does not count."},
		{Path: "workers", Label: "Most tasks at the same time", Kind: Integer, Home: true, Default: 2, Least: at(0), Most: at(64), Doc: "Tasks of projects that are worked on at the same time; 0: none are begun here."},
		{Path: "taskTimeoutMs", Label: "Time limit for a task", Kind: Integer, Home: true, Default: 7_200_000, Least: at(0), Most: at(604_800_000), Doc: "How long one attempt at a task may take before it is stopped and blocked; 0: as long as it likes."},
		{Path: "workTokensDaily", Label: "Tokens for tasks in 24 hours", Kind: Integer, Home: true, Default: 0, Least: at(0), Doc: "Tokens that the tasks of all projects may take in 24 hours before no more are begun; 0: no limit."},
		{Path: "projectChannels", Label: "Make a channel for each project", Kind: Bool, Home: true, Default: false, Doc: "Whether a project that is made on a chat platform gets a channel there, unless whoever makes it says otherwise (auto_create_channels)."},
		{Path: "taskReminderMs", Label: "Time between reminders of a waiting task", Kind: Integer, Home: true, Default: 3_600_000, Least: at(0), Most: at(2_592_000_000), Doc: "After how long, and how often, people are reminded of a task that waits for their yes; 0: never."},
		{Path: "taskEscalationMs", Label: "Time until a waiting task counts as stuck", Kind: Integer, Home: true, Default: 86_400_000, Least: at(0), Most: at(2_592_000_000), Doc: "After how long a task that waits for a yes counts as stuck, and how often that is said; 0: never."},
		{Path: "replyOnRandom", Label: "Answer one in so many messages", Kind: Integer, Pins: true, Default: 0, Least: at(0), Doc: "Answer one in so many messages unasked; 0: never."},
		{Path: "replyOnName", Label: "Answer when the bot's name is said", Kind: Bool, Pins: true, Default: false, Doc: "Answer messages that contain the bot's name."},
		{Path: "channelHistory", Label: "Begin with what was said in the channel", Kind: Bool, Pins: true, Default: false, Doc: "Whether a conversation in a channel begins knowing what was said there before: the newest messages, and a summary of those before them."},
		{Path: "projectAgent", Label: "Agent in channels of projects", Kind: Text, Default: "dispatcher", Doc: "Who answers in the channels and notes threads of projects that are no agent's own; empty: the bot's own agent."},
		{Path: "autoReplyOwnChannel", Label: "Answer everything in the bot's own channel", Kind: Bool, Pins: true, Default: false, Doc: "Answer every message in the channel that is called like the bot."},
		{Path: "maxBotReplyChainDepth", Label: "Most answers of bots in a row", Kind: Integer, Pins: true, Default: 3, Least: at(0), Doc: "Bots that may answer each other in a chain before this one stays silent."},
		{Path: "botReplyChainDepthEmote", Label: "Reaction when bots answered too often in a row", Kind: Text, Pins: true, Default: "🔁", Doc: "The reaction that says so."},
		{Path: "authorizedRoles", Label: "Roles whose orders count", Kind: List, Doc: "Roles whose .history orders and pinned .config count, beside those of whoever owns or administers the server; none: everybody's."},
		{Path: "retention", Label: "What is kept of deleted messages", Kind: Text, Default: "forget", Choices: []string{"forget", "keep"}, Doc: "What the journal keeps of messages that people delete on a platform: forget, that something was deleted; keep, also the words. A model sees them in neither case."},
		{Path: "blocked", Label: "People and bots that are never heard", Kind: List, Doc: "People and bots on a platform that the bot never hears, by their id or user name."},
		{Path: "cooldownSeconds", Label: "Wait before the next answer to a person", Kind: Integer, Pins: true, Default: 0, Least: at(0), Most: at(86400), Doc: "How long one person waits before the bot answers them again; what they say meanwhile gets ⏳. 0: not at all."},
		{Path: "greeting", Label: "Greet new servers", Kind: Bool, Default: true, Doc: "Whether the bot says once who it is and how to begin when it is added to a server. One that it was added to while this is false is not greeted later."},
		{Path: "notifyPeople", Label: "Notify people who are mentioned", Kind: Bool, Pins: true, Default: false, Doc: "Whether people are notified whom the bot's answers mention; other bots always are. Roles and @everyone never."},
		{Path: "discordBackoffMax", Label: "Longest pause between tries to reach Discord", Kind: Integer, Default: 32_000, Least: at(1), Doc: "The longest pause between two tries to reach Discord, in milliseconds."},
	}
}

func trustKeys() []Key {
	return []Key{
		{Path: "permissions", Label: "Permission profile", Kind: Text, Default: "standard", Doc: "The permission profile: open, standard, guarded, locked, or one of profiles. In a pinned message it is one more limit, which must allow things as well."},
		{Path: "profiles.*.allow", Label: "Profile *: allowed actions", Kind: List, Doc: "Actions that are done."},
		{Path: "profiles.*.ask", Label: "Profile *: actions that need approval", Kind: List, Doc: "Actions that a person is asked about."},
		{Path: "profiles.*.deny", Label: "Profile *: refused actions", Kind: List, Doc: "Actions that are refused."},
		{Path: "profiles.*.sandbox", Label: "Profile *: sandbox", Kind: Text, Choices: []string{"required", "preferred", "none"}, Aliases: []string{"profiles.*.walls"}, Doc: "Whether commands under it need a sandbox, where sandbox is auto: required, they do not run without one; preferred, they run in one where it works here; none, they run without. Unset: preferred where a person is asked about each command, else required."},
		{Path: "profiles.*.hosts", Label: "Profile *: hosts that commands may reach", Kind: List, Doc: "Hosts that commands may reach under it, beside egress.hosts."},
		{Path: "profiles.*.children", Label: "Profile *: programs that commands start", Kind: Text, Choices: []string{"deny", "judge", "ask", "allow"}, Doc: "How programs are judged that an allowed command starts in a sandbox, however deep: deny, those that a deny rule or the list of catastrophes names are refused, and nobody is asked; judge, by all rules, so that some are asked about; ask, each of them is asked about; allow, not at all. Unset: deny."},
		{Path: "access.*", Label: "Profile that limits *", Kind: Text, Doc: "The profile that limits what is done on their word; never more than the agent's own."},
		{Path: "accessDefault", Label: "Profile that limits everybody else", Kind: Text, Default: "standard", Doc: "The profile of people on chat platforms and of tokens whom access does not name."},
		{Path: "editors", Label: "Who may change permissions", Kind: List, Doc: "Who may change permissions, written as in access, and never beyond their own; without it, local."},
		{Path: "channels.allow", Label: "Channels of the bot", Kind: List, Doc: "Channels that are bound to the bot, by name or id; * stands for any characters. With answer: bound it answers there without being mentioned."},
		{Path: "channels.deny", Label: "Channels that the bot ignores", Kind: List, Doc: "Channels in which the bot reads and answers nothing, whoever mentions it; named likewise."},
		{Path: "channels.*.permissions", Label: "Profile in the channel *", Kind: Text, Doc: "The profile that limits what is done there."},
		{Path: "workspaces", Label: "Folders that others may work in", Kind: List, Home: true, Doc: "Folders in which tokens without the scope admin, people on chat platforms and schedules may have agents work, with all that lies below; ~ is your home. Folders that Chorus makes for them need not be named, and whoever sits at the terminal may work anywhere."},
		{Path: "sandbox", Label: "Where commands run", Kind: Text, Default: "auto", Choices: []string{"auto", "host", "bwrap", "docker"}, Doc: "Where commands run; auto: the strongest that works. host is no sandbox."},
		{Path: "sandboxContainer", Label: "Docker container", Kind: Text, Doc: "For docker, the running container: its name, or name:/path where it has the directory."},
		{Path: "sandboxRoots", Label: "Further folders that commands see", Kind: List, Doc: "Further directories that sandboxed commands see, read-only; with :rw at the end they may write there. ~ is your home."},
		{Path: "sandboxGit", Label: "Whether commands may change git's settings and hooks", Kind: Text, Default: "guarded", Choices: []string{"guarded", "open"}, Doc: "Whether sandboxed commands may change a repository's .git/config and hooks, from which git starts programs outside: guarded: they read them; open: they may."},
		{Path: "egress.hosts", Label: "Hosts that commands may reach", Kind: List, Doc: "Hosts that sandboxed commands may reach: name, *.domain, name:port; an address that is not public only with its port. None: no network."},
		{Path: "secrets.*.value", Label: "Secret *: value", Kind: Text, Secret: true, Doc: "The value, as ${ENV} or file: reference."},
		{Path: "secrets.*.hosts", Label: "Secret *: hosts that it may be sent to", Kind: List, Doc: "Hosts that it may be sent to in place of its placeholder, {{secret:name}}; they must be open too."},
		{Path: "approvals.deadline", Label: "Time to answer an approval", Kind: Text, Default: "24h", Doc: "How long an answer may take, after that it is no; at the terminal there is no end unless this is set."},
		{Path: "approvals.remind", Label: "Time until a reminder of an approval", Kind: Text, Default: "1h", Doc: "After how long people are reminded of an approval; at the terminal they are not unless this is set."},
		{Path: "approvals.by", Label: "Who may answer approvals", Kind: Text, Default: "asker, local", Doc: "Who may answer: asker, local (whoever sits at the terminal), anyone, role:NAME, several with commas; with \"two of\" before them, or two alone, two different people must say yes."},
		{Path: "approvals.profiles.*.deadline", Label: "Profile *: time to answer an approval", Kind: Text, Doc: "How long an answer may take."},
		{Path: "approvals.profiles.*.remind", Label: "Profile *: time until a reminder of an approval", Kind: Text, Doc: "After how long people are reminded."},
		{Path: "approvals.profiles.*.by", Label: "Profile *: who may answer approvals", Kind: Text, Doc: "Who may answer."},
		{Path: "prices.*.input", Label: "Price of *: input", Kind: Number, Least: at(0), Doc: "What it reads; 0: it is free."},
		{Path: "prices.*.output", Label: "Price of *: output", Kind: Number, Least: at(0), Doc: "What it writes."},
		{Path: "prices.*.cacheRead", Label: "Price of *: reading from the cache", Kind: Number, Least: at(0), Doc: "What it reads from the provider's cache; without it, as input."},
		{Path: "prices.*.cacheWrite", Label: "Price of *: writing to the cache", Kind: Number, Least: at(0), Doc: "What it reads and the provider keeps; without it, as input."},
		{Path: "budgets.soft", Label: "Share of a budget at which people are asked", Kind: Number, Default: 0.8, Least: at(0), Most: at(1), Doc: "The share of a ceiling at which the room is asked."},
		{Path: "budgets.task", Label: "Budget of a task", Kind: Number, Least: at(0), Doc: "Each task, once."},
		{Path: "budgets.guild.day", Label: "Daily budget of a chat server", Kind: Number, Least: at(0), Doc: "In one day."},
		{Path: "budgets.guild.month", Label: "Monthly budget of a chat server", Kind: Number, Least: at(0), Doc: "In one month."},
		{Path: "budgets.channel.day", Label: "Daily budget of a channel", Kind: Number, Least: at(0), Doc: "In one day."},
		{Path: "budgets.channel.month", Label: "Monthly budget of a channel", Kind: Number, Least: at(0), Doc: "In one month."},
		{Path: "budgets.agent.day", Label: "Daily budget of an agent", Kind: Number, Least: at(0), Doc: "In one day."},
		{Path: "budgets.agent.month", Label: "Monthly budget of an agent", Kind: Number, Least: at(0), Doc: "In one month."},
		{Path: "budgets.person.day", Label: "Daily budget of a person", Kind: Number, Least: at(0), Doc: "In one day."},
		{Path: "budgets.person.month", Label: "Monthly budget of a person", Kind: Number, Least: at(0), Doc: "In one month."},
		{Path: "budgets.role.*.day", Label: "Daily budget of a person with the role *", Kind: Number, Least: at(0), Doc: "In one day."},
		{Path: "budgets.role.*.month", Label: "Monthly budget of a person with the role *", Kind: Number, Least: at(0), Doc: "In one month."},
	}
}

func homeKeys() []Key {
	return []Key{
		{Path: "defaultProvider", Label: "Default provider", Kind: Text, Home: true, Doc: "The provider whose default model is used where none is named."},
		{Path: "defaultModel", Label: "Default model", Kind: Text, Home: true, Doc: "The model that is used where none is named."},
		{Path: "idleTimeoutMs", Label: "How long a quiet conversation stays in memory", Kind: Integer, Home: true, Default: 300_000, Least: at(0), Doc: "How long a conversation that says nothing is kept in memory, in milliseconds."},
		{Path: "durability", Label: "Protection against power failure", Kind: Text, Home: true, Default: "normal", Choices: []string{"normal", "full"}, Doc: "full: every commit waits for the disk."},
		{Path: "imageCacheMb", Label: "Space for fetched pictures", Kind: Integer, Home: true, Default: 500, Least: at(0), Doc: "How much of fetched pictures is kept for a day, in megabytes, in images/ of CACHE_PATH, else of cache/ in the home; 0: nothing."},
		{Path: "logDays", Label: "Days that the log is kept", Kind: Integer, Home: true, Default: 30, Least: at(1), Most: at(3650), Doc: "How many days of the log are kept, in logs/ of the home; one file a day."},
		{Path: "keepDeleted", Label: "Days to bring back a deleted conversation", Kind: Integer, Home: true, Default: 30, Least: at(0), Most: at(3650), Doc: "For how many days a deleted conversation can be brought back; then what was said in it is removed from the database. 0: at once."},
		{Path: "audit.checkpointFile", Label: "Audit heads: file", Kind: Text, Home: true, Doc: "Where signed heads of the audit log are kept, so that a log whose end was cut off is found; off: nowhere. Without it, a file in chorus/ of your state directory (XDG_STATE_HOME, ~/.local/state)."},
		{Path: "audit.checkpointKey", Label: "Audit heads: file with the signing key", Kind: Text, Home: true, Doc: "The file with the key that signs them; without it, audit.key in the home. It is made at first use."},
		{Path: "audit.checkpointUrl", Label: "Audit heads: address", Kind: Text, Home: true, Secret: true, Doc: "An address that each is posted to as JSON."},
		{Path: "audit.checkpointGit", Label: "Audit heads: git repository", Kind: Text, Home: true, Doc: "A working copy of a git repository that each is committed to, and pushed where it has a remote."},
		{Path: "audit.checkpointMinutes", Label: "Audit heads: minutes between two", Kind: Integer, Home: true, Default: 5, Least: at(1), Most: at(1440), Doc: "How often a server or a chat keeps one, when there are new lines."},
		{Path: "databaseUrl", Label: "Database", Kind: Text, Home: true, Secret: true, Doc: "Where the journal is kept: postgres://USER:PASSWORD@HOST/DATABASE on a PostgreSQL server, or sqlite:PATH, relative to the home; without it, chorus.db in the home."},
		{Path: "blobUrl", Label: "Storage for attachments", Kind: Text, Home: true, Doc: "Where attachments and long results over 64 KB are kept, for all nodes: s3://BUCKET/PREFIX?region=…&endpoint=https://HOST in storage that speaks S3, or file:///PATH in a folder that all have. Without it, in the database on PostgreSQL, else in files of the home."},
		{Path: "blobAccessKey", Label: "Storage for attachments: access key", Kind: Text, Home: true, Secret: true, Doc: "The access key for blobUrl; without it the key is found as Amazon's own programs do: AWS_ACCESS_KEY_ID, AWS_PROFILE, roles."},
		{Path: "blobSecretKey", Label: "Storage for attachments: secret key", Kind: Text, Home: true, Secret: true, Doc: "The secret key that belongs to blobAccessKey."},
		{Path: "nodeAddress", Label: "Address for other nodes", Kind: Text, Home: true, Doc: "How other nodes on the same database reach this one, such as https://10.0.0.5:8420, for the live text of what it runs. Nodes that share their configuration set it by the variable. Without it, the address that it listens on, or its host's name where that is all of them."},
		{Path: "publicUrl", Label: "Address for people", Kind: Text, Home: true, Doc: "Where people reach the pages of this Chorus, such as https://chorus.example.org: links to shared conversations that are given out on chat platforms begin with it. Without it, only what follows the address is told."},
		{Path: "onNodeLost", Label: "Conversations of a node that is gone", Kind: Text, Home: true, Default: "wait", Choices: []string{"wait", "move"}, Doc: "What becomes of a conversation whose node is gone, and with it the folder that was made for it alone. wait: it goes on when the node is back. move: it goes on at another node with an empty folder, and says so. Conversations that work in other folders always wait."},
		{Path: "nodeLostSeconds", Label: "Seconds until a node counts as gone", Kind: Integer, Home: true, Default: 60, Least: at(3), Most: at(86400), Doc: "How long a node must be gone before conversations are moved. A restart should take less."},
		{Path: "natsUrl", Label: "NATS server", Kind: Text, Home: true, Secret: true, Doc: "A NATS server that carries notifications and live text between nodes: nats://host:4222, or tls://…, with user:password@ or a token@ before the host; several with commas between them. Without it notifications go through the database, or by datagrams in the home, and live text over HTTP. While it is away they take that other way."},
		{Path: "theme", Label: "Colours of the terminal", Kind: Text, Home: true, Default: theme.Auto, Choices: theme.Names(), Doc: "The colours of the terminal. auto: dark or light, as the terminal says that its background is, and its own sixteen colours where it does not say; none: no colours. NO_COLOR in the environment counts before it, --theme before both."},
	}
}
