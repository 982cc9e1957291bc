package skill

import (
	"errors"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

func mkfifo(path string) error { return syscall.Mkfifo(path, 0o600) }

func errorsOf(errs ...error) error { return errors.Join(errs...) }

// A pipe in place of the folder of skills, which a command can leave in its workspace, is no folder and is not waited for.
func TestPipeInPlaceOfTheFolder(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "skills")
	if err := mkfifo(dir); err != nil {
		t.Fatal(err)
	}
	var finder Finder
	if list, problems := finder.Find([]Source{{Scope: Global, Dir: dir}}, time.Now()); len(list)+len(problems) > 0 {
		t.Errorf("%v, %q", list, problems)
	}
}
