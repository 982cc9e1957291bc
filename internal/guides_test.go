package internal_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// fence is one fenced block of a guide: ```kind rest.
type fence struct {
	kind, rest string
	line       int
	text       string
}

// fences reads the blocks of a guide. Only those that name a file, are "from" one of ours, or
// say "run" are checked.
func fences(text string) ([]fence, error) {
	var out []fence
	var open *fence
	for i, line := range strings.SplitAfter(text, "\n") {
		mark, isMark := strings.CutPrefix(strings.TrimRight(line, "\n"), "```")
		switch {
		case open == nil && isMark:
			kind, rest, _ := strings.Cut(mark, " ")
			open = &fence{kind: kind, rest: strings.TrimSpace(rest), line: i + 1}
		case open != nil && isMark:
			out = append(out, *open)
			open = nil
		case open != nil:
			open.text += line
		}
	}
	if open != nil {
		return nil, fmt.Errorf("line %d: a block that does not end", open.line)
	}
	return out, nil
}

// patch applies a diff without line numbers: the lines it keeps must stand in the
// text exactly once, one after the other.
func patch(text, diff string) (string, error) {
	var before, after strings.Builder
	for line := range strings.Lines(diff) {
		switch {
		case strings.HasPrefix(line, " "):
			before.WriteString(line[1:])
			after.WriteString(line[1:])
		case strings.HasPrefix(line, "-"):
			before.WriteString(line[1:])
		case strings.HasPrefix(line, "+"):
			after.WriteString(line[1:])
		default:
			return "", fmt.Errorf("%q is no line of a diff", line)
		}
	}
	if n := strings.Count(text, before.String()); n != 1 {
		return "", fmt.Errorf("these lines stand there %d times, want once:\n%s", n, before.String())
	}
	return strings.Replace(text, before.String(), after.String(), 1), nil
}

// guide is what following one guide leaves behind: files beside and instead of ours.
type guide struct {
	files map[string]string // by path below the repository
	runs  []fence
}

func follow(t *testing.T, name string) guide {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docs/guides", name))
	if err != nil {
		t.Fatal(err)
	}
	blocks, err := fences(string(text))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	g := guide{files: map[string]string{}}
	for _, b := range blocks {
		switch {
		case b.rest == "run":
			g.runs = append(g.runs, b)
		case b.rest == "":
		case strings.HasPrefix(b.rest, "from "):
			name := strings.TrimPrefix(b.rest, "from ")
			data, err := os.ReadFile(filepath.Join(root, name))
			if err != nil || strings.Count(string(data), b.text) != 1 {
				t.Fatalf("%s line %d: these lines are not in %s, once: %v\n%s", name, b.line, name, err, b.text)
			}
			g.files[name] = string(data)
		case b.kind == "diff":
			old, ok := g.files[b.rest]
			if !ok {
				data, err := os.ReadFile(filepath.Join(root, b.rest))
				if err != nil {
					t.Fatalf("%s line %d: %v", name, b.line, err)
				}
				old = string(data)
			}
			if g.files[b.rest], err = patch(old, b.text); err != nil {
				t.Fatalf("%s line %d does not fit %s any more: %v", name, b.line, b.rest, err)
			}
		default:
			g.files[b.rest] = b.text
		}
	}
	return g
}

