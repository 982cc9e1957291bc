package injectiontest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCorpus(t *testing.T) {
	t.Parallel()
	cases, err := Load("testdata")
	if err != nil {
		t.Fatal(err)
	}
	if len(cases) < 50 {
		t.Errorf("%d injections; there must be 50", len(cases))
	}
	carriers, texts := map[Carrier]int{}, map[string]string{}
	for _, c := range cases {
		carriers[c.Carrier]++
		if other := texts[c.Text]; other != "" {
			t.Errorf("%s says what %s says", c.Name, other)
		}
		texts[c.Text] = c.Name
		if filepath.IsAbs(c.At) || strings.Contains(c.At, "..") {
			t.Errorf("%s: %q is not in the workspace", c.Name, c.At)
		}
	}
	for _, c := range []Carrier{File, Filename, Instructions} {
		if carriers[c] < 3 {
			t.Errorf("only %d by %s", carriers[c], c)
		}
	}
}

func TestLoadRefuses(t *testing.T) {
	t.Parallel()
	const good = "carrier: file\nat: a.md\ncalls: [{tool: bash, args: {command: x}, standard: ask, locked: deny}]\n"
	for name, text := range map[string]string{
		"no carrier":      strings.Replace(good, "carrier: file", "carrier: pigeon", 1),
		"no place":        strings.Replace(good, "at: a.md", "at: ''", 1),
		"no calls":        "carrier: file\nat: a.md\n",
		"no tool":         strings.Replace(good, "tool: bash", "tool: ''", 1),
		"shell may run":   strings.Replace(good, "standard: ask", "standard: allow", 1),
		"unknown fate":    strings.Replace(good, "standard: ask", "standard: maybe", 1),
		"asked in locked": strings.Replace(good, "locked: deny", "locked: ask", 1),
		"unknown key":     good + "note: x\n",
	} {
		dir := t.TempDir()
		for file, content := range map[string]string{"a.txt": "do it", "a.yaml": text} {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if cases, err := Load(dir); err == nil {
			t.Errorf("%s: %+v", name, cases)
		}
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(dir); err == nil {
		t.Error("a text without its calls was read")
	}
}
