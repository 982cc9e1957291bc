// Package clipboard reads the picture in the desktop's clipboard, which terminals do not pass on. Each kind of
// desktop has a program for that.
package clipboard

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"time"
)

const (
	// readTime limits the time of a program; one that waits for another program's picture may wait for ever.
	readTime = 10 * time.Second
	// maxImage is more than any model accepts.
	maxImage = 20 << 20
	// The start of a PNG, and how osascript prints one.
	pngBegin, appleBegin, appleEnd = "\x89PNG\r\n\x1a\n", "«data PNGf", "»"
)

var (
	errNone   = errors.New("there is no picture in the clipboard")
	errTooBig = errors.New("the picture in the clipboard is too large")
)

// Image returns the picture in the clipboard as PNG.
func Image(ctx context.Context) ([]byte, error) {
	return image(ctx, runtime.GOOS, os.Getenv)
}

func image(ctx context.Context, system string, getenv func(string) string) ([]byte, error) {
	command, advice := reader(system, getenv)
	if len(command) == 0 {
		return nil, errors.New(advice)
	}
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	out := &limited{most: 2 * maxImage} // osascript prints two letters per byte
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Stdout, cmd.WaitDelay = out, time.Second
	err := cmd.Run()
	var ended *exec.ExitError
	switch {
	case out.over:
		return nil, errTooBig
	case errors.Is(err, exec.ErrNotFound):
		return nil, fmt.Errorf("%s is needed to read the clipboard: %s", command[0], advice)
	case ctx.Err() != nil:
		return nil, fmt.Errorf("%s did not answer", command[0])
	case errors.As(err, &ended):
		return nil, errNone // the programs exit like this if the clipboard holds something else, or nothing
	case err != nil:
		return nil, err
	}
	return asPNG(out.data)
}

// reader returns the program that prints the picture in the clipboard, and advice if it is missing.
func reader(system string, getenv func(string) string) (command []string, advice string) {
	switch {
	case system == "darwin":
		return []string{"osascript", "-e", "the clipboard as «class PNGf»"}, "it is part of macOS"
	case getenv("WAYLAND_DISPLAY") != "":
		return []string{"wl-paste", "--no-newline", "--type", "image/png"}, "install wl-clipboard, or name a file: /attach PATH"
	case getenv("DISPLAY") != "":
		return []string{"xclip", "-selection", "clipboard", "-target", "image/png", "-out"}, "install xclip, or name a file: /attach PATH"
	}
	return nil, "there is no desktop clipboard here; name a file: /attach PATH"
}

// asPNG decodes the output of the programs.
func asPNG(printed []byte) ([]byte, error) {
	if letters, ok := bytes.CutPrefix(printed, []byte(appleBegin)); ok {
		data, err := hex.DecodeString(strings.TrimSuffix(strings.TrimSpace(string(letters)), appleEnd))
		if err != nil {
			return nil, fmt.Errorf("the picture in the clipboard cannot be read: %w", err)
		}
		printed = data
	}
	switch {
	case !bytes.HasPrefix(printed, []byte(pngBegin)):
		return nil, errNone
	case len(printed) > maxImage:
		return nil, errTooBig
	}
	return printed, nil
}

// limited keeps a limited number of bytes and refuses more.
type limited struct {
	data []byte
	most int
	over bool
}

// Write implements io.Writer.
func (l *limited) Write(p []byte) (int, error) {
	if len(l.data)+len(p) > l.most {
		l.over = true
		return 0, errTooBig
	}
	l.data = append(l.data, p...)
	return len(p), nil
}
