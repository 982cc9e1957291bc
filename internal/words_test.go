package internal_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// sentence is something that a person reads, with where it stands.
type sentence struct{ at, text string }

// speaks are the functions whose texts people read, wherever they are called.
var speaks = []string{"says", "Errorf of operation", "InvalidField of operation", "Refusal", "invalid", "failedMsg", "replacing", "fail", "say"}

// shows are the fields whose texts people read, in whatever they stand.
var shows = []string{"Help", "Done", "Empty", "Label", "Hint", "Title", "Description", "Text", "Asks", "Fix", "flash", "Short", "Long", "Hints", "Write", "OpenThread", "MakeChannel", "CopyLink", "Rename"}

// talkative are packages in which every text with a space in it is written for people.
var talkative = []string{"internal/connector/commands", "internal/connector/workcards", "internal/workview", "internal/room/render", "internal/connector", "internal/connector/approvalcard", "internal/connector/host", "internal/transport/repl", "internal/transport/repl/local", "internal/transport/repl/remote", "internal/chatcommand", "internal/notice"}

// silent are calls whose texts go to whoever runs Chorus, not to whoever talks to it.
var silent = []string{"Warn", "Error", "Info", "Debug", "Log", "LogOnce", "MustCompile", "New of errors", "Errorf of fmt", "Contains", "HasPrefix", "HasSuffix", "TrimPrefix", "TrimSuffix", "CutPrefix", "Cut", "Split", "NewReplacer", "Getenv", "panic"}

// speaksInCommands are the functions whose texts people read in the program's own package beside those: whatever its commands print or fail with.
var speaksInCommands = []string{"New of errors", "Errorf of fmt", "warn", "Fprintf", "Fprintln", "StringVar", "StringVarP", "StringArrayVar", "StringSliceVar", "BoolVar", "BoolVarP", "IntVar", "DurationVar", "Bool"}

// catalogue is every sentence that people read: of chats and terminals from the code, of pages from their templates.
func catalogue(t *testing.T) (all []sentence) {
	t.Helper()
	for _, root := range []string{".", "../cmd"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && (d.Name() == "testdata" || d.Name() == "sim" || strings.HasSuffix(d.Name(), "test") && d.Name() != "internal"):
				return filepath.SkipDir
			case strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go"):
				list, err := sentencesOfCode(path)
				all = append(all, list...)
				return err
			case strings.HasSuffix(path, ".html") && strings.Contains(path, "pages/templates"):
				list, err := sentencesOfTemplate(path)
				all = append(all, list...)
				return err
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// sentencesOfCode are the texts of one file that people read.
func sentencesOfCode(path string) (out []sentence, err error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	whole, heard, unheard := slices.Contains(talkative, "internal/"+filepath.ToSlash(filepath.Dir(path))), speaks, silent
	if strings.HasPrefix(filepath.ToSlash(path), "../cmd/") {
		heard = slices.Concat(speaks, speaksInCommands)
		unheard = slices.DeleteFunc(slices.Clone(silent), func(name string) bool { return slices.Contains(speaksInCommands, name) })
	}
	take := func(node ast.Node) {
		ast.Inspect(node, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && slices.Contains(unheard, called(call)) {
				return false
			}
			lit, ok := n.(*ast.BasicLit)
			if !ok || lit.Kind != token.STRING {
				return true
			}
			text, err := strconv.Unquote(lit.Value)
			if err == nil && strings.Contains(strings.TrimSpace(text), " ") {
				out = append(out, sentence{fmt.Sprintf("%s:%d", filepath.ToSlash(path), files.Position(lit.Pos()).Line), text})
			}
			return true
		})
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ImportSpec, *ast.StructType:
			return false
		case *ast.FuncDecl, *ast.GenDecl:
			if whole {
				take(n)
				return false
			}
		case *ast.CallExpr:
			if slices.Contains(unheard, called(n)) {
				return false
			}
			if slices.Contains(heard, called(n)) {
				take(n)
				return false
			}
		case *ast.KeyValueExpr:
			if key, ok := n.Key.(*ast.Ident); ok && slices.Contains(shows, key.Name) {
				take(n.Value)
				return false
			}
		}
		return true
	})
	return out, nil
}

// called is what a call calls: its name, with the package where that says whom it is for.
func called(call *ast.CallExpr) string {
	switch f := call.Fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		if of, ok := f.X.(*ast.Ident); ok && (f.Sel.Name == "Errorf" || f.Sel.Name == "InvalidField" || f.Sel.Name == "New") {
			return f.Sel.Name + " of " + of.Name
		}
		return f.Sel.Name
	}
	return ""
}

// sentencesOfTemplate are the words of a page, without what is filled in.
func sentencesOfTemplate(path string) (out []sentence, err error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	filled := regexp.MustCompile(`(?s)\{\{.*?\}\}`).ReplaceAllString(string(raw), "…")
	attributes := regexp.MustCompile(`(?:title|placeholder|aria-label|alt)="([^"]*)"`)
	for i, line := range strings.Split(filled, "\n") {
		at := fmt.Sprintf("%s:%d", filepath.ToSlash(path), i+1)
		for _, hit := range attributes.FindAllStringSubmatch(line, -1) {
			out = append(out, sentence{at, hit[1]})
		}
		for _, text := range regexp.MustCompile(`<[^>]*>`).Split(line, -1) {
			if strings.Contains(strings.TrimSpace(text), " ") {
				out = append(out, sentence{at, strings.TrimSpace(text)})
			}
		}
	}
	return out, nil
}

