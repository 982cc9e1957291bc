package config

import (
	"strings"
	"testing"
)

// Whatever a file holds, reading it does not panic, and what is wrong has a place.
func FuzzFile(f *testing.F) {
	for _, seed := range []string{
		"", "temperature: 0.5\n", "vendors:\n  a:\n    config: {api_key: ${K}}\n    provides: ['x*']\n", "recencyWindow: 400\nrecency_window_characters: 5",
		"a: &x {b: 1}\nc: *x\n<<: *x", "mcp_servers:\n - name: a\n   command: b\n   args: [c]\n", "? a\n: b", "!!str 5: !!int '6'", "systemPrompt: |\n  a\n  b\n",
		"{", "[[[[", "- - - -", "a: b: c", "\ufeffmode: chat", "a: \x00", "extra: {a: {b: [1, {c: d}]}}", "vendors: {x: {extra: {a: {b: [1]}}}}", "maxTokens: 1e400", "a:\n\t- b",
		"%YAML 1.2\n---\nmode: chat\n...\n", "mode: chat # x\n---\n", "&a : *a", "&a [*a]", "a: &a [*a, *a]", "\"\\u0000\": 1", "? [a]\n: b", "? {a: b}\n: c", "!!binary x: y", "'': ''",
		"a: >\n", "a: |+2\n", "*a : b", "key: ${", "name: $${x}",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r := &report{}
		leaves := shape(r, Shared, env(map[string]string{"K": "v"}), parse(r, "f.yaml", Shared, []byte(text)))
		for _, p := range r.found {
			if p.Place.File != "f.yaml" || p.Place.Line < 1 || p.Place.Column < 1 || p.Text == "" {
				t.Fatalf("%q: %+v", text, p)
			}
			if p.Place.Line > strings.Count(text, "\n")+strings.Count(text, "\r")+2 {
				t.Fatalf("%q: line %d does not exist: %s", text, p.Place.Line, p.Text)
			}
		}
		var m merged
		m.lay(leaves)
		b := &Bot{Name: "x", merged: m}
		b.fill(r, env(map[string]string{"K": "v"}))
		b.Rows()
	})
}

// A pin from anybody changes nothing it must not, and never stops the bot.
func FuzzPin(f *testing.F) {
	for _, seed := range []string{".config\n---\ntemperature: 1", ".config a b\n---\nvendors: {a: {}}", ".config\n---\npermissions: open", ".config\r\n---\r\nname: x", ".config\n---\n[", ".config"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		files := &Files{Options: Options{Env: env(nil)}}
		b, problems := files.Bot(Ask{Bot: "x", Pins: []Pin{{Text: text}}})
		if b == nil {
			t.Fatalf("%q: %v", text, problems)
		}
		for _, r := range b.Rows() {
			if k := table().lookup(r.Key); r.Layer == ChannelPin.String() && (k == nil || !k.Pins) {
				t.Fatalf("%q set %s", text, r.Key)
			}
		}
	})
}

func FuzzExpand(f *testing.F) {
	for _, seed := range []string{"", "${A}", "$${A}", "a${A}b${A}", "${", "${}", "$", "$$", "$$${A}", "${A${A}}"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := expand(text, env(map[string]string{"A": "value"}))
		if err == nil && !strings.Contains(text, "${") && got != text {
			t.Fatalf("%q became %q", text, got)
		}
	})
}
