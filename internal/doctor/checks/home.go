package checks

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"chorus/internal/datadir"
	"chorus/internal/doctor"
)

// Below littleSpace, there may be no room for a long conversation; below
// noSpace, there may be none for the next commit.
const (
	littleSpace = 1 << 30
	noSpace     = 50 << 20
)

// accessWrite and accessEnter are W_OK and X_OK of access(2).
const (
	accessWrite = 2
	accessEnter = 1
)

func (p *checker) homeFolder(context.Context) []doctor.Finding {
	if p.lost != nil {
		return []doctor.Finding{doctor.Bad("folder", "export CHORUS_HOME=/a/folder/that/may/be/used", "%v", p.lost)}
	}
	dir := p.app.Home.Dir()
	if !p.found().there {
		return append(futureHome(dir), rootUser(os.Geteuid())...)
	}
	out := append([]doctor.Finding{doctor.Good("folder", "%s", dir)}, rootUser(os.Geteuid())...)
	if _, err := datadir.Open(dir); err != nil { // it exists, so this creates nothing
		return []doctor.Finding{doctor.Bad("folder", homeFix(dir, err), "%v", err)}
	}
	if info, err := os.Stat(dir); err == nil {
		if mode := info.Mode().Perm(); mode&0o077 != 0 {
			out = append(out, doctor.Warning("permissions", "chmod 700 "+Quoted(dir), "%04o: other users of this machine can read it", mode))
		} else {
			out = append(out, doctor.Good("permissions", "%04o, only for you", mode))
		}
		if owner, ok := info.Sys().(*syscall.Stat_t); ok && int(owner.Uid) != os.Getuid() {
			out = append(out, doctor.Warning("owner", fmt.Sprintf("sudo chown -R %d %s   or run chorus as its owner", os.Getuid(), Quoted(dir)),
				"it belongs to user %d, and you are user %d: neither may be able to read what the other writes", owner.Uid, os.Getuid()))
		}
	}
	out = append(out, space(dir))
	return append(out, p.others()...)
}

// AsRoot says what it means that Chorus runs as root, and where to read how
// to avoid that. It returns "" for any other user.
func AsRoot(uid int) string {
	if uid != 0 {
		return ""
	}
	return "Chorus runs as root: without a sandbox agents can change everything on this machine; `chorus doctor` says how to give it its own user"
}

const rootFix = "give it its own user: useradd --system chorus, and User=chorus in the systemd unit (as in deploy/chorus.service)"

func rootUser(uid int) []doctor.Finding {
	if AsRoot(uid) == "" {
		return nil
	}
	return []doctor.Finding{doctor.Warning("user", rootFix, "it is root: whatever an agent writes or starts outside a sandbox has all rights on this machine")}
}

func homeFix(dir string, err error) string {
	if _, hidden := os.Stat(dir); hidden == nil && errors.Is(err, fs.ErrPermission) {
		return "chmod u+rwx " + Quoted(dir)
	}
	return "export CHORUS_HOME=/a/folder/that/may/be/used"
}

// futureHome checks whether the folder could be created, without creating it.
func futureHome(dir string) []doctor.Finding {
	above := dir
	for {
		above = filepath.Dir(above)
		info, err := os.Stat(above)
		if (errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)) && above != filepath.Dir(above) {
			continue
		}
		if err == nil && !info.IsDir() {
			err = syscall.ENOTDIR
		}
		if err == nil {
			err = syscall.Access(above, accessWrite|accessEnter)
		}
		if err != nil {
			return []doctor.Finding{doctor.Bad("folder", "export CHORUS_HOME=/a/folder/that/may/be/used",
				"%s is missing and cannot be created: %s: %v", dir, above, err)}
		}
		return []doctor.Finding{doctor.Good("folder", "%s will be created on first use", dir), space(above)}
	}
}

func space(dir string) doctor.Finding {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(dir, &fs); err != nil {
		return doctor.Noted("disk", "", "cannot tell how much is free: %v", err)
	}
	free := int64(fs.Bavail) * int64(fs.Bsize)
	fix := "df -h " + Quoted(dir) + "   and remove what is not needed"
	switch {
	case free < noSpace:
		return doctor.Bad("disk", fix, "only %s are free", bytesWords(free))
	case free < littleSpace:
		return doctor.Warning("disk", fix, "only %s are free", bytesWords(free))
	default:
		return doctor.Good("disk", "%s are free", bytesWords(free))
	}
}