// overlay lets the go command see the guide's files where they would stand.
func (g guide) overlay(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	base, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	replace := map[string]string{}
	for name, text := range g.files {
		file := filepath.Join(dir, strings.ReplaceAll(name, "/", "__"))
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		replace[filepath.Join(base, name)] = file
	}
	data, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// packages are the packages that the guide adds to or changes.
func (g guide) packages() []string { return g.with(".go") }

// tested are those it brings a test for.
func (g guide) tested() []string { return g.with("_test.go") }

func (g guide) with(suffix string) []string {
	var out []string
	for name := range g.files {
		if pkg := "./" + path.Dir(name); strings.HasSuffix(name, suffix) && !slices.Contains(out, pkg) {
			out = append(out, pkg)
		}
	}
	slices.Sort(out)
	return out
}

// tests are the names of the tests that the guide brings.
func (g guide) tests() []string {
	var out []string
	for name, text := range g.files {
		if !strings.HasSuffix(name, "_test.go") {
			continue
		}
		for line := range strings.Lines(text) {
			if rest, ok := strings.CutPrefix(line, "func Test"); ok {
				test, _, _ := strings.Cut(rest, "(")
				out = append(out, "Test"+test)
			}
		}
	}
	slices.Sort(out)
	return out
}

// test runs the guide's tests of one package. The package's folder may exist in the
// overlay alone, so the test is built first and run somewhere else.
func (g guide) test(t *testing.T, overlay, pkg string) {
	t.Helper()
	dir := t.TempDir()
	bin := filepath.Join(dir, "guide.test")
	goCommand(t, "test", "-c", "-trimpath", "-ldflags=-s -w", "-vet=off", "-overlay", overlay, "-o", bin, pkg)
	cmd := exec.CommandContext(t.Context(), bin, "-test.v", "-test.run", "^("+strings.Join(g.tests(), "|")+")$")
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("--- PASS")) {
		t.Errorf("the tests for %s: %v\n%s", pkg, err, out)
	}
}

func goCommand(t *testing.T, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0") // with -trimpath as make build does: what is compiled is used again
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("go %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// TestGuidesAreTrue follows every guide to the letter: its diffs fit, what comes of
// it compiles, its tests pass, its commands print what it says.
func TestGuidesAreTrue(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles the guides; not with -short")
	}
	names, err := filepath.Glob(filepath.Join(root, "docs/guides/*.md"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no guides: %v", err)
	}
	bin := filepath.Join(t.TempDir(), "chorus")
	build := sync.OnceFunc(func() { goCommand(t, "build", "-trimpath", "-ldflags=-s -w", "-o", bin, "./"+program) }) // once for all of them
	for _, file := range names {
		name := filepath.Base(file)
		t.Run(name, func(t *testing.T) {
			g := follow(t, name)
			if len(g.files)+len(g.runs) == 0 && !strings.HasPrefix(name, "add-") {
				return // a page to look things up in; its package holds it to its table
			}
			if len(g.tests()) == 0 {
				t.Fatalf("%s brings no code with a test", name)
			}
			overlay := g.overlay(t)
			goCommand(t, append([]string{"build", "-trimpath", "-overlay", overlay}, g.packages()...)...)
			for _, pkg := range g.tested() {
				g.test(t, overlay, pkg)
			}
			if layers, ok := g.files[layersFile]; ok {
				if _, err := readLayers(layers); err != nil {
					t.Error(err)
				}
			}
			for _, run := range g.runs {
				build()
				g.run(t, name, bin, run)
			}
		})
	}
}

// run runs the commands of a block, each behind "$ ", and compares what they print.
func (g guide) run(t *testing.T, name, bin string, block fence) {
	t.Helper()
	dir := t.TempDir()
	for file, text := range g.files {
		if !strings.Contains(file, "/") {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	var got bytes.Buffer
	for line := range strings.Lines(block.text) {
		command, ok := strings.CutPrefix(line, "$ ")
		if !ok {
			continue
		}
		got.WriteString(line)
		cmd := exec.CommandContext(t.Context(), "sh", "-c", command)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(bin)+string(os.PathListSeparator)+os.Getenv("PATH"), "CHORUS_HOME="+filepath.Join(dir, "home"))
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("%s line %d: %s: %v", name, block.line, command, err)
		}
		got.Write(out)
	}
	if got.String() != block.text {
		t.Errorf("%s line %d prints\n%s\nand not\n%s", name, block.line, got.String(), block.text)
	}
}

func TestPatch(t *testing.T) {
	t.Parallel()
	got, err := patch("a\nb\nc\n", " b\n+x\n c\n")
	if err != nil || got != "a\nb\nx\nc\n" {
		t.Errorf("%q, %v", got, err)
	}
	for _, bad := range []string{" x\n+y\n", " a\n c\n", "?\n"} {
		if got, err := patch("a\nb\nc\n", bad); err == nil {
			t.Errorf("%q was applied: %q", bad, got)
		}
	}
	if _, err := patch("a\na\n", " a\n+b\n"); err == nil {
		t.Error("a place that is not unique was taken")
	}
}
