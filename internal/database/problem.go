package database

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// The kinds of database problems. Errors of this package match them with errors.Is.
var (
	ErrDamaged = errors.New("the database is damaged")
	ErrForeign = errors.New("not a Chorus database")
	ErrNewer   = errors.New("the database was made by a newer chorus")
	ErrDenied  = errors.New("the database cannot be opened for writing")
	ErrFull    = errors.New("the disk is full")
	ErrDisk    = errors.New("the disk cannot be read or written")
	ErrBusy    = errors.New("the database is busy")
	// ErrAway means that the database server cannot be reached.
	ErrAway   = errors.New("the database is away")
	ErrClosed = errors.New("the store is closed")
	// ErrMissing means that there was a database and now there is none.
	ErrMissing = errors.New("the database is gone")
	// ErrRewound means that the database is an older state of itself, or a different one.
	ErrRewound = errors.New("the database is not as it was left")
	// ErrReplaced means that an open file was removed, replaced or truncated.
	ErrReplaced = errors.New("the database was removed or replaced while it is in use")
	// ErrBlob means that the bytes of one blob have changed; the database itself is fine.
	ErrBlob = errors.New("kept bytes are damaged")
)

// Problem is an error of the file rather than of the request. Its text tells people what to do.
type Problem struct {
	What  error // one of the Err values above
	Path  string
	Cause error
}

// Error says what is wrong, where, and what helps.
func (p *Problem) Error() string {
	var say string
	if IsPostgres(p.Path) {
		return p.server()
	}
	if strings.Contains(p.Path, "://") && p.What != ErrBlob {
		return p.storage()
	}
	switch p.What {
	case ErrDamaged:
		say = fmt.Sprintf("%s is damaged: stop chorus, then `chorus restore FILE` puts a backup in its place, or `chorus doctor --fix` saves what can be read", p.Path)
	case ErrForeign:
		say = fmt.Sprintf("%s is not a Chorus database: move it away, or use another CHORUS_HOME", p.Path)
	case ErrNewer:
		say = fmt.Sprintf("%s was made by a newer chorus: upgrade chorus, or use another CHORUS_HOME", p.Path)
	case ErrDenied:
		say = fmt.Sprintf("%s cannot be opened for writing: check its owner and permissions, or use another CHORUS_HOME", p.Path)
	case ErrFull:
		say = fmt.Sprintf("the disk is full: there is no space left for %s; free some and try again, nothing was lost", p.Path)
	case ErrDisk:
		say = fmt.Sprintf("%s cannot be read or written: check the disk (dmesg, df -h), then try again", p.Path)
	case ErrBusy:
		say = fmt.Sprintf("%s has been locked by another process for too long: find out which chorus is still running, then try again", p.Path)
	case ErrMissing:
		say = fmt.Sprintf("%s is gone, and no empty database is made in its place: put it back, or `chorus restore FILE` from a backup, or start over with `chorus doctor --fix`, which keeps what is left", p.Path)
	case ErrRewound:
		say = fmt.Sprintf("%s is not as it was left, so nothing continues automatically: put the newest one back, or accept this one with `chorus doctor --fix`", p.Path)
	case ErrReplaced:
		say = fmt.Sprintf("%s was removed or replaced while it is in use, so nothing more is written: put it back, or stop chorus and `chorus restore FILE`", p.Path)
	case ErrBlob:
		say = fmt.Sprintf("%s does not have its original content: restore it from a backup", p.Path)
	default:
		say = fmt.Sprintf("%s: %v", p.Path, p.What)
	}
	if p.Cause != nil && resultCode(p.Cause) == 0 { // the driver's error number means nothing to people
		say += fmt.Sprintf(" (%v)", p.Cause)
	}
	return say
}

// server is Error for a database on a server.
func (p *Problem) server() string {
	say, ok := map[error]string{
		ErrDamaged: "is damaged: look at the server's log, and restore it from a backup of the server",
		ErrForeign: "contains other tables: give Chorus a database of its own in databaseUrl",
		ErrNewer:   "was made by a newer chorus: upgrade chorus on this node",
		ErrDenied:  "cannot be written: check user, password and rights in databaseUrl, and that the server is no standby",
		ErrFull:    "is on a disk that is full: free some space on the server and try again, nothing was lost",
		ErrDisk:    "cannot be read or written: check the server's log and its disk, then try again",
		ErrBusy:    "has been locked by others for too long: see pg_stat_activity on the server, then try again",
		ErrAway:    "cannot be reached: check that the server runs and that databaseUrl is right, then try again; nothing that was acknowledged is lost",
		ErrMissing: "does not exist: create it (createdb), or check its name in databaseUrl",
	}[p.What]
	if !ok {
		say = p.What.Error()
	}
	say = p.Path + " " + say
	if p.Cause != nil {
		say += " (" + strings.Join(strings.Fields(p.Cause.Error()), " ") + ")"
	}
	return say
}

// storage is Error for the storage of attachments outside of the
// database. The cause says where it is and what helps.
func (p *Problem) storage() string {
	return fmt.Sprintf("attachments and long results cannot be read or written: %v; nothing that was acknowledged is lost", p.Cause)
}

// Unwrap returns the kind and the cause.
func (p *Problem) Unwrap() []error {
	if p.Cause == nil {
		return []error{p.What}
	}
	return []error{p.What, p.Cause}
}

// Explain turns a driver's error into a Problem if the file is to
// blame. It returns every other error unchanged.
func Explain(path string, err error) error {
	var known *Problem
	if err == nil || errors.As(err, &known) {
		return err
	}
	what := problemOf(err)
	if what == nil {
		return err
	}
	if what == ErrDisk || what == ErrDenied {
		// SQLite does not always say why the disk refused, especially when it enlarges the file
		// that processes share. Writing a small file next to it finds out.
		if cause := tryToWrite(filepath.Dir(path)); cause != nil && problemOf(cause) != nil {
			what = problemOf(cause)
		}
	}
	return &Problem{What: what, Path: path, Cause: err}
}

// tryToWrite writes and removes a file in a folder. The error says why that is not possible.
func tryToWrite(dir string) error {
	f, err := os.CreateTemp(dir, ".probe-*")
	if err != nil {
		return err
	}
	_, err = f.Write(make([]byte, probeSize))
	return errors.Join(err, f.Close(), os.Remove(f.Name()))
}

// probeSize is what SQLite allocates at once for the file that processes share, plus a few pages.
const probeSize = 64 << 10

func problemOf(err error) error {
	switch resultCode(err) & 0xff {
	case codeCorrupt:
		return ErrDamaged
	case codeNotADB:
		return ErrForeign
	case codeFull:
		return ErrFull
	case codeBusy, codeLocked:
		return ErrBusy
	case codeCantOpen, codeReadOnly, codePerm:
		return ErrDenied
	case codeIO:
		return ErrDisk
	}
	switch {
	case errors.Is(err, os.ErrPermission):
		return ErrDenied
	case isNoSpace(err):
		return ErrFull
	}
	return nil
}
