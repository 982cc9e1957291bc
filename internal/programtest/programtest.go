// Package programtest writes, in tests, the programs that they start afterwards.
//
// It promises that a program written by it can be started at once. Written in the plain way
// it sometimes cannot: whatever another test starts in that moment has a copy of the open
// file until a little after its own program has begun, and Linux refuses to run a file that
// somebody could still write to ("text file busy").
package programtest

import (
	"os"
	"syscall"
	"testing"
)

// Write puts a program there, for its owner to run.
func Write(t testing.TB, path, text string) {
	t.Helper()
	if err := write(path, text); err != nil {
		t.Fatal(err)
	}
}

// write lets nothing be started while the file is open.
func write(path, text string) error {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	return os.WriteFile(path, []byte(text), 0o700)
}
