package slash_test

import (
	"slices"
	"strings"
	"testing"

	"chorus/internal/connector/slash"
	"chorus/internal/platform"
)

func TestSuggest(t *testing.T) {
	t.Parallel()
	list := []platform.Command{
		{Name: "status", Description: "how it is"},
		{Name: "memory", Description: "what is remembered", Sub: []platform.Command{
			{Name: "show", Options: []platform.Option{{Name: "path", Description: "the file", Completes: true}}},
			{Name: "edit", Options: []platform.Option{{Name: "text", Description: "the words", Required: true}, {Name: "add", Kind: platform.Flag}, {Name: "scope", Choices: []platform.Choice{{Label: "here", Value: "here"}, {Label: "all of it", Value: "all of it"}}}}},
		}},
		{Name: "Fork this", Menu: true},
	}
	for _, tt := range []struct {
		line, want string // the lines that are offered
		option     string // of which a value is typed, with what was typed
	}{
		{"", "", ""},
		{"words", "", ""},
		{"/", "/status |/memory ", ""},
		{"/m", "/memory ", ""},
		{"/M", "/memory ", ""},
		{"/nothing here", "", ""},
		{"/memory", "/memory ", ""},
		{"/memory ", "/memory show |/memory edit ", ""},
		{"/memory s", "/memory show ", ""},
		{"/memory show ", "(path (optional))", "path:"},
		{"/memory show cha", "", "path:cha"},
		{"/memory show path=cha", "", "path:cha"},
		{`/memory show path="cha`, "", "path:cha"},
		{"/memory show channel ", "", ""},
		{"/memory edit ", "(text)|/memory edit add=|/memory edit scope=", "text:"},
		{"/memory edit we ship ad", "/memory edit we ship add=", ""},
		{"/memory edit we ship add=t", "/memory edit we ship add=true ", "add:t"},
		{"/memory edit we ship add=true scope=", `/memory edit we ship add=true scope=here |/memory edit we ship add=true scope="all of it" `, "scope:"},
	} {
		found, at := slash.Suggest(list, tt.line)
		var lines []string
		for _, s := range found {
			if s.Line == "" {
				lines = append(lines, "("+s.Label+")")
				continue
			}
			lines = append(lines, s.Line)
		}
		option := ""
		if at != nil {
			option = at.Option.Name + ":" + at.Typed
		}
		if got := strings.Join(lines, "|"); got != tt.want || option != tt.option {
			t.Errorf("%q goes on with %q and the value of %q, want %q and %q", tt.line, got, option, tt.want, tt.option)
		}
	}
	if _, at := slash.Suggest(list, "/memory show cha"); at.With("two words") != `/memory show "two words" ` || at.With("channel") != "/memory show channel " {
		t.Errorf("%q and %q", at.With("two words"), at.With("channel"))
	}
}

// What is suggested can be read again: a chosen value arrives whole.
func TestSuggestedLinesAreRead(t *testing.T) {
	t.Parallel()
	options := []platform.Option{{Name: "scope", Choices: []platform.Choice{{Label: "all of it", Value: "all of it"}}}, {Name: "text"}}
	list := []platform.Command{{Name: "go", Options: options}}
	found, _ := slash.Suggest(list, "/go a")
	at := slices.IndexFunc(found, func(s slash.Suggestion) bool { return s.Line != "" })
	if at < 0 {
		t.Fatalf("%+v", found)
	}
	i := platform.Invocation{Text: map[string]string{}, Flag: map[string]bool{}}
	_, _, rest := slash.Find(list, strings.TrimPrefix(found[at].Line, "/"))
	if wrong := slash.Read(&i, options, rest+"and more"); wrong != "" || i.Text["scope"] != "all of it" || i.Text["text"] != "and more" {
		t.Errorf("%q was read as %v (%s)", found[at].Line, i.Text, wrong)
	}
}

func TestExplain(t *testing.T) {
	t.Parallel()
	list := []platform.Command{{Name: "memory", Sub: []platform.Command{{Name: "show", Description: "Show it", Options: []platform.Option{{Name: "path", Description: "the file"}}}}}}
	for words, want := range map[string]string{"memory": "/memory show [PATH]  Show it", "/memory show": "/memory show [PATH]  Show it\n- path: the file", "nothing": "",
		"memory bogus": "there is no /memory bogus; choose one of\n/memory show [PATH]  Show it"} {
		if got := slash.Explain(list, words); got != want {
			t.Errorf("%q: %q, want %q", words, got, want)
		}
	}
}
