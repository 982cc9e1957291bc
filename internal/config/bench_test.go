package config

import "testing"

// Every start of the program and every run pays these.
func BenchmarkReadNothing(b *testing.B) {
	o := optionsOf(b.TempDir(), nil)
	for b.Loop() {
		ReadFiles(o)
	}
}

func BenchmarkReadSmall(b *testing.B) {
	o := optionsOf(folder(b, map[string]string{
		"shared.yaml":      "vendors:\n  anthropic:\n    config: {anthropic_api_key: file:key}\n    provides: [claude-*]\ntemperature: 1\nrecencyWindow: 400\n",
		"bots/claude.yaml": "name: Claude\ncontinuationModel: claude-sonnet-4-5\nmaxTokens: 4096\n", "key": "test-key",
	}), nil)
	for b.Loop() {
		ReadFiles(o)
	}
}

func BenchmarkBot(b *testing.B) {
	files, _ := ReadFiles(optionsOf(folder(b, map[string]string{"shared.yaml": "temperature: 1\nrecencyWindow: 400\n", "bots/claude.yaml": "name: Claude\n"}), nil))
	ask := Ask{Bot: "claude", Pins: []Pin{{Text: ".config\n---\nmaxTokens: 5"}}}
	for b.Loop() {
		files.Bot(ask)
	}
}
