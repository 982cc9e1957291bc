package repl

import (
	"bufio"
	"context"
	"io"
	"os"
	"strings"

	"golang.org/x/term"
)

// Console is where a person sits, or a pipe.
type Console struct {
	In       io.Reader
	Out, Err io.Writer
	// InTTY, OutTTY and ErrTTY say which of them are terminals.
	InTTY, OutTTY, ErrTTY bool
	// Color allows escape codes. Without it lines are never redrawn either.
	Color bool
	// Plain is for screen readers and terminals that cannot move their cursor: words line by line, nothing drawn anew, no
	// frames. Questions are answered by a line.
	Plain bool
	// Size is the terminal's width and height now; nil means 80 by 24.
	Size func() (width, height int)
}

// Standard is the console of this process. NO_COLOR and TERM=dumb are honoured.
func Standard() Console {
	c := Console{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr,
		InTTY:  term.IsTerminal(int(os.Stdin.Fd())),
		OutTTY: term.IsTerminal(int(os.Stdout.Fd())),
		ErrTTY: term.IsTerminal(int(os.Stderr.Fd())),
		Color:  os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb",
		Plain:  os.Getenv("TERM") == "dumb",
	}
	c.Size = func() (int, int) {
		for _, f := range []*os.File{os.Stdout, os.Stderr, os.Stdin} {
			if w, h, err := term.GetSize(int(f.Fd())); err == nil && w > 0 && h > 0 {
				return w, h
			}
		}
		return 80, 24
	}
	return c
}

// CanAsk reports whether a question would be seen and could be answered.
func (c Console) CanAsk() bool { return c.InTTY && c.ErrTTY }

// Interactive reports whether a chat window can be drawn.
func (c Console) Interactive() bool { return c.InTTY && c.OutTTY && !c.Plain }

// Asks reports whether a chat can ask something here, in a window or line by line.
func (c Console) Asks() bool { return c.Interactive() || c.Plain && c.CanAsk() }

// InPlain is the console for words line by line.
func (c Console) InPlain() Console {
	c.Plain, c.Color = true, false
	return c
}

func (c Console) size() (width, height int) {
	width, height = 80, 24
	if c.Size != nil {
		width, height = c.Size()
	}
	return max(width, 10), max(height, 4)
}

// Width is how many columns the terminal has.
func (c Console) Width() int {
	w, _ := c.size()
	return w
}

// room is the width of lines: the last column stays free, since writing there
// makes some terminals wrap and some not.
func (c Console) room() int {
	w, _ := c.size()
	return w - 1
}

// lines reads a console's input line by line, begun with the first need of it.
// Its goroutine ends with the input, or with ctx at the next line: a read from a
// terminal cannot be called back.
type lines struct {
	in io.Reader
	ch chan string
}

func (l *lines) next(ctx context.Context) <-chan string {
	if l.ch == nil {
		l.ch = make(chan string)
		go l.read(ctx)
	}
	return l.ch
}

func (l *lines) read(ctx context.Context) {
	defer close(l.ch)
	in := bufio.NewReader(l.in)
	for {
		line, err := in.ReadString('\n')
		if line != "" {
			select {
			case l.ch <- strings.TrimRight(line, "\r\n"):
			case <-ctx.Done():
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// Colours by meaning; the sixteen that every terminal has.
const (
	faint  = "2"
	strong = "1"
	red    = "31"
	green  = "32"
	yellow = "33"
	cyan   = "36"
)

// tinted reports whether standard error, where progress goes, may have colours.
func (c Console) tinted() bool { return c.Color && c.ErrTTY }

// paint colours a text for standard error that holds no escapes of its own.
func (c Console) paint(code, s string) string { return ink(c.tinted(), code, s) }

func ink(color bool, code, s string) string {
	if !color || s == "" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}
