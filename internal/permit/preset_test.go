package permit

import (
	"strings"
	"testing"
)

func TestPresetNames(t *testing.T) {
	t.Parallel()
	_, err := Preset("nonexistent")
	if err == nil {
		t.Fatal("no error")
	}
	for _, name := range []string{"open", "standard", "guarded", "locked"} {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("%v does not list %s", err, name)
		}
		if a, b := mustPreset(t, name), mustPreset(t, name); a != b || a.Name() != name {
			t.Errorf("%s is not one profile of that name", name)
		}
	}
}

func TestPresets(t *testing.T) {
	t.Parallel()
	// The verdicts of open, standard, guarded and locked: a allow, ? ask, d deny.
	for action, want := range map[string]string{
		"tool:read:README.md":                "aaaa",
		"tool:view:README.md":                "aaaa",
		"tool:file:view README.md":           "aaaa",
		"tool:list_files:.":                  "aaaa",
		"tool:list_files:":                   "aaaa",
		"tool:search_files:src/sub":          "aaaa",
		"tool:read:.github/ci.yml":           "aaaa",
		"tool:read:.git/config":              "aaaa",
		"tool:read:...":                      "aaaa",
		"tool:read:a/..b/c":                  "aaaa",
		"tool:read:@outputs/1.txt":           "aaaa",
		"tool:read:@attachments/a.png":       "aaaa",
		"tool:read:@docs/a.md":               "aaad",
		"tool:read:@memory":                  "aaad",
		"tool:read:/etc/passwd":              "adad",
		"tool:read:../x":                     "adad",
		"tool:read:a/../../x":                "adad",
		"tool:read:@outputs/../x":            "adad",
		"tool:read:~/x":                      "aaaa", // a file called ~; the tools do not expand it
		"tool:write:src/a.py":                "aaad",
		"tool:create_file:src/a.py":          "aaad",
		"tool:edit:a.go":                     "aaad",
		"tool:apply_patch:a/b/c.go":          "aaad",
		"tool:write:.gitignore":              "aaad",
		"tool:write:.github/ci.yml":          "aaad",
		"tool:write:.g":                      "aaad",
		"tool:write:.git/hooks/pre-commit":   "a?ad",
		"tool:write:sub/.GIT/config":         "a?ad",
		"tool:write:@docs/a.md":              "aaad",
		"tool:edit:@memory/a.md":             "aaad",
		"tool:write:@skills/a/SKILL.md":      "a?ad",
		"tool:write:@events/a.json":          "a?ad",
		"tool:write:@outputs/a":              "adad",
		"tool:write:@docs/../x":              "adad",
		"tool:write:/etc/passwd":             "adad",
		"tool:write:../x":                    "adad",
		"tool:bash:echo hi":                  "a?ad",
		"tool:bash:echo a\necho b":           "a?ad",
		"tool:run_background:npm start":      "a?ad",
		"tool:run_concurrent:npm start":      "a?ad",
		"tool:git:status":                    "aaad",
		"tool:git:branch feature":            "aaad",
		"tool:git:commit -m 'a message'":     "aaad",
		"tool:git:commit -m a\n\nb":          "aaad",
		"tool:git:diff --stat HEAD~1..HEAD":  "aaad",
		"tool:git:push origin main":          "a?dd",
		"tool:git:push":                      "a?dd",
		"tool:git:merge_request a -> b":      "a?dd",
		"tool:git:pushx":                     "a?ad",
		"tool:git:diff --output=/etc/x":      "a?ad",
		"tool:git:-c alias.x=!sh x":          "a?ad",
		"tool:git:fetch origin":              "a?ad",
		"tool:self_edit:docs a.md":           "aaad",
		"tool:self_edit:docs ../agent.json":  "adad",
		"tool:self_edit:system_prompt":       "a?ad",
		"tool:self_edit:permissions open":    "a?ad",
		"tool:self_edit:model x":             "a?ad",
		"tool:self_edit:web_search on":       "a?ad",
		"tool:web_fetch:https://example.com": "a?ad",
		"tool:web_search:go":                 "a?ad",
		"tool:mcp__x__y:{}":                  "a?ad",
		"tool:spawn_agent:bob":               "a?ad",
		"tool:list_models:{}":                "aaad",
		"tool:info:{}":                       "aaad",
		"tool:work_notes:{}":                 "aaad",
		"tool:set_timer:in 20 minutes":       "aaad",
		"tool:something:{}":                  "adad",
		"tool:remote:x":                      "addd",
		"nonsense":                           "adad",
	} {
		got := ""
		for _, name := range Presets() {
			d := mustPreset(t, name).Check(action)
			got += map[Verdict]string{Allow: "a", Ask: "?", Deny: "d"}[d.Verdict]
		}
		if got != want {
			t.Errorf("%q: %s, want %s", action, got, want)
		}
	}
}

// What a start prepares beside the opening of its database is what its first call is judged by.
func TestPrepare(t *testing.T) {
	Prepare("no such profile")
	Prepare("standard")
	prepared, err := Preset("standard")
	if err != nil {
		t.Fatal(err)
	}
	Prepare("standard")
	if again, _ := Preset("standard"); again != prepared {
		t.Error("the profile was compiled twice")
	}
}
