package bwrap

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"chorus/internal/sandbox"
)

// sameFolder refuses a command whose folder, as a process sees it, is not the one in which work was allowed.
// root is "" for this process. Another process may put a link in the folder's place at any moment.
func (a *attempt) sameFolder(root string) error {
	if a.command.Folder == "" {
		return nil
	}
	info, err := os.Stat(root + a.view.dir)
	if err != nil {
		return fmt.Errorf("start the command in %s: %w", a.command.Dir, err)
	}
	if sandbox.FolderID(info) != a.command.Folder {
		return fmt.Errorf("start the command in %s: another folder has taken its place since this run began; the next prompt works there, if that is allowed", a.command.Dir)
	}
	return nil
}

// mounted refuses a sandbox in which something else is mounted than what was checked. Without --bind-fd,
// bubblewrap mounts by path, and a concurrent command can put a symlink into its workspace in between. A file
// replaced at the very same path, as git replaces its settings, is accepted.
func (a *attempt) mounted(root string) error {
	last := map[string]mount{} // the final mount at each path
	for _, m := range a.view.mounts {
		last[m.dest] = m
	}
	for dest, m := range last {
		want, known := a.sources[m.source]
		if m.cover != noCover || m.fd > 0 || !known {
			continue
		}
		got, _, err := identify(root + dest)
		if err == nil && got == want {
			continue
		}
		if now, found := identifyPlain(m.source); err == nil && found && got == now {
			continue
		}
		return fmt.Errorf("put up the sandbox: %s was replaced meanwhile; try again", m.source)
	}
	return nil
}

// identifyPlain is identify for a path without any links in it.
func identifyPlain(path string) (fileID, bool) {
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS})
	if err != nil {
		return fileID{}, false
	}
	defer func() { _ = unix.Close(fd) }()
	var status unix.Statx_t
	err = unix.Statx(fd, "", unix.AT_EMPTY_PATH, unix.STATX_BASIC_STATS|unix.STATX_BTIME, &status)
	return idOf(status), err == nil
}
