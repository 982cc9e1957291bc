package connector_test

import (
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"chorus/internal/connector"
	"chorus/internal/connector/commands"
	"chorus/internal/connector/slash"
	"chorus/internal/operations"
	"chorus/internal/platform"
)

// Commands were in English for everybody. Each has its words in every language, and Discord takes them.
func TestEveryCommandIsTranslated(t *testing.T) {
	t.Parallel()
	derived, err := slash.New(slash.Options{Operations: operations.All(), Groups: operations.Groups()})
	if err != nil {
		t.Fatal(err)
	}
	var offered, all []platform.Command
	for _, c := range append((&commands.Set{}).List(), derived.List()...) {
		offered = connector.Offer(offered, c, true)
	}
	for _, c := range offered {
		if len(c.Sub) > 25 || len(offered) > 100 {
			t.Errorf("Discord takes 100 commands with 25 below each, and /%s has %d, of %d", c.Name, len(c.Sub), len(offered))
		}
		all = append(all, connector.Translated(c))
	}
	for _, c := range connector.Offer(nil, platform.Command{Name: "thread", Sub: []platform.Command{{Name: "list"}, {Name: "share", Private: true}}}, false) {
		if len(c.Sub) != 1 || c.Sub[0].Name != "list" {
			t.Errorf("where everybody reads the answer there are %+v", c.Sub)
		}
	}
	checkTranslated(t, "", all)
}

var commandName = regexp.MustCompile(`^[-_'\p{L}\p{N}]{1,32}$`)

func checkTranslated(t *testing.T, path string, list []platform.Command) {
	t.Helper()
	seen := map[string]bool{}
	words := func(path, name string, names, descriptions map[string]string, described, strict bool) {
		for _, language := range []string{"de", "fr", "es-ES", "ja"} {
			got := names[language]
			switch {
			case got == "" || utf8.RuneCountInString(got) > 32 || strict && (!commandName.MatchString(got) || strings.ToLower(got) != got):
				t.Errorf("%s is called %q in %s", path, got, language)
			case seen[path[:len(path)-len(name)]+language+got]:
				t.Errorf("%s has the name of another in %s: %s", path, language, got)
			}
			seen[path[:len(path)-len(name)]+language+got] = true
			if n := utf8.RuneCountInString(descriptions[language]); described && (n == 0 || n > 100) {
				t.Errorf("%s is described in %d characters in %s", path, n, language)
			}
		}
	}
	for _, c := range list {
		words(path+"/"+c.Name, c.Name, c.Names, c.Descriptions, !c.Menu, !c.Menu)
		for _, o := range c.Options {
			words(path+"/"+c.Name+" "+o.Name, o.Name, o.Names, o.Descriptions, true, true)
		}
		checkTranslated(t, path+"/"+c.Name, c.Sub)
	}
}
