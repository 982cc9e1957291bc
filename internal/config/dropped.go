package config

// dropped returns Chapter3's keys that Chorus does not have, and why. Thus they are
// not reported as typing errors, and an import leaves a comment.
func dropped() map[string]string {
	return map[string]string{
		"preserve_thinking_context":  "the journal keeps every answer whole already",
		"inline_tool_execution":      "tools are always called inline",
		"max_mcp_images":             "maxImages counts pictures from tools too",
		"max_ephemeral_images":       "maxImages and cacheImages decide",
		"summarization_model":        "long attachments are cut at maxTextAttachmentKb",
		"tool_plugins":               "tools come with Chorus and from mcpServers",
		"plugin_config":              "tools come with Chorus and from mcpServers",
		"api_only":                   "a bot without discordToken is reached over the API alone",
		"soma":                       "budgets takes its place",
		"use_membrane":               "there is one way to the models",
		"membrane_shadow_mode":       "there is one way to the models",
		"participant_stop_sequences": "answers always end at another speaker's name",
		"split_message":              "it was ignored before",
		"message_history_format":     "it was ignored before",
		"continuation_max_tokens":    "it was ignored before; maxTokens is the key",
	}
}
