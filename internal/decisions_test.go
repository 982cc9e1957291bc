package internal_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	indexLine    = regexp.MustCompile(`^- \[(\d{4})\]\((\S+\.md)\) \S`)
	supersededBy = regexp.MustCompile(`[Ss]uperseded by \[?(\d{4})`)
)

// indexFaults says what is wrong with an index of decisions, given the texts of the decisions by file name.
func indexFaults(index string, decisions map[string]string) []string {
	var out []string
	listed := map[string]bool{}
	numbers := map[string]bool{}
	for name := range decisions {
		numbers[name[:4]] = true
	}
	for line := range strings.Lines(index) {
		if !strings.HasPrefix(line, "- ") {
			continue
		}
		m := indexLine.FindStringSubmatch(line)
		if m == nil {
			out = append(out, fmt.Sprintf("not of the form \"- [0001](0001-name.md) what was decided\": %s", strings.TrimSpace(line)))
			continue
		}
		name := m[2]
		text, ok := decisions[name]
		switch {
		case !ok:
			out = append(out, name+" does not exist")
		case listed[name]:
			out = append(out, name+" is listed twice")
		case !strings.HasPrefix(name, m[1]):
			out = append(out, name+" is listed under another number")
		}
		listed[name] = true
		here, there := supersededBy.FindStringSubmatch(line), supersededBy.FindStringSubmatch(text)
		switch {
		case (here == nil) != (there == nil):
			out = append(out, name+": the index and the decision disagree whether it is superseded")
		case here != nil && here[1] != there[1]:
			out = append(out, name+": the index and the decision disagree by which one it is superseded")
		case here != nil && !numbers[here[1]]:
			out = append(out, name+" is superseded by "+here[1]+", which does not exist")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(decisions)) {
		if !listed[name] {
			out = append(out, name+" is not listed: add a line below its topic")
		}
	}
	return out
}

func TestDecisionsAreIndexed(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(root, "docs/decisions")
	files, err := filepath.Glob(filepath.Join(dir, "[0-9]*.md"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no decisions: %v", err)
	}
	decisions := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		decisions[filepath.Base(file)] = string(text)
	}
	index, err := os.ReadFile(filepath.Join(dir, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range indexFaults(string(index), decisions) {
		t.Errorf("docs/decisions/README.md: %s", fault)
	}
}

func TestIndexFaults(t *testing.T) {
	t.Parallel()
	decisions := map[string]string{"0001-a.md": "# A\n\nSuperseded by [0002](0002-b.md).\n", "0002-b.md": "# B\n"}
	for index, want := range map[string]string{
		"- [0001](0001-a.md) a (superseded by 0002)\n- [0002](0002-b.md) b\n":                        "",
		"- [0001](0001-a.md) a\n- [0002](0002-b.md) b\n":                                             "disagree whether",
		"- [0001](0001-a.md) a (superseded by 0003)\n- [0002](0002-b.md) b\n":                        "disagree by which",
		"- [0001](0001-a.md) a (superseded by 0002)\n":                                               "0002-b.md is not listed",
		"- [0001](0001-a.md) a (superseded by 0002)\n- [0003](0002-b.md) b\n":                        "another number",
		"- [0001](0001-a.md) a (superseded by 0002)\n- [0002](0002-b.md) b\n- [0002](0002-b.md) b\n": "twice",
		"- [0001](0001-a.md) a (superseded by 0002)\n- [0002](0002-b.md) b\n- [0003](0003-c.md) c\n": "does not exist",
		"- [0001](0001-a.md) a (superseded by 0002)\n- [0002](0002-b.md) b\n- something else\n":      "not of the form",
	} {
		got := strings.Join(indexFaults(index, decisions), "\n")
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%q: %q, want %q", index, got, want)
		}
	}
}
