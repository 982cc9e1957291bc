package wire

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"chorus/internal/chat"
	"chorus/internal/model"
)

// maxUnreadable is enough to see what a server sent instead.
const maxUnreadable = 500

// Unreadable returns what is kept of an event that could not be parsed.
func Unreadable(data []byte) model.Unreadable {
	return model.Unreadable{Data: strings.ToValidUTF8(string(data[:min(len(data), maxUnreadable)]), "\ufffd")}
}

// Dropped returns, for people to read, which settings a request does not carry. sent is the part of the
// body that holds the settings, and unthinking says why it may request no reasoning.
func Dropped(s chat.Settings, sent []byte, unthinking string) []string {
	has := func(fields ...string) bool {
		return slices.ContainsFunc(fields, func(f string) bool { return bytes.Contains(sent, []byte(f)) })
	}
	var out []string
	thinks := has(`"thinking":{`, `"reasoning":{`, `"thinkingConfig":{`, `"reasoningConfig":{`, `"think":true`, `"think":"`) ||
		has(`"reasoning_effort":"`) && !has(`"reasoning_effort":"none"`)
	if s.ThinkingBudget > 0 && !thinks {
		out = append(out, fmt.Sprintf("thinkingBudget: %s", unthinking))
	}
	const unsampled = "the model does not take it, or not while it thinks"
	if s.Temperature != nil && !has(`"temperature":`) {
		out = append(out, "temperature: "+unsampled)
	}
	if s.TopP != nil && !has(`"top_p":`, `"topP":`) {
		out = append(out, "topP: "+unsampled+", or not with a temperature")
	}
	return out
}

// Why a request may request no reasoning.
const (
	Unthinking = "the model cannot be asked to think"
	Begun      = "the answer is begun for the model (prefill), and then it cannot think"
	Unthought  = "the run goes on with calls that were made without thinking"
)
