package owner_test

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"chorus/internal/owner"
	"chorus/internal/owner/ownertest"
)

func TestFiles(t *testing.T) {
	t.Parallel()
	ownertest.Run(t, func(t *testing.T) (first, second owner.Owner, who string) {
		files := owner.Files{Dir: filepath.Join(t.TempDir(), "locks")}
		return files, files, "process " + strconv.Itoa(os.Getpid())
	})
}

// Two versions of the program on one home keep each other out only while both lock the same files.
func TestFilesKeepTheirNames(t *testing.T) {
	t.Parallel()
	files := owner.Files{Dir: t.TempDir()}
	for name, file := range map[owner.Name]string{
		owner.Thread("cli:local:main:default"): "607175156e872d5a098bba5edff8d2f7.lock",
		owner.Bot("discord", "helper"):         "discord-helper.lock",
		owner.Hooks:                            "hooks",
		owner.Work:                             "work",
	} {
		held, err := files.Take(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(filepath.Join(files.Dir, file)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		held.Release()
	}
}

// Whoever lists threads sees which of them somebody has, without taking them.
func TestFilesHeld(t *testing.T) {
	t.Parallel()
	files := owner.Files{Dir: t.TempDir()}
	name := owner.Thread("cli:local:main:default")
	if files.Held(name) {
		t.Error("held before anybody took it")
	}
	held, err := files.Take(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	if !files.Held(name) {
		t.Error("taken, and not held")
	}
	held.Release()
	if files.Held(name) {
		t.Error("held after it was released")
	}
}
