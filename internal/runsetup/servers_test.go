package runsetup

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// What a server of a person's own configuration needs of the machine is shown: its script with the project around it,
// packages above, what a link leads to. Nothing of the workspace is shown twice.
func TestShows(t *testing.T) {
	t.Parallel()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"work/a.js", "apps/one/package.json", "apps/one/dist/main.js", "apps/node_modules/x/index.js", "npm/node_modules/@m/server/dist/index.js", "npm/node_modules/@m/server/package.json",
		"venv/pyvenv.cfg", "venv/bin/python", "alone/server.py", "data/x"} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(dir, "npm/node_modules/.bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../@m/server/dist/index.js", filepath.Join(dir, "npm/node_modules/.bin/server")); err != nil {
		t.Fatal(err)
	}
	work := filepath.Join(dir, "work")
	for _, tt := range []struct {
		argv, want []string
	}{
		{[]string{"node", "a.js"}, nil},
		{[]string{"node", dir + "/work/a.js"}, nil},
		{[]string{"node", dir + "/apps/one/dist/main.js"}, []string{"apps/one", "apps/node_modules", "apps/one/dist/main.js"}},
		{[]string{"node", "../apps/one/dist/main.js"}, []string{"apps/one", "apps/node_modules", "apps/one/dist/main.js"}},
		{[]string{dir + "/npm/node_modules/.bin/server"}, []string{"npm/node_modules", "npm/node_modules/@m/server/dist/index.js"}},
		{[]string{dir + "/venv/bin/python", "--root=" + dir + "/data"}, []string{"venv", "venv/bin/python", "data"}},
		{[]string{"python3", dir + "/alone/server.py", "--not-there=/nowhere/x"}, []string{"alone", "alone/server.py"}},
	} {
		var got []string
		for _, path := range shows(work, work, tt.argv) {
			name, err := filepath.Rel(dir, path)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, name)
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%q: %q", tt.argv, got)
		}
	}
}
