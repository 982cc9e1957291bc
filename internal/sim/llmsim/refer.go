package llmsim

import (
	"encoding/json"
	"strings"

	"chorus/internal/pattern"
)

// reference is {{id of TITLE}} in a script: the id in a tool's result for the thing with that title. Programs choose
// ids, so a script cannot know them.
var (
	reference = pattern.Lazy(`\{\{id of ([^{}"]+)\}\}`)
	givenID   = pattern.Lazy(`"id":"([^"]+)"`)
)

// refer resolves the references of a turn; an unresolved one is unchanged.
func (t Turn) refer(r Request) Turn {
	fill := func(text string) string {
		return reference().ReplaceAllStringFunc(text, func(whole string) string {
			title, _ := json.Marshal(reference().FindStringSubmatch(whole)[1])
			for _, m := range r.Messages {
				for _, result := range m.Results {
					if id := givenID().FindStringSubmatch(result.Text); id != nil && strings.Contains(result.Text, `"title":`+string(title)) {
						return id[1]
					}
				}
			}
			return whole
		})
	}
	t.Text = fill(t.Text)
	calls := append([]Call(nil), t.Calls...)
	for i, c := range calls {
		if data, err := json.Marshal(c.Args); err == nil && reference().Match(data) {
			calls[i].Args = json.RawMessage(fill(string(data)))
		}
	}
	t.Calls = calls
	return t
}
