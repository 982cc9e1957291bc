package wire

import (
	"testing"

	"pgregory.net/rapid"
)

// What local models think came as a part of their answer. However the pieces are cut, thoughts
// and answer come apart, and nothing else is taken for a thought.
func TestThinkTags(t *testing.T) {
	t.Parallel()
	cases := map[string][2]string{
		"hello":                             {"", "hello"},
		"<think>hm</think>hello":            {"hm", "hello"},
		" \n<think>\nhm\n</think>\n\nhello": {"\nhm\n", "hello"},
		"<think></think>\n\nhi":             {"", "hi"},
		"<think>never ended":                {"never ended", ""},
		"<think>a </thin b</think>c":        {"a </thin b", "c"},
		"say <think>this</think>":           {"", "say <think>this</think>"},
		"<thinking>x</thinking>":            {"", "<thinking>x</thinking>"},
		"<thi":                              {"", "<thi"},
		" ":                                 {"", " "},
		"<think>a</think>b<think>c</think>": {"a", "b<think>c</think>"},
	}
	for text, want := range cases {
		rapid.Check(t, func(rt *rapid.T) {
			var tags ThinkTags
			thinking, said := "", ""
			for rest := text; rest != ""; {
				n := rapid.IntRange(1, len(rest)).Draw(rt, "piece")
				a, b := tags.Split(rest[:n])
				thinking, said, rest = thinking+a, said+b, rest[n:]
			}
			a, b := tags.Rest()
			if got := [2]string{thinking + a, said + b}; got != want {
				rt.Fatalf("%q: %q, want %q", text, got, want)
			}
		})
	}
}
