package repl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"

	"chorus/internal/approval"
	"chorus/internal/chat"
	"chorus/internal/notice"
	"chorus/internal/theme"
)

// RunOptions say what Run does and where it shows it.
type RunOptions struct {
	// Prompt is the prompt. If empty, Run continues the active or suspended run, which
	// must exist.
	Prompt string
	// After is the number of the last event to skip. Without a prompt it is the event
	// before the run to continue.
	After int64
	// JSON, if set, writes each item to standard output, which then gets
	// nothing else; standard error gets only approvals and failures.
	JSON    func(io.Writer, Item) error
	Console Console
	// Interrupts receives on Ctrl-C. If nil, Run listens for the signal itself.
	Interrupts <-chan os.Signal
}

// Run sends one prompt, shows what happens and returns the outcome as an exit
// code. It has then printed what a person must know; an error means that the
// conversation itself could not be used.
func Run(ctx context.Context, s Session, o RunOptions) (exit int, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if o.Interrupts == nil {
		ch := make(chan os.Signal, 2)
		signal.Notify(ch, os.Interrupt)
		defer signal.Stop(ch)
		o.Interrupts = ch
	}
	after := o.After
	var aim target
	refused := ""
	if strings.TrimSpace(o.Prompt) != "" {
		receipt, err := s.Send(ctx, o.Prompt)
		if err != nil {
			return ExitFailed, fmt.Errorf("hand in the prompt: %w", err)
		}
		after = max(after, receipt.Seq-1)
		aim = target{seq: receipt.Seq, place: receipt.Position}
		refused = receipt.Refused
	}
	f := newFollower(s, o.Console, o.JSON)
	f.interrupts = o.Interrupts
	if refused != "" && aim.seq == 0 { // it is not in the journal
		f.printer.fail(theme.Bad, "✗ ", "not taken: "+refused)
		return ExitFailed, nil
	}
	f.input = &lines{in: o.Console.In}
	return f.follow(ctx, pump(ctx, s, after), aim)
}

// target is the run to follow: the one that takes the prompt seq or,
// without a prompt, the first one seen.
type target struct {
	seq   int64
	run   string
	place int
	held  *chat.Event // a RunStarted whose Took was not seen yet
}

// follower shows one run after another on a printer and asks for approvals.
type follower struct {
	s          Session
	con        Console
	json       func(io.Writer, Item) error
	presenter  *presenter
	printer    *printer
	interrupts <-chan os.Signal
	remarks    <-chan notice.Notice // may be nil
	input      *lines
	noAsking   bool // an approval is denied, and the run continues

	aim       target
	approvals []chat.ApprovalAsked
	open      *approval.Approval // the approval on the terminal
	offer     *approval.Always   // what always would allow, being decided
	form      *form              // asks for its values; nil: it has none
	own       map[string]bool    // approvals that were answered here: no news
	aborted   bool
	leaving   <-chan time.Time // fires if the run to be left stays silent
	left      bool             // without waiting for the run's end
	denied    bool
}

func newFollower(s Session, con Console, json func(io.Writer, Item) error) *follower {
	t := presenterOf(s)
	return &follower{
		s: s, con: con, json: json, presenter: t, printer: newPrinter(con, t, json != nil), own: map[string]bool{},
	}
}

// follow shows items until the run in question has ended.
func (f *follower) follow(ctx context.Context, items <-chan watched, aim target) (int, error) {
	f.aim, f.aborted, f.denied, f.leaving = aim, false, false, nil
	if aim.place > 0 {
		f.printer.note(theme.Faint, "• ", fmt.Sprintf("waiting, place %d in the queue", aim.place))
	}
	var ticks <-chan time.Time
	if f.printer.screen.live != nil {
		ticker := time.NewTicker(tick)
		defer ticker.Stop()
		ticks = ticker.C
	}
	defer f.printer.screen.clear()
	for {
		var typed <-chan string
		if f.open != nil {
			typed = f.input.next(ctx)
		}
		select {
		case w, ok := <-items:
			if exit, done, err := f.take(ctx, w, ok); done || err != nil {
				return exit, errors.Join(err, f.printer.screen.err)
			}
		case line, ok := <-typed:
			f.typed(ctx, line, ok)
		case r := <-f.remarks:
			f.remark(r)
		case <-ticks:
			if f.open == nil {
				f.printer.redraw()
			}
		case <-f.interrupts:
			if f.left = f.interrupt(ctx); f.left {
				return ExitInterrupted, nil
			}
		case <-f.leaving:
			f.printer.note(theme.Faint, "• ", "left; the prompt is still waiting")
			f.left = true
			return ExitInterrupted, nil
		case <-ctx.Done():
			return ExitInterrupted, nil
		}
		if f.leaving != nil && f.aim.run != "" { // it had begun, and the news was on its way
			f.leaving = nil
			f.stop(ctx)
		}
	}
}

