package taskview

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"chorus/internal/feed"
	"chorus/internal/markdown"
	"chorus/internal/operations"
	"chorus/internal/text"
	"chorus/internal/theme"
	"chorus/internal/transport/cli"
	"chorus/internal/transport/repl"
	"chorus/internal/work"
)

// drawEvery is the interval between redraws of the line, for its clock and its spinner.
const drawEvery = 500 * time.Millisecond

// taskWatch shows a task live.
type taskWatch struct {
	lines io.Writer // where steps are printed
	live  io.Writer // where the status line is redrawn; nil: nowhere
	width int
	look  theme.Theme
	began time.Time
	doing string // what the worker is doing
	shown string // the state that was printed last
	frame int
}

// ErrBad means that a task failed or is blocked, and that this was printed.
var ErrBad = errors.New("the task did not end well")

// Watch shows a task on a terminal until it ends or needs approval. Without a terminal each step is its own line.
func Watch(ctx context.Context, to cli.Connection, id string, console repl.Console, lines io.Writer) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	w := &taskWatch{lines: lines, width: 80, look: console.OutLook(), began: time.Now()}
	if console.ErrTTY && console.Look.Colored() {
		w.live = console.Err
		if console.Size != nil {
			w.width, _ = console.Size()
		}
	}
	t, err := operations.GetTask.Call(ctx, to, to.Caller, operations.TaskRef{ID: id})
	if err != nil {
		return err
	}
	steps := followTask(ctx, to, t)
	changes := operations.WorkChanges(ctx, to, to.Caller, operations.WorkWait{Task: t.ID}) // git changes are not part of the conversation
	tick := time.NewTicker(drawEvery)
	defer tick.Stop()
	defer w.clear()
	for {
		if over, err := w.show(t); over {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case step := <-steps:
			w.step(step)
			continue
		case <-tick.C:
			continue
		case <-changes:
		}
		if t, err = operations.GetTask.Call(ctx, to, to.Caller, operations.TaskRef{ID: id}); err != nil {
			return err
		}
	}
}

// followTask returns what the worker of a task does, as lines. There are none for somebody who may see the task but not its conversation.
func followTask(ctx context.Context, to cli.Connection, t operations.Task) <-chan string {
	out := make(chan string, 16)
	s, err := operations.GetSession.Call(ctx, to, to.Caller, operations.SessionRef{ID: t.SessionID})
	if err != nil {
		return out
	}
	go func() {
		for item, err := range operations.Watch.Follow(ctx, to, to.Caller, operations.WatchRequest{ID: s.ID, After: s.Seq}) {
			if err != nil {
				return
			}
			line := ""
			switch it := item.(type) {
			case feed.ToolCall:
				line = it.Tool + " " + it.Label
			case feed.AssistantMessage:
				line, _, _ = strings.Cut(strings.TrimSpace(it.Text), "\n")
			case feed.ApprovalRequired:
				line = "asks to run " + it.Tool + ": chorus approvals list"
			}
			if line = text.OneLine(strings.TrimSpace(line)); line == "" {
				continue
			}
			select {
			case out <- line:
			case <-ctx.Done():
				return
			}
		}
	}()
	return out
}

// step records what the worker is doing.
func (w *taskWatch) step(line string) {
	w.doing = line
	if w.live == nil {
		fmt.Fprintf(w.lines, "  %s\n", line)
	}
}

// show prints a task's current state. over means that nobody works on it any more; the error means that it did not end well.
func (w *taskWatch) show(t operations.Task) (over bool, err error) {
	state := work.State(t.Status)
	sign, style := stateLook(t.Status)
	if w.shown != t.Status {
		w.shown = t.Status
		w.clear()
		line := w.look.Paint(style, sign+" "+t.Status) + "  " + text.OneLine(t.Title)
		if t.Why != "" {
			line += ": " + text.OneLine(t.Why)
		}
		fmt.Fprintln(w.lines, line)
	}
	switch {
	case state.AsksForYes():
		fmt.Fprintf(w.lines, "approve it with chorus task approve %s, or send it back with chorus task reopen %s 'what is not right'\n", t.ID, t.ID)
		return true, nil
	case state == work.Completed:
		return true, nil
	case state.Over():
		fmt.Fprintf(w.lines, "see what to do with chorus task error %s\n", t.ID)
		return true, ErrBad
	}
	if w.live != nil {
		w.frame++
		signs := []rune("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")
		done, all := taskProgress(t)
		line := fmt.Sprintf("%c %s %s  %s  %s", signs[w.frame%len(signs)], progressBar(done, all, 12), strings.ToLower(t.Status), time.Since(w.began).Round(time.Second), w.doing)
		fmt.Fprintf(w.live, "\r\x1b[K%s", markdown.Truncate(line, max(w.width-1, 20)))
	}
	return false, nil
}

// clear removes the line.
func (w *taskWatch) clear() {
	if w.live != nil {
		fmt.Fprint(w.live, "\r\x1b[K")
	}
}

// taskProgress is the progress of a task: by its subtasks if it has any, otherwise by the states it has passed.
func taskProgress(t operations.Task) (done, all int) {
	for _, s := range t.Subtasks {
		if s.Status == string(work.Completed) {
			done++
		}
	}
	if len(t.Subtasks) > 0 {
		return done, len(t.Subtasks)
	}
	way := []work.State{work.Defined, work.Ready, work.Assigned, work.InProgress, work.Verifying, work.Completed}
	for i, s := range way {
		if work.State(t.Status) == s {
			return i, len(way) - 1
		}
	}
	return 3, len(way) - 1 // it waits for an answer or a time, somewhere in between
}
