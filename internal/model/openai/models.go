package openai

import (
	"net/url"
	"slices"
	"strings"

	"chorus/internal/pattern"
)

// openaiOwn reports whether an address is OpenAI's, also one of its regions'.
func openaiOwn(base string) bool {
	if strings.TrimSpace(base) == "" {
		return true
	}
	u, err := url.Parse(strings.TrimSpace(base))
	return err == nil && (u.Hostname() == "api.openai.com" || strings.HasSuffix(u.Hostname(), ".api.openai.com"))
}

var (
	// chatModel is how the names begin of models that can be talked with.
	chatModel = pattern.Lazy(`^(gpt-|chatgpt-|codex-|o[0-9]+(-|$))`)
	// dated is a name that is another one with a date.
	dated = pattern.Lazy(`^(.+)-\d{4}-\d{2}-\d{2}$`)
	// mute are parts of names of models for something else.
	mute = []string{"-realtime", "-tts", "-transcribe", "-audio", "-image", "-search", "-instruct", "-diarize"}
)

// talking keeps of OpenAI's list, which is sorted, the models for conversation, and
// of one that is there with and without a date the one without.
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
