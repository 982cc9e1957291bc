package internal_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"chorus/internal/chat"
)

// A second list of the modes would lack the next mode. Only the tags of operations must repeat it, because tags are constants.
func TestOnlyOneListOfModes(t *testing.T) {
	t.Parallel()
	for _, dir := range []string{"internal", "cmd"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(file string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") || strings.HasSuffix(filepath.ToSlash(file), "internal/chat/mode.go") {
				return err
			}
			for _, where := range modeLists(t, file) {
				t.Errorf("%s lists the modes: take them from internal/chat/mode.go", where)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestAListOfModesIsFound(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		`var m = []string{"plan", "review", "implement", "verify"}`:                    1,
		`var m = "[plan|review|implement|verify|off]"`:                                 1,
		"type m struct{ A string `doc:\"plan, review or verify, implement\"` }":        1,
		"type m struct{ A string `doc:\"plan, review, implement or verify; none\"` }":  0,
		`var m, n = "plan", "we implement what we planned, review it and verify that"`: 0,
	} {
		file := filepath.Join(t.TempDir(), "m.go")
		if err := os.WriteFile(file, []byte("package m\n\n"+text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := modeLists(t, file); len(got) != want {
			t.Errorf("%s: %v, want %d", text, got, want)
		}
	}
}

// modeLists lists where a file names the modes, or one that no other text names by itself.
func modeLists(t *testing.T, file string) []string {
	t.Helper()
	return literals(t, file, func(text string) bool {
		words := strings.FieldsFunc(text, func(r rune) bool { return r < 'a' || r > 'z' })
		lacks := slices.ContainsFunc(chat.ModeNames(), func(name string) bool { return !slices.Contains(words, name) })
		return text == chat.ModeImplement || !lacks && !strings.Contains(text, chat.ModeWords("or"))
	})
}
