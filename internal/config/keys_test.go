package config

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

// sample is a value of the key's kind that is not its default, as YAML and as a variable.
func sample(k Key) (yaml, variable string, plain any) {
	switch k.Kind {
	case Bool:
		v := k.Default != true
		return fmt.Sprint(v), fmt.Sprint(v), v
	case Integer:
		return "7", "7", 7
	case Number:
		v := 0.25
		return "0.25", "0.25", v
	case List:
		if k.Path == "editors" {
			return "[local, role:b]", "local, role:b", []any{"local", "role:b"}
		}
		if k.Path == "workspaces" {
			return "[/a, ~/b]", "/a, ~/b", []any{"/a", "~/b"}
		}
		return "[a, b]", "a, b", []any{"a", "b"}
	case Free:
		return "7", "", 7
	default:
		if len(k.Choices) > 0 {
			v := k.Choices[len(k.Choices)-1]
			return v, v, v
		}
		if k.Period {
			return "90s", "90s", "90s"
		}
		if form := map[string]string{"approvals.deadline": "90s", "approvals.remind": "90s", "approvals.by": "two", "accessDefault": "guarded"}[strings.Replace(k.Path, "profiles.*.", "", 1)]; form != "" {
			return form, form, form
		}
		return "word", "word", "word"
	}
}

// nested writes a value under a path; "*" becomes the name "x".
func nested(path, value string) string {
	var b strings.Builder
	parts := strings.Split(strings.ReplaceAll(path, "*", "x"), ".")
	for i, part := range parts[:len(parts)-1] {
		fmt.Fprintf(&b, "%s%s:\n", strings.Repeat("  ", i), part)
	}
	fmt.Fprintf(&b, "%s%s: %s\n", strings.Repeat("  ", len(parts)-1), parts[len(parts)-1], value)
	return b.String()
}

// value is what a row shows for the path.
func value(t *testing.T, b *Bot, path string) any {
	t.Helper()
	for _, r := range b.Rows() {
		if r.Key == path {
			return r.Value
		}
	}
	t.Fatalf("%s is not shown", path)
	return nil
}

// loose reads leaves and skips what only whole servers and secrets must have.
func loose(t *testing.T, text string) (*Bot, Problems) {
	t.Helper()
	r := &report{}
	b := &Bot{Name: "x"}
	b.merged.lay(shape(r, Shared, env(nil), parse(r, "shared.yaml", Shared, []byte(text))))
	b.decode(r, env(nil))
	return b, r.found
}

// Every key is read under its name, in snake_case and by its aliases; a value of the
// wrong type and one out of its range are refused with the place.
func TestEveryKey(t *testing.T) {
	t.Parallel()
	for _, k := range Keys() {
		t.Run(k.Path, func(t *testing.T) {
			t.Parallel()
			good, _, plain := sample(k)
			path := strings.ReplaceAll(k.Path, "*", "x")
			for _, name := range append([]string{k.Path, snake(k.Path)}, k.Aliases...) {
				b, problems := loose(t, nested(name, good))
				if err := problems.Err(); err != nil {
					t.Errorf("%s: %v", name, err)
					continue
				}
				if got := value(t, b, path); !k.Secret && !reflect.DeepEqual(got, plain) {
					t.Errorf("%s is %v, want %v", name, got, plain)
				}
				if at := b.Origin(path); at.Layer != Shared || at.Line != strings.Count(nested(name, good), "\n") {
					t.Errorf("%s came from %v", name, at)
				}
			}
			if k.Kind != Free {
				refused(t, k, "{a: {b: c}}", "must be")
			}
			if k.Kind == Integer || k.Kind == Number {
				refused(t, k, "many", "must be a "+string(k.Kind))
				refused(t, k, ".nan", "must be a "+string(k.Kind))
			}
			if k.Kind == Integer {
				refused(t, k, "1.5", "whole number")
			}
			if k.Least != nil {
				refused(t, k, plainNumber(*k.Least-1), k.rangeText())
			}
			if k.Most != nil {
				refused(t, k, plainNumber(*k.Most+1), k.rangeText())
			}
			if len(k.Choices) > 0 {
				refused(t, k, "nonsense", "one of")
			}
			if k.Kind == Text && !k.Secret {
				refused(t, k, "5", "put it in quotes")
			}
		})
	}
}

