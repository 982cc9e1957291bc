package config

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
)

func TestSplitPin(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		".config\n---\na: 1":                 "|a: 1",
		".config a b \n---\na: 1\n":          "a b|a: 1\n",
		".config\t@a\r\n---\r\na: 1\r\nb: 2": "@a|a: 1\nb: 2",
		".config\na: 1":                      "no", // no --- on the second line
		" .config\n---\na: 1":                "no",
		".config\n---":                       "no",
		".config\n---\n":                     "no",
		".config\n---\n  \n":                 "no",
		".configuration\n---\na: 1":          "no",
		".config":                            "no",
		"":                                   "no",
		"look: .config\n---\na: 1":           "no",
		".config\n\n---\na: 1":               "no",
	} {
		targets, body, ok := splitPin(text)
		got := targets + "|" + body
		if !ok {
			got = "no"
		}
		if got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

func TestPins(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"shared.yaml": "temperature: 0.5\nmaxTokens: 100\n", "bots/claude.yaml": "innerName: Claude Opus\n"})
	for _, c := range []struct {
		name   string
		pins   []string
		want   string // temperature maxTokens
		warned string
	}{
		{"none", nil, "0.5 100", ""},
		{"for all, for another, for this one", []string{".config\n---\ntemperature: 0.9", ".config other\n---\ntemperature: 0.95", ".config claude\n---\nmax_tokens: 5"}, "0.9 5", ""},
		{"null has no effect", []string{".config\n---\ntemperature: null"}, "0.5 100", ""},
		{"out of range", []string{".config\n---\nmaxTokens: 7\ntemperature: 3"}, "0.5 100", "pinned message 1:4:14: the pin is left out: temperature must be 0 to 2, not 3"},
		{"not positive", []string{".config\n---\nmax_tokens: -1"}, "0.5 100", "maxTokens must be 1 or more, not -1"},
		{"a bad one does not stop the next", []string{".config\n---\ntemperature: 3", ".config\n---\ntemperature: 0.1"}, "0.1 100", "temperature must be"},
		{"unknown key", []string{".config\n---\nmaxTokns: 2000\ntemperature: 1"}, "1 100", `unknown key "maxTokns"; did you mean "maxTokens"?; it is left out`},
		{"both spellings count", []string{".config\n---\nmaxTokens: 2000"}, "0.5 2000", ""},
		{"a set of targets", []string{".config gpt claude\n---\ntemperature: 1"}, "1 100", ""},
		{"any case", []string{".config CLAUDE\n---\ntemperature: 1"}, "1 100", ""},
		{"by inner name, with its space", []string{".config claude opus\n---\ntemperature: 1"}, "1 100", ""},
		{"a part of the name is another", []string{".config Claud\n---\ntemperature: 1"}, "0.5 100", ""},
		{"not YAML", []string{".config\n---\n[: {"}, "0.5 100", "the pin is left out"},
		{"not keys", []string{".config\n---\njust text"}, "0.5 100", "want keys with values"},
		{"a variable is plain text", []string{".config\n---\nsystemPrompt: ${HOME}"}, "0.5 100", ""},
		{"too long", []string{".config\n---\nsystemPrompt: " + strings.Repeat("x", largestPin)}, "0.5 100", "longer than"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			ask := Ask{Bot: "claude"}
			for i, text := range c.pins {
				ask.Pins = append(ask.Pins, Pin{ID: string(rune('1' + i)), Text: text})
			}
			b, problems := load(t, dir, map[string]string{"HOME": "leaked"}, ask)
			if got := plainNumber(*b.Temperature) + " " + plainNumber(float64(b.MaxTokens)); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
			if (len(problems) > 0) != (c.warned != "") || !strings.Contains(problems.Error(), c.warned) {
				t.Errorf("warnings %q, want %q", problems.Error(), c.warned)
			}
			if b.SystemPrompt != "" && b.SystemPrompt != "${HOME}" {
				t.Errorf("the prompt is %q", b.SystemPrompt)
			}
		})
	}
}

// Of two pins the one in the channel holds, whatever order they come in.
func TestPinsOfParents(t *testing.T) {
	t.Parallel()
	own, parent := Pin{ID: "2", Text: ".config\n---\nmaxImages: 1"}, Pin{ID: "1", Text: ".config\n---\nmaxImages: 2\nreplyOnRandom: 3", Parent: true}
	for _, pins := range [][]Pin{{own, parent}, {parent, own}} {
		b, _ := load(t, t.TempDir(), nil, Ask{Bot: "x", Pins: pins})
		if b.MaxImages != 1 || b.ReplyOnRandom != 3 || b.Origin("replyOnRandom").Layer != ParentPin || b.Origin("replyOnRandom").Line != 4 {
			t.Errorf("%d %d %v", b.MaxImages, b.ReplyOnRandom, b.Origin("replyOnRandom"))
		}
	}
}

// Nobody but an editor could lower what may be done in a channel: a pin can, and cannot raise it.
func TestAPinTakesRightsAway(t *testing.T) {
	t.Parallel()
	load := func(texts ...string) (*Bot, Problems) {
		var pins []Pin
		for i, text := range texts {
			pins = append(pins, Pin{ID: fmt.Sprint(i + 1), Text: ".config\n---\n" + text})
		}
		return Load(Options{Dir: t.TempDir(), Env: env(nil)}, Ask{Bot: "x", Agent: map[string]any{"permissions": "guarded"}, Pins: pins})
	}
	b, problems := load("permissions: standard", "temperature: 0.5\npermissions: locked")
	if want := []Channel{{Name: "pinned message 1", Permissions: "standard", Pinned: true}, {Name: "pinned message 2", Permissions: "locked", Pinned: true}}; b == nil ||
		!reflect.DeepEqual(b.Channels, want) || b.Permissions != "guarded" || len(problems) > 0 {
		t.Errorf("%+v, %v", b, problems)
	}
	for text, want := range map[string]string{"permissions: open": "open takes none away", "permissions: lokced": `did you mean "locked"?`} {
		b, problems := load(text)
		if b == nil || len(b.Channels) > 0 || b.Permissions != "guarded" || len(problems.Warnings()) != 1 || !strings.Contains(problems[0].Text, want) {
			t.Errorf("%s: %+v, %v", text, b, problems)
		}
	}
}
