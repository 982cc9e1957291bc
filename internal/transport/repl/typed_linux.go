package repl

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// discardTyped forgets what was typed before an approval was seen: it cannot be
// its answer.
func discardTyped(in io.Reader) {
	if f, ok := in.(*os.File); ok {
		_ = unix.IoctlSetInt(int(f.Fd()), unix.TCFLSH, unix.TCIFLUSH) // no terminal: nothing was typed
	}
}
