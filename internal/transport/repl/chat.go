package repl

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"

	"chorus/internal/await"
	"chorus/internal/markdown"
	"chorus/internal/notice"
	"chorus/internal/theme"
)

// ChatOptions say where a chat starts and where it is shown.
type ChatOptions struct {
	// Prompt, if set, is sent first. Draft is in the input, not sent.
	Prompt, Draft string
	// After is the number of the event to start after, and Head that of the last event.
	// The events between them are history, of which the last few messages are shown.
	// Both are 0 for a new conversation.
	After, Head int64
	// History is earlier input, oldest first, for the up key. Everywhere is what Ctrl-R searches
	// in addition. Remember (may be nil) is called with each new input.
	History, Everywhere []string
	Remember            func(input string) error
	// Editor is the command for Ctrl-G; "": there is none.
	Editor string
	// Clipboard returns the picture in the clipboard, for Ctrl-V and for /attach without a path; nil: it cannot be read.
	Clipboard func(ctx context.Context) ([]byte, error)
	// KeepTheme stores the chosen theme for the next time; nil: it lasts until the person leaves.
	KeepTheme func(ctx context.Context, name string) error
	// Hint (may be "") is for first-time users.
	Hint string
	// Pick starts with the choice of another session.
	Pick bool
	// Commands are further slash commands that the session answers.
	Commands []Command
	// Remarks are shown as they arrive; may be nil.
	Remarks <-chan notice.Notice
	Console Console
	// Interrupts receives on Ctrl-C if there is no window. If nil, Chat listens itself.
	Interrupts <-chan os.Signal
}

// Chat runs a conversation until the person leaves. Without a terminal it reads one
// prompt per line and denies what it would have to ask. The error *Resume names another
// session that the person wants.
func Chat(ctx context.Context, s Session, o ChatOptions) (exit int, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if !o.Console.Interactive() {
		return plainChat(ctx, s, o)
	}
	w := newWindow(ctx, s, o)
	words := w.greeting("Esc")
	if o.Pick { // the chosen session greets the person
		words = say("", pickWords, w.room())
	}
	if _, err := fmt.Fprintln(o.Console.Out, strings.Join(words, "\n")); err != nil {
		return ExitFailed, fmt.Errorf("write to the terminal: %w", err)
	}
	p := tea.NewProgram(w, tea.WithContext(ctx), tea.WithInput(o.Console.In), tea.WithOutput(o.Console.Out), tea.WithoutSignalHandler(),
		tea.WithEnvironment(environment()))
	var beside sync.WaitGroup
	beside.Go(func() { keepWatching(ctx, s, o.After, func(m tea.Msg) { p.Send(m) }) })
	beside.Go(func() { passOn(ctx, o.Remarks, func(r notice.Notice) { p.Send(r) }) })
	_, err = p.Run()
	cancel()
	beside.Wait()
	switch {
	case errors.Is(err, tea.ErrProgramPanic):
		return ExitFailed, fmt.Errorf("the window broke down: %w", err)
	case errors.Is(err, tea.ErrProgramKilled) || errors.Is(err, tea.ErrInterrupted):
		return ExitInterrupted, nil
	case err != nil:
		return ExitFailed, fmt.Errorf("draw the window: %w", err)
	}
	if w.resume != nil {
		w.resume.Theme, w.resume.Draft = w.themes.name, w.input.value()
		return w.exit, w.resume
	}
	return w.exit, nil
}

// environment is what the library may know of the terminal. We handle NO_COLOR ourselves: the library would remove colours even from somebody
// who has chosen a theme.
func environment() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "NO_COLOR=") })
}

// The waits before a broken watch is restarted.
const (
	firstRewatch = 500 * time.Millisecond
	lastRewatch  = 10 * time.Second
)

// keepWatching passes items on as messages until ctx ends. When the watch breaks it
// restarts it after the last event.
func keepWatching(ctx context.Context, s Session, after int64, send func(tea.Msg)) {
	wait := firstRewatch
	for {
		err := errors.New("the stream ended")
		for item, failed := range s.Watch(ctx, after) {
			if failed != nil {
				err = failed
				break
			}
			if item.Event != nil {
				after = item.Event.Seq
			}
			wait = firstRewatch
			send(itemMsg{item})
			if ctx.Err() != nil {
				return
			}
		}
		if ctx.Err() != nil {
			return
		}
		send(lostMsg{err})
		if !await.For(ctx, wait) {
			return
		}
		wait = min(2*wait, lastRewatch)
	}
}

// passOn passes remarks on until ctx ends.
func passOn(ctx context.Context, remarks <-chan notice.Notice, send func(notice.Notice)) {
	for {
		select {
		case r := <-remarks:
			send(r)
		case <-ctx.Done():
			return
		}
	}
}