// take handles one item and reports whether the run has ended.
func (f *follower) take(ctx context.Context, w watched, ok bool) (exit int, done bool, err error) {
	switch {
	case !ok && ctx.Err() != nil:
		return ExitInterrupted, true, nil
	case !ok:
		return ExitFailed, true, errors.New("the conversation ended unexpectedly")
	case w.err != nil && ctx.Err() != nil:
		return ExitInterrupted, true, nil
	case w.err != nil:
		return ExitFailed, true, fmt.Errorf("follow the conversation: %w", w.err)
	}
	if f.json != nil {
		if err := f.json(f.con.Out, w.item); err != nil {
			return ExitFailed, true, fmt.Errorf("write to standard output: %w", err)
		}
	}
	for _, item := range f.mine(w.item) {
		if exit, done := f.one(ctx, item); done {
			return exit, true, nil
		}
	}
	return 0, false, nil
}

func (f *follower) one(ctx context.Context, item Item) (exit int, done bool) {
	if item.Event != nil {
		switch b := item.Event.Body.(type) {
		case chat.Refused:
			if b.Seq == f.aim.seq && f.aim.seq != 0 {
				f.printer.fail(theme.Bad, "✗ ", "not taken: "+b.Why)
				return ExitFailed, true
			}
		case chat.Deleted:
			if b.Seq == f.aim.seq && f.aim.seq != 0 {
				return ExitInterrupted, true
			}
		}
	}
	all := f.presenter.tell(item)
	if f.open != nil && len(all) > 0 {
		over := "\r\x1b[K" // the approval is printed again below the new line
		if f.con.Plain {
			over = "\n"
		}
		f.printer.screen.write(f.con.Err, over)
	}
	f.printer.show(slices.DeleteFunc(slices.Clone(all), f.knows))
	for _, n := range all {
		switch n := n.(type) {
		case asked:
			f.approvals = append(f.approvals, n.ApprovalAsked)
		case settled:
			f.settled(n.ID)
		case ended:
			if n.Run == f.aim.run {
				return f.exit(n.RunEnded), true
			}
		}
	}
	if f.open != nil && len(all) > 0 {
		f.prompt()
	}
	f.ask(ctx)
	if f.open == nil {
		f.printer.redraw()
	}
	return 0, false
}

// remark shows news that is not part of the conversation.
// An open question is asked again below it.
func (f *follower) remark(r notice.Notice) {
	if f.open != nil {
		f.printer.screen.write(f.con.Err, "\n")
	}
	f.printer.show([]news{remark{text: r.Text, bad: r.Bad}})
	f.prompt()
}

// lastRemarks shows remarks that are still queued.
func (f *follower) lastRemarks() {
	for {
		select {
		case r := <-f.remarks:
			f.remark(r)
		default:
			return
		}
	}
}

// knows reports whether the person here already knows.
func (f *follower) knows(n news) bool {
	s, ok := n.(settled)
	return ok && f.own[s.ID]
}

func (f *follower) exit(e chat.RunEnded) int {
	f.approvals, f.open, f.form = nil, nil, nil
	if f.denied {
		return ExitDenied
	}
	return exitOf(e.Reason)
}

// mine holds back items of runs other than the one followed.
func (f *follower) mine(item Item) []Item {
	run := ""
	switch live := item.Live.(type) {
	case chat.Delta:
		run = live.Run
	case chat.Progress:
		run = live.Run
	}
	if item.Event == nil {
		if run == f.aim.run || run == "" {
			return []Item{item}
		}
		return nil
	}
	e := item.Event
	switch b := e.Body.(type) {
	case chat.RunStarted:
		run = b.Run
		if f.aim.run == "" && f.aim.seq != 0 {
			f.aim.held = e
			return nil
		}
	case chat.Refused:
		if f.aim.seq != 0 && b.Seq != f.aim.seq {
			return nil // somebody else's prompt
		}
		return []Item{item}
	case chat.Took:
		run = b.Run
		if f.aim.run == "" && slices.Contains(b.Seqs, f.aim.seq) {
			f.aim.run = b.Run
			if held := f.aim.held; held != nil && held.Body.(chat.RunStarted).Run == b.Run {
				return []Item{{Event: held}, item}
			}
		}
	case chat.RunEnded:
		run = b.Run
	default:
		run = e.Run
	}
	if f.aim.run == "" && f.aim.seq == 0 {
		f.aim.run = run
	}
	if run == "" || run == f.aim.run {
		return []Item{item}
	}
	return nil
}

// interrupt handles Ctrl-C: the first aborts, the second leaves at once. It
// reports whether to leave.
func (f *follower) interrupt(ctx context.Context) bool {
	if f.open != nil {
		f.printer.screen.write(f.con.Err, "\n")
	}
	if f.aborted {
		return true
	}
	f.aborted = true
	switch {
	case f.aim.run != "":
		f.stop(ctx)
	case f.aim.place > 0:
		f.leaving = time.After(0) // other events come first
	default:
		f.leaving = time.After(newsTime)
	}
	return false
}

// newsTime is how long the news of a started run may take to arrive on a busy
// machine.
const newsTime = 2 * time.Second

// stop ends the run that is followed.
func (f *follower) stop(ctx context.Context) {
	f.printer.note(theme.Faint, "• ", "stopping; press again to leave at once")
	if err := f.s.Abort(ctx, false); err != nil {
		f.printer.fail(theme.Bad, "✗ ", "could not stop it: "+err.Error())
	}
}
