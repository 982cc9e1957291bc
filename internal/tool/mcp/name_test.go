package mcp

import (
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestNames(t *testing.T) {
	t.Parallel()
	keys := serverKeys([]string{"git hub", "git.hub", "ok", "a__b", "__", "ü", strings.Repeat("x", 40), "x_"})
	want := map[string]string{
		"git hub": "git_hub_" + short("git hub"), "git.hub": "git_hub_" + short("git.hub"), "ok": "ok", "a__b": "a_b", "__": short("__"), "ü": short("ü"),
		strings.Repeat("x", 40): strings.Repeat("x", 23) + "_" + short(strings.Repeat("x", 40)), "x_": "x",
	}
	if !reflect.DeepEqual(keys, want) {
		t.Errorf("%v", keys)
	}
	tools := toolNames("s", []string{"a.b", "a_b", "c d", "e"})
	if want := map[string]string{"a.b": "mcp__s__a_b_" + short("a.b"), "a_b": "mcp__s__a_b", "c d": "mcp__s__c_d", "e": "mcp__s__e"}; !reflect.DeepEqual(tools, want) {
		t.Errorf("%v", tools)
	}
	// Somebody who knows the tail cannot take another's name with it.
	sly := "a_b_" + short("a.b")
	tools = toolNames("s", []string{"a.b", "a b", sly})
	if tools[sly] != "mcp__s__"+sly || tools["a.b"] == tools[sly] {
		t.Errorf("%v", tools)
	}
}

func TestNamesAreDistinctAndFit(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.OneOf(rapid.StringMatching(`[a_.b -]{1,6}`), rapid.StringN(1, 90, -1))
		servers := rapid.SliceOfNDistinct(word, 1, 5, rapid.ID).Draw(t, "servers")
		tools := rapid.SliceOfNDistinct(word, 1, 12, rapid.ID).Draw(t, "tools")
		seen := map[string]string{}
		keys := serverKeys(servers)
		for _, server := range servers {
			key := keys[server]
			if strings.Contains(key, "__") || strings.HasSuffix(key, "_") || key == "" {
				t.Fatalf("%q has the key %q", server, key)
			}
			mine := toolNames(key, tools)
			for _, one := range tools {
				name := mine[one]
				from := fmt.Sprintf("%q %q", server, one)
				if len(name) > longestName || clean(name) != name || !strings.HasPrefix(name, "mcp__"+key+"__") {
					t.Fatalf("%s is %s", from, name)
				}
				if other, ok := seen[name]; ok {
					t.Fatalf("%s and %s are both %s", from, other, name)
				}
				seen[name] = from
			}
		}
		slices.Reverse(servers)
		slices.Reverse(tools)
		if !reflect.DeepEqual(serverKeys(servers), keys) || !reflect.DeepEqual(toolNames("k", tools), toolNames("k", slices.Sorted(slices.Values(tools)))) {
			t.Fatal("the order matters")
		}
	})
}

func TestRedactor(t *testing.T) {
	t.Parallel()
	s := Server{Name: "s", URL: "https://u:sesame-open@h/p?api_key=test-key-url&n=1", Headers: map[string]string{"Authorization": "Bearer test-key-head", "X": "test-key"},
		Env: map[string]string{"A": "test-key-env", "DIR": "/usr/share", "N": "12"}}
	r := redactor(s)
	text := r(`Post "https://u:sesame-open@h/p?api_key=test-key-url&n=1": test-key-url Bearer test-key-head test-key-head test-key-env test-key /usr/share 12 sesame-open`)
	if strings.Contains(text, "test-key") || strings.Contains(text, "sesame") || !strings.Contains(text, `"https://h/p"`) || !strings.Contains(text, "/usr/share 12") {
		t.Errorf("%s", text)
	}
	if u, _ := url.Parse(s.URL); strings.Contains(fmt.Sprint(s), u.RawQuery) {
		t.Errorf("%s", s)
	}
}
