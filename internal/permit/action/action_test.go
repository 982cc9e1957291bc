package action

import "testing"

func TestWords(t *testing.T) {
	t.Parallel()
	for action, want := range map[string]string{
		"tool:bash:cd src && ls": "cd src && ls", "tool:edit:a: b.go": "edit a: b.go", "tool:mcp:": "mcp", "tool:web_search": "web_search", "task:approve": "task:approve", "": "",
	} {
		if got := Words(action); got != want {
			t.Errorf("%q is called %q instead of %q", action, got, want)
		}
	}
}
