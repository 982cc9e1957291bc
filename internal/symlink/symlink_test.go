package symlink

import (
	"path/filepath"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestStaysInside(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, target string
		want         bool
	}{
		{"x", "d/x", true},
		{"x", "./x", true},
		{"d/in", "../SKILL.md", true},
		{"a/b/c", "../../x", true},
		{"a/b/c", ".././../x", true},
		{"a/b/c", "../../../x", false},
		{"up", "../other", false},
		{"up", "..", false},
		{"d/up", "..", true},
		{"d/l2", "l1/../x", false}, // l1 may lead upwards itself
		{"x", "", false},
		{"x", "/etc/passwd", false},
		{"x", `..\other`, false}, // other systems part names there
		{"x", "a\x00/../..", false},
	} {
		if got := StaysInside(c.name, c.target); got != c.want {
			t.Errorf("%q to %q: %t", c.name, c.target, got)
		}
	}
}

// As long as nothing on the way is a link, what stays inside is below the folder.
func TestStaysInsideByArithmetic(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		part := rapid.SampledFrom([]string{"a", "b", "..", ".", "", `\`, "\x00"})
		name := strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b"}), 1, 4).Draw(t, "name"), "/")
		target := strings.Join(rapid.SliceOfN(part, 0, 6).Draw(t, "target"), "/")
		if !StaysInside(name, target) {
			return
		}
		if at := filepath.Join(filepath.Dir(name), target); !filepath.IsLocal(at) {
			t.Fatalf("%q to %q leads to %q", name, target, at)
		}
	})
}
