package store

import (
	"errors"
	"fmt"
	"os"
)

// What can be wrong with a store. Errors of this package match them with errors.Is.
var (
	ErrDamaged = errors.New("the database is damaged")
	ErrForeign = errors.New("not a Chorus database")
	ErrNewer   = errors.New("the database was made by a newer chorus")
	ErrDenied  = errors.New("the database cannot be opened for writing")
	ErrFull    = errors.New("the disk is full")
	ErrBusy    = errors.New("the database is busy")
	ErrClosed  = errors.New("the store is closed")
)

// Problem is an error of the file rather than of the request: a sentence for
// people that says what to do.
type Problem struct {
	What  error // one of the Err values above
	Path  string
	Cause error
}

// Error says what is wrong, where, and what helps.
func (p *Problem) Error() string {
	var say string
	switch p.What {
	case ErrDamaged:
		say = fmt.Sprintf("%s is damaged: move it away or restore a backup", p.Path)
	case ErrForeign:
		say = fmt.Sprintf("%s is not a Chorus database: move it away, or use another CHORUS_HOME", p.Path)
	case ErrNewer:
		say = fmt.Sprintf("%s was made by a newer chorus: upgrade chorus, or use another CHORUS_HOME", p.Path)
	case ErrDenied:
		say = fmt.Sprintf("%s cannot be opened for writing: check its owner and permissions, or use another CHORUS_HOME", p.Path)
	case ErrFull:
		say = fmt.Sprintf("no space left for %s: free some disk space and try again; nothing was lost", p.Path)
	case ErrBusy:
		say = fmt.Sprintf("%s is held by another process for too long: see which chorus still runs, then try again", p.Path)
	default:
		say = fmt.Sprintf("%s: %v", p.Path, p.What)
	}
	if p.Cause != nil {
		say += fmt.Sprintf(" (%v)", p.Cause)
	}
	return say
}

// Unwrap gives the kind and the cause.
func (p *Problem) Unwrap() []error {
	if p.Cause == nil {
		return []error{p.What}
	}
	return []error{p.What, p.Cause}
}

// explain turns a driver's error into a Problem if the file is to blame, and
// leaves every other error alone.
func explain(path string, err error) error {
	var known *Problem
	if err == nil || errors.As(err, &known) {
		return err
	}
	what := problemOf(err)
	if what == nil {
		return err
	}
	return &Problem{What: what, Path: path, Cause: err}
}

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
	}
	switch {
	case errors.Is(err, os.ErrPermission):
		return ErrDenied
	case isNoSpace(err):
		return ErrFull
	}
	return nil
}
