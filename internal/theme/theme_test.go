package theme

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// luminance is that of one of the 240 colours that are the same everywhere, as WCAG counts it.
func luminance(t *testing.T, color int) float64 {
	t.Helper()
	if color < 16 || color > 255 {
		t.Fatalf("%d belongs to the palette of the terminal's owner", color)
	}
	channel := func(v int) float64 {
		c := float64(v) / 255
		if c <= 0.03928 {
			return c / 12.92
		}
		return math.Pow((c+0.055)/1.055, 2.4)
	}
	levels := []int{0, 95, 135, 175, 215, 255}
	r, g, b := 8+10*(color-232), 8+10*(color-232), 8+10*(color-232)
	if color < 232 {
		n := color - 16
		r, g, b = levels[n/36], levels[n/6%6], levels[n%6]
	}
	return 0.2126*channel(r) + 0.7152*channel(g) + 0.0722*channel(b)
}

// Whatever a theme paints can be read on the backgrounds that it is for: as text of any size should be (4.5 to 1), and with high contrast better (7 to 1).
func TestContrast(t *testing.T) {
	t.Parallel()
	of := regexp.MustCompile(`38;5;(\d+)`)
	all := table()
	for name, is := range map[string]struct {
		codes       codes
		backgrounds []int
		least       float64
	}{
		"dark": {all.dark, []int{16, 233, 236}, 4.5}, "light": {all.light, []int{231, 255}, 4.5},
		"high contrast on dark": {all.vividDark, []int{16, 234}, 7}, "high contrast on light": {all.vividLight, []int{231}, 7},
	} {
		for i, code := range is.codes {
			for _, found := range of.FindAllStringSubmatch(code, -1) {
				color, _ := strconv.Atoi(found[1])
				for _, on := range is.backgrounds {
					light, dark := luminance(t, color), luminance(t, on)
					if got := (max(light, dark) + 0.05) / (min(light, dark) + 0.05); got < is.least {
						t.Errorf("%s: style %d (%s) on %d has a contrast of %.1f", name, i, code, on, got)
					}
				}
			}
		}
	}
	for i, code := range append(all.marks[:], all.terminal[:]...) {
		if strings.Contains(code, "38;") {
			t.Errorf("style %d brings a colour of its own: %s", i, code)
		}
	}
}

func TestThemes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		on   Background
		few  bool
		want string
	}{
		{Auto, Unknown, false, "\x1b[31mx\x1b[0m"}, {Auto, IsDark, false, "\x1b[38;5;210mx\x1b[0m"}, {Auto, IsLight, false, "\x1b[38;5;124mx\x1b[0m"},
		{"no such", IsLight, false, "\x1b[38;5;124mx\x1b[0m"}, {Auto, IsLight, true, "\x1b[31mx\x1b[0m"},
		{Dark, IsLight, false, "\x1b[38;5;210mx\x1b[0m"}, {Light, IsDark, false, "\x1b[38;5;124mx\x1b[0m"}, {Light, Unknown, true, "\x1b[31mx\x1b[0m"},
		{HighContrast, Unknown, false, "\x1b[1;7mx\x1b[0m"}, {HighContrast, IsDark, false, "\x1b[1;38;5;217mx\x1b[0m"},
		{HighContrast, IsLight, false, "\x1b[1;38;5;88mx\x1b[0m"}, {HighContrast, IsLight, true, "\x1b[1;7mx\x1b[0m"},
		{Terminal, IsLight, false, "\x1b[31mx\x1b[0m"}, {None, IsDark, false, "x"},
	} {
		if got := Of(tt.name, tt.on, tt.few).Paint(Bad, "x"); got != tt.want {
			t.Errorf("%s on %d (few %v): %q, want %q", tt.name, tt.on, tt.few, got, tt.want)
		}
		if Of(tt.name, tt.on, tt.few).Colored() != (tt.name != None) {
			t.Errorf("%s: colours", tt.name)
		}
	}
	look := Of(Terminal, Unknown, false)
	if got := look.Paint(Strong|Code, "x") + look.Paint(Plain, "y") + look.Paint(Bad, ""); got != "\x1b[1;36mx\x1b[0my" {
		t.Errorf("%q", got)
	}
	for _, name := range Names() {
		if About(name) == "" {
			t.Errorf("%s is not described", name)
		}
	}
	if end != 1<<styles {
		t.Errorf("there are styles without a row")
	}
	for term, few := range map[string]bool{"xterm": true, "linux": true, "xterm-256color": false, "xterm-kitty": false, "tmux-256color": false} {
		if got := FewColors(func(name string) string { return map[string]string{"TERM": term}[name] }); got != few {
			t.Errorf("%s: few %v", term, got)
		}
	}
}

// Nothing else writes colours: in all other code a text with an escape in it only moves the cursor or takes lines away.
func TestColoursComeFromHere(t *testing.T) {
	t.Parallel()
	moves := regexp.MustCompile(`^(\r?(\x1b\[[KJ])|\r\x1b\[|A\x1b\[J)(%c )?(%s)?$`)
	known := []string{
		"internal/markdown/style.go",                  // reads what was painted, and writes none
		"internal/sandbox/sandboxtest/sandboxtest.go", // what commands print
	}
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		name, _ := filepath.Rel(root, path)
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (name == ".git" || name == "build" || entry.Name() == "testdata" || entry.Name() == "node_modules"):
			return filepath.SkipDir
		case entry.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || filepath.Dir(name) == "internal/theme" || slices.Contains(known, name):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			lit, ok := n.(*ast.BasicLit)
			if !ok || lit.Kind != token.STRING {
				return true
			}
			if text, err := strconv.Unquote(lit.Value); err == nil && strings.Contains(text, "\x1b[") && !moves.MatchString(text) {
				t.Errorf("%s: %s writes what a theme should", name, lit.Value)
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
