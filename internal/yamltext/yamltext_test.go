package yamltext_test

import (
	"strings"
	"testing"
	"time"

	"chorus/internal/yamltext"
)

type document struct {
	Name  string         `yaml:"name"`
	Steps []step         `yaml:"steps"`
	More  map[string]any `yaml:"more"`
}

type step struct {
	Run string `yaml:"run"`
}

func TestReadingAndWriting(t *testing.T) {
	var d document
	if err := yamltext.Read([]byte("name: a\nsteps:\n- run: 'b: c'\n"), &d); err != nil || d.Name != "a" || len(d.Steps) != 1 || d.Steps[0].Run != "b: c" {
		t.Fatalf("%+v, %v", d, err)
	}
	text, err := yamltext.Write(d.Steps)
	var again []step
	if err != nil || yamltext.Read(text, &again) != nil || len(again) != 1 || again[0] != d.Steps[0] {
		t.Errorf("written as %q, read as %+v, %v", text, again, err)
	}
}

func TestAnUnknownKeyIsAMistakeUnlessItIsLeftOut(t *testing.T) {
	text := []byte("name: a\nnmae: b\n")
	var d document
	err := yamltext.Read(text, &d)
	if err == nil || !strings.HasPrefix(err.Error(), yamltext.Reason(err)) || !strings.Contains(yamltext.Reason(err), "[2:1]") || !strings.Contains(err.Error(), "nmae: b") {
		t.Errorf("said: %v", err)
	}
	if err := yamltext.ReadKnown(text, &d); err != nil || d.Name != "a" {
		t.Errorf("%+v, %v", d, err)
	}
}

// Each of these made the library panic, or kept it busy for minutes.
func TestHostileTextsAreRefusedAtOnce(t *testing.T) {
	for name, text := range map[string]string{
		"a map with a tag in place of a list": "steps: ! {a: b}",
		"a tag and a remark":                  "name: x\nsteps:\n !0 #0",
		"brackets":                            "steps: " + strings.Repeat("[", 900_000),
		"lists of lists":                      strings.Repeat("- ", 500_000),
		"tags":                                "name: " + strings.Repeat("!a ", 300_000),
		"a long map in a line":                "more: {" + strings.Repeat("a: b,", 200_000) + "}",
		"a long list in a line":               "steps: [" + strings.Repeat("a,", 400_000) + "]",
		"spaces":                              "name:\n" + strings.Repeat(" ", 500_000) + "- a",
	} {
		t.Run(name, func(t *testing.T) {
			began := time.Now()
			var d document
			err := yamltext.Read([]byte(text), &d)
			if err == nil || len(err.Error()) > 1000 {
				t.Errorf("%+v, error %.1000v", d, err)
			}
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("it took %v", took)
			}
		})
	}
}

func TestAnchors(t *testing.T) {
	for text, want := range map[string]bool{"a: b": false, "a: &x b": true, "a: *x": true, `a: "*x &y"`: false} {
		if got := yamltext.HasAnchors(text); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, text := range []string{"name: a\nsteps:\n- run: b\n", "steps: ! {a: b}", "name: x\nsteps:\n !0 #0", "more: {a: [1, *b], c: &b 2}"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var d document
		if err := yamltext.Read(data, &d); err != nil && (err.Error() == "" || yamltext.Reason(err) == "") {
			t.Errorf("an error without words: %#v", err)
		}
	})
}
