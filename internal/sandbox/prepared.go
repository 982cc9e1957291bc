package sandbox

import "os"

// Prepared is a program that is ready to be started in a sandbox by somebody who talks to it
// over its standard streams for as long as it lives. A Command, in contrast, runs to its end.
type Prepared struct {
	Argv  []string
	Env   []string
	Files []*os.File // the child's from descriptor 3 on; Release closes them
	// Started must be called once, when the child runs; until then it waits. When it fails
	// the child must be killed.
	Started func(pid int) error
	// Release frees everything else. It must be called when the child has ended, or when it
	// was not started; a second call does nothing.
	Release func()
}
