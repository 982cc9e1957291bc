package repl

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// discardTyped drops input typed before an approval was visible: it cannot be
// the answer.
func discardTyped(in io.Reader) {
	if f, ok := in.(*os.File); ok {
		_ = unix.IoctlSetInt(int(f.Fd()), unix.TCFLSH, unix.TCIFLUSH) // not a terminal: nothing was typed
	}
}