func plainNumber(f float64) string { return strings.TrimSuffix(fmt.Sprintf("%g", f), ".0") }

func refused(t *testing.T, k Key, value, want string) {
	t.Helper()
	text := nested(k.Path, value)
	_, problems := loose(t, text)
	err := problems.Err()
	line := fmt.Sprintf("shared.yaml:%d:", strings.Count(text, "\n"))
	if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), line) {
		t.Errorf("%s: %s: %v, want %q at %s", k.Path, value, err, want, line)
	}
}

// Every key has its variable, and a secret one with _FILE too.
func TestEveryTwin(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"secret": "from a file"})
	for _, k := range Keys() {
		name := k.Variable()
		if strings.Contains(k.Path, "*") {
			if name != "" {
				t.Errorf("%s has the variable %s", k.Path, name)
			}
			continue
		}
		_, text, plain := sample(k)
		b, problems := Load(Options{Dir: dir, Env: env(map[string]string{name: text, "CHORUS_SYSTEM_PROMPT": "x", "CHORUS_CONTEXT_PREFIX": "x"})}, Ask{})
		if strings.HasSuffix(k.Path, "File") {
			continue // read by TestPromptFiles
		}
		if err := problems.Err(); err != nil {
			t.Errorf("%s=%s: %v", name, text, err)
			continue
		}
		if got := value(t, b, k.Path); !k.Secret && k.Path != "systemPrompt" && k.Path != "contextPrefix" && !reflect.DeepEqual(got, plain) {
			t.Errorf("%s=%s gives %v", name, text, got)
		}
		if at := b.Origin(k.Path); at.Layer != Environment || at.File != name {
			t.Errorf("%s came from %v", k.Path, at)
		}
		if k.Secret {
			b, problems := Load(Options{Dir: dir, Env: env(map[string]string{name + "_FILE": dir + "/secret"})}, Ask{})
			if problems.Err() != nil || b.Origin(k.Path).File != name+"_FILE" {
				t.Errorf("%s_FILE: %v", name, problems)
			}
		}
	}
	if got := table().keys["maxTokens"].Variable(); got != "CHORUS_MAX_TOKENS" {
		t.Error(got)
	}
	if got := table().keys["recencyWindow.hardMax"].Variable(); got != "CHORUS_RECENCY_WINDOW_HARD_MAX" {
		t.Error(got)
	}
}

// The table and the struct hold the same keys.
func TestEveryKeyHasItsField(t *testing.T) {
	t.Parallel()
	tagged := map[string]bool{}
	typ := reflect.TypeFor[Bot]()
	for i := range typ.NumField() {
		path, ok := typ.Field(i).Tag.Lookup("key")
		if !ok {
			continue
		}
		tagged[path] = true
		if table().keys[path] == nil {
			t.Errorf("the field %s names %q, which is no key", typ.Field(i).Name, path)
		}
	}
	for _, k := range Keys() {
		byHand := strings.Contains(k.Path, "*") || strings.HasSuffix(k.Path, "File") || strings.HasPrefix(k.Path, "budgets.")
		if !byHand && !tagged[k.Path] {
			t.Errorf("%s has no field in Bot", k.Path)
		}
		if k.Doc == "" || !strings.HasSuffix(k.Doc, ".") && !strings.HasSuffix(k.Doc, "…") {
			t.Errorf("%s needs a sentence", k.Path)
		}
	}
}

