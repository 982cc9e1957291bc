// Package clipboard reads the picture that is in the clipboard of the desktop, which a terminal does not hand over by itself. Each kind of
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
	// readTime is how long a program may take; one that waits for another program's picture may wait for ever.
	readTime = 10 * time.Second
	// maxImage is more than any model takes.
	maxImage = 20 << 20
	// How a PNG begins, and how osascript writes one.
	pngBegin, appleBegin, appleEnd = "\x89PNG\r\n\x1a\n", "«data PNGf", "»"
)

var (
	errNone   = errors.New("there is no picture in the clipboard")
	errTooBig = errors.New("the picture in the clipboard is too large")
)

// Image is the image in the clipboard, as PNG.
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
	out := &limited{most: 2 * maxImage} // osascript writes two letters for each byte
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
		return nil, errNone // they end so where the clipboard has something else, or nothing
	case err != nil:
		return nil, err
	}
	return asPNG(out.data)
}

// reader is the program that prints the picture in the clipboard, and what to do where it is not there.
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

// asPNG is a picture as the programs print it.
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

// limited keeps so many bytes, and refuses more.
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
