package split

import (
	"strings"

	"chorus/internal/pattern"
)

// notProse matches inline code and bare links, where signs have no special meaning.
var notProse = pattern.Lazy("``[^\\n]+?``|`[^`\\n]+`" + `|https?://[^\s>]+`)

// Prose applies change to the parts of a text that are neither code nor links. The rest stays unchanged.
func Prose(text string, change func(string) string) string {
	var out strings.Builder
	prose := func(s string) {
		for s != "" {
			at := notProse().FindStringIndex(s)
			if at == nil {
				at = []int{len(s), len(s)}
			}
			if at[0] > 0 {
				out.WriteString(change(s[:at[0]]))
			}
			out.WriteString(s[at[0]:at[1]])
			s = s[at[1]:]
		}
	}
	from := 0
	for _, f := range fences(text) {
		prose(text[from:f.from])
		out.WriteString(text[f.from:f.to])
		from = f.to
	}
	prose(text[from:])
	return out.String()
}