// People read what a setting is, not the name of its key: each has a label that no other of its section has, also with names filled in.
func TestEveryKeyHasItsLabel(t *testing.T) {
	t.Parallel()
	for _, section := range Sections() {
		taken := map[string]string{}
		for _, k := range section.Keys {
			first, _ := utf8.DecodeRuneInString(k.Label)
			last := k.Path[strings.LastIndexByte(k.Path, '.')+1:]
			switch {
			case !unicode.IsUpper(first) || strings.HasSuffix(k.Label, ".") || len(k.Label) > 60:
				t.Errorf("%s needs a short label that begins with a capital letter, not %q", k.Path, k.Label)
			case last != strings.ToLower(last) && strings.Contains(k.Label, last):
				t.Errorf("the label of %s is its key: %q", k.Path, k.Label)
			case strings.Count(k.Label, "*") != strings.Count(k.Path, "*"):
				t.Errorf("the label of %s does not have the names that the key has: %q", k.Path, k.Label)
			}
			label := strings.ToLower(k.labelAt(strings.ReplaceAll(k.Path, "*", "x")))
			if other := taken[label]; other != "" {
				t.Errorf("%s and %s are both called %q", k.Path, other, k.Label)
			}
			taken[label] = k.Path
		}
	}
}

// Whatever is shown has its label, with the names as people wrote them.
func TestRowsHaveLabels(t *testing.T) {
	t.Parallel()
	b, problems := loose(t, "vendors:\n  my.own:\n    config: {a*b: x, c: y}\nchannels:\n  \"dev-*\": open\nprofiles:\n  careful: {deny: [x]}\n")
	if err := problems.Err(); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, r := range b.Rows() {
		if got[r.Key] = r.Label; r.Label == "" || table().keys[r.Path] == nil {
			t.Errorf("%s has the label %q and the path %q", r.Key, r.Label, r.Path)
		}
	}
	for key, want := range map[string]string{
		"maxToolDepth": "Most model calls in one run", "vendors.my.own.config.a*b": "Vendor my.own: setting a*b", "vendors.my.own.config.c": "Vendor my.own: setting c",
		"channels.dev-*.permissions": "Profile in the channel dev-*", "profiles.careful.deny": "Profile careful: refused actions",
	} {
		if got[key] != want {
			t.Errorf("%s is called %q, want %q", key, got[key], want)
		}
	}
}

// What must never come from a pin.
func TestNeverFromPins(t *testing.T) {
	t.Parallel()
	for _, k := range Keys() {
		top, _, _ := strings.Cut(k.Path, ".")
		switch top {
		case "permissions", "profiles", "access", "accessDefault", "editors", "channels", "workspaces", "audit", "sandbox", "sandboxContainer", "sandboxRoots", "sandboxGit", "egress", "approvals", "budgets", "prices", "vendors", "secrets", "mcpServers", "worker", "searchProviders", "toolHooks", "hashlineEdit", "operationTools", "discordToken", "authorizedRoles", "databaseUrl", "blobUrl", "blobAccessKey", "blobSecretKey", "natsUrl", "nodeAddress", "publicUrl", "onNodeLost", "nodeLostSeconds",
			"preamble", "retention", "blocked", "systemPromptFile", "greeting", "contextPrefixFile", "durability", "defaultModel", "defaultProvider", "idleTimeoutMs", "maxRuns", "workers", "taskTimeoutMs", "workTokensDaily", "taskReminderMs", "projectChannels", "taskEscalationMs", "projectAgent", "imageCacheMb", "logDays", "keepDeleted", "theme", "timeouts", "discordBackoffMax":
			if k.Pins {
				t.Errorf("%s may be pinned", k.Path)
			}
			if k.Path == "permissions" {
				continue // as a limit; TestAPinTakesRightsAway
			}
			good, _, _ := sample(k)
			b, problems := Load(Options{Dir: t.TempDir(), Env: env(nil)}, Ask{Bot: "x", Pins: []Pin{{Text: ".config\n---\n" + nested(k.Path, good)}}})
			if len(problems) != 1 || !problems[0].Warning || !strings.Contains(problems[0].Text, "cannot be set in a pinned message") || b.IsSet(strings.ReplaceAll(k.Path, "*", "x")) {
				t.Errorf("%s in a pin: %v", k.Path, problems)
			}
		default:
			if !k.Pins {
				t.Errorf("%s may not be pinned", k.Path)
			}
		}
	}
}
