package checks

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestKeptHomes(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	for name, size := range map[string]int64{"walls/a/one/home/.cache/x": 3000, "walls/a/one/gitconfig": 10, "walls/b/two/home/y": 500} {
		path := filepath.Join(base, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, make([]byte, size), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/usr", filepath.Join(base, "walls/b/two/home/usr")); err != nil {
		t.Fatal(err)
	}
	homes, err := filepath.Glob(filepath.Join(base, "walls", "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	w := weighHomes(t.Context(), homes, 100)
	if w.homes != 2 || w.bytes != 3510 || w.most != 3010 || !strings.HasSuffix(w.largest, "a/one") || w.cut {
		t.Errorf("%+v", w)
	}
	if w := weighHomes(t.Context(), homes, 3); !w.cut || w.bytes > 3510 {
		t.Errorf("more than is counted: %+v", w)
	}
	if got := judgeHomes(w, 4000); len(got) != 1 || got[0].Fix != "" {
		t.Errorf("%+v", got)
	}
	if got := judgeHomes(w, 3000); len(got) != 1 || !strings.Contains(got[0].Fix, "rm -r "+Quoted(w.largest)) || !strings.Contains(got[0].Detail, "2 homes") {
		t.Errorf("%+v", got)
	}
	if got := judgeHomes(weighed{}, 0); got != nil {
		t.Errorf("no home: %+v", got)
	}
}
