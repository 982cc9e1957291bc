package sandbox

import "os"

// Prepared is a program that is ready to be started in a sandbox by somebody who talks to it
// over its standard streams for as long as it lives. A Command, in contrast, runs to its end.
type Prepared struct {
	// Start starts it with these streams, which stay the caller's. It may be called once.
	Start func(in, out, errs *os.File) (Program, error)
	// Release frees everything else. It must be called when the program has ended, or when it
	// was not started; a second call does nothing.
	Release func()
}

// Program is a program that was started.
type Program interface {
	Wait() (code int, err error) // in the shell's convention; everything it started is gone then
	Kill()                       // ends it with everything it started
}
