package sandbox

import "os"

// Prepared is a program that is ready to start in a sandbox. Whoever starts it uses its standard
// streams for as long as it lives. A Command, in contrast, runs to its end.
type Prepared struct {
	// Start starts the program with these streams, which the caller keeps. It may be called once.
	Start func(in, out, errs *os.File) (Program, error)
	// Release frees everything else. It must be called when the program has
	// ended or was never started. A second call does nothing.
	Release func()
}

// Program is a program that was started.
type Program interface {
	Wait() (code int, err error) // the code is in the shell's convention; everything the program started has ended then
	Kill()                       // ends the program with everything it started
}
