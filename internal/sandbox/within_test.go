package sandbox

import "testing"

func TestWithin(t *testing.T) {
	for _, c := range []struct {
		path, root string
		want       bool
	}{
		{"/a/b", "/a/b", true}, {"/a/b/c", "/a/b", true}, {"/a/b/c/d", "/a/b", true}, {"/a/b", "/", true}, {"/", "/", true},
		{"/a", "/a/b", false}, {"/a/bc", "/a/b", false}, {"/a/c/d", "/a/b", false}, {"/", "/a", false}, {"", "/a", false},
	} {
		if got := Within(c.path, c.root); got != c.want {
			t.Errorf("%q in %q: %v", c.path, c.root, got)
		}
	}
	if n := testing.AllocsPerRun(100, func() { _ = Within("/a/long/path/to/some/file", "/a/long/path/to/some") }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