// plainChat is the chat for pipes and tests: one prompt per line.
func plainChat(ctx context.Context, s Session, o ChatOptions) (exit int, err error) {
	if o.Interrupts == nil {
		ch := make(chan os.Signal, 2)
		signal.Notify(ch, os.Interrupt)
		defer signal.Stop(ch)
		o.Interrupts = ch
	}
	c := &plain{s: s, o: o, all: append(Commands(ctx, s), o.Commands...)}
	c.f = newFollower(s, o.Console, nil)
	asks := o.Console.Plain && o.Console.CanAsk()
	c.asks = asks
	c.f.interrupts, c.f.remarks, c.f.noAsking = o.Interrupts, o.Remarks, !asks
	input := o.Console.lines()
	c.f.input = input
	if asks {
		if c.late = newWindow(ctx, s, o).greeting("Ctrl-C"); !o.Pick {
			c.greet()
		}
	}
	defer c.f.lastRemarks()
	c.items = pump(ctx, s, max(o.After, o.Head))
	if asks {
		if leave, err := c.recall(ctx); leave || err != nil {
			return c.exit, err
		}
	}
	if o.Pick && asks && !c.offersFor(ctx, "resume", "") {
		c.f.printer.screen.print(o.Console.Out, noOthers)
	}
	if strings.TrimSpace(o.Prompt) != "" {
		if leave, err := c.words(ctx, o.Prompt); leave || err != nil {
			return c.exit, err
		}
	}
	var whole strings.Builder
	for {
		if asks {
			if c.open == nil {
				c.greet()
			}
			c.f.printer.screen.write(o.Console.Err, plainMark)
		}
		select {
		case line, ok := <-input.next(ctx):
			if more, isOpen := strings.CutSuffix(line, `\`); ok && isOpen {
				whole.WriteString(more + "\n")
				continue
			}
			whole.WriteString(line)
			text := whole.String()
			whole.Reset()
			if !ok {
				c.open = nil // the end of input chooses nothing
			}
			if leave, err := c.line(ctx, text); leave || err != nil || !ok {
				return c.exit, err
			}
		case r := <-o.Remarks:
			c.f.remark(r)
		case <-o.Interrupts:
			return ExitInterrupted, nil
		case <-ctx.Done():
			return ExitInterrupted, nil
		}
	}
}

// plainMark is the prompt for a line on a terminal without drawing.
const plainMark = "> "

type plain struct {
	s     Session
	o     ChatOptions
	all   []Command
	f     *follower
	items <-chan watched
	late  []string // the greeting, not printed yet: a chosen session greets instead
	asks  bool     // a person sits here
	open  *choice  // what the next line chooses; nil: nothing
	begun string   // text that precedes the next words: a chosen file
	exit  int
}

// greet prints the greeting once.
func (c *plain) greet() {
	c.f.printer.screen.print(c.o.Console.Err, c.late...)
	c.late = nil
}

// line handles one input and reports whether to leave.
func (c *plain) line(ctx context.Context, text string) (leave bool, err error) {
	if c.open != nil {
		return c.chosen(ctx, text)
	}
	if strings.TrimSpace(text) == "" {
		return false, nil
	}
	text, c.begun = c.begun+text, ""
	return c.words(ctx, text)
}

// words handles a message.
func (c *plain) words(ctx context.Context, text string) (leave bool, err error) {
	if c.o.Remember != nil {
		if err := c.o.Remember(text); err != nil {
			c.f.printer.fail(theme.Warn, "• ", err.Error())
		}
	}
	if name, args, ok := slash(text); ok {
		if sayer, may := maySay(c.s, name, args, c.all); !may || !sayer.Says(ctx, text) {
			return c.command(ctx, name, args)
		}
	}
	if c.asks && c.offersFile(ctx, text) {
		return false, nil
	}
	return c.send(ctx, text)
}

// send submits a prompt and shows what becomes of it.
func (c *plain) send(ctx context.Context, text string) (leave bool, err error) {
	receipt, err := c.s.Send(ctx, text)
	if err != nil {
		c.f.printer.fail(theme.Bad, "✗ ", "could not send it: "+err.Error())
		c.exit = ExitFailed
		return false, nil
	}
	if receipt.Refused != "" && receipt.Seq == 0 {
		c.f.printer.fail(theme.Bad, "✗ ", "not taken: "+receipt.Refused)
		c.exit = ExitFailed
		return false, nil
	}
	c.exit, err = c.f.follow(ctx, c.items, target{seq: receipt.Seq, place: receipt.Position})
	return c.f.left || ctx.Err() != nil, err
}

func (c *plain) command(ctx context.Context, name, args string) (leave bool, err error) {
	out := c.o.Console.Out
	print := func(lines ...string) { c.f.printer.screen.print(out, lines...) }
	switch {
	case name == "exit":
		return true, nil
	case name == "help":
		print(helpLines(c.all, false, c.o.Console.room())...)
	case name == "attach":
		answer, err := attach(ctx, c.s, c.o.Clipboard, "", args)
		if err != nil {
			c.f.printer.fail(theme.Bad, "✗ ", "could not attach it: "+err.Error())
			return false, nil
		}
		print(markdown.Clean(answer))
	case name == "stop" || name == "steer":
		print("nothing is running")
	case c.asks && c.offersFor(ctx, name, args):
	case name == "resume" && args != "" && !c.asks:
		c.f.printer.fail(theme.Warn, "• ", "without a terminal, choose the session at the start: chorus chat --session-id "+args)
	case !known(name, c.all):
		c.f.printer.fail(theme.Warn, "• ", unknownWords(name, c.all))
	default:
		line := strings.TrimSpace("/" + name + " " + args)
		answer, err := c.s.Command(ctx, line)
		var other *Resume
		if errors.As(err, &other) {
			return true, other
		}
		if err != nil {
			c.f.printer.fail(theme.Bad, "✗ ", err.Error())
			return false, nil
		}
		answer = c.f.printer.presenter.withContext(line, answer, c.s.Info().Window)
		if answer = strings.TrimRight(answer, "\n"); answer != "" {
			print(markdown.Clean(answer))
		}
	}
	return false, nil
}
