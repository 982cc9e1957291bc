//go:build linux

package bwrap_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"chorus/internal/sandbox"
)

// A folder that somebody may work in is that folder: a link that takes its name is not shown, also when it does so in the
// moment before bubblewrap mounts it.
func TestAnotherFolderIsRefused(t *testing.T) {
	t.Parallel()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	work, aside, outside, now := filepath.Join(base, "work"), filepath.Join(base, "aside"), filepath.Join(base, "outside"), filepath.Join(base, "now")
	for _, dir := range []string{work, outside} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for path, text := range map[string]string{filepath.Join(outside, "secret"): "secret\n", now: ""} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	opts := options(t)
	real, err := exec.LookPath("bwrap")
	if err != nil {
		t.Skip("!!! the sandbox is NOT TESTED here: there is no bubblewrap")
	}
	// One of those that mount by path: it tells of no --bind-fd.
	opts.Program = filepath.Join(base, "bwrap")
	script := fmt.Sprintf("#!/bin/sh\n[ \"$1\" = --help ] && exit\n[ -e %[1]s ] || { /bin/mv %[2]s %[3]s; /bin/ln -s %[4]s %[2]s; : >%[1]s; }\nexec %[5]s \"$@\"\n", now, work, aside, outside, real)
	if err := os.WriteFile(opts.Program, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	ex := with(t, opts)
	info, err := os.Stat(work)
	if err != nil {
		t.Fatal(err)
	}
	command := sandbox.Command{Shell: "cat secret", Dir: work, Folder: sandbox.FolderID(info)}
	if res, err := ex.Run(t.Context(), command); err != nil || res.ExitCode != 1 {
		t.Fatal(res, err)
	}
	// Just before it is mounted, by a bubblewrap of its own: with another network.
	for _, folder := range []string{command.Folder, ""} {
		if err := os.Remove(now); err != nil {
			t.Fatal(err)
		}
		late := command
		late.Folder, late.Network = folder, &sandbox.Network{Open: true}
		res, failed := ex.Run(t.Context(), late)
		if failed == nil {
			t.Errorf("the folder %q: %+v, %v", folder, res, failed)
		}
		if info, err := os.Lstat(work); err != nil || info.Mode()&os.ModeSymlink == 0 {
			t.Fatal("it was not replaced", err, failed)
		}
		// And at leisure.
		if folder != "" {
			if res, err := ex.Run(t.Context(), command); err == nil || !strings.Contains(err.Error(), "another folder has taken its place") {
				t.Errorf("%+v, %v", res, err)
			}
		}
		if err := os.Remove(work); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(aside, work); err != nil {
			t.Fatal(err)
		}
	}
	if res, err := ex.Run(t.Context(), command); err != nil || res.ExitCode != 1 {
		t.Error(res, err)
	}
}
