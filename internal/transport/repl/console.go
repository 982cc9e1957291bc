package repl

import (
	"bufio"
	"context"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"chorus/internal/theme"
)

// Console is a person's terminal, or a pipe.
type Console struct {
	In       io.Reader
	Out, Err io.Writer
	// InTTY, OutTTY and ErrTTY say which of them are terminals.
	InTTY, OutTTY, ErrTTY bool
	// Theme is the name of the chosen theme, and Look its styles. In a theme without colours lines are not redrawn either.
	Theme string
	Look  theme.Theme
	// FewColors means that the terminal has sixteen.
	FewColors bool
	// Plain is for screen readers and terminals without cursor movement: line by line, no redrawing, no
	// frames. Approvals are answered with a line.
	Plain bool
	// Lines (may be nil) keeps the typed lines from one conversation to the next.
	Lines *Lines
	// Size returns the terminal's current width and height; nil means 80 by 24.
	Size func() (width, height int)
}

// Standard is the console of this process. It honours NO_COLOR and TERM=dumb.
func Standard() Console {
	c := Console{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr,
		InTTY:  term.IsTerminal(int(os.Stdin.Fd())),
		OutTTY: term.IsTerminal(int(os.Stdout.Fd())),
		ErrTTY: term.IsTerminal(int(os.Stderr.Fd())),
		Plain:  os.Getenv("TERM") == "dumb",

		FewColors: theme.FewColors(os.Getenv), Lines: NewLines(os.Stdin),
	}
	if c = c.WithTheme(theme.Auto); NoColor(os.Getenv) || c.Plain {
		c = c.WithTheme(theme.None)
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

// Lines are typed lines that one conversation after another reads.
type Lines struct{ lines }

// NewLines reads lines from in.
func NewLines(in io.Reader) *Lines { return &Lines{lines{in: in, kept: true}} }

// lines returns the line reader of this console.
func (c Console) lines() *lines {
	if c.Lines != nil {
		return &c.Lines.lines
	}
	return &lines{in: c.In}
}

// CanAsk reports whether an approval would be seen and could be answered.
func (c Console) CanAsk() bool { return c.InTTY && c.ErrTTY }

// Interactive reports whether a chat window can be drawn.
func (c Console) Interactive() bool { return c.InTTY && c.OutTTY && !c.Plain }

// Asks reports whether a chat can ask questions here, in a window or line by line.
func (c Console) Asks() bool { return c.Interactive() || c.Plain && c.CanAsk() }

// InPlain is the console in plain mode.
func (c Console) InPlain() Console {
	c.Plain = true
	return c.WithTheme(theme.None)
}

// NoColor reports whether the environment asks for no colours (https://no-color.org).
func NoColor(env func(string) string) bool { return env("NO_COLOR") != "" }

func (c Console) size() (width, height int) {
	width, height = 80, 24
	if c.Size != nil {
		width, height = c.Size()
	}
	return max(width, 10), max(height, 4)
}

// Width is the terminal's width in columns.
func (c Console) Width() int {
	w, _ := c.size()
	return w
}

// room is the maximum width of lines. The last column stays free, since writing there
// makes some terminals wrap and some not.
func (c Console) room() int {
	w, _ := c.size()
	return w - 1
}

// cardRoom is the maximum width of an approval's lines. For a screen reader a command stays one line, which the terminal wraps:
// it would read out our line break in the middle of a word.
func (c Console) cardRoom() int {
	if c.Plain {
		return 1 << 16
	}
	return c.room()
}

// lines reads a console's input line by line, starting at the first call of next.
// Its goroutine ends with the input, or with ctx at the next line, because a read from a
// terminal cannot be cancelled.
type lines struct {
	in   io.Reader
	ch   chan string
	kept bool // shared with the next conversation: the end of a context must not lose a line
}

func (l *lines) next(ctx context.Context) <-chan string {
	if l.ch == nil {
		l.ch = make(chan string)
		if l.kept {
			ctx = context.WithoutCancel(ctx)
		}
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

// errLook is the look of standard error, where progress goes.
func (c Console) errLook() theme.Theme {
	if !c.ErrTTY {
		return theme.Theme{}
	}
	return c.Look
}

// OutLook is the look of standard output.
func (c Console) OutLook() theme.Theme {
	if !c.OutTTY {
		return theme.Theme{}
	}
	return c.Look
}

// WithTheme is the console with another theme.
func (c Console) WithTheme(name string) Console {
	c.Theme, c.Look = name, theme.Of(name, theme.Unknown, c.FewColors)
	return c
}