// rules are what no sentence for people has in it.
func wordRules(t *testing.T) map[string]*regexp.Regexp {
	t.Helper()
	glossary, err := os.ReadFile("../docs/GLOSSARY.md")
	if err != nil {
		t.Fatal(err)
	}
	_, own, ok := strings.Cut(string(glossary), "## Words of the code alone\n")
	if !ok {
		t.Fatal("docs/GLOSSARY.md does not say which words are of the code alone")
	}
	var nouns []string
	for _, hit := range regexp.MustCompile("`([a-z]+)`").FindAllStringSubmatch(own, -1) {
		nouns = append(nouns, hit[1])
	}
	if len(nouns) < 10 {
		t.Fatalf("the words of the code alone are %v", nouns)
	}
	return map[string]*regexp.Regexp{
		"a mistake of formatting":  regexp.MustCompile(`%!|%[+#]v|%T`),
		"an error of Go":           regexp.MustCompile(`context deadline exceeded|context canceled|\bEOF\b|\bnil\b|goroutine|broken pipe`),
		"the prefix of a package":  regexp.MustCompile(`^(?:store|engine|agent|gate|transcript|outbox|connector|platform|permit|config|json|sql|operation|service|journal): `),
		"a regular expression":     regexp.MustCompile(`\(\?[:i]|\[\^|\.\*[^*]|\\[dsw][+*]`),
		"another voice":            regexp.MustCompile(`(?i)\b(?:please|sorry|oops|whoops|unfortunately|successfully|an error occurred)\b|[a-z]!(?:\s|$)`),
		"a raw id":                 regexp.MustCompile(`\b[0-9A-HJKMNP-TV-Z]{26}\b|\b\d{17,20}\b`),
		"a key in other letters":   regexp.MustCompile(`\bctrl-[a-z]\b`),
		"a word of the code alone": regexp.MustCompile(`(?i)(?:^|[^-\w])(?:` + strings.Join(nouns, "|") + `)s?\b`), // a flag may be called so
	}
}

// maxWords is how long a sentence may be; one that needs more is two.
const maxWords = 30

// longest is the longest sentence of a text, by its words: marks, lists and what stands behind a colon begin another.
func longest(text string) (most int) {
	for _, part := range regexp.MustCompile(`[.;:?!]\s|\n|: `).Split(text, -1) {
		most = max(most, len(strings.Fields(part)))
	}
	return most
}

// Whatever people read is in plain words.
func TestWordsForPeopleArePlain(t *testing.T) {
	t.Parallel()
	all := catalogue(t)
	if len(all) < 1000 {
		t.Fatalf("only %d sentences were found: whatever speaks to people is called otherwise now", len(all))
	}
	rules := wordRules(t)
	for _, s := range all {
		for what, rule := range rules {
			if hit := rule.FindString(s.text); hit != "" {
				t.Errorf("%s says %q, which has %s: %q", s.at, s.text, what, hit)
			}
		}
		if n := longest(s.text); n > maxWords {
			t.Errorf("%s says %q, which has a sentence of %d words", s.at, s.text, n)
		}
	}
}

// A test of rules is tested itself: what must not be said is found, in code and in templates.
func TestWordRulesFindWhatTheyMust(t *testing.T) {
	t.Parallel()
	rules := wordRules(t)
	for text, what := range map[string]string{
		"it took %+v of them":                 "a mistake of formatting",
		"failed: context deadline exceeded":   "an error of Go",
		"store: the row is gone":              "the prefix of a package",
		"asked by tool:bash:(?:make|go) x":    "a regular expression",
		"run 01K9ZZZZZZZZZZZZZZZZZZZZZZ died": "a raw id",
		"Sorry, try again":                    "another voice",
		"the outbox is full":                  "a word of the code alone",
		"stop it with ctrl-c":                 "a key in other letters",
	} {
		if !rules[what].MatchString(text) {
			t.Errorf("%q has no %s", text, what)
		}
	}
	dir := t.TempDir()
	code, page := filepath.Join(dir, "a.go"), filepath.Join(dir, "a.html")
	source := "package a\nfunc f() { says(\"one two\" + g(fmt.Sprintf(\"three %d four\", 1))); log.Warn(\"not this\"); x := T{Help: \"five six\"}; y := \"nor this\" }\n"
	if err := os.WriteFile(code, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(page, []byte("<p title=\"seven\">eight {{.X}} nine</p>"), 0o600); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, read := range []func() ([]sentence, error){func() ([]sentence, error) { return sentencesOfCode(code) }, func() ([]sentence, error) { return sentencesOfTemplate(page) }} {
		list, err := read()
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range list {
			got = append(got, s.text)
		}
	}
	if want := []string{"one two", "three %d four", "five six", "seven", "eight … nine"}; !slices.Equal(got, want) {
		t.Errorf("the catalogue has %q, not %q", got, want)
	}
}
