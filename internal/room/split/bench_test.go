package split

import (
	"strings"
	"testing"
)

// BenchmarkFit is an answer of five messages.
func BenchmarkFit(b *testing.B) {
	text := strings.Repeat("A sentence with `code` and a <@123456789012345678> in it. ", 120) + "\n```go\n" + strings.Repeat("fmt.Println(x)\n", 40) + "```\n"
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		Fit(text, Options{})
	}
}

// BenchmarkHostile is a text that has every sign open.
func BenchmarkHostile(b *testing.B) {
	text := strings.Repeat("[`<http", 20_000)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		Fit(text, Options{})
	}
}