// others finds the processes that have the database open, as far as we may see them.
func (p *checker) others() []doctor.Finding {
	who, told := p.users()
	switch {
	case !told:
		return nil
	case len(who) == 0:
		return []doctor.Finding{doctor.Good("in use", "by nobody else now")}
	default:
		return []doctor.Finding{doctor.Good("in use", "by %s", strings.Join(who, ", "))}
	}
}

// users returns those processes by name. told is false if the system does not say.
func (p *checker) users() (who []string, told bool) {
	found, err := filepath.Glob("/proc/[0-9]*/fd")
	if err != nil || len(found) == 0 {
		return nil, false
	}
	if p.databaseAt().OnServer() {
		return nil, false
	}
	folder, err := filepath.EvalSymlinks(filepath.Dir(p.databasePath()))
	if err != nil {
		return nil, false
	}
	db := filepath.Join(folder, filepath.Base(p.databasePath()))
	if whole, err := filepath.EvalSymlinks(db); err == nil {
		db = whole
	}
	locks, _ := os.ReadFile("/proc/locks")
	locking := lockers(string(locks), db+"-shm")
	for _, fds := range found {
		process := filepath.Dir(fds)
		if pid := filepath.Base(process); pid != strconv.Itoa(os.Getpid()) && (locking[pid] || holds(fds, db)) {
			name, _ := os.ReadFile(filepath.Join(process, "comm"))
			who = append(who, fmt.Sprintf("%s (process %s)", strings.TrimSpace(string(name)), pid))
		}
	}
	return who, true
}

// lockers returns the processes that hold a lock on a file, according to the text of /proc/locks. A
// process of ours hides its descriptors from everybody, but an open database is locked.
func lockers(text, file string) map[string]bool {
	var stat syscall.Stat_t
	if syscall.Stat(file, &stat) != nil {
		return nil
	}
	out := map[string]bool{}
	inode := ":" + strconv.FormatUint(stat.Ino, 10)
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) >= 6 && strings.HasSuffix(f[5], inode) {
			out[f[4]] = true
		}
	}
	return out
}

// holds reports whether a folder of /proc/PID/fd contains the file.
func holds(fds, file string) bool {
	entries, err := os.ReadDir(fds)
	if err != nil {
		return false // somebody else's
	}
	return slices.ContainsFunc(entries, func(e fs.DirEntry) bool {
		target, err := os.Readlink(filepath.Join(fds, e.Name()))
		return err == nil && (target == file || target == file+" (deleted)")
	})
}

// Locks finds who runs threads. It takes no lock for that: otherwise whoever
// wants the thread at that moment would find it locked.
func (p *checker) Locks(context.Context) []doctor.Finding {
	if home := p.found(); home.err != nil || !home.there {
		return nil
	}
	files, _ := filepath.Glob(filepath.Join(p.app.Home.Locks(), "*.lock"))
	var held, left []string
	for _, file := range files {
		data, err := os.ReadFile(file)
		pid, nerr := strconv.Atoi(strings.TrimSpace(string(data)))
		if err != nil || nerr != nil || pid <= 0 {
			continue // being taken or released
		}
		if err := syscall.Kill(pid, 0); err == nil || errors.Is(err, syscall.EPERM) {
			held = append(held, strconv.Itoa(pid))
		} else {
			left = append(left, strconv.Itoa(pid))
		}
	}
	out := []doctor.Finding{doctor.Good("locks", "no thread is running")}
	if len(held) > 0 {
		slices.Sort(held)
		out[0] = doctor.Good("locks", "%d running, by process %s", len(held), strings.Join(slices.Compact(held), ", "))
	}
	if len(left) > 0 {
		out = append(out, doctor.Noted("left locks", "", "%d of processes that have ended; whoever continues the thread takes the lock over", len(left)))
	}
	return out
}

// Quoted quotes a path for a shell.
func Quoted(path string) string {
	plain := strings.IndexFunc(path, func(r rune) bool {
		return !strings.ContainsRune("/._-+,@%", r) && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
	}) < 0
	if plain && path != "" {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}
