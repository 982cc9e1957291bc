package openai

import (
	"net/url"
	"slices"
	"strings"

	"chorus/internal/pattern"
)

// openaiOwn reports whether an address is OpenAI's, including its regions.
func openaiOwn(base string) bool {
	if strings.TrimSpace(base) == "" {
		return true
	}
	u, err := url.Parse(strings.TrimSpace(base))
	return err == nil && (u.Hostname() == "api.openai.com" || strings.HasSuffix(u.Hostname(), ".api.openai.com"))
}

var (
	// chatModel matches the names of models that can converse.
	chatModel = pattern.Lazy(`^(gpt-|chatgpt-|codex-|o[0-9]+(-|$))`)
	// dated matches another model's name followed by a date.
	dated = pattern.Lazy(`^(.+)-\d{4}-\d{2}-\d{2}$`)
	// mute are parts of names of models for other purposes.
	mute = []string{"-realtime", "-tts", "-transcribe", "-audio", "-image", "-search", "-instruct", "-diarize"}
)

// talking filters OpenAI's sorted list to conversational models. If a model is
// listed with and without a date, it keeps the one without.
func talking(names []string) []string {
	var out []string
	for _, name := range names {
		other := slices.ContainsFunc(mute, func(part string) bool { return strings.Contains(name, part) })
		if !chatModel().MatchString(name) || other {
			continue
		}
		if m := dated().FindStringSubmatch(name); m != nil && slices.Contains(names, m[1]) {
			continue
		}
		out = append(out, name)
	}
	return out
}
